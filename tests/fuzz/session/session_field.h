/*
 * session_field.h: fields that clients of a session send: what FIELD_OPEN says, and the bytes.
 */
#ifndef QK_SESSION_FIELD_H
#define QK_SESSION_FIELD_H

#include "daemon/front/job/job.h"

/* Room of a FIELD_OPEN. */
typedef struct field_open {
  Quark__FieldOpen f;
  uint32_t dims[4], grid[4];
} field_open_t;

/* A grid of parts, 0 .. 63, and its length; what cannot be is among them. */
size_t field_grid(uint8_t how, uint32_t grid[4]);
/* All but the request's number; what cannot be is among them. */
void field_open_fill(uint8_t how, field_open_t *open);
/* Bytes of an upload of this job from `offset` on: unit links, vectors that are orthonormal where
 * they go whole, or what nobody looks at. */
void field_fill(const qk_job_t *job, uint32_t rhs, uint64_t offset, uint8_t *to, size_t bytes);

#endif
