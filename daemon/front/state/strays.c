#include "daemon/front/state/strays.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/base/plural.h"
#include "daemon/front/state/mark.h"
#include "proto/frame.h"

enum { HASH = 16, NAME_BYTES = 48, PATH_BYTES = QK_PATH_MAX + 16 };

static const char SHM_DIR[] = "/dev/shm", NOTE[] = "quarkd-dir-";

typedef struct sweep {
  uv_work_t work;
  char own[NAME_BYTES];
  int removed;
} sweep_t;

/* The hash in "quarkd-s<hash>-"; NULL: the space is of no folder. */
static const char *hash_of(const qk_shm_space_t *space) {
  return strncmp(space->prefix, "quarkd-s", 8) == 0 ? space->prefix + 8 : NULL;
}

/* ---- notes --------------------------------------------------------------------------------- */

static void note_name(const qk_shm_space_t *space, char name[NAME_BYTES]) {
  snprintf(name, NAME_BYTES, "/%s%.*s", NOTE, HASH, hash_of(space));
}

/* Without it the objects stay until their folder comes back. */
void qk_strays_note(const qk_shm_space_t *space, const char *dir, int lock, uint64_t front) {
  char name[NAME_BYTES], path[NAME_BYTES + 16], boot[QK_MARK_BOOT], line[QK_MARK_BOOT + 24];
  if (!hash_of(space)) return;
  note_name(space, name);
  snprintf(path, sizeof path, "%s%s", SHM_DIR, name);
  unlink(path);
  const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  const ssize_t bytes = (ssize_t)strlen(dir);
  if (fd < 0 || write(fd, dir, (size_t)bytes) != bytes)
    qk_warn("server", "%s: %s: files of a killed quarkd are only removed by the next one with %s",
            path, strerror(errno), dir);
  if (fd >= 0) close(fd);
  qk_mark_boot(boot);
  snprintf(line, sizeof line, "%llu %s\n", (unsigned long long)front, boot);
  if (boot[0] && write(lock, line, strlen(line)) < 0)
    qk_warn("server", "%s/lock: %s", dir, strerror(errno));
}

void qk_strays_forget(const qk_shm_space_t *space) {
  char name[NAME_BYTES], path[NAME_BYTES + 16];
  if (!hash_of(space)) return;
  note_name(space, name);
  snprintf(path, sizeof path, "%s%s", SHM_DIR, name);
  unlink(path);
}

/* ---- sweeping ------------------------------------------------------------------------------ */

/* All of a small file of ours as text; false where it is not. */
static bool read_text(int dir, const char *name, char *text, size_t size) {
  struct stat st;
  const int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ours = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
  const ssize_t n = ours ? read(fd, text, size - 1) : -1;
  close(fd);
  if (n < 0 || (size_t)n == size - 1) return false;
  text[n] = '\0';
  return strlen(text) == (size_t)n;
}

/* The number of the front that served last, if that was on another machine; 0: it was on this one,
 * or nobody can tell. */
static uint64_t served_elsewhere(const char *dir) {
  char path[PATH_BYTES], text[128], here[QK_MARK_BOOT], boot[QK_MARK_BOOT];
  unsigned long long front;
  snprintf(path, sizeof path, "%s/lock", dir);
  qk_mark_boot(here);
  if (!here[0] || !read_text(AT_FDCWD, path, text, sizeof text)) return 0;
  const char *second = strchr(text, '\n');
  if (!second || sscanf(second + 1, "%llu %36[0-9a-f-]", &front, boot) != 2) return 0;
  return strlen(boot) == QK_MARK_BOOT - 1 && strcmp(boot, here) != 0 ? front : 0;
}

/* Whether the name is of the space of `hash`, and which front has made it. */
static bool is_of(const char *name, const char *hash, uint64_t *front) {
  char prefix[NAME_BYTES];
  unsigned long long number, random;
  int end = 0;
  const int n = snprintf(prefix, sizeof prefix, "quarkd-s%s-", hash);
  if (strncmp(name, prefix, (size_t)n) != 0 ||
      sscanf(name + n, "%20llu-%16llx%n", &number, &random, &end) != 2 || name[n + end])
    return false;
  *front = number >> 32;
  return true;
}

/* The objects of fronts before that one. *left: of the space there are others. */
static int remove_before(uint64_t last, const char *hash, bool *left) {
  int removed = 0;
  DIR *dir = opendir(SHM_DIR);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    struct stat st;
    uint64_t front;
    if (!is_of(e->d_name, hash, &front)) continue;
    const bool ours =
        fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == geteuid();
    if (ours && front < last && unlinkat(dirfd(dir), e->d_name, 0) == 0)
      removed++;
    else
      *left = true;
  }
  if (dir) closedir(dir);
  return removed;
}

/* The folder that the note is of; false where it is none. */
static bool read_note(int dir, const char *name, char hash[HASH + 1], char path[PATH_BYTES]) {
  char same[HASH + 1];
  const size_t n = strlen(NOTE);
  if (strncmp(name, NOTE, n) != 0 || strlen(name) != n + HASH) return false;
  memcpy(hash, name + n, HASH + 1);
  if (!read_text(dir, name, path, PATH_BYTES - 16) || path[0] != '/') return false;
  snprintf(same, sizeof same, "%016llx", (unsigned long long)qk_checksum(path, strlen(path)));
  return strcmp(same, hash) == 0;
}

int qk_strays_remove(const char *own) {
  char hash[HASH + 1], path[PATH_BYTES];
  int removed = 0;
  DIR *dir = opendir(SHM_DIR);
  for (struct dirent *e; dir && (e = readdir(dir));) {
    if (!read_note(dirfd(dir), e->d_name, hash, path) || strcmp(hash, own) == 0) continue;
    const uint64_t last = served_elsewhere(path);
    bool left = false;
    if (last == 0) continue;
    removed += remove_before(last, hash, &left);
    /* The folder may have come back meanwhile, and the note be its new front's. */
    if (!left && served_elsewhere(path) == last) unlinkat(dirfd(dir), e->d_name, 0);
  }
  if (dir) closedir(dir);
  return removed;
}

static void run(uv_work_t *work) {
  sweep_t *s = work->data;
  s->removed = qk_strays_remove(s->own);
}

static void after(uv_work_t *work, int cancelled) {
  sweep_t *s = work->data;
  (void)cancelled;
  if (s->removed > 0)
    qk_warn("server", "removed %d %s of state folders that other machines have served since",
            s->removed, qk_plural(s->removed, "shared-memory object", "shared-memory objects"));
  qk_free(s);
}

void qk_strays_sweep(uv_loop_t *loop, const qk_shm_space_t *space) {
  sweep_t *s = qk_calloc(1, sizeof *s);
  if (!s) return;
  if (hash_of(space)) snprintf(s->own, sizeof s->own, "%.*s", HASH, hash_of(space));
  s->work.data = s;
  if (uv_queue_work(loop, &s->work, run, after) != 0) qk_free(s);
}
