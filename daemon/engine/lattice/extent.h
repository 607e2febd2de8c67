/*
 * extent.h: norms of one column of a full field in double; and how large its numbers are, and
 * where, for what |v|^2 cannot tell: it is 0 or Inf long before the numbers are.
 *
 * Real numbers are counted in wire order, [vector][t][z][y][x][spin][colour][2], over the whole
 * lattice; colour vectors have no spin. qk_extent_find is slow: the column passes through host
 * memory. Collective, the same on all ranks. Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR,
 * QK_NO_MEMORY, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_EXTENT_H
#define QK_ENGINE_EXTENT_H

#include <stdbool.h>

#include "daemon/engine/lattice/field.h"

typedef struct qk_extent {
  bool finite;    /* all numbers are; otherwise there is no largest one */
  double largest; /* magnitude */
  double norm;    /* in units of the largest one */
  int64_t at;     /* the first one that is as large; the first one that is not finite */
} qk_extent_t;

/* Of factor times matrix (on the spin index) times column 0 of the field. */
qk_status_t qk_extent_find(qk_work_t *work, const qk_field_t *field, const double matrix[4][4][2],
                           double factor, qk_extent_t *extent);

/* "x y z t = 1 2 3 4, spin 0, colour 2", "x y z t = 1 2 3 4, colour 2": where the number stands. */
enum { QK_EXTENT_PLACE = 96 };
void qk_extent_place(const qk_geom_t *geom, const qk_extent_t *extent, char text[QK_EXTENT_PLACE]);

/* |field|^2 of one full column in double, as far as a double holds it. */
qk_status_t qk_norm2_find(const qk_field_t *field, double *norm2);

/* |source|, also where its square under- or overflows. The verdict, the same on all ranks, with the
 * place: NAN_INPUT, or BAD_ARGUMENT where a double does not hold the norm. */
qk_status_t qk_norm_of_source(qk_work_t *work, const qk_field_t *source, double *norm,
                              qk_err_t *verdict);

#endif
