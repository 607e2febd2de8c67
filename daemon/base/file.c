#include "daemon/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"

qk_status_t qk_file_put(int fd, const void *data, int64_t bytes, qk_err_t *err) {
  const char *p = data;
  while (bytes > 0) {
    ssize_t n;
    if (qk_fault(QK_FAULT_WRITE)) {
      n = -1;
      errno = ENOSPC;
    } else {
      n = write(fd, p, (size_t)bytes);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return qk_fail(err, QK_IO_ERROR, "write of %" PRId64 " bytes: %s", bytes, strerror(errno));
    }
    p += n;
    bytes -= n;
  }
  return QK_OK;
}

/* False with errno. */
static bool copy_bytes(int from, int to) {
  char buffer[65536];
  for (ssize_t n; (n = read(from, buffer, sizeof buffer)) != 0;)
    if (n < 0 || write(to, buffer, (size_t)n) != n) return false;
  return fsync(to) == 0;
}

qk_status_t qk_file_copy(const char *from, const char *to, qk_err_t *err) {
  const int in = open(from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  const int out = in >= 0 ? open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
  qk_status_t status = QK_OK;
  if (out < 0 || !copy_bytes(in, out))
    status = qk_fail(err, QK_IO_ERROR, "copying %s to %s: %s", from, to, strerror(errno));
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return status;
}

qk_status_t qk_file_sync(const char *path, qk_err_t *err) {
  qk_status_t status = QK_OK;
  const int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fsync(fd) != 0) status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (fd >= 0) close(fd);
  return status;
}

static void folder_of(const char *path, char folder[QK_FILE_PATH]) {
  const char *slash = strrchr(path, '/');
  snprintf(folder, QK_FILE_PATH, "%.*s", slash == NULL ? 1 : (int)(slash - path + 1),
           slash == NULL ? "." : path);
}

qk_status_t qk_file_may_replace(const char *path, qk_err_t *err) {
  char folder[QK_FILE_PATH];
  struct stat there;
  if (path[0] == '\0') return qk_fail(err, QK_BAD_ARGUMENT, "the name of a file is empty");
  if (strlen(path) >= QK_FILE_PATH - 32)
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %zu bytes: too long", strlen(path));
  if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: not a regular file", path);
  folder_of(path, folder);
  if (access(folder, W_OK | X_OK) != 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: no file can be made in %s: %s", path, folder,
                   strerror(errno));
  return QK_OK;
}

static const char *name_in(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static bool is_one(const char *a, const char *b) {
  struct stat of_a, of_b;
  return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

bool qk_file_is_same(const char *a, const char *b) {
  char folder[2][QK_FILE_PATH];
  if (strcmp(a, b) == 0 || is_one(a, b)) return true;
  folder_of(a, folder[0]);
  folder_of(b, folder[1]);
  return strcmp(name_in(a), name_in(b)) == 0 && is_one(folder[0], folder[1]);
}

void qk_file_sync_folder(const char *path) {
  char folder[QK_FILE_PATH];
  folder_of(path, folder);
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

qk_status_t qk_file_replace(const char *path, const void *data, int64_t bytes, qk_err_t *err) {
  char temp[QK_FILE_PATH];
  int n = snprintf(temp, sizeof temp, "%s.%ld.tmp", path, (long)getpid());
  if (n < 0 || (size_t)n >= sizeof temp)
    return qk_fail(err, QK_BAD_ARGUMENT, "path of %d bytes: the limit is %d", n, QK_FILE_PATH - 1);
  int fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot create %s: %s", temp, strerror(errno));
  qk_status_t status = qk_file_put(fd, data, bytes, err);
  if (status != QK_OK) qk_err_prefix(err, "%s", path);
  if (status == QK_OK && fsync(fd) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: fsync: %s", temp, strerror(errno));
  if (close(fd) != 0 && status == QK_OK)
    status = qk_fail(err, QK_IO_ERROR, "%s: close: %s", temp, strerror(errno));
  if (status == QK_OK && rename(temp, path) != 0)
    status = qk_fail(err, QK_IO_ERROR, "cannot rename %s to %s: %s", temp, path, strerror(errno));
  if (status != QK_OK) {
    unlink(temp);
    return status;
  }
  qk_file_sync_folder(path);
  return QK_OK;
}
