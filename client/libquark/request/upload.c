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
                        bool by_blocks, bool zeros) {
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
  up->by_blocks = by_blocks && !up->shared; /* those of whole fields are made as they come */
  up->zeros = zeros;
  if (up->hash) qk_field_hash_init(up->hash, up->by_blocks || up->zeros);
  if ((up->shared || up->ring) && up->hash) return true;
  quark__upload_fini(up);
  return false;
}

void quark__upload_begin_at(upload_t *up, uint64_t position) {
  if (position > up->total) position = up->total;
  up->written = up->sent = up->taken = up->summed = up->safe = position;
}

void quark__upload_fini(upload_t *up) {
  if (up->shared) close(up->fd);
  free(up->ring);
  qk_field_hash_destroy(up->hash);
  quark__runs_fini(&up->runs);
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

/* Where the bytes at that position of the stream are in the ring. */
static uint64_t place_of(const upload_t *up, uint64_t position) {
  if (!up->shared) position -= quark__runs_before(&up->runs, position);
  return position % up->capacity;
}

/* Bytes in a ring on the heap from that position on. */
static uint64_t kept_from(const upload_t *up, uint64_t position) {
  const uint64_t zeros = up->runs.all - quark__runs_before(&up->runs, position);
  return up->written - position - zeros;
}

/* If data go by chunks, the daemon has all bytes but the last QK_UPLOAD_WINDOW of those for which
 * it has given credit. Older bytes can be overwritten. Runs may be sent without credit. */
uint64_t quark__upload_space(upload_t *up) {
  if (up->shared) {
    const uint64_t safe = up->taken / up->field_bytes * up->field_bytes;
    quark__runs_forget(&up->runs, safe);
    return up->capacity - (up->written - safe);
  }
  const uint64_t credited = least(up->sent, up->until);
  if (up->capacity < up->total && credited > QK_UPLOAD_WINDOW + up->safe)
    up->safe = credited - QK_UPLOAD_WINDOW;
  quark__runs_forget(&up->runs, up->safe);
  return up->capacity - kept_from(up, up->safe);
}

bool quark__upload_has(const upload_t *up, uint64_t position) {
  if (position < up->safe || position > up->written) return false;
  return up->shared ? up->written - position <= up->capacity
                    : kept_from(up, position) <= up->capacity;
}

bool quark__upload_write(upload_t *up, const uint8_t *data, uint64_t bytes) {
  const uint64_t at = place_of(up, up->written), head = least(bytes, up->capacity - at);
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

/* Of a shared ring, which holds whole fields, they are holes. */
bool quark__upload_write_zeros(upload_t *up, uint64_t bytes) {
  const uint64_t end = up->written + bytes;
  if (up->shared && !quark__memfd_clear(up->fd, bytes, place_of(up, up->written))) return false;
  if (!quark__runs_add(&up->runs, up->written, end, up->written % up->field_bytes > 0))
    return false;
  if (!up->by_blocks) qk_field_hash_zeros(up->hash, bytes);
  up->written = end;
  return true;
}

uint64_t quark__upload_checksum(upload_t *up) {
  const uint64_t checksum = qk_field_hash_digest(up->hash);
  qk_field_hash_init(up->hash, up->by_blocks || up->zeros);
  return checksum;
}

bool quark__upload_read(const upload_t *up, uint64_t position, uint8_t *out, uint64_t bytes) {
  const uint64_t at = place_of(up, position), head = least(bytes, up->capacity - at);
  if (up->shared)
    return quark__memfd_read(up->fd, out, head, at) &&
           quark__memfd_read(up->fd, out + head, bytes - head, 0);
  memcpy(out, up->ring + at, head);
  memcpy(out + head, up->ring, bytes - head);
  return true;
}
