/*
 * multishift_impl.h: what multishift.c and multishift_refine.c share. Private to them.
 */
#ifndef QK_ENGINE_MULTISHIFT_IMPL_H
#define QK_ENGINE_MULTISHIFT_IMPL_H

#include "daemon/engine/krylov/multishift/multishift.h"
#include "daemon/engine/lattice/scalars.h"

/* Scalars; factors of r and of shifts. */
enum { QK_SHIFT_RR, QK_SHIFT_OLD, QK_SHIFT_PQ, QK_SHIFT_SHIFT, QK_SHIFT_FACTOR, QK_SHIFT_SCALARS };

typedef enum qk_shift_phase {
  QK_SHIFT_OVER,
  QK_SHIFT_TOGETHER,
  QK_SHIFT_REFINING
} qk_shift_phase_t;

/* CG of a block of columns: x += alpha p, p = r + beta p. */
typedef struct qk_shift_cg {
  const qk_device_t *dev;
  qk_scalars_t scalars;
  qk_field_t *r, *p, *q, *x; /* x borrowed by those who own another */
  int width;
  bool on[QK_MAX_RHS];
  double alpha[QK_MAX_RHS], beta[QK_MAX_RHS], rr[QK_MAX_RHS];
} qk_shift_cg_t;

/* Corrections of the shifts first .. first + n - 1, column k * nrhs + j that of column j. */
typedef struct qk_shift_refine {
  qk_shift_cg_t cg;
  int first, n, most; /* most: that there was room for */
  bool correcting;
  int stalls[QK_MAX_RHS];
  double target[QK_MAX_RHS], norm[QK_MAX_RHS], best[QK_MAX_RHS];
  int64_t spent[QK_MAX_RHS];
} qk_shift_refine_t;

struct qk_multishift {
  qk_multishift_params_t params;
  const qk_device_t *dev;
  qk_shift_cg_t cg;                                 /* of the smallest shift */
  qk_field_t *x[QK_SHIFTS_MAX], *ps[QK_SHIFTS_MAX]; /* of each shift; none of `base` in ps */
  int base;                                         /* the smallest shift */
  double norm_b[QK_MAX_RHS], wanted[QK_MAX_RHS];
  double u[QK_SHIFTS_MAX][QK_MAX_RHS], u_old[QK_SHIFTS_MAX][QK_MAX_RHS];
  /* Of a solve. */
  qk_shift_phase_t phase;
  const qk_field_t *b;
  qk_field_t *to[QK_SHIFTS_MAX];
  double tol;
  int64_t max_iter;
  qk_multishift_cost_t cost;
  double alpha_old[QK_MAX_RHS], beta_old[QK_MAX_RHS];
  int64_t steps[QK_MAX_RHS]; /* of each column, together */
  qk_shift_refine_t refine;
  qk_shifted_t result[QK_SHIFTS_MAX][QK_MAX_RHS];
};

/* The fields of `cg` but x. Not collective. */
qk_status_t qk_shift_cg_init(qk_shift_cg_t *cg, const qk_multishift_params_t *params, int width);
void qk_shift_cg_fini(qk_shift_cg_t *cg);

/* Scalar `at` of the columns, or of all of them, on the device. */
const double *qk_shift_put(qk_shift_cg_t *cg, int at, const double *value);
/* A reduction, over the ranks, of the columns. Waits. */
void qk_shift_reduce(qk_shift_cg_t *cg, int at, qk_blas_op_t op, qk_blas_args_t args,
                     double *result);
/* alpha of the columns that go on, 0 for the others, and x += alpha p, r -= alpha q, |r|^2 with it,
 * beta. */
void qk_shift_advance(qk_shift_cg_t *cg, double *rr);
/* p = r + beta p */
void qk_shift_turn(qk_shift_cg_t *cg, const double *beta, const qk_field_t *p);
/* f *= value of the columns, which may be far from the range of single; 1 in place of none. */
void qk_shift_scale(qk_shift_cg_t *cg, const qk_field_t *f, const double *value, bool invert);
bool qk_shift_any(const qk_shift_cg_t *cg);
/* out = (A + shift) in, blocks of nrhs columns. */
void qk_shift_apply(qk_multishift_t *m, qk_field_t *out, const qk_field_t *in, double shift);

/* The solutions of all shifts, in double, are refined: about `iterations` of it. *over: nothing is
 * left to do, and all results are there. QK_DEVICE_MEMORY: no room for one shift. */
void qk_shift_refine_begin(qk_multishift_t *m);
/* e is added to x_k. */
void qk_shift_add(qk_multishift_t *m, int k, const qk_field_t *e);
qk_status_t qk_shift_refine_step(qk_multishift_t *m, int iterations, bool *over);
void qk_shift_refine_end(qk_multishift_t *m);

#endif
