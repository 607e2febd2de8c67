#include "client/files/publish.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is named in it now has that name after the end of the machine, too. A folder that may not be
 * read, or that its file system does not sync, is left to that. */
static qk_status_t sync_folder(const char *path, qk_err_t *err) {
  const char *slash = strrchr(path, '/');
  char *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
  const int fd = folder ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
  const int e = fd >= 0 && fsync(fd) == 0 ? 0 : errno;
  if (fd >= 0) close(fd);
  free(folder);
  if (e == 0 || e == EACCES || e == EINVAL || e == ENOTSUP) return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "%s: its folder cannot be brought to the disk: %s", path,
                 strerror(e));
}

qk_status_t qk_publish(const char *part, const char *path, qk_err_t *err) {
  const int fd = open(part, O_RDWR | O_CLOEXEC);
  const bool synced = fd >= 0 && fsync(fd) == 0;
  if (fd >= 0 && close(fd) == 0 && synced && rename(part, path) == 0) return sync_folder(path, err);
  return qk_fail(err, QK_IO_ERROR, "%s: cannot be renamed into place: %s", path, strerror(errno));
}
