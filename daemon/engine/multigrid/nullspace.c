#include "daemon/engine/multigrid/nullspace.h"

#include <math.h>

#include "daemon/engine/krylov/solver.h"

enum { ATTEMPTS = 2 }; /* of a column whose recursion breaks down */

static qk_status_t noise(const qk_device_t *dev, uint64_t seed, int column, qk_field_t *v) {
  qk_noise_args_t args = {.lat = dev->geom->lat, .field = v->v, .rhs = column, .seed = seed};
  return dev->ops->noise(dev->ctx, &args);
}

qk_status_t qk_nullspace_random(const qk_device_t *dev, uint64_t seed, qk_field_t *v) {
  return noise(dev, seed, -1, v);
}

/* A half of a full field as a field of even sites. */
static qk_field_t half_of(const qk_field_t *full, qk_subset_t parity) {
  qk_field_t f = {.dev = full->dev, .v = qk_field_parity(full, parity)};
  f.v.subset = QK_EVEN;
  f.bytes = qk_spinor_bytes(&f.v);
  return f;
}

/* Another start for the columns of the mask. */
static qk_status_t noise_again(const qk_device_t *dev, uint64_t seed, int attempt,
                               const uint8_t *mask, qk_field_t *v) {
  qk_status_t status = QK_OK;
  for (int i = 0; !status && i < v->v.nrhs; i++)
    if (mask[i]) status = noise(dev, seed + (uint64_t)attempt, i, v);
  return status;
}

/* Even sites of v; the odd ones serve as work space. */
static qk_status_t relax_even(qk_operator_t *op, qk_work_t *work, const qk_relax_params_t *params,
                              qk_field_t *v, double *worst, qk_err_t *err) {
  const int n = v->v.nrhs;
  const qk_solver_params_t solver = {.method = params->method, .inner = params->prec, .nslot = n};
  const qk_relax_limit_t limit = {params->iterations, params->tol, params->progress, params->arg};
  qk_field_t x = half_of(v, QK_EVEN), scratch = half_of(v, QK_ODD);
  double fall[QK_MAX_RHS];
  uint8_t mask[QK_MAX_RHS];
  int left = n;
  *worst = 0;
  for (int i = 0; i < n; i++) mask[i] = 1;
  for (int attempt = 0; attempt < ATTEMPTS && left > 0; attempt++) {
    qk_status_t status = attempt > 0 ? noise_again(op->dev, params->seed, attempt, mask, v) : QK_OK;
    if (status) return status;
    status = qk_solver_relax(op, work, &solver, mask, &limit, &x, &scratch, fall, err);
    if (status) return status;
    left = 0;
    for (int i = 0; i < n; i++) {
      if (!mask[i]) continue;
      mask[i] = isnan(fall[i]) && !params->keep;
      left += mask[i];
      if (!mask[i]) *worst = fmax(*worst, fall[i]); /* NaN does not count */
    }
  }
  if (left == 0) return QK_OK;
  return qk_fail(err, QK_BREAKDOWN, "null vectors: %s broke down on %d of %d columns",
                 params->method, left, n);
}

/* x_o = -A_oo^-1 M_oe x_e */
static qk_status_t fill_odd(qk_operator_t *op, qk_field_t *v, qk_err_t *err) {
  qk_field_t *zero = NULL, x = half_of(v, QK_EVEN);
  qk_status_t status = qk_field_create(op->dev, v->v.prec, v->v.nrhs, QK_FULL, &zero);
  status = qk_comm_agree(op->dev->geom->comm, status, err);
  if (!status) {
    qk_dev_note(op->dev, op->ops->reconstruct(op, v, &x, zero));
    qk_dev_sync(op->dev);
    status = qk_dev_status(op->dev);
  }
  qk_field_destroy(zero);
  return status;
}

qk_status_t qk_nullspace_relax(qk_operator_t *op, qk_work_t *work, const qk_relax_params_t *params,
                               qk_field_t *v, double *fall, qk_err_t *err) {
  double worst;
  if (params->iterations < 1)
    return qk_fail(err, QK_BAD_ARGUMENT, "setup iterations = %d: at least 1", params->iterations);
  qk_status_t status = relax_even(op, work, params, v, &worst, err);
  if (status) return status;
  status = fill_odd(op, v, err);
  if (status) return status;
  if (fall) *fall = worst;
  return QK_OK;
}
