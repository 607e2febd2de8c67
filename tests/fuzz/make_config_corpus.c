/*
 * make_config_corpus.c: configuration files for fuzz_config.c.
 *
 * usage: make_config_corpus FOLDER   makes FOLDER/... and prints the names
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char *const FILES[] = {
    "; every type\n[quarkd]\nslots = 12\nmax-memory = 4G\nkappa = 0.1234\ngauge = /data/a.lime\n"
    "verbose = yes\nbackend = cuda\nset = mass=-0.1\nset = csw=1.5\ncolour = #ff0000\n",
    "slots=1\r\nmax-memory: 1048576 ; a comment\r\nset = a\r\n  continued\r\n",
    "places = 3\nwordy = off\n# old names\n\n\n",
    "kappa = 1e-2\nkappa = 2e-2\n",
    "[engine]\nslots = 1\n",
    "gauge = \"a b\"\nbackend = gpu\nslots = 0x10\nverbose = perhaps\nkappa = nan\n",
};

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  mkdir(argv[1], 0777);
  for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%zu.conf", argv[1], i);
    FILE *f = fopen(path, "wb");
    if (!f || fputs(FILES[i], f) < 0 || fclose(f) != 0) {
      perror(path);
      return 1;
    }
    printf("%s\n", path);
  }
  return 0;
}
