/*
 * scalars.h: scalars of an algorithm over a block: complex doubles [n][nrhs][2] on the device, with
 * a copy on the host. With a fifth dimension (geom.h: ls) all columns of a right-hand side have the
 * number of that: [n][nrhs][ls][2].
 *
 * Work on queue 0. All functions except init are calls of an iteration (device.h). sum, total and
 * reduce are collective. sum and reduce wait if ranks add through the host (peers.h), the others
 * always. Errors:
 * QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_SCALARS_H
#define QK_ENGINE_SCALARS_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_scalars {
  const qk_device_t *dev;
  int n, nrhs, slices;
  double *device, *host;
} qk_scalars_t;

/* All zero. `s` may be handed to fini whatever comes out. */
qk_status_t qk_scalars_init(qk_scalars_t *s, const qk_device_t *dev, int n, int nrhs);
void qk_scalars_fini(qk_scalars_t *s);

static inline double *qk_scalars_at(const qk_scalars_t *s, int k) {
  return s->device + (size_t)k * (size_t)(s->nrhs * s->slices) * 2;
}
static inline double *qk_scalars_of(const qk_scalars_t *s, int k, int rhs) {
  return qk_scalars_at(s, k) + (size_t)(rhs * s->slices) * 2;
}
/* Element of the mirror: [0] real, [1] imaginary part. */
static inline double *qk_scalars_host(const qk_scalars_t *s, int k, int rhs) {
  return s->host + ((size_t)k * (size_t)s->nrhs + (size_t)rhs) * (size_t)s->slices * 2;
}
/* In the mirror. */
void qk_scalars_set(qk_scalars_t *s, int k, int rhs, double re, double im);

/* Scalar k becomes `value` for every RHS. */
void qk_scalars_fill(qk_scalars_t *s, int k, double value);
/* What a pass has left at red[n][columns][2], sums of columns, becomes that of their right-hand
 * sides. Nothing without a fifth dimension. */
void qk_scalars_fold(const qk_scalars_t *s, double *red, int n, int columns);
/* Scalars k .. k+n-1 become sums over the ranks. */
void qk_scalars_sum(qk_scalars_t *s, int k, int n);
/* A pass over blocks whose n reductions become scalars k .. k+n-1, summed over the ranks. */
void qk_scalars_reduce(qk_scalars_t *s, int k, int n, qk_blas_op_t op, qk_blas_args_t args);
/* Their sums over the ranks in the mirror; on the device they stay what they are. */
void qk_scalars_total(qk_scalars_t *s, int k, int n);
/* Scalars k .. k+n-1 to the mirror, and back. */
void qk_scalars_fetch(qk_scalars_t *s, int k, int n);
void qk_scalars_store(qk_scalars_t *s, int k, int n);

#endif
