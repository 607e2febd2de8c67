#include "client/libquark/memory/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

int quark__memfd_create(const char *name, uint64_t bytes) {
  const int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, (off_t)bytes) == 0 &&
      fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0)
    return fd;
  const int e = errno;
  close(fd);
  errno = e;
  return -1;
}

/* All bytes from memory to that place of a descriptor; from there to memory if `from` is NULL. */
static bool copy_at(int fd, const uint8_t *from, uint8_t *to, uint64_t bytes, uint64_t at) {
  for (uint64_t done = 0; done < bytes;) {
    const off_t place = (off_t)(at + done);
    const ssize_t n = from ? pwrite(fd, from + done, bytes - done, place)
                           : pread(fd, to + done, bytes - done, place);
    if (n <= 0 && !(n < 0 && errno == EINTR)) return false;
    if (n > 0) done += (uint64_t)n;
  }
  return true;
}

bool quark__memfd_read(int fd, uint8_t *data, uint64_t bytes, uint64_t at) {
  return copy_at(fd, NULL, data, bytes, at);
}

bool quark__memfd_write(int fd, const uint8_t *data, uint64_t bytes, uint64_t at) {
  return copy_at(fd, data, NULL, bytes, at);
}

bool quark__memfd_clear(int fd, uint64_t bytes, uint64_t at) {
  static const uint8_t zeros[4096];
  const int how = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  bool done = fallocate(fd, how, (off_t)at, (off_t)bytes) == 0;
  for (uint64_t n; !done && bytes > 0; at += n, bytes -= n) {
    n = bytes < sizeof zeros ? bytes : sizeof zeros;
    if (!quark__memfd_write(fd, zeros, n, at)) return false;
  }
  return true;
}
