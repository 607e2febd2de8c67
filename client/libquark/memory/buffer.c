#include "client/libquark/memory/buffer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/memory/memfd.h"

struct quark_buffer {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int fd;
  void *data;
  uint64_t bytes;
  uint32_t held;  /* by so many fields */
  bool destroyed; /* data is not mapped any more */
};

/* ---- life ---- */

static bool init(quark_buffer_t *b) {
  pthread_condattr_t clock;
  if (pthread_condattr_init(&clock) != 0) return false;
  pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
  const bool made = pthread_cond_init(&b->changed, &clock) == 0;
  pthread_condattr_destroy(&clock);
  if (!made) return false;
  if (pthread_mutex_init(&b->lock, NULL) == 0) return true;
  pthread_cond_destroy(&b->changed);
  return false;
}

static void fini(quark_buffer_t *b) {
  close(b->fd);
  pthread_mutex_destroy(&b->lock);
  pthread_cond_destroy(&b->changed);
  free(b);
}

static bool map(quark_buffer_t *b) {
  b->fd = quark__memfd_create("quark-buffer", b->bytes);
  if (b->fd < 0) return false;
  b->data = mmap(NULL, b->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, b->fd, 0);
  if (b->data != MAP_FAILED) return true;
  const int e = errno;
  close(b->fd);
  errno = e;
  return false;
}

quark_code_t quark_buffer_create(size_t bytes, quark_buffer_t **buffer, void **data,
                                 quark_error_t *err) {
  if (bytes == 0 || bytes > INT64_MAX)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "bytes = %zu: must be 1 to 2^63 - 1", bytes);
  quark_buffer_t *b = calloc(1, sizeof *b);
  if (!b) return quark__fail(err, QUARK_NO_MEMORY, "no memory for a buffer");
  b->bytes = bytes;
  if (!map(b)) {
    quark__fail(err, QUARK_NO_MEMORY, "a buffer of %zu bytes: %s", bytes, strerror(errno));
    free(b);
    return QUARK_NO_MEMORY;
  }
  if (!init(b)) {
    munmap(b->data, bytes);
    close(b->fd);
    free(b);
    return quark__fail(err, QUARK_NO_MEMORY, "no memory for a buffer");
  }
  *buffer = b;
  *data = b->data;
  return QUARK_OK;
}

void quark_buffer_destroy(quark_buffer_t *b) {
  if (!b) return;
  munmap(b->data, b->bytes);
  pthread_mutex_lock(&b->lock);
  b->destroyed = true;
  const bool last = b->held == 0;
  pthread_mutex_unlock(&b->lock);
  if (last) fini(b);
}

void quark__buffer_hold(quark_buffer_t *b) {
  pthread_mutex_lock(&b->lock);
  b->held++;
  pthread_mutex_unlock(&b->lock);
}

void quark__buffer_drop(quark_buffer_t *b) {
  pthread_mutex_lock(&b->lock);
  b->held--;
  const bool last = b->held == 0 && b->destroyed;
  if (b->held == 0) pthread_cond_broadcast(&b->changed);
  pthread_mutex_unlock(&b->lock);
  if (last) fini(b);
}

quark_code_t quark_buffer_wait(quark_buffer_t *b, int64_t timeout_ms, quark_error_t *err) {
  const int64_t until = quark__now_ms() + (timeout_ms > 0 ? timeout_ms : 0);
  const struct timespec t = {.tv_sec = (time_t)(until / 1000),
                             .tv_nsec = (long)(until % 1000) * 1000000};
  bool in_time = timeout_ms != 0;
  pthread_mutex_lock(&b->lock);
  while (b->held > 0 && in_time)
    in_time = (timeout_ms < 0 ? pthread_cond_wait(&b->changed, &b->lock)
                              : pthread_cond_timedwait(&b->changed, &b->lock, &t)) != ETIMEDOUT;
  const uint32_t held = b->held;
  pthread_mutex_unlock(&b->lock);
  if (held == 0) return QUARK_OK;
  return quark__fail(err, QUARK_TIMEOUT, "the buffer is not free: %u of its fields are under way",
                     held);
}

/* ---- what is in it ---- */

bool quark__buffer_has(const quark_buffer_t *b, uint64_t offset, uint64_t bytes) {
  return bytes <= b->bytes && offset <= b->bytes - bytes;
}

int quark__buffer_fd(const quark_buffer_t *b) {
  return b->fd;
}

bool quark__buffer_read(const quark_buffer_t *b, uint64_t offset, uint8_t *out, uint64_t bytes) {
  return quark__memfd_read(b->fd, out, bytes, offset);
}

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* The first byte from `at` on that may be other than zero, or that lies in a hole; `end`: there is
 * none before. Pages that the kernel cannot tell about are data. */
static uint64_t seek(const quark_buffer_t *b, uint64_t at, uint64_t end, int what) {
  const off_t found = lseek(b->fd, (off_t)at, what);
  if (found >= 0) return least((uint64_t)found, end);
  return what == SEEK_DATA && errno != ENXIO ? at : end;
}

bool quark__buffer_has_holes(const quark_buffer_t *b, uint64_t offset, uint64_t bytes) {
  return seek(b, offset, offset + bytes, SEEK_HOLE) < offset + bytes;
}

uint64_t quark__buffer_checksum(const quark_buffer_t *b, uint64_t offset, uint64_t bytes,
                                bool by_blocks, qk_field_hash_t *hash) {
  const uint64_t end = offset + bytes;
  qk_field_hash_init(hash, by_blocks);
  for (uint64_t at = offset; at < end;) {
    const uint64_t data = seek(b, at, end, SEEK_DATA), hole = seek(b, data, end, SEEK_HOLE);
    qk_field_hash_zeros(hash, data - at);
    qk_field_hash_update(hash, (const uint8_t *)b->data + data, hole - data);
    at = hole;
  }
  return qk_field_hash_digest(hash);
}
