/*
 * multishift.h: (A + shift_k) x_k = b for several shifts at the cost of one Krylov space, for a
 * hermitian positive A (B. Jegerlehner, hep-lat/9612014).
 *
 * Residuals of all shifts are parallel, so one application of A serves them all. Solutions and
 * directions after eight iterations are sums over what they were and the residuals in between; so
 * shifts follow every eight iterations, and one costs less than a field to read an iteration.
 *
 * Residuals are parallel to the rounding of A only: what that leaves in those of shifts is a part
 * of |r| at the time. So with single inside, iterations begin in double, down to where the noise of
 * single is half of what is wanted, and go on in single with solutions summed in double. What is
 * not small enough then is refined: residual in double, correction by CG on A + shift_k, where all
 * shifts are columns of one block, so that its links are read once for all of them. What is told of
 * a solution is its residual in double.
 *
 * A: Mhat^+ Mhat of an operator (qk_normal_system), or what its action says (operator.h: masses).
 *
 * Shapes: blocks of nrhs right-hand sides on the sites of the system, in double; columns do not
 * depend on each other. Memory: 10 + 2 nshift blocks in double while it is worked on in double,
 * then 10 + nshift in the inner precision and nshift in double, or these from the beginning where
 * there is no room; while shifts are refined four more of nrhs nshift columns, or fewer; and work
 * fields: a block in double beside those of A. Begin, step and solve are collective.
 */
#ifndef QK_ENGINE_MULTISHIFT_H
#define QK_ENGINE_MULTISHIFT_H

#include "daemon/engine/operator/operator.h"

/* out = A in, for blocks in double and in the inner precision; as a call of an iteration
 * (device.h). */
typedef struct qk_hermitian_system {
  void (*apply)(void *self, qk_field_t *out, const qk_field_t *in);
  /* out = (A + shift) in, in one pass; NULL: there is none */
  void (*apply_shifted)(void *self, qk_field_t *out, const qk_field_t *in, double shift);
  void *self;
  const qk_device_t *dev;
  qk_work_t *work; /* borrowed */
  qk_subset_t subset;
} qk_hermitian_system_t;

/* Mhat^+ Mhat. Flavours are the caller's (operator.h). */
qk_hermitian_system_t qk_normal_system(qk_operator_t *op);

/* Where x_k is not the solution that is asked for, but what that is made of: corrections are those
 * of its residual. Calls of an iteration (device.h). */
typedef struct qk_shift_refiner {
  void (*residual)(void *self, int k, qk_field_t *r);  /* of shift k, like b */
  void (*add)(void *self, int k, const qk_field_t *e); /* e is added to x_k */
  void *self;
} qk_shift_refiner_t;

typedef struct qk_multishift_params {
  qk_hermitian_system_t system;
  qk_shift_refiner_t refiner;  /* residual NULL: x_k is what is asked for */
  qk_prec_t inner;             /* QK_DOUBLE or QK_SINGLE */
  int nrhs;                    /* 1 .. QK_MAX_RHS */
  int nshift;                  /* 1 .. QK_SHIFTS_MAX */
  double shift[QK_SHIFTS_MAX]; /* finite, >= 0, in any order */
} qk_multishift_params_t;

typedef struct qk_shifted {
  qk_status_t status; /* OK, NOT_CONVERGED; NAN_INPUT: |b|^2 is not finite */
  double residual;    /* |b - (A + shift) x| / |b| in double; 0 for b = 0 */
  int64_t iterations; /* until this shift was there, and of its corrections */
  int64_t together;   /* of the column, for all shifts: those of the smallest one */
  int64_t refined;    /* of its corrections alone */
} qk_shifted_t;

typedef struct qk_multishift_cost {
  int64_t shared;  /* iterations of all shifts together */
  int64_t refined; /* beside them, of blocks of corrections */
} qk_multishift_cost_t;

typedef struct qk_multishift qk_multishift_t;

/* QK_BAD_ARGUMENT names what is out of range; QK_NO_MEMORY, QK_DEVICE_MEMORY. Collective. */
qk_status_t qk_multishift_create(const qk_multishift_params_t *params, qk_multishift_t **solver,
                                 qk_err_t *err);
void qk_multishift_destroy(qk_multishift_t *solver); /* NULL-safe */

/* x[k], k < nshift: fields like b, overwritten. result: [nshift][nrhs]. At most max_iter iterations
 * together, and as many corrections for each. tol > 0. Not converging is a result. cost: may be
 * NULL. Errors: QK_BAD_ARGUMENT (nothing done), QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
qk_status_t qk_multishift_solve(qk_multishift_t *solver, const qk_field_t *b, qk_field_t *const *x,
                                double tol, int64_t max_iter, qk_shifted_t *result,
                                qk_multishift_cost_t *cost);

/* The same in pieces: b and x are borrowed until it is over, or begun anew. x: NULL with a refiner.
 * wanted: [nrhs], which norm of residuals is small enough; NULL: tol |b|. step: about so many
 * iterations. */
qk_status_t qk_multishift_begin(qk_multishift_t *solver, const qk_field_t *b, qk_field_t *const *x,
                                double tol, const double *wanted, int64_t max_iter);
/* With a refiner, of solutions that are there: corrections alone. */
qk_status_t qk_multishift_correct(qk_multishift_t *solver, const double *wanted, int64_t max_iter);
qk_status_t qk_multishift_step(qk_multishift_t *solver, int iterations);
bool qk_multishift_is_over(const qk_multishift_t *solver);
/* A is applied for all shifts together: no corrections yet. */
bool qk_multishift_is_together(const qk_multishift_t *solver);
/* How far it is, also before it is over: the largest residual of column j, all shifts, as far as it
 * is known. */
double qk_multishift_residual(const qk_multishift_t *solver, int j);
int64_t qk_multishift_iterations(const qk_multishift_t *solver);
/* When it is over. */
void qk_multishift_results(const qk_multishift_t *solver, qk_shifted_t *result,
                           qk_multishift_cost_t *cost);
/* Nothing more is asked of what was begun: fields of corrections go. */
void qk_multishift_leave(qk_multishift_t *solver);

#endif
