#include "daemon/front/host/procid.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

static bool read_boot(char boot[QK_BOOT_MAX + 1]) {
  FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
  if (!f) return false;
  const bool ok = fscanf(f, "%36s", boot) == 1;
  fclose(f);
  return ok;
}

/* Field 22 of proc(5): the name before it may hold anything, but ends at the last bracket. */
static bool read_start(pid_t pid, unsigned long long *start) {
  char path[64], line[1024];
  snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
  FILE *f = fopen(path, "re");
  if (!f) return false;
  const size_t n = fread(line, 1, sizeof line - 1, f);
  fclose(f);
  line[n] = '\0';
  const char *end = strrchr(line, ')');
  return end && sscanf(end + 1,
                       " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
                       "%*d %llu",
                       start) == 1;
}

qk_status_t qk_procid_of(pid_t pid, qk_procid_t *out, qk_err_t *err) {
  qk_procid_t id = {.pid = pid};
  if (!read_boot(id.boot) || !read_start(pid, &id.start))
    return qk_fail(err, QK_NOT_FOUND, "process %ld is not there", (long)pid);
  *out = id;
  return QK_OK;
}

qk_status_t qk_procid_open(const qk_procid_t *id, int *pidfd, qk_err_t *err) {
  qk_procid_t now;
  errno = 0;
  const int fd = id->pid > 1 ? (int)syscall(SYS_pidfd_open, id->pid, 0) : -1;
  if (fd < 0 && errno == ENOSYS)
    return qk_fail(err, QK_UNSUPPORTED, "this kernel has no pidfd_open");
  if (fd >= 0 && qk_procid_of(id->pid, &now, NULL) == QK_OK && now.start == id->start &&
      strcmp(now.boot, id->boot) == 0 && qk_procid_lives(fd)) {
    *pidfd = fd;
    return QK_OK;
  }
  if (fd >= 0) close(fd);
  return qk_fail(err, QK_NOT_FOUND, "process %ld has ended", (long)id->pid);
}

bool qk_procid_lives(int pidfd) {
  struct pollfd p = {.fd = pidfd, .events = POLLIN};
  return poll(&p, 1, 0) == 0;
}

bool qk_procid_end(const qk_procid_t *id) {
  static const int signals[] = {SIGTERM, SIGKILL};
  int fd;
  bool gone = false;
  const qk_status_t status = qk_procid_open(id, &fd, NULL);
  if (status != QK_OK) return status == QK_NOT_FOUND;
  for (int i = 0; i < 2 && !gone; i++) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    kill(-id->pid, signals[i]);
    gone = poll(&p, 1, PATIENCE_MS) == 1;
  }
  close(fd);
  return gone;
}
