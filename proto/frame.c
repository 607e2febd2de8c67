#include "proto/frame.h"

#include <string.h>
#include <xxhash.h>

enum { VERSION = 1, BIND_BYTES = 2 * QK_CLIENT_ID };

static const uint8_t MAGIC[4] = {'Q', 'K', 'D', 'F'};

static void put(uint8_t *p, int bytes, uint64_t v) {
  for (int i = 0; i < bytes; i++) p[i] = (uint8_t)(v >> (8 * i));
}

static uint64_t get(const uint8_t *p, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
  return v;
}

static qk_status_t blame(qk_frame_fault_t *fault, qk_status_t status, const char *field,
                         uint64_t value, uint64_t limit) {
  *fault = (qk_frame_fault_t){field, value, limit};
  return status;
}

uint64_t qk_checksum(const void *data, size_t bytes) {
  return XXH3_64bits(data, bytes);
}

bool qk_frame_is_last(const qk_frame_t *frame) {
  return frame->offset + frame->chunk_bytes == frame->field_bytes;
}

static qk_status_t check_bind(const qk_frame_t *f, qk_frame_fault_t *fault) {
  uint64_t bytes = f->kind == QK_FRAME_BIND ? BIND_BYTES : 0;
  if (f->request != 0) return blame(fault, QK_BAD_PROTOCOL, "request", f->request, 0);
  if (f->rhs != 0) return blame(fault, QK_BAD_PROTOCOL, "rhs", f->rhs, 0);
  if (f->chunk_bytes != bytes)
    return blame(fault, QK_BAD_PROTOCOL, "chunk_bytes", f->chunk_bytes, bytes);
  if (f->field_bytes != bytes)
    return blame(fault, QK_BAD_PROTOCOL, "field_bytes", f->field_bytes, bytes);
  if (f->offset != 0) return blame(fault, QK_BAD_PROTOCOL, "offset", f->offset, 0);
  if (f->field_checksum != 0)
    return blame(fault, QK_BAD_PROTOCOL, "field_checksum", f->field_checksum, 0);
  return QK_OK;
}

static qk_status_t check_chunk(const qk_frame_t *f, qk_frame_fault_t *fault) {
  if (f->request == 0) return blame(fault, QK_BAD_PROTOCOL, "request", 0, 1);
  if (f->rhs >= QK_REQUEST_RHS_MAX)
    return blame(fault, QK_TOO_LARGE, "rhs", f->rhs, QK_REQUEST_RHS_MAX - 1);
  if (f->chunk_bytes == 0) return blame(fault, QK_BAD_PROTOCOL, "chunk_bytes", 0, 1);
  if (f->chunk_bytes > QK_CHUNK_MAX)
    return blame(fault, QK_TOO_LARGE, "chunk_bytes", f->chunk_bytes, QK_CHUNK_MAX);
  if (f->field_bytes < f->chunk_bytes)
    return blame(fault, QK_BAD_PROTOCOL, "chunk_bytes", f->chunk_bytes, f->field_bytes);
  if (f->offset > f->field_bytes - f->chunk_bytes)
    return blame(fault, QK_BAD_PROTOCOL, "offset", f->offset, f->field_bytes - f->chunk_bytes);
  if (!qk_frame_is_last(f) && f->field_checksum != 0)
    return blame(fault, QK_BAD_PROTOCOL, "field_checksum", f->field_checksum, 0);
  return QK_OK;
}

static qk_status_t check(const qk_frame_t *f, qk_frame_fault_t *fault) {
  switch (f->kind) {
  case QK_FRAME_BIND:
  case QK_FRAME_BOUND:
    return check_bind(f, fault);
  case QK_FRAME_UPLOAD:
  case QK_FRAME_DOWNLOAD:
    return check_chunk(f, fault);
  }
  return blame(fault, QK_BAD_PROTOCOL, "kind", (uint64_t)f->kind, QK_FRAME_DOWNLOAD);
}

