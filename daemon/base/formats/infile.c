#include "daemon/base/formats/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/fault.h"

qk_status_t qk_infile_open(const char *path, qk_infile_t *file, qk_err_t *err) {
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
  if (fd < 0) return qk_fail(err, QK_IO_ERROR, "cannot open: %s", strerror(errno));
  struct stat st;
  if (fstat(fd, &st) != 0) {
    qk_fail(err, QK_IO_ERROR, "cannot stat: %s", strerror(errno));
    close(fd);
    return QK_IO_ERROR;
  }
  if (!S_ISREG(st.st_mode)) {
    close(fd);
    return qk_fail(err, QK_IO_ERROR, "not a regular file");
  }
  *file = (qk_infile_t){.fd = fd, .size = st.st_size};
  return QK_OK;
}

void qk_infile_close(qk_infile_t *file) {
  close(file->fd);
  file->fd = -1;
}

qk_status_t qk_infile_read(const qk_infile_t *file, void *buf, int64_t bytes, int64_t offset,
                           qk_err_t *err) {
  char *p = buf;
  while (bytes > 0) {
    ssize_t n;
    if (qk_fault(QK_FAULT_READ)) {
      n = -1;
      errno = EIO;
    } else {
      n = pread(file->fd, p, (size_t)bytes, offset);
    }
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return qk_fail(err, QK_IO_ERROR, "read of %" PRId64 " bytes at offset %" PRId64 ": %s", bytes,
                     offset, strerror(errno));
    }
    if (n == 0) {
      return qk_fail(err, QK_TRUNCATED,
                     "the file ends %" PRId64 " bytes early: at byte %" PRId64
                     ", within a part that should reach byte %" PRId64,
                     bytes, offset, offset + bytes);
    }
    p += n;
    bytes -= n;
    offset += n;
  }
  return QK_OK;
}
