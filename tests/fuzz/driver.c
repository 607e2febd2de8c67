/*
 * driver.c: runs a fuzz target over files and folders of files instead of libFuzzer, and over every
 * file cut short and with bits flipped. So the corpus is a test of every build.
 *
 * usage: fuzz_X CORPUS...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of each file; fewer where an input takes long, as libFuzzer has more of them (.ci/run fuzz). */
#ifndef VARIANTS
#define VARIANTS 64
#endif
enum { SIZE_MAX_FILE = 1 << 20, CUTS = VARIANTS, FLIPS = 4 * VARIANTS };
static int inputs;

static void run(const uint8_t *data, size_t n) {
  uint8_t *exact = malloc(n + (n == 0)); /* so that a sanitizer sees a read beyond the end */
  if (exact == NULL) abort();
  if (n > 0) memcpy(exact, data, n);
  LLVMFuzzerTestOneInput(exact, n);
  free(exact);
  inputs++;
}

static void run_variants(uint8_t *data, size_t n) {
  run(data, n);
  for (size_t i = 0; i < CUTS && n > 0; i++) run(data, i < CUTS / 2 ? i * 17 % n : n * i / CUTS);
  for (size_t i = 0; i < FLIPS && n > 0; i++) { /* headers first: half of the flips in 1 KiB */
    size_t range = i % 2 && n > 1024 ? 1024 : n, bit = i * 2654435761u % (range * 8);
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    run(data, n);
    data[bit / 8] ^= (uint8_t)(1u << bit % 8);
  }
}

static int run_file(const char *path) {
  FILE *f = fopen(path, "rb");
  uint8_t *data = malloc(SIZE_MAX_FILE);
  size_t n = f != NULL && data != NULL ? fread(data, 1, SIZE_MAX_FILE, f) : 0;
  int bad = f == NULL || data == NULL || ferror(f);
  if (bad) perror(path);
  if (!bad) run_variants(data, n);
  if (f != NULL) fclose(f);
  free(data);
  return bad;
}

static int run_path(const char *path) {
  struct stat st;
  if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) return run_file(path);
  DIR *dir = opendir(path);
  if (dir == NULL) {
    perror(path);
    return 1;
  }
  int bad = 0;
  for (struct dirent *e; (e = readdir(dir)) != NULL;) {
    char name[4096];
    if (e->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%s/%s", path, e->d_name);
    bad |= run_file(name);
  }
  closedir(dir);
  return bad;
}

int main(int argc, char **argv) {
  int bad = 0;
  for (int i = 1; i < argc; i++) bad |= run_path(argv[i]);
  printf("%d inputs\n", inputs);
  return bad || inputs == 0;
}
