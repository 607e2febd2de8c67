/*
 * work.h: requests: the caller's bricks to the daemon, results back. Called by all ranks together.
 * Sites are put into the other order by several threads, while the daemon is talked to: of sources
 * the next column or piece while one is sent, of results one column while the next is waited for.
 */
#ifndef QUARK_QUDA_WORK_H
#define QUARK_QUDA_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"
#include "client/quark.h"
#include "setups.h"

/* One request for whole fields, whose sources and results are the caller's bricks. */
typedef struct qk_quda_job {
  const qk_quda_operator_t *op;
  qk_quda_shape_t shape;
  quark_work_t work;
  quark_parity_t parity; /* of the results; of a hop the sources have the other one */
  quark_schur_t schur;
  bool dagger;
  quark_basis_t basis;
  quark_dtype_t dtype;         /* of bricks */
  bool in_order;               /* bricks have the order of a part (layout.h) */
  double tol, tol_abs, tol_hq; /* in this job's normalisation, that of MASS */
  uint64_t max_iter;
  double factor; /* that results are multiplied by */
  int n;
  void *const *in; /* [n] bricks */
  void **out;
  bool in_device, out_device; /* they are in the memory of a GPU */
} qk_quda_job_t;

typedef struct qk_quda_outcome {
  bool converged;
  double residual, hq_residual; /* NaN: not known */
  uint64_t iterations;
} qk_quda_outcome_t;

/* outcome [n] may be NULL. */
void qk_quda_run(const qk_quda_job_t *job, qk_quda_outcome_t *outcome);
/* |a - b| / |a| of bricks of dtype, over all ranks; on rank 0 and, by broadcast, on all. */
double qk_quda_difference(const qk_quda_job_t *job, const void *a, const void *b);

#endif
