#include "client/libquark/request/upload.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/memory/memfd.h"
#include "proto/limits.h"

static const uint64_t RING_BYTES = 2 * QK_UPLOAD_WINDOW; /* half of it sent, half not */
static const int64_t SPARE_MS = 10000;

static uint64_t least(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

/* ---- memory that is shared with the daemon ---- */

void quark__spare_drop(spare_t *spare) {
  if (spare->fd >= 0) close(spare->fd);
  spare->fd = -1;
}

void quark__spare_tick(spare_t *spare) {
  if (quark__now_ms() - spare->since > SPARE_MS) quark__spare_drop(spare);
}

/* A memfd whose size is sealed, the spare one if it has these bytes; -1: none. */
static int take_memory(spare_t *spare, uint64_t bytes) {
  if (spare->fd >= 0 && spare->bytes == bytes) {
    const int fd = spare->fd;
    spare->fd = -1;
    return fd;
  }
  quark__spare_drop(spare);
  return quark__memfd_create("quark-upload", bytes);
}

/* ---- the stream ---- */

/* Two fields more than chunks need, rounded up to whole fields. */
static uint64_t shared_capacity(uint64_t field_bytes) {
  return ((RING_BYTES + field_bytes - 1) / field_bytes + 2) * field_bytes;
}

bool quark__upload_init(upload_t *up, uint32_t nrhs, uint64_t field_bytes, spare_t *spare,
                        bool by_blocks) {
  uint64_t total;
  if (field_bytes == 0 || field_bytes > INT64_MAX / 4 ||
      __builtin_mul_overflow(field_bytes, (uint64_t)nrhs, &total))
    return false;
  memset(up, 0, sizeof *up);
  up->total = total;
  up->field_bytes = field_bytes;
  if (spare) {
    up->capacity = least(total, shared_capacity(field_bytes));
    up->fd = take_memory(spare, up->capacity);
    up->shared = up->fd >= 0;
  }
  if (!up->shared) {
    up->capacity = least(total, RING_BYTES);
    up->ring = malloc(up->capacity);
  }
  up->hash = qk_field_hash_create();
  up->by_blocks = by_blocks && !up->shared; /* whole fields have whole checksums */
  if (up->hash) qk_field_hash_init(up->hash, up->by_blocks);
  if ((up->shared || up->ring) && up->hash) return true;
  quark__upload_fini(up);
  return false;
}

void quark__upload_begin_at(upload_t *up, uint64_t position) {
  if (position > up->total) position = up->total;
  up->written = up->sent = up->taken = up->summed = position;
}

void quark__upload_fini(upload_t *up) {
  if (up->shared) close(up->fd);
  free(up->ring);
  qk_field_hash_destroy(up->hash);
  memset(up, 0, sizeof *up);
}

void quark__upload_finish(upload_t *up, spare_t *spare) {
  if (up->shared && up->taken >= up->sent) { /* else the daemon still reads it */
    quark__spare_drop(spare);
    *spare = (spare_t){.fd = up->fd, .bytes = up->capacity, .since = quark__now_ms()};
    up->shared = false;
  }
  quark__upload_fini(up);
}

/* If data go by chunks, the daemon has all bytes but the last QK_UPLOAD_WINDOW that were sent.
 * Older bytes can be overwritten. */
uint64_t quark__upload_space(const upload_t *up) {
  uint64_t safe = 0;
  if (up->shared)
    safe = up->taken / up->field_bytes * up->field_bytes;
  else if (up->capacity < up->total && up->sent > QK_UPLOAD_WINDOW)
    safe = up->sent - QK_UPLOAD_WINDOW;
  return up->capacity - (up->written - safe);
}

bool quark__upload_write(upload_t *up, const uint8_t *data, uint64_t bytes) {
  const uint64_t at = up->written % up->capacity, head = least(bytes, up->capacity - at);
  if (up->shared) {
    if (!quark__memfd_write(up->fd, data, head, at) ||
        !quark__memfd_write(up->fd, data + head, bytes - head, 0))
      return false;
  } else {
    memcpy(up->ring + at, data, head);
    memcpy(up->ring, data + head, bytes - head);
  }
  if (!up->by_blocks) qk_field_hash_update(up->hash, data, bytes);
  up->written += bytes;
  return true;
}

uint64_t quark__upload_checksum(upload_t *up) {
  const uint64_t checksum = qk_field_hash_digest(up->hash);
  qk_field_hash_init(up->hash, up->by_blocks);
  return checksum;
}

bool quark__upload_read(const upload_t *up, uint64_t position, uint8_t *out, uint64_t bytes) {
  const uint64_t at = position % up->capacity, head = least(bytes, up->capacity - at);
  if (up->shared)
    return quark__memfd_read(up->fd, out, head, at) &&
           quark__memfd_read(up->fd, out + head, bytes - head, 0);
  memcpy(out, up->ring + at, head);
  memcpy(out + head, up->ring, bytes - head);
  return true;
}