qk_status_t qk_frame_encode(qk_frame_t *frame, const void *payload, uint8_t header[QK_FRAME_HEADER],
                            qk_frame_fault_t *fault) {
  qk_status_t s = check(frame, fault);
  if (s != QK_OK) return s;
  frame->chunk_checksum = qk_checksum(payload, frame->chunk_bytes);
  memcpy(header, MAGIC, sizeof MAGIC);
  put(header + 4, 2, VERSION);
  put(header + 6, 2, frame->kind);
  put(header + 8, 8, frame->request);
  put(header + 16, 4, frame->rhs);
  put(header + 20, 4, frame->chunk_bytes);
  put(header + 24, 8, frame->field_bytes);
  put(header + 32, 8, frame->offset);
  put(header + 40, 8, frame->chunk_checksum);
  put(header + 48, 8, frame->field_checksum);
  put(header + 56, 8, qk_checksum(header, 56));
  return QK_OK;
}

qk_status_t qk_frame_decode(const void *message, size_t bytes, qk_frame_t *frame,
                            const uint8_t **payload, qk_frame_fault_t *fault) {
  const uint8_t *h = message;
  if (bytes < QK_FRAME_HEADER)
    return blame(fault, QK_TRUNCATED, "message bytes", bytes, QK_FRAME_HEADER);
  if (bytes > QK_FRAME_MAX) return blame(fault, QK_TOO_LARGE, "message bytes", bytes, QK_FRAME_MAX);
  if (memcmp(h, MAGIC, sizeof MAGIC) != 0)
    return blame(fault, QK_BAD_PROTOCOL, "magic", get(h, 4), get(MAGIC, 4));
  if (get(h + 4, 2) != VERSION)
    return blame(fault, QK_UNSUPPORTED, "version", get(h + 4, 2), VERSION);
  uint64_t sum = qk_checksum(h, 56);
  if (get(h + 56, 8) != sum)
    return blame(fault, QK_BAD_CHECKSUM, "header_checksum", get(h + 56, 8), sum);

  qk_frame_t f = {.kind = (qk_frame_kind_t)get(h + 6, 2),
                  .request = get(h + 8, 8),
                  .rhs = (uint32_t)get(h + 16, 4),
                  .chunk_bytes = (uint32_t)get(h + 20, 4),
                  .field_bytes = get(h + 24, 8),
                  .offset = get(h + 32, 8),
                  .chunk_checksum = get(h + 40, 8),
                  .field_checksum = get(h + 48, 8)};
  qk_status_t s = check(&f, fault);
  if (s != QK_OK) return s;
  size_t present = bytes - QK_FRAME_HEADER;
  if (present < f.chunk_bytes)
    return blame(fault, QK_TRUNCATED, "payload bytes", present, f.chunk_bytes);
  if (present > f.chunk_bytes)
    return blame(fault, QK_BAD_PROTOCOL, "payload bytes", present, f.chunk_bytes);
  sum = qk_checksum(h + QK_FRAME_HEADER, f.chunk_bytes);
  if (f.chunk_checksum != sum)
    return blame(fault, QK_BAD_CHECKSUM, "chunk_checksum", f.chunk_checksum, sum);
  *frame = f;
  *payload = h + QK_FRAME_HEADER;
  return QK_OK;
}

qk_field_hash_t *qk_field_hash_create(void) {
  XXH3_state_t *state = XXH3_createState();
  if (state) XXH3_64bits_reset(state);
  return (qk_field_hash_t *)state;
}

void qk_field_hash_destroy(qk_field_hash_t *hash) {
  XXH3_freeState((XXH3_state_t *)hash);
}

void qk_field_hash_init(qk_field_hash_t *hash) {
  XXH3_64bits_reset((XXH3_state_t *)hash);
}

void qk_field_hash_update(qk_field_hash_t *hash, const void *data, size_t bytes) {
  XXH3_64bits_update((XXH3_state_t *)hash, data, bytes);
}

uint64_t qk_field_hash_digest(const qk_field_hash_t *hash) {
  return XXH3_64bits_digest((const XXH3_state_t *)hash);
}
