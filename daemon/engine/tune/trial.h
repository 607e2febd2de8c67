/*
 * trial.h: measures the cost of one set of multigrid parameters on a loaded configuration.
 *
 * A trial makes the hierarchy, unless the existing one differs only in parameters of the cycle,
 * and solves a block of noise sources: once to a low precision, which is not counted, then as often
 * as asked for; then the first source by itself. The cost is the time of a right-hand side of a
 * block, with its part of that of the setup. Rank 0's clock counts. Collective.
 */
#ifndef QK_TUNE_TRIAL_H
#define QK_TUNE_TRIAL_H

#include "daemon/engine/multigrid/multigrid.h"

enum { QK_TRIAL_REPEATS = 9 };

typedef struct qk_trial {
  qk_operator_t *op; /* with double, single and half; borrowed, like work */
  qk_work_t *work;
  double tol, solves; /* solves: that one setup serves */
  int nrhs;
  qk_mg_t *mg; /* the hierarchy there is, or NULL; qk_trial_fini destroys it */
} qk_trial_t;

/* How far a trial goes; the same on all ranks. */
typedef struct qk_trial_plan {
  int repeats; /* solves of the block, at most QK_TRIAL_REPEATS */
  double keen; /* ... but one, where its cost is above this */
  double stop; /* it ends as soon as the cost is sure to be above this; INFINITY: never */
  bool anew;   /* a hierarchy that is there is made again */
} qk_trial_plan_t;

typedef struct qk_trial_result {
  qk_status_t status; /* of the setup, the memory, or the worst RHS */
  bool stopped;       /* seconds and setup_seconds are then only the least that they can be */
  double seconds;     /* a RHS of a block: the median */
  double spread;      /* (most - least) / median, of five without these two; < 0: of one solve */
  double alone;       /* seconds of a RHS by itself; < 0: not measured */
  double iterations;  /* outer, mean */
  double residual;    /* |b - M x| / |b|, in double, of the worst RHS */
  double setup_seconds;
  int64_t bytes;         /* device memory while it ran, this rank */
  qk_mg_params_t params; /* complete */
} qk_trial_result_t;

/* What a trial of these parameters would be of. QK_BAD_ARGUMENT, QK_BAD_GEOMETRY. Pure. */
qk_status_t qk_trial_complete(const qk_trial_t *trial, qk_mg_params_t *params, qk_err_t *err);
/* Failures are in result->status, explained in err; it returns only the loss of device or
 * communicator. */
qk_status_t qk_trial_run(qk_trial_t *trial, const qk_mg_params_t *params,
                         const qk_trial_plan_t *plan, qk_trial_result_t *result, qk_err_t *err);
/* Of a trial that was not bad: INFINITY otherwise. */
static inline double qk_trial_cost(const qk_trial_t *trial, const qk_trial_result_t *result) {
  return result->seconds + result->setup_seconds / trial->solves;
}
void qk_trial_fini(qk_trial_t *trial);

#endif
