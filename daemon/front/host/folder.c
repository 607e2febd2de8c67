#include "daemon/front/host/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

qk_status_t qk_folder_check(const char *what, const char *path, qk_err_t *err) {
  struct stat st;
  if (lstat(path, &st) != 0) return qk_fail(err, QK_IO_ERROR, "%s: %s", what, strerror(errno));
  if (!S_ISDIR(st.st_mode))
    return qk_fail(err, QK_BAD_ARGUMENT, "%s is not a folder: remove it, or choose another name",
                   what);
  if (st.st_uid != geteuid())
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s belongs to user %ld, but quarkd runs as user %ld: choose a folder of that "
                   "user, or a name that does not exist yet",
                   what, (long)st.st_uid, (long)geteuid());
  if (st.st_mode & 022)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: other users may write into it (mode %04o): chmod go-w it if they have not "
                   "written there, or choose a name that does not exist yet",
                   what, (unsigned)st.st_mode & 07777);
  return QK_OK;
}

/* What is wrong with a file that should be ours; NULL: nothing. */
static const char *fault_of(const struct stat *st) {
  if (S_ISLNK(st->st_mode)) return "it is a symbolic link";
  if (!S_ISREG(st->st_mode)) return "it is not a regular file";
  if (st->st_uid != geteuid()) return "it belongs to another user";
  return st->st_nlink > 1 ? "it has a second name (a hard link)" : NULL;
}

static qk_status_t refuse(const char *path, const char *fault, qk_err_t *err) {
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "%s: %s, so quarkd did not create it and does not touch it: look at it, remove "
                 "it, and start again",
                 path, fault);
}

/* There, and ours, or not there. */
static qk_status_t look(const char *path, bool *there, qk_err_t *err) {
  struct stat st;
  *there = lstat(path, &st) == 0;
  if (!*there && errno != ENOENT) return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  const char *fault = *there ? fault_of(&st) : NULL;
  return fault ? refuse(path, fault, err) : QK_OK;
}

/* Nobody else can have exchanged it meanwhile; the descriptor is looked at all the same. */
static qk_status_t take(const char *path, int flags, int *out, qk_err_t *err) {
  struct stat st;
  qk_status_t status = QK_OK;
  const int fd = open(path, flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (fd < 0 || fstat(fd, &st) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  else if (fault_of(&st))
    status = refuse(path, fault_of(&st), err);
  else if ((st.st_mode & 077) && fchmod(fd, 0600) != 0)
    status = qk_fail(err, QK_IO_ERROR, "%s: chmod 600: %s", path, strerror(errno));
  if (status == QK_OK)
    *out = fd;
  else if (fd >= 0)
    close(fd);
  return status;
}

qk_status_t qk_folder_open(const char *path, int *fd, qk_err_t *err) {
  bool there;
  const qk_status_t status = look(path, &there, err);
  return status == QK_OK ? take(path, O_CREAT, fd, err) : status;
}

qk_status_t qk_folder_guard(const char *path, qk_err_t *err) {
  bool there;
  int fd;
  qk_status_t status = look(path, &there, err);
  if (status != QK_OK || !there) return status;
  status = take(path, 0, &fd, err);
  if (status == QK_OK) close(fd);
  return status;
}
