/*
 * holes.h: zeros in shared-memory objects that take no memory: pages that nothing was written to.
 * They are read as zeros through a descriptor. Through a mapping they must not be looked at: that
 * makes the page, and ends the process if /dev/shm is full.
 *
 * What a kernel says of them (lseek, SEEK_DATA) is believed; if it cannot tell, all is data. Any
 * thread.
 */
#ifndef QK_FRONT_HOLES_H
#define QK_FRONT_HOLES_H

#include "daemon/front/storage/shm.h"

/* A range known to be a hole; zeros: none is. */
typedef struct qk_hole {
  uint64_t begin, end;
} qk_hole_t;

/* [*begin, *end): the first bytes in [at, until) that are no hole, at least one; pages count as a
 * whole. False: all of it is a hole. */
bool qk_holes_data(int fd, uint64_t at, uint64_t until, uint64_t *begin, uint64_t *end);
/* Makes bytes of the object zeros, where there is data; whole pages of long ranges become holes.
 * *known: what the calls before have found, as long as nobody else writes these bytes.
 * QK_NO_MEMORY, QK_IO_ERROR. */
qk_status_t qk_holes_clear(int fd, uint64_t at, uint64_t bytes, qk_hole_t *known, qk_err_t *err);
/* Writes zeros, for an object that is to be mapped. Errors of qk_shm_write. */
qk_status_t qk_holes_fill(int fd, uint64_t at, uint64_t bytes, qk_err_t *err);

/* The object holds `vectors` times `slices` time slices. [*first, *first + *count): those beside
 * which, in all vectors, there are only holes; *count 0: all of it is one. */
void qk_holes_slab(const qk_shm_t *field, uint32_t vectors, uint32_t slices, uint32_t *first,
                   uint32_t *count);
/* The checksum of the object, of its bytes or of its blocks (frame.h). QK_NO_MEMORY,
 * QK_IO_ERROR. */
qk_status_t qk_holes_checksum(int fd, uint64_t bytes, bool by_blocks, uint64_t *checksum,
                              qk_err_t *err);
/* QK_OK: that is one of the two checksums. QK_BAD_CHECKSUM: it is not. QK_NO_MEMORY, QK_IO_ERROR:
 * not known. */
qk_status_t qk_holes_check(const qk_shm_t *field, uint64_t checksum, qk_err_t *err);

#endif
