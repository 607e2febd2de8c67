/*
 * smoother.h: a fixed number of steps on Mhat x = b. The host does not look at the result: on one
 * rank it does not wait for the device.
 *
 *   mr         x += w (Mr,r)/|Mr|^2 r, each RHS with its own scalars
 *   ca-gcr     s steps at a time: r, Mr, ..., M^s r first, then the least squares problem (Gram
 *              matrix) of each RHS on the device; one round of reductions for s applications
 *   chebyshev  Chebyshev polynomial on the upper part of the field of values: no reductions,
 *              2 passes besides Mhat
 *   polynomial a fixed polynomial that was learned from residuals of the same operator, at the
 *              same place (smoother_polynomial.c): no reductions, no pass besides Mhat, of which
 *              there is one less; ca-gcr before anything was learned
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
  QK_SMOOTHER_AUTO, /* none yet: qk_mg_params_complete chooses */
  QK_SMOOTHER_CAGCR,
  QK_SMOOTHER_MR,
  QK_SMOOTHER_CHEBYSHEV,
  QK_SMOOTHER_SCHWARZ,
  QK_SMOOTHER_POLYNOMIAL,
  QK_SMOOTHER_COUNT
} qk_smoother_kind_t;

typedef struct qk_smoother_params {
  qk_smoother_kind_t kind;
  double omega; /* mr, schwarz: relaxation, 0 .. 2; 0: default 0.85 */
  int block[4]; /* schwarz: extents that divide the local lattice */
  bool exact;   /* without what op->rough allows (operator.h) */
} qk_smoother_params_t;

/* x = sum_j c_j (1 - Mhat)^j r, j = 0 .. n-1; n = 0: not known. */
enum { QK_POLYNOMIAL_MAX = 16, QK_LEARNED = QK_POLYNOMIAL_MAX + 1 };
typedef struct qk_polynomial {
  int n;
  double c[QK_POLYNOMIAL_MAX];
} qk_polynomial_t;

/* Sums of Re (N^i r, N^j r) / |r|^2 over residuals r, N = 1 - Mhat. */
typedef struct qk_learning {
  double h[QK_LEARNED][QK_LEARNED];
} qk_learning_t;

/* The polynomial of n terms that leaves least of these residuals. False: there is none (p stays),
 * as nothing was learned or it is not finite. Pure. */
bool qk_polynomial_fit(const qk_learning_t *learning, int n, qk_polynomial_t *p);

typedef struct qk_smoother qk_smoother_t;

/* Borrows op and work (of op's level). Memory: a few fields of nrhs. chebyshev measures its
 * bounds here. */
qk_status_t qk_smoother_create(qk_operator_t *op, qk_work_t *work,
                               const qk_smoother_params_t *params, qk_prec_t prec, int nrhs,
                               qk_smoother_t **smoother, qk_err_t *err);
void qk_smoother_destroy(qk_smoother_t *smoother); /* NULL-safe */

/* On entry r = b - Mhat x; on exit, with `steps` more, likewise; but if it is the last run, r is of
 * no use then. x_zero: x need not be read (it is set). A call of an iteration (lattice/device.h).
 */
void qk_smoother_run(qk_smoother_t *smoother, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                     bool last);

/* Whether a last run of so many steps can leave x in single, for a smoother in half: x + what it
 * adds, rounded nowhere else. And that run; x stays. */
bool qk_smoother_widens(const qk_smoother_t *smoother, int steps);
void qk_smoother_run_wide(qk_smoother_t *smoother, qk_field_t *wide, const qk_field_t *x,
                          const qk_field_t *r);

/* The polynomial that `polynomial` runs with as many steps as it has terms. */
void qk_smoother_set_polynomial(qk_smoother_t *smoother, const qk_polynomial_t *p);
/* From now on a last run adds the r that it is given to `to` (NULL: no longer), by a wait for the
 * device.
 * The operator must have `neumann`. Memory: steps + 1 fields, taken from work. Not collective. */
qk_status_t qk_smoother_learn(qk_smoother_t *smoother, qk_learning_t *to);

const char *qk_smoother_name(qk_smoother_kind_t kind);
/* False for another name. */
bool qk_smoother_parse(const char *name, qk_smoother_kind_t *kind);

#endif
