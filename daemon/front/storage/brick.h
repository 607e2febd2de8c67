/*
 * brick.h: where the bytes of a part of a field are in the whole field. A part is a sub-lattice
 * (PROTOCOL.md, section 18); both have x fastest, then y, z, t.
 */
#ifndef QK_FRONT_BRICK_H
#define QK_FRONT_BRICK_H

#include <stdint.h>

#include "daemon/front/storage/shm.h"

enum { QK_BRICK_DIMS = 5 }; /* x, y, z, t, and the vectors of a field */

/* Zeros: the field goes whole. */
typedef struct qk_brick {
  uint64_t bytes;  /* of the part */
  uint64_t run;    /* bytes that follow each other in part and whole */
  uint64_t origin; /* of its first byte in the whole */
  uint32_t count[QK_BRICK_DIMS];
  uint64_t step[QK_BRICK_DIMS]; /* bytes in the whole from one run to the next, by direction */
} qk_brick_t;

/* Part number `part` of a grid that divides dims; a field is `vectors` times the lattice, with
 * site_bytes at each site. */
void qk_brick_make(const uint32_t dims[4], const uint32_t grid[4], uint32_t part,
                   uint64_t site_bytes, uint32_t vectors, qk_brick_t *brick);
/* *at: where that byte of the part is in the whole. Returns how many follow each other from there
 * on, at least 1. Of a field that goes whole: all. */
uint64_t qk_brick_find(const qk_brick_t *brick, uint64_t offset, uint64_t *at);
/* Writes bytes of the part to the segment of the whole field. Errors as qk_shm_write. */
qk_status_t qk_brick_write(const qk_brick_t *brick, int segment, const void *data, size_t bytes,
                           uint64_t offset, qk_err_t *err);
/* Makes them zeros. dense: written as such, as the whole field is to be mapped; else what is a hole
 * stays one (holes.h). */
qk_status_t qk_brick_zero(const qk_brick_t *brick, int segment, uint64_t bytes, uint64_t offset,
                          bool dense, qk_err_t *err);

#endif
