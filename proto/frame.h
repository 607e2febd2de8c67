/*
 * frame.h: the messages of the data channel: a header of 64 bytes, then at most 1 MiB of payload.
 * Pure functions over bytes; nothing is allocated.
 *
 *   offset bytes  field            little endian
 *        0     4  magic            "QKDF"
 *        4     2  version          1; 2: the checksum of the field is that of its blocks
 *        6     2  kind             qk_frame_kind_t
 *        8     8  request          request number; 0 for BIND and BOUND
 *       16     4  rhs              index of the right-hand side in its request
 *       20     4  chunk_bytes      payload of this message, 1 .. 1 MiB (0 for BOUND); UPLOAD_ZERO:
 *                                  length of the run, 1 .. 2 GiB, without payload
 *       24     8  field_bytes      the whole field
 *       32     8  offset           of this chunk in the field
 *       40     8  chunk_checksum   xxh3-64 of the payload, 0 for UPLOAD_ZERO
 *       48     8  field_checksum   xxh3-64 of the whole field in the last chunk, 0 in the others
 *       56     8  header_checksum  xxh3-64 of the 56 bytes before
 *
 * Blocks of a field are 1 MiB long and follow each other from its beginning; the last one may be
 * shorter. Version 2 has as field_checksum the xxh3-64 of their xxh3-64, 8 bytes each, in order. A
 * chunk that is a block brings one of them as chunk_checksum, so that each byte is hashed once.
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
  QK_FRAME_BIND = 1,    /* client: payload is client id and session token, 32 bytes */
  QK_FRAME_BOUND,       /* server: the data connection belongs to the session now; no payload */
  QK_FRAME_UPLOAD,      /* client: a chunk of a right-hand side */
  QK_FRAME_DOWNLOAD,    /* server: a chunk of a solution */
  QK_FRAME_UPLOAD_ZERO, /* client: a run of zero bytes of a right-hand side; no payload */
} qk_frame_kind_t;

typedef struct qk_frame {
  qk_frame_kind_t kind;
  bool by_blocks; /* version 2 */
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

/* Bytes of payload that come with the header. */
size_t qk_frame_payload(const qk_frame_t *frame);

/* Writes the header for `payload` (qk_frame_payload bytes), whose checksum is computed here and
 * stored in frame->chunk_checksum. The frame must be one that decode would take. */
qk_status_t qk_frame_encode(qk_frame_t *frame, const void *payload, uint8_t header[QK_FRAME_HEADER],
                            qk_frame_fault_t *fault);

/* The same for a payload whose checksum is in frame->chunk_checksum already. */
qk_status_t qk_frame_encode_summed(const qk_frame_t *frame, uint8_t header[QK_FRAME_HEADER],
                                   qk_frame_fault_t *fault);

/* message: header and payload together. *payload points into it. Everything that one message can
 * show by itself is checked: sizes, order of offsets, both of its checksums, fields that must be
 * zero. Whether the request exists and the chunk is the next one is the caller's business. */
qk_status_t qk_frame_decode(const void *message, size_t bytes, qk_frame_t *frame,
                            const uint8_t **payload, qk_frame_fault_t *fault);

/* The last chunk of its field carries the field's checksum. */
bool qk_frame_is_last(const qk_frame_t *frame);
/* Whether the chunk is a block of its field. */
bool qk_frame_is_block(const qk_frame_t *frame);

/* Checksum of a field that comes in chunks: init, update for each chunk in order, digest at the end
 * of the field; destroy in the end (NULL-safe). create returns NULL without memory. */
typedef struct qk_field_hash qk_field_hash_t;
qk_field_hash_t *qk_field_hash_create(void);
void qk_field_hash_destroy(qk_field_hash_t *hash);
void qk_field_hash_init(qk_field_hash_t *hash, bool by_blocks);
void qk_field_hash_update(qk_field_hash_t *hash, const void *data, size_t bytes);
/* The same for so many zero bytes. By blocks it takes hardly any time. */
void qk_field_hash_zeros(qk_field_hash_t *hash, uint64_t bytes);
/* By blocks: in place of update, for the next block, all of which is known by its checksum. */
void qk_field_hash_add_block(qk_field_hash_t *hash, uint64_t checksum);
/* By blocks: ends a shorter one, which is the last. The checksum of the latest block. */
uint64_t qk_field_hash_end_block(qk_field_hash_t *hash);
uint64_t qk_field_hash_digest(qk_field_hash_t *hash);
/* QK_OK: that is the checksum of a field in memory, whichever of the two. QK_BAD_CHECKSUM: it is
 * not. QK_NO_MEMORY: not known. */
qk_status_t qk_field_check(const void *data, size_t bytes, uint64_t checksum);

/* xxh3-64 of bytes in memory. */
uint64_t qk_checksum(const void *data, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
