/*
 * nullspace.h: near-null vectors of an operator, all those of a level as the columns of one block.
 *
 * Starts from random vectors x on even sites: BiCGStab (or another method of solver.h) on Mhat e =
 * -Mhat x, x += e, for a given number of iterations or until |Mhat x| is reduced by tol. Then x_o =
 * -A_oo^-1 M_oe x_e, so that M x vanishes on odd sites. Collective. Work fields: in the given
 * precision; none in double.
 */
#ifndef QK_ENGINE_NULLSPACE_H
#define QK_ENGINE_NULLSPACE_H

#include "daemon/base/progress.h"
#include "daemon/engine/operator/operator.h"

typedef struct qk_relax_params {
  const char *method; /* "bicgstab", "cg", "gcr" */
  qk_prec_t prec;
  int iterations;
  double tol;
  uint64_t seed; /* of the random vectors */
  bool keep; /* a column that does not improve stays as it was; else it is made of other noise */
  qk_progress_fn *progress; /* as in qk_relax_limit_t */
  void *arg;
} qk_relax_params_t;

/* v: full field in single; its columns are the result. fall: worst reduction of |Mhat x| (may be
 * NULL). */
qk_status_t qk_nullspace_relax(qk_operator_t *op, qk_work_t *work, const qk_relax_params_t *params,
                               qk_field_t *v, double *fall, qk_err_t *err);

/* Uniform random complex components in all columns (Philox), the same on every backend and rank
 * grid. */
qk_status_t qk_nullspace_random(const qk_device_t *dev, uint64_t seed, qk_field_t *v);

#endif
