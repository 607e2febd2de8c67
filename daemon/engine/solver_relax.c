#include <math.h>
#include <string.h>

#include "daemon/engine/solver_impl.h"

/* r = Mhat x and xi = 0, for the slots of the mask. */
static qk_status_t begin(qk_solver_t *s, const uint8_t *mask, const qk_field_t *x,
                         qk_field_t *scratch, double *norm) {
  double norm2[QK_MAX_RHS];
  qk_status_t status = qk_solver_mhat(s, scratch, x, false);
  if (!status) status = qk_solver_norm2(s, scratch->v, norm2);
  if (!status)
    status = qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {s->r->v, scratch->v}});
  if (!status) status = qk_solver_blas(s, QK_BLAS_ZERO, &(qk_blas_args_t){.f = {s->xi->v}});
  if (status) return status;
  for (int i = 0; i < s->nslot; i++) {
    norm[i] = sqrt(norm2[i]);
    s->slot[i].state =
        mask[i] && isfinite(norm[i]) && norm[i] > 0 ? QK_SLOT_RUNNING : QK_SLOT_ENDED;
  }
  status = qk_solver_set_running(s);
  return status ? status : s->method->start(s, mask);
}

/* A slot goes on while it is sound and has not reached tol. What it holds is kept unless it is not finite. */
static void judge(qk_solver_t *s, int i, double norm, double tol, double *fall) {
  double r = sqrt(s->trace[(s->check - 1) * s->nslot + i]) / norm;
  fall[i] = isfinite(r) ? r : NAN;
  if (!isfinite(r) || r <= tol || s->broken[i]) s->slot[i].state = QK_SLOT_ENDED;
}

/* x -= xi where the recursion was sound to the end and has improved on x. */
static qk_status_t end(qk_solver_t *s, const uint8_t *mask, qk_field_t *x, qk_field_t *scratch,
                       double *fall) {
  uint8_t keep[QK_MAX_RHS];
  const uint8_t *on;
  for (int i = 0; i < s->nslot; i++) {
    if (!(fall[i] < 1)) fall[i] = NAN;
    keep[i] = mask[i] && isfinite(fall[i]);
  }
  qk_status_t status = qk_solver_upload_mask(s, keep, &on);
  if (!status)
    status =
        qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {scratch->v, s->xi->v}, .mask = on});
  if (!status)
    status = qk_solver_blas(s, QK_BLAS_SUB,
                            &(qk_blas_args_t){.f = {x->v, x->v, scratch->v}, .mask = on});
  return status ? status : s->dev->ops->queue_sync(s->dev->ctx, 0);
}

qk_status_t qk_solver_relax(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                            const uint8_t *mask, int64_t iterations, double tol, qk_field_t *x,
                            qk_field_t *scratch, double *fall, qk_err_t *err) {
  qk_solver_t *s;
  double norm[QK_MAX_RHS];
  qk_status_t status = qk_solver_make(op, work, params, false, &s, err);
  if (status) return status;
  for (int i = 0; i < s->nslot; i++) fall[i] = NAN;
  status = begin(s, mask, x, scratch, norm);
  for (int64_t n = 0; !status && n < iterations && qk_solver_running(s); n += s->check) {
    status = s->method->iterate(s);
    if (status) break;
    for (int i = 0; i < s->nslot; i++)
      if (s->slot[i].state == QK_SLOT_RUNNING) judge(s, i, norm[i], tol, fall);
    status = qk_solver_set_running(s);
  }
  if (!status) status = end(s, mask, x, scratch, fall);
  status = qk_comm_agree(s->dev->geom->comm, status, err);
  qk_solver_destroy(s);
  return status;
}
