/*
 * frame.h: the messages of the data channel: a header of 64 bytes, then at most 1 MiB of payload.
 * Pure functions over bytes; nothing is allocated.
 *
 *   offset bytes  field            little endian
 *        0     4  magic            "QKDF"
 *        4     2  version          1
 *        6     2  kind             qk_frame_kind_t
 *        8     8  request          request number; 0 for BIND and BOUND
 *       16     4  rhs              index of the right-hand side in its request
 *       20     4  chunk_bytes      payload of this message, 1 .. 1 MiB (0 for BOUND)
 *       24     8  field_bytes      the whole field
 *       32     8  offset           of this chunk in the field
 *       40     8  chunk_checksum   xxh3-64 of the payload
 *       48     8  field_checksum   xxh3-64 of the whole field in the last chunk, 0 in the others
 *       56     8  header_checksum  xxh3-64 of the 56 bytes before
 *
 * Errors: QK_BAD_PROTOCOL, QK_TRUNCATED, QK_TOO_LARGE, QK_BAD_CHECKSUM, QK_UNSUPPORTED (version);
 * *fault names the field with its value and limit. Outputs are set only on success.
 */
#ifndef QK_PROTO_FRAME_H
#define QK_PROTO_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "proto/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum qk_frame_kind {
  QK_FRAME_BIND = 1, /* client: payload is client id and session token, 32 bytes */
  QK_FRAME_BOUND,    /* server: the data connection belongs to the session now; no payload */
  QK_FRAME_UPLOAD,   /* client: a chunk of a right-hand side */
  QK_FRAME_DOWNLOAD, /* server: a chunk of a solution */
} qk_frame_kind_t;

typedef struct qk_frame {
  qk_frame_kind_t kind;
  uint64_t request;
  uint32_t rhs;
  uint32_t chunk_bytes;
  uint64_t field_bytes;
  uint64_t offset;
  uint64_t chunk_checksum;
  uint64_t field_checksum;
} qk_frame_t;

/* What was wrong with a frame: `field` is static text. */
typedef struct qk_frame_fault {
  const char *field;
  uint64_t value, limit;
} qk_frame_fault_t;

/* Writes the header for `payload` (frame->chunk_bytes bytes), whose checksum is computed here and
 * stored in frame->chunk_checksum. The frame must be one that decode would take. */
qk_status_t qk_frame_encode(qk_frame_t *frame, const void *payload, uint8_t header[QK_FRAME_HEADER],
                            qk_frame_fault_t *fault);

/* message: header and payload together. *payload points into it. Everything that one message can
 * show by itself is checked: sizes, order of offsets, both of its checksums, fields that must be
 * zero. Whether the request exists and the chunk is the next one is the caller's business. */
qk_status_t qk_frame_decode(const void *message, size_t bytes, qk_frame_t *frame,
                            const uint8_t **payload, qk_frame_fault_t *fault);

/* The last chunk of its field carries the field's checksum. */
bool qk_frame_is_last(const qk_frame_t *frame);

/* Checksum of a field that comes in chunks: init, update for each chunk in order, digest; destroy
 * in the end (NULL-safe). create returns NULL without memory. */
typedef struct qk_field_hash qk_field_hash_t;
qk_field_hash_t *qk_field_hash_create(void);
void qk_field_hash_destroy(qk_field_hash_t *hash);
void qk_field_hash_init(qk_field_hash_t *hash);
void qk_field_hash_update(qk_field_hash_t *hash, const void *data, size_t bytes);
uint64_t qk_field_hash_digest(const qk_field_hash_t *hash);

/* xxh3-64 of bytes in memory. */
uint64_t qk_checksum(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
