/*
 * trial.h: measures the cost of one set of multigrid parameters on a loaded configuration.
 *
 * A trial makes the hierarchy, unless the existing one differs only in parameters of the cycle, and
 * solves a block of noise sources. Collective.
 */
#ifndef QK_TUNE_TRIAL_H
#define QK_TUNE_TRIAL_H

#include "daemon/engine/multigrid/multigrid.h"

typedef struct qk_trial {
  qk_operator_t *op; /* with double, single and half; borrowed, like work */
  qk_work_t *work;
  double tol;
  int nrhs;
  qk_mg_t *mg; /* the hierarchy there is, or NULL; qk_trial_fini destroys it */
} qk_trial_t;

typedef struct qk_trial_result {
  qk_status_t status; /* of the setup, the memory, or the worst RHS */
  double seconds;     /* a RHS */
  double iterations;  /* outer, mean */
  double setup_seconds;
  int64_t bytes;         /* device memory while it ran, this rank */
  qk_mg_params_t params; /* complete */
} qk_trial_result_t;

/* Failures are in result->status, explained in err; it returns only the loss of device or
 * communicator. */
qk_status_t qk_trial_run(qk_trial_t *trial, const qk_mg_params_t *params, qk_trial_result_t *result,
                         qk_err_t *err);
void qk_trial_fini(qk_trial_t *trial);

#endif
