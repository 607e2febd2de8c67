/* solver_deflate.c: what low eigenvectors know of solutions, at the start and at each update. */
#include "daemon/engine/solver_impl.h"

qk_status_t qk_solver_deflate(qk_solver_t *s, qk_field_t *x, qk_field_t *r) {
  qk_field_t *e;
  if (!s->params.deflation) return QK_OK;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, s->nslot, QK_EVEN, &e);
  if (status) return status;
  status = qk_deflation_apply(s->params.deflation, e, r);
  if (!status) status = qk_solver_blas(s, QK_BLAS_ADD, &(qk_blas_args_t){.f = {x->v, e->v}});
  if (!status) status = s->op->ops->apply_eo(s->op, r, x, false, s->bhat);
  qk_work_release(s->work, e);
  return status;
}

qk_status_t qk_solver_guess(qk_solver_t *s, qk_field_t *t, const uint8_t *on) {
  qk_field_t *x;
  if (!s->params.deflation) return QK_OK;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, s->nslot, QK_EVEN, &x);
  if (status) return status;
  status = qk_solver_blas(s, QK_BLAS_ZERO, &(qk_blas_args_t){.f = {x->v}});
  if (!status) status = qk_solver_deflate(s, x, t);
  if (!status)
    status = qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {s->xe->v, x->v}, .mask = on});
  if (!status)
    status = qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {s->r->v, t->v}, .mask = on});
  qk_work_release(s->work, x);
  return status;
}
