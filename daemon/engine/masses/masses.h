/*
 * masses.h: M(m) x_m = b for several masses m from one Krylov space, of operators that can
 * (operator.h: masses).
 *
 *   1. (A + shift(m)) y_m = b for all m by multi-shift CG, on each parity that b has, first in
 *      double, then in single (multishift.h).
 *   2. x_m = c(m) M(m)^+ y_m in double, r_m = b - M(m) x_m in double, and where |r_m| is above
 *      tol |b|: (A + shift(m)) e_m = r_m by CG, all masses as columns of one block,
 *      x_m += c(m) M(m)^+ e_m; again until it is small enough or does not fall any more.
 *
 * So links are read once an iteration for all masses, and rounding leaves of |r_m| what it leaves
 * of a solve of M(m) alone. What is told of a solution is |b - M(m) x_m| / |b|, in double.
 *
 * Shapes: blocks of nrhs right-hand sides, full, double; columns do not depend on each other.
 * Memory: 1 + n of them, what multishift.h says for one parity, and work fields. All calls but
 * queries are collective.
 */
#ifndef QK_ENGINE_MASSES_H
#define QK_ENGINE_MASSES_H

#include "daemon/engine/krylov/multishift/multishift.h"
#include "proto/limits.h"

typedef struct qk_masses_params {
  qk_prec_t inner; /* QK_DOUBLE or QK_SINGLE */
  int nrhs;        /* 1 .. QK_MAX_RHS */
  int n;           /* masses, 1 .. QK_MASSES_MAX */
  double mass[QK_MASSES_MAX];
} qk_masses_params_t;

typedef struct qk_mass_result {
  qk_status_t status; /* OK, NOT_CONVERGED; NAN_INPUT: |b|^2 is not finite */
  double residual;    /* |b - M x| / |b|; 0 for b = 0 */
  double norm_b;
  int64_t iterations;   /* of this column and mass */
  int64_t applications; /* of A, of which those for all masses together count once for all */
} qk_mass_result_t;

typedef struct qk_masses qk_masses_t;

/* Borrows op and work. QK_BAD_ARGUMENT names what is out of range, QK_UNSUPPORTED: op cannot;
 * QK_NO_MEMORY, QK_DEVICE_MEMORY, the same on all ranks. */
qk_status_t qk_masses_create(qk_operator_t *op, qk_work_t *work, const qk_masses_params_t *params,
                             qk_masses_t **masses, qk_err_t *err);
void qk_masses_destroy(qk_masses_t *masses); /* NULL-safe */

/* What b is written into before begin: full, double, nrhs columns. */
qk_field_t *qk_masses_source(qk_masses_t *masses);
/* tol > 0; at most max_iter iterations together, and as many of corrections, on each parity.
 * Errors: QK_BAD_ARGUMENT (nothing done); those of the device. */
qk_status_t qk_masses_begin(qk_masses_t *masses, double tol, int64_t max_iter);
/* About so many iterations. QK_DEVICE_MEMORY, the same on all ranks: there is no room, and it is
 * over without results. */
qk_status_t qk_masses_step(qk_masses_t *masses, int iterations);
bool qk_masses_is_over(const qk_masses_t *masses);
/* While it is not over: what is known of column j. */
int64_t qk_masses_iterations(const qk_masses_t *masses);
double qk_masses_residual(const qk_masses_t *masses, int j);

/* When it is over: of mass k, column j. */
const qk_mass_result_t *qk_masses_result(const qk_masses_t *masses, int k, int j);
/* All columns of mass k; what the user asks for (operator.h: leave) after the first call. */
qk_status_t qk_masses_solution(qk_masses_t *masses, int k, qk_field_t **x);

#endif
