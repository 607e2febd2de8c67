/*
 * multishift.h: (A + shift_k) x_k = b for several shifts at the cost of one Krylov space, for a
 * hermitian positive A (B. Jegerlehner, hep-lat/9612014).
 *
 * Residuals of all shifts are parallel, so one application of A serves them all; a shift costs six
 * fields to read or write an iteration. This holds to the rounding of A only. So in single the
 * shared iterations go down to 1e-5, and then each shift is refined by itself: residual in double,
 * correction by CG on A + shift_k. What is told of a solution is its residual in double.
 *
 * A: today Mhat^+ Mhat of an operator (qk_normal_system). Whether a parameter of an action is such
 * a shift is the action's business: docs/decisions.md.
 *
 * Shapes: blocks of nrhs right-hand sides on the sites of the system, in double; columns do not
 * depend on each other. Memory: 3 + 2 nshift blocks in the inner precision, less one, and work
 * fields: a block in double beside those of A. Solve is collective.
 */
#ifndef QK_ENGINE_MULTISHIFT_H
#define QK_ENGINE_MULTISHIFT_H

#include "daemon/engine/operator/operator.h"

enum { QK_SHIFTS_MAX = 32 };

/* out = A in, for blocks in double and in the inner precision; as a call of an iteration
 * (device.h). */
typedef struct qk_hermitian_system {
  void (*apply)(void *self, qk_field_t *out, const qk_field_t *in);
  void *self;
  const qk_device_t *dev;
  qk_work_t *work; /* borrowed */
  qk_subset_t subset;
} qk_hermitian_system_t;

/* Mhat^+ Mhat. Flavours are the caller's (operator.h). */
qk_hermitian_system_t qk_normal_system(qk_operator_t *op);

typedef struct qk_multishift_params {
  qk_hermitian_system_t system;
  qk_prec_t inner;             /* QK_DOUBLE or QK_SINGLE */
  int nrhs;                    /* 1 .. QK_MAX_RHS */
  int nshift;                  /* 1 .. QK_SHIFTS_MAX */
  double shift[QK_SHIFTS_MAX]; /* finite, >= 0, in any order */
} qk_multishift_params_t;

typedef struct qk_shifted {
  qk_status_t status; /* OK, NOT_CONVERGED; NAN_INPUT: |b|^2 is not finite */
  double residual;    /* |b - (A + shift) x| / |b| in double; 0 for b = 0 */
} qk_shifted_t;

typedef struct qk_multishift_cost {
  int64_t shared;  /* iterations of all shifts together */
  int64_t refined; /* beside them, of each one alone */
} qk_multishift_cost_t;

typedef struct qk_multishift qk_multishift_t;

/* QK_BAD_ARGUMENT names what is out of range; QK_NO_MEMORY, QK_DEVICE_MEMORY. Collective. */
qk_status_t qk_multishift_create(const qk_multishift_params_t *params, qk_multishift_t **solver,
                                 qk_err_t *err);
void qk_multishift_destroy(qk_multishift_t *solver); /* NULL-safe */

/* x[k], k < nshift: fields like b, overwritten. result: [nshift][nrhs]. At most max_iter iterations
 * together, and as many for each shift alone. tol > 0. Not converging is a result. cost: may be
 * NULL. Errors: QK_BAD_ARGUMENT (nothing done), QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_multishift_solve(qk_multishift_t *solver, const qk_field_t *b, qk_field_t *const *x,
                                double tol, int64_t max_iter, qk_shifted_t *result,
                                qk_multishift_cost_t *cost);

#endif
