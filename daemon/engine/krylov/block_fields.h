/*
 * block_fields.h: fields of a block method, of which products between all columns of a block are
 * taken and columns are combined. Private to the solvers.
 *
 * The kernels for this (cuda/vector_block_ops.h) take columns in multiples of eight. So a block
 * here has `width` columns, a slot each, those from nslot on 0; with a fifth dimension it is flat
 * (eigen/flat.h). Matrices are complex doubles [width][width] on the host, the same on all ranks.
 *
 * Functions without status are calls of an iteration (lattice/device.h). What is multiplied by 0 in
 * a combination is still looked at: a column must not hold NaN.
 */
#ifndef QK_ENGINE_BLOCK_FIELDS_H
#define QK_ENGINE_BLOCK_FIELDS_H

#include <complex.h>

#include "daemon/engine/eigen/flat.h"
#include "daemon/engine/krylov/solver_impl.h"

/* Places of matrices in device memory. What stands in one is changed only after the device has been
 * waited for (fetch). */
enum { QK_BLOCK_STEP, QK_BLOCK_TURN, QK_BLOCK_SOLUTION, QK_BLOCK_DIRECTION, QK_BLOCK_PLACES };

typedef struct qk_block {
  const qk_solver_t *s;
  qk_flat_t flat;
  int width, slices;
  double complex *product, *product_host; /* [width][width], of this rank */
  double complex *factor, *factor_host;   /* [QK_BLOCK_PLACES][width][width] */
  uint8_t *mask, *mask_host;              /* [width] */
} qk_block_t;

typedef struct qk_block_field {
  qk_spinor_t v; /* of `width` columns */
  qk_field_t *own;
} qk_block_field_t;

/* To be given to fini whatever comes out, after those of its fields. */
qk_status_t qk_block_init(qk_block_t *b, const qk_solver_t *s);
void qk_block_fini(qk_block_t *b);

qk_status_t qk_block_field_init(const qk_block_t *b, qk_prec_t prec, qk_block_field_t *f);
void qk_block_field_fini(qk_block_field_t *f);
/* The same memory as a field of the system, which has no slices. */
void qk_block_field_of(const qk_block_t *b, const qk_field_t *system, qk_block_field_t *f);

/* Columns of the slots of a mask (host, [nslot]; NULL: of all, without slices) to or from a field
 * of the system; any precisions. */
void qk_block_import(qk_block_t *b, const qk_block_field_t *to, const qk_field_t *from,
                     const uint8_t *mask);
void qk_block_export(const qk_block_t *b, const qk_field_t *to, const qk_block_field_t *from,
                     const uint8_t *mask);

/* f[0] = 0, f[0] = f[1], f[0] += f[1], for the slots of the mask. */
void qk_block_blas(qk_block_t *b, qk_blas_op_t op, const qk_block_field_t *f0,
                   const qk_block_field_t *f1, const uint8_t *mask);

/* (v_i, y_j) is asked for, then waited for: m[i][j]. y is not in half. Collective. */
void qk_block_ask(qk_block_t *b, const qk_block_field_t *v, const qk_block_field_t *y);
void qk_block_fetch(qk_block_t *b, double complex *m);
/* y_j += sign sum_i v_i m[i][j]; y is not in half. */
void qk_block_add(qk_block_t *b, int place, const qk_block_field_t *y, double sign,
                  const qk_block_field_t *v, const double complex *m);
/* v_j = sum_i v_i m[i][j], and y_j if y is given; not in half. */
void qk_block_turn(qk_block_t *b, int place, const qk_block_field_t *v, const double complex *m,
                   const qk_block_field_t *y);

#endif
