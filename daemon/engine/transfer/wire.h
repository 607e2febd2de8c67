/*
 * wire.h: global vectors in wire order, in POSIX shared-memory objects of the front, and this
 * rank's part of them; and objects that only rank 0 writes.
 *
 * Shapes: the object holds [vectors][T][Z][Y][X][4 spins][3 colours] complex of float or double,
 * from byte 0, exactly, with the vectors of a right-hand side (geom.h: inner), or, of colour
 * vectors (geom.h: ncomp), [T][Z][Y][X][3 colours]; a part holds the same of the local lattice, in
 * host memory. An object of one parity holds the sites of that parity alone, in this order; its
 * part is that of the whole lattice, 0 on the other parity when it is read and not looked at there
 * when it is written. Ranks of rank 0's host read and write their own sites in the object; the
 * others go through rank 0. The object is reached by pread and pwrite, so one that shrinks gives
 * an error and no signal.
 *
 * All calls are collective. Errors, the same on all ranks: QK_BAD_ARGUMENT for a name or a size
 * that is wrong, QK_IO_ERROR for a transfer that fails, QK_BUSY where /dev/shm is full;
 * QK_COMM_ERROR and QK_NO_MEMORY.
 */
#ifndef QK_ENGINE_WIRE_H
#define QK_ENGINE_WIRE_H

#include <stdbool.h>

#include "daemon/engine/lattice/geom.h"

typedef struct qk_wire qk_wire_t; /* which ranks reach the objects */

qk_status_t qk_wire_create(const qk_geom_t *geom, qk_wire_t **wire, qk_err_t *err);
void qk_wire_destroy(qk_wire_t *wire); /* NULL-safe */

/* Time slices of the whole lattice beside which a vector is zero. */
typedef struct qk_slab {
  bool partial; /* false: it has all */
  uint32_t first, count;
} qk_slab_t;

typedef struct qk_segment {
  int fd; /* -1 where the rank does not reach the object, or closed */
  bool is_double;
  qk_subset_t parity; /* QK_FULL: both */
  qk_slab_t slab;     /* what is moved */
  int first;          /* of an object of many right-hand sides: which one of them */
} qk_segment_t;

/* A vector of the front's that is read. */
typedef struct qk_input {
  const char *name;
  bool is_double;
  qk_subset_t parity;
  qk_slab_t slab;
} qk_input_t;

/* name: of shm_open. *segment is closed on failure. A parity: of right-hand sides of one vector
 * (QK_UNSUPPORTED). */
qk_status_t qk_segment_open(qk_wire_t *wire, const char *name, bool is_double, qk_subset_t parity,
                            bool writable, qk_segment_t *segment, qk_err_t *err);
/* An object of `count` right-hand sides one after the other, of both parities; `first` of the
 * segment, 0 at first, says which of them is read or written. */
qk_status_t qk_segment_open_many(qk_wire_t *wire, const char *name, bool is_double, int count,
                                 bool writable, qk_segment_t *segment, qk_err_t *err);
/* For reading, of no more than its slab. QK_BAD_ARGUMENT: also of one beyond the lattice. */
qk_status_t qk_segment_open_input(qk_wire_t *wire, const qk_input_t *input, qk_segment_t *segment,
                                  qk_err_t *err);
void qk_segment_close(qk_segment_t *segment); /* not collective; a closed one stays so */

/* Bytes of a part, and of one vector of it. */
size_t qk_wire_part_bytes(const qk_wire_t *wire, bool is_double);
size_t qk_wire_vector_bytes(const qk_wire_t *wire, bool is_double);

/* What of the part is moved, of vector number `vector`: *bytes from byte *at of the part on. When
 * the part is read, its other bytes are not touched and stand for zeros. Not collective. */
void qk_segment_span(const qk_wire_t *wire, const qk_segment_t *segment, int vector, size_t *at,
                     size_t *bytes);
/* It is moved in pieces, each with its own bytes; returns their number, which may be 0. Not
 * collective, from any thread; on ranks that can reach the object. */
int64_t qk_segment_pieces(const qk_wire_t *wire, const qk_segment_t *segment);
qk_status_t qk_segment_move_piece(const qk_wire_t *wire, const qk_segment_t *segment, int64_t piece,
                                  void *part, bool write, qk_err_t *err);
/* Whether all ranks reach the objects: the same on all of them. */
bool qk_wire_is_local(const qk_wire_t *wire);

/* part: work space on rank 0 beside what is read. */
qk_status_t qk_segment_read(qk_wire_t *wire, const qk_segment_t *segment, void *part,
                            qk_err_t *err);
/* part is used as work space and does not keep its contents on rank 0. */
qk_status_t qk_segment_write(qk_wire_t *wire, const qk_segment_t *segment, void *part,
                             qk_err_t *err);

/* An object of any contents that rank 0 writes. */
typedef struct qk_object {
  int fd; /* -1 on other ranks, or closed */
  int64_t bytes;
} qk_object_t;

/* *object is closed on failure. */
qk_status_t qk_object_open(qk_wire_t *wire, const char *name, int64_t bytes, qk_object_t *object,
                           qk_err_t *err);
void qk_object_close(qk_object_t *object); /* not collective; a closed one stays so */
/* data: all bytes, looked at on rank 0. */
qk_status_t qk_object_write(qk_wire_t *wire, const qk_object_t *object, const void *data,
                            qk_err_t *err);

#endif
