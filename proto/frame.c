#include "proto/frame.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { VERSION = 1, BY_BLOCKS, BIND_BYTES = 2 * QK_CLIENT_ID, BLOCK = QK_CHUNK_MAX };

static const uint8_t ZEROS[1 << 16]; /* divides a block */
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

size_t qk_frame_payload(const qk_frame_t *frame) {
  return frame->kind == QK_FRAME_UPLOAD_ZERO ? 0 : frame->chunk_bytes;
}

/* 0 for a run of zeros. */
static uint64_t sum_of(const qk_frame_t *frame, const void *payload) {
  return frame->kind == QK_FRAME_UPLOAD_ZERO ? 0 : qk_checksum(payload, frame->chunk_bytes);
}

bool qk_frame_is_last(const qk_frame_t *frame) {
  return frame->offset + frame->chunk_bytes == frame->field_bytes;
}

bool qk_frame_is_block(const qk_frame_t *frame) {
  return frame->offset % BLOCK == 0 && (frame->chunk_bytes == BLOCK || qk_frame_is_last(frame));
}

static qk_status_t check_bind(const qk_frame_t *f, qk_frame_fault_t *fault) {
  uint64_t bytes = f->kind == QK_FRAME_BIND ? BIND_BYTES : 0;
  if (f->by_blocks) return blame(fault, QK_UNSUPPORTED, "version", BY_BLOCKS, VERSION);
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

static qk_status_t check_chunk(const qk_frame_t *f, uint64_t most, qk_frame_fault_t *fault) {
  if (f->request == 0) return blame(fault, QK_BAD_PROTOCOL, "request", 0, 1);
  if (f->rhs >= QK_REQUEST_RHS_MAX)
    return blame(fault, QK_TOO_LARGE, "rhs", f->rhs, QK_REQUEST_RHS_MAX - 1);
  if (f->chunk_bytes == 0) return blame(fault, QK_BAD_PROTOCOL, "chunk_bytes", 0, 1);
  if (f->chunk_bytes > most) return blame(fault, QK_TOO_LARGE, "chunk_bytes", f->chunk_bytes, most);
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
    return check_chunk(f, QK_CHUNK_MAX, fault);
  case QK_FRAME_UPLOAD_ZERO:
    return check_chunk(f, QK_ZEROS_MAX, fault);
  }
  return blame(fault, QK_BAD_PROTOCOL, "kind", (uint64_t)f->kind, QK_FRAME_UPLOAD_ZERO);
}

qk_status_t qk_frame_encode(qk_frame_t *frame, const void *payload, uint8_t header[QK_FRAME_HEADER],
                            qk_frame_fault_t *fault) {
  qk_status_t s = check(frame, fault);
  if (s != QK_OK) return s;
  frame->chunk_checksum = sum_of(frame, payload);
  return qk_frame_encode_summed(frame, header, fault);
}

qk_status_t qk_frame_encode_summed(const qk_frame_t *frame, uint8_t header[QK_FRAME_HEADER],
                                   qk_frame_fault_t *fault) {
  qk_status_t s = check(frame, fault);
  if (s != QK_OK) return s;
  memcpy(header, MAGIC, sizeof MAGIC);
  put(header + 4, 2, frame->by_blocks ? BY_BLOCKS : VERSION);
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
  const uint64_t version = get(h + 4, 2);
  if (version != VERSION && version != BY_BLOCKS)
    return blame(fault, QK_UNSUPPORTED, "version", version, BY_BLOCKS);
  uint64_t sum = qk_checksum(h, 56);
  if (get(h + 56, 8) != sum)
    return blame(fault, QK_BAD_CHECKSUM, "header_checksum", get(h + 56, 8), sum);

  qk_frame_t f = {.kind = (qk_frame_kind_t)get(h + 6, 2),
                  .by_blocks = version == BY_BLOCKS,
                  .request = get(h + 8, 8),
                  .rhs = (uint32_t)get(h + 16, 4),
                  .chunk_bytes = (uint32_t)get(h + 20, 4),
                  .field_bytes = get(h + 24, 8),
                  .offset = get(h + 32, 8),
                  .chunk_checksum = get(h + 40, 8),
                  .field_checksum = get(h + 48, 8)};
  qk_status_t s = check(&f, fault);
  if (s != QK_OK) return s;
  const size_t present = bytes - QK_FRAME_HEADER, expected = qk_frame_payload(&f);
  if (present < expected) return blame(fault, QK_TRUNCATED, "payload bytes", present, expected);
  if (present > expected) return blame(fault, QK_BAD_PROTOCOL, "payload bytes", present, expected);
  sum = sum_of(&f, h + QK_FRAME_HEADER);
  if (f.chunk_checksum != sum)
    return blame(fault, QK_BAD_CHECKSUM, "chunk_checksum", f.chunk_checksum, sum);
  *frame = f;
  *payload = h + QK_FRAME_HEADER;
  return QK_OK;
}

