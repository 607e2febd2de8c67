/*
 * field_io.h: copies right-hand sides of block fields from and to shared-memory objects of the
 * front, through one host buffer and one device buffer of a local vector.
 *
 * Fields that are read or written have the vectors of dev->geom. All calls are collective. Errors:
 * those of wire.h, the same on all ranks; errors of the device end the process.
 */
#ifndef QK_ENGINE_FIELD_IO_H
#define QK_ENGINE_FIELD_IO_H

#include "daemon/engine/lattice/field.h"
#include "daemon/engine/lattice/pinned.h"
#include "daemon/engine/transfer/wire.h"

typedef struct qk_field_io {
  const qk_device_t *dev;
  qk_wire_t *wire;
  void *part;   /* host, a local field in double; borrowed */
  void *vector; /* device, the same */
} qk_field_io_t;

/* The host buffer is number 0 of `pinned`, which is waited for. Borrows dev and pinned. */
qk_status_t qk_field_io_create(const qk_device_t *dev, qk_pinned_t *pinned, qk_field_io_t **port,
                               qk_err_t *err);
void qk_field_io_destroy(qk_field_io_t *port); /* NULL-safe */

/* Column rhs of a full field: matrix times the vector. */
qk_status_t qk_field_io_read(qk_field_io_t *port, const qk_input_t *input,
                             const double matrix[4][4][2], const qk_field_t *field, int rhs,
                             qk_err_t *err);
/* The same of an open segment. */
qk_status_t qk_field_io_read_open(qk_field_io_t *port, const qk_segment_t *segment,
                                  const double matrix[4][4][2], const qk_field_t *field, int rhs,
                                  qk_err_t *err);
/* The vector of the object: factor times matrix times RHS number rhs. */
qk_status_t qk_field_io_write(qk_field_io_t *port, const qk_segment_t *segment,
                              const double matrix[4][4][2], double factor, const qk_field_t *field,
                              int rhs, qk_err_t *err);
/* The same into port->part, in double. */
qk_status_t qk_field_io_export(qk_field_io_t *port, const double matrix[4][4][2], double factor,
                               const qk_field_t *field, int rhs, qk_err_t *err);
/* RHS `to` of out = matrix times RHS `from` of in; both may be the same one of one field. Fields of
 * one vector. Not collective. */
qk_status_t qk_field_io_move(qk_field_io_t *port, const double matrix[4][4][2],
                             const qk_field_t *in, int from, const qk_field_t *out, int to);

#endif
