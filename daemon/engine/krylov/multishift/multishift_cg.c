/* CG on blocks of shifted systems, by columns: pieces of multishift.c and multishift_refine.c. */
#include <math.h>
#include <string.h>

#include "daemon/engine/krylov/multishift/multishift_impl.h"

qk_status_t qk_shift_cg_init(qk_shift_cg_t *cg, const qk_multishift_params_t *p, int width) {
  qk_field_t **const field[] = {&cg->r, &cg->p, &cg->q};
  cg->dev = p->system.dev;
  cg->width = width;
  for (int i = 0; i < 3; i++) {
    const qk_status_t status =
        qk_field_create(cg->dev, p->inner, width, p->system.subset, field[i]);
    if (status) return status;
  }
  return qk_scalars_init(&cg->scalars, cg->dev, QK_SHIFT_SCALARS, width);
}

void qk_shift_cg_fini(qk_shift_cg_t *cg) {
  if (!cg->dev) return;
  qk_scalars_fini(&cg->scalars);
  qk_field_destroy(cg->q);
  qk_field_destroy(cg->p);
  qk_field_destroy(cg->r);
  *cg = (qk_shift_cg_t){.dev = NULL};
}

const double *qk_shift_put(qk_shift_cg_t *cg, int at, const double *value) {
  for (int j = 0; j < cg->width; j++) qk_scalars_set(&cg->scalars, at, j, value[j], 0);
  qk_scalars_store(&cg->scalars, at, 1);
  return qk_scalars_at(&cg->scalars, at);
}

void qk_shift_reduce(qk_shift_cg_t *cg, int at, qk_blas_op_t op, qk_blas_args_t args,
                     double *result) {
  qk_scalars_reduce(&cg->scalars, at, 1, op, args);
  qk_scalars_fetch(&cg->scalars, at, 1);
  for (int j = 0; j < cg->width; j++) result[j] = qk_scalars_host(&cg->scalars, at, j)[0];
}

void qk_shift_advance(qk_shift_cg_t *cg, double *rr) {
  double pq[QK_MAX_RHS] = {0}, now[QK_MAX_RHS];
  qk_shift_reduce(cg, QK_SHIFT_PQ, QK_BLAS_CDOT, (qk_blas_args_t){.f = {cg->p->v, cg->q->v}}, pq);
  for (int j = 0; j < cg->width; j++) {
    const double alpha = cg->on[j] ? cg->rr[j] / pq[j] : 0;
    cg->alpha[j] = isfinite(alpha) && alpha > 0 ? alpha : 0;
    now[j] = cg->alpha[j] > 0 ? cg->rr[j] : 0;
  }
  const double *c = qk_shift_put(cg, QK_SHIFT_OLD, now);
  const double *d = qk_scalars_at(&cg->scalars, QK_SHIFT_PQ);
  qk_shift_reduce(cg, QK_SHIFT_RR, QK_BLAS_CG_XR,
                  (qk_blas_args_t){.f = {cg->x->v, cg->r->v, cg->p->v, cg->q->v}, .c = {c, d}}, rr);
  for (int j = 0; j < cg->width; j++) cg->beta[j] = cg->alpha[j] > 0 ? rr[j] / cg->rr[j] : 0;
}

void qk_shift_turn(qk_shift_cg_t *cg, const double *beta, const qk_field_t *p) {
  const double *c = qk_shift_put(cg, QK_SHIFT_FACTOR, beta);
  qk_dev_blas(cg->dev, QK_BLAS_XPAY, (qk_blas_args_t){.f = {p->v, cg->r->v}, .c = {c}});
}

void qk_shift_scale(qk_shift_cg_t *cg, const qk_field_t *f, const double *value, bool invert) {
  double factor[QK_MAX_RHS];
  for (int j = 0; j < cg->width; j++) {
    const bool is = value[j] > 0 && isfinite(value[j]);
    factor[j] = !is ? 1 : invert ? 1 / value[j] : value[j];
  }
  const double *c = qk_shift_put(cg, QK_SHIFT_FACTOR, factor);
  qk_dev_blas(cg->dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {f->v}, .c = {c}});
}

bool qk_shift_any(const qk_shift_cg_t *cg) {
  return memchr(cg->on, 1, (size_t)cg->width) != NULL;
}

void qk_shift_apply(qk_multishift_t *m, qk_field_t *out, const qk_field_t *in, double shift) {
  const qk_hermitian_system_t *a = &m->params.system;
  if (a->apply_shifted) {
    a->apply_shifted(a->self, out, in, shift);
    return;
  }
  a->apply(a->self, out, in);
  if (shift == 0) return;
  qk_scalars_fill(&m->cg.scalars, QK_SHIFT_SHIFT, shift);
  const double *c = qk_scalars_at(&m->cg.scalars, QK_SHIFT_SHIFT);
  qk_dev_blas(m->dev, QK_BLAS_AXPY, (qk_blas_args_t){.f = {out->v, in->v}, .c = {c}});
}