/* ---- fields ---------------------------------------------------------------------------------- */

struct qk_field_hash {
  bool by_blocks;
  XXH3_state_t *sum;   /* of the bytes, or of the checksums of blocks */
  XXH3_state_t *block; /* of the block that has begun */
  size_t part;         /* its bytes so far */
  uint64_t latest;     /* checksum of the one before */
};

qk_field_hash_t *qk_field_hash_create(void) {
  qk_field_hash_t *hash = calloc(1, sizeof *hash);
  if (!hash) return NULL;
  hash->sum = XXH3_createState();
  hash->block = XXH3_createState();
  if (hash->sum && hash->block) {
    qk_field_hash_init(hash, false);
    return hash;
  }
  qk_field_hash_destroy(hash);
  return NULL;
}

void qk_field_hash_destroy(qk_field_hash_t *hash) {
  if (!hash) return;
  XXH3_freeState(hash->sum);
  XXH3_freeState(hash->block);
  free(hash);
}

void qk_field_hash_init(qk_field_hash_t *hash, bool by_blocks) {
  hash->by_blocks = by_blocks;
  hash->part = 0;
  XXH3_64bits_reset(hash->sum);
  XXH3_64bits_reset(hash->block);
}

void qk_field_hash_add_block(qk_field_hash_t *hash, uint64_t checksum) {
  uint8_t bytes[8];
  hash->latest = checksum;
  put(bytes, sizeof bytes, checksum);
  XXH3_64bits_update(hash->sum, bytes, sizeof bytes);
}

uint64_t qk_field_hash_end_block(qk_field_hash_t *hash) {
  if (hash->part == 0) return hash->latest;
  qk_field_hash_add_block(hash, XXH3_64bits_digest(hash->block));
  XXH3_64bits_reset(hash->block);
  hash->part = 0;
  return hash->latest;
}

void qk_field_hash_update(qk_field_hash_t *hash, const void *data, size_t bytes) {
  const uint8_t *from = data;
  if (!hash->by_blocks) XXH3_64bits_update(hash->sum, data, bytes);
  for (size_t at = 0, n; hash->by_blocks && at < bytes; at += n) {
    n = bytes - at < BLOCK - hash->part ? bytes - at : BLOCK - hash->part;
    XXH3_64bits_update(hash->block, from + at, n);
    hash->part += n;
    if (hash->part == BLOCK) qk_field_hash_end_block(hash);
  }
}

static void add_zeros(qk_field_hash_t *hash, size_t bytes) {
  for (size_t n; bytes > 0; bytes -= n) {
    n = bytes < sizeof ZEROS ? bytes : sizeof ZEROS;
    qk_field_hash_update(hash, ZEROS, n);
  }
}

/* A whole block, none having begun. */
static void add_zero_block(qk_field_hash_t *hash) {
  static _Atomic uint64_t known; /* its checksum */
  const uint64_t checksum = known;
  if (checksum != 0) {
    qk_field_hash_add_block(hash, checksum);
    return;
  }
  add_zeros(hash, BLOCK);
  known = hash->latest;
}

void qk_field_hash_zeros(qk_field_hash_t *hash, uint64_t bytes) {
  for (size_t n; bytes > 0; bytes -= n) {
    n = BLOCK - (hash->by_blocks ? hash->part : 0);
    if (n > bytes) n = bytes;
    if (hash->by_blocks && n == BLOCK)
      add_zero_block(hash);
    else
      add_zeros(hash, n);
  }
}

uint64_t qk_field_hash_digest(qk_field_hash_t *hash) {
  qk_field_hash_end_block(hash);
  return XXH3_64bits_digest(hash->sum);
}

qk_status_t qk_field_check(const void *data, size_t bytes, uint64_t checksum) {
  if (qk_checksum(data, bytes) == checksum) return QK_OK;
  qk_field_hash_t *hash = qk_field_hash_create();
  if (!hash) return QK_NO_MEMORY;
  qk_field_hash_init(hash, true);
  qk_field_hash_update(hash, data, bytes);
  const bool same = qk_field_hash_digest(hash) == checksum;
  qk_field_hash_destroy(hash);
  return same ? QK_OK : QK_BAD_CHECKSUM;
}
