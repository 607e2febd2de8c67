#include "daemon/front/state/mark.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/host/folder.h"

enum { LINE = 128 };

void qk_mark_boot(char boot[QK_MARK_BOOT]) {
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd >= 0 ? read(fd, boot, QK_MARK_BOOT - 1) : 0;
  boot[n > 0 ? n : 0] = '\0';
  if (fd >= 0) close(fd);
}

qk_status_t qk_mark_open(qk_mark_t *mark, const char *path, uint64_t *least, qk_err_t *err) {
  char line[LINE] = "", boot[QK_MARK_BOOT];
  *least = 0;
  const qk_status_t status = qk_folder_open(path, &mark->fd, err);
  if (status != QK_OK) return status;
  qk_mark_boot(mark->boot);
  if (pread(mark->fd, line, sizeof line - 1, 0) <= 0) return QK_OK;
  if (sscanf(line, "%20" SCNu64 " %20" SCNu64 " %36s", &mark->commits, &mark->synced, boot) == 3)
    *least = strcmp(boot, mark->boot) == 0 ? mark->commits : mark->synced;
  return QK_OK;
}

void qk_mark_put(qk_mark_t *mark, uint64_t commits, bool synced) {
  char line[LINE];
  if (mark->fd < 0) return;
  mark->commits = commits;
  if (synced || mark->synced > commits) mark->synced = commits;
  const int n = snprintf(line, sizeof line, "%20" PRIu64 " %20" PRIu64 " %s\n", mark->commits,
                         mark->synced, mark->boot[0] ? mark->boot : "?");
  /* one that cannot be written counts too little, and nothing is missed */
  if (pwrite(mark->fd, line, (size_t)n, 0) != n) mark->synced = 0;
}

void qk_mark_close(qk_mark_t *mark) {
  if (mark->fd >= 0) close(mark->fd);
  mark->fd = -1;
}
