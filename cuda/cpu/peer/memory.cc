/*
 * Memory of the CPU backend that other ranks of the host write into. It has no name in a file
 * system, so that nothing of it outlives a rank that is killed: others open it through /proc. In
 * another container /proc shows other processes: the first page holds what the handle must agree
 * with.
 */
#include "cuda/cpu/ctx.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

namespace {

constexpr size_t page = 4096;

struct head {
  uint64_t cookie[2];
  uint64_t bytes; /* with this page */
  int64_t fd;     /* of the owner */
};

struct handle_words {
  uint64_t cookie[2];
  uint64_t bytes;
  int64_t pid, fd;
};

static_assert(sizeof(handle_words) <= sizeof(qk_peer_handle_t), "a handle has room for ours");

head *head_of(void *ptr) {
  return (head *)((char *)ptr - page);
}

/* Memory that the file has, or NULL. */
void *map(int fd, size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* posix_fallocate: a limit on shared memory shows here, not as a SIGBUS at the first touch. */
head *create(size_t bytes) {
  const int fd = memfd_create("quark-peer", MFD_CLOEXEC);
  if (fd < 0) return NULL;
  head *h = posix_fallocate(fd, 0, (off_t)bytes) == 0 ? (head *)map(fd, bytes) : NULL;
  if (h == NULL || getrandom(h->cookie, sizeof h->cookie, 0) != sizeof h->cookie) {
    if (h != NULL) munmap(h, bytes);
    close(fd);
    return NULL;
  }
  h->bytes = bytes;
  h->fd = fd;
  return h;
}

} // namespace

qk_status_t qk_cpu_memory::peer_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr,
                                      qk_peer_handle_t *handle) {
  qk_status_t status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  head *h = create(bytes + page);
  if (h == NULL)
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "%zu bytes of shared memory: %s", bytes,
                       strerror(errno));
  const handle_words words = {{h->cookie[0], h->cookie[1]}, h->bytes, getpid(), h->fd};
  *handle = {};
  memcpy(handle->bytes, &words, sizeof words);
  *ptr = (char *)h + page;
  qk_ctx_hold(ctx, *ptr, bytes);
  return QK_OK;
}

void qk_cpu_memory::peer_free(qk_ops_ctx_t *ctx, void *ptr) {
  if (ptr == NULL) return;
  qk_ctx_release(ctx, ptr);
  head *h = head_of(ptr);
  ::close((int)h->fd);
  munmap(h, h->bytes);
}

qk_status_t qk_cpu_memory::peer_open(qk_ops_ctx_t *ctx, const qk_peer_handle_t *handle,
                                     void **ptr) {
  char path[64];
  handle_words words;
  memcpy(&words, handle->bytes, sizeof words);
  snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)words.pid, (long long)words.fd);
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  const bool whole = fd >= 0 && lseek(fd, 0, SEEK_END) == (off_t)words.bytes;
  head *h = whole ? (head *)map(fd, words.bytes) : NULL;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (h != NULL && memcmp(h->cookie, words.cookie, sizeof h->cookie) == 0) {
    *ptr = (char *)h + page;
    return QK_OK;
  }
  if (h != NULL) munmap(h, words.bytes);
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "shared memory %s: %s", path,
                     fd < 0 ? strerror(error) : "not that of the other rank");
}

void qk_cpu_memory::peer_close(qk_ops_ctx_t *, void *ptr) {
  if (ptr != NULL) munmap(head_of(ptr), head_of(ptr)->bytes);
}
