/*
 * Data messages from any bytes, as they are and with their checksums made right. A frame that is
 * accepted encodes to the same header; offered to an upload it never moves anything but forwards,
 * within the credit.
 */
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/front/job/job.h"
#include "proto/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FIELD = 2 * 2 * 2 * 2 * 24 * 4 };

static void promise(bool kept) {
  if (!kept) abort();
}

static void put64(uint8_t *p, uint64_t v) {
  for (int i = 0; i < 8; i++) p[i] = (uint8_t)(v >> (8 * i));
}

/* The message as a peer would make it that only lies in the other fields. */
static void mend(uint8_t *message, size_t size) {
  memcpy(message, "QKDF\1", 6);
  const bool zeros = message[6] == QK_FRAME_UPLOAD_ZERO && size == QK_FRAME_HEADER;
  const uint64_t sum = qk_checksum(message + QK_FRAME_HEADER, size - QK_FRAME_HEADER);
  put64(message + 40, zeros ? 0 : sum);
  put64(message + 56, qk_checksum(message, 56));
}

static void write_chunk(const qk_frame_t *frame, const uint8_t *payload, const qk_chunk_t *chunk,
                        qk_err_t *wrote) {
  const uint32_t bytes = frame->chunk_bytes - chunk->skip;
  const bool block = chunk->skip == 0 && qk_frame_is_block(frame);
  if (frame->kind == QK_FRAME_UPLOAD_ZERO)
    qk_transfer_zero(chunk->transfer, bytes, chunk->offset, wrote);
  else
    qk_transfer_write(chunk->transfer, payload + chunk->skip, bytes, chunk->offset,
                      block ? &frame->chunk_checksum : NULL, wrote);
}

static void upload(const qk_frame_t *frame, const uint8_t *payload) {
  static const qk_shape_t shape = {{2, 2, 2, 2}, QK_SITE_REALS, QK_PROPAGATOR_COLUMNS};
  qk_budget_t budget = {.limit = 1 << 30};
  Quark__Submit s = QUARK__SUBMIT__INIT;
  qk_err_t err = {0};
  qk_job_t *job;
  qk_rhs_t *ready, *failed;
  qk_shm_space_t space;
  qk_shm_space_init(&space, NULL);
  s.request = 1;
  s.nrhs = 3;
  s.dtype = QUARK__DTYPE__DTYPE_F32;
  s.tol = 0.5;
  s.sink = QUARK__SINK__SINK_NONE;
  qk_terms_t terms = {.shape = &shape, .kappa = 0.125, .budget = &budget, .space = &space};
  promise(qk_job_create(&s, &terms, &job, &err) == QK_OK);
  for (int i = 0; i < 2; i++) { /* the second time it is a repetition, or still wrong */
    const uint64_t before = job->upload_next;
    const bool last = qk_frame_is_last(frame);
    qk_err_t wrote = {0};
    qk_chunk_t chunk;
    ready = NULL;
    err = (qk_err_t){0};
    qk_status_t status = qk_job_upload(job, frame, 0, &chunk, &failed, &err);
    promise(status == QK_OK || (err.text[0] && !chunk.transfer));
    if (chunk.transfer) {
      promise(chunk.skip < frame->chunk_bytes);
      write_chunk(frame, payload, &chunk, &wrote);
      promise(qk_job_uploaded(&chunk, last ? &frame->field_checksum : NULL, &wrote, 0, &ready,
                              &failed, &err) == job);
    }
    promise(err.code == QK_OK || (!ready && job->upload_next == before));
    const bool runs = frame->kind == QK_FRAME_UPLOAD_ZERO; /* which needs no credit */
    promise(job->upload_next >= before && (runs || job->upload_next <= job->upload_until));
    promise(job->upload_next <= 3 * FIELD);
    promise(!ready || (ready->source && ready->source->bytes == FIELD));
  }
  qk_job_destroy(job);
  promise(budget.used == 0 && qk_mem_bytes() == 0);
}

static void decode(const uint8_t *message, size_t size) {
  qk_frame_t frame, again;
  qk_frame_fault_t fault = {0};
  const uint8_t *payload;
  uint8_t header[QK_FRAME_HEADER];
  if (qk_frame_decode(message, size, &frame, &payload, &fault) != QK_OK) {
    promise(fault.field && fault.field[0]);
    return;
  }
  promise(payload == message + QK_FRAME_HEADER);
  promise(qk_frame_payload(&frame) == size - QK_FRAME_HEADER);
  again = frame;
  promise(qk_frame_encode(&again, payload, header, &fault) == QK_OK);
  promise(memcmp(header, message, sizeof header) == 0);
  if (frame.kind == QK_FRAME_UPLOAD || frame.kind == QK_FRAME_UPLOAD_ZERO) upload(&frame, payload);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  decode(data, size);
  if (size < QK_FRAME_HEADER) return 0;
  uint8_t *copy = malloc(size);
  if (!copy) return 0;
  memcpy(copy, data, size);
  mend(copy, size);
  decode(copy, size);
  free(copy);
  return 0;
}
