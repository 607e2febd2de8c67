/*
 * smoother.h: a fixed number of steps on Mhat x = b. The host does not look at the result: on one
 * rank it does not wait for the device.
 *
 *   mr         x += w (Mr,r)/|Mr|^2 r, each RHS with its own scalars
 *   ca-gcr     s steps at a time: r, Mr, ..., M^s r first, then the least squares problem (Gram
 *              matrix) of each RHS on the device; one round of reductions for s applications
 *   chebyshev  Chebyshev polynomial on the upper part of the field of values: no reductions,
 *              2 passes besides Mhat
 *   schwarz    mr on the operator without hops between blocks (additive Schwarz); the last step
 *              combines the earlier ones with the whole operator such that |r| is minimal
 *
 * All on even fields of one precision and nrhs. Cost of a step: one Mhat, about 7 passes over a
 * field (mr).
 */
#ifndef QK_ENGINE_SMOOTHER_H
#define QK_ENGINE_SMOOTHER_H

#include "daemon/engine/operator/operator.h"

typedef enum qk_smoother_kind {
  QK_SMOOTHER_CAGCR, /* the default */
  QK_SMOOTHER_MR,
  QK_SMOOTHER_CHEBYSHEV,
  QK_SMOOTHER_SCHWARZ,
  QK_SMOOTHER_COUNT
} qk_smoother_kind_t;

typedef struct qk_smoother_params {
  qk_smoother_kind_t kind;
  double omega; /* mr, schwarz: relaxation, 0 .. 2; 0: default 0.85 */
  int block[4]; /* schwarz: extents that divide the local lattice */
} qk_smoother_params_t;

typedef struct qk_smoother qk_smoother_t;

/* Borrows op and work (of op's level). Memory: a few fields of nrhs. chebyshev measures its
 * bounds here. */
qk_status_t qk_smoother_create(qk_operator_t *op, qk_work_t *work,
                               const qk_smoother_params_t *params, qk_prec_t prec, int nrhs,
                               qk_smoother_t **smoother, qk_err_t *err);
void qk_smoother_destroy(qk_smoother_t *smoother); /* NULL-safe */

/* On entry r = b - Mhat x; on exit, with `steps` more, likewise. x_zero: x need not be read (it is
 * set). A call of an iteration (lattice/device.h). */
void qk_smoother_run(qk_smoother_t *smoother, qk_field_t *x, qk_field_t *r, int steps, bool x_zero);

const char *qk_smoother_name(qk_smoother_kind_t kind);
/* False for another name. */
bool qk_smoother_parse(const char *name, qk_smoother_kind_t *kind);

#endif
