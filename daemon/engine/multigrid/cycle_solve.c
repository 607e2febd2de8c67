/*
 * What a cycle does on one level: smoothing around the coarse correction (B_l), and flexible GCR
 * (S. C. Eisenstat, H. C. Elman and M. H. Schultz, SIAM J. Numer. Anal. 20 (1983) 345) around that (S_l).
 *
 * An iteration of GCR: z = B r, w = Mhat z, one block of inner products, one pass that does the rest.
 */
#include <math.h>

#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/krylov/gcr_step.h"
#include "daemon/engine/multigrid/cycle_impl.h"

static qk_status_t blas(const qk_cycle_level_t *v, qk_blas_op_t op, qk_blas_args_t args) {
  return v->mg->dev.ops->blas(v->mg->dev.ctx, op, &args);
}

static qk_status_t reserve(qk_cycle_t *c, int l, qk_subset_t subset, qk_field_t **field) {
  const qk_cycle_level_t *v = &c->level[l];
  return qk_work_reserve(v->mg->work, v->prec, c->nrhs, subset, field);
}

/* ---- B_l --------------------------------------------------------------------------------------------- */

/* z += P S R A r (z = where not `add`). */
static qk_status_t correct(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r, bool add) {
  qk_cycle_level_t *v = &c->level[l];
  qk_work_t *below = c->level[l + 1].mg->work;
  qk_field_t *t, *b = NULL, *e = NULL;
  qk_status_t status = reserve(c, l + 1, QK_FULL, &b);
  if (status) return status;
  status = reserve(c, l + 1, QK_FULL, &e);
  if (status) goto done;
  status = reserve(c, l, QK_EVEN, &t);
  if (status) goto done;
  status = v->mg->op->ops->diag(v->mg->op, t, r, false);
  if (!status) status = qk_prolongator_restrict(v->mg->down, b, t);
  qk_work_release(v->mg->work, t);
  if (!status) status = qk_cycle_enter(c, l + 1);
  if (!status) status = qk_cycle_solve_level(c, l + 1, e, b);
  if (!status) status = qk_cycle_enter(c, l);
  if (!status) status = qk_prolongator_prolong(v->mg->down, z, e, add);
done:
  qk_work_release(below, e);
  qk_work_release(below, b);
  return status;
}

qk_status_t qk_cycle_precondition(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r) {
  qk_cycle_level_t *v = &c->level[l];
  const int pre = v->params->pre, post = v->params->post;
  qk_operator_t *op = v->mg->op;
  qk_field_t *s;
  qk_status_t status = reserve(c, l, QK_EVEN, &s);
  if (status) return status;
  if (pre > 0) {
    status = blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {s->v, r->v}});
    if (!status) status = qk_smoother_run(v->smoother, z, s, pre, true);
  }
  if (!status) status = correct(c, l, z, pre > 0 ? s : r, pre > 0);
  if (!status && post > 0) {
    status = op->ops->apply_eo(op, s, z, false, r);
    if (!status) status = qk_smoother_run(v->smoother, z, s, post, false);
  }
  qk_work_release(v->mg->work, s);
  return status;
}

/* ---- S_l --------------------------------------------------------------------------------------------- */

/* |r|^2 of all right-hand sides, on the host. */
static qk_status_t norms(qk_cycle_level_t *v, const qk_field_t *r) {
  qk_scalars_t *s = &v->scalars;
  qk_status_t status =
      blas(v, QK_BLAS_NORM2, (qk_blas_args_t){.f = {r->v}, .red = qk_scalars_at(s, QK_CYCLE_RR)});
  return status ? status : qk_scalars_total(s, QK_CYCLE_RR, 1);
}

/* Which right-hand sides go on. One that is not finite does not: it keeps nobody waiting. */
static qk_status_t look(qk_cycle_t *c, qk_cycle_level_t *v, const qk_field_t *r, bool first,
                        bool *any) {
  qk_status_t status = norms(v, r);
  if (status) return status;
  *any = false;
  for (int i = 0; i < c->nrhs; i++) {
    double rr = qk_scalars_host(&v->scalars, QK_CYCLE_RR, i)[0];
    if (first) v->target[i] = v->params->tol * v->params->tol * rr;
    bool on = isfinite(rr) && rr > v->target[i];
    v->running_host[i] = on && (first || v->running_host[i]);
    *any = *any || v->running_host[i];
  }
  const qk_device_t *dev = &v->mg->dev;
  status =
      dev->ops->copy(dev->ctx, v->running, v->running_host, (size_t)c->nrhs, QK_COPY_TO_DEVICE, 0);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}

/* The directions of one run of GCR, w before z. */
typedef struct space {
  int n;
  qk_field_t *w[QK_GCR_MAX], *z[QK_GCR_MAX];
} space_t;

static void release_space(qk_cycle_t *c, int l, space_t *p) {
  qk_work_t *work = c->level[l].mg->work;
  for (int k = QK_GCR_MAX - 1; k >= 0; k--) {
    qk_work_release(work, p->z[k]);
    qk_work_release(work, p->w[k]);
  }
}

static qk_status_t reserve_space(qk_cycle_t *c, int l, int n, space_t *p) {
  *p = (space_t){.n = n};
  qk_status_t status = QK_OK;
  for (int k = 0; k < n && !status; k++) {
    status = reserve(c, l, QK_EVEN, &p->w[k]);
    if (!status) status = reserve(c, l, QK_EVEN, &p->z[k]);
  }
  if (status) release_space(c, l, p);
  return status;
}

/* Step k of a run. Without preconditioner z[k] is r already, and z[k+1] will be. */
static qk_status_t step(qk_cycle_t *c, int l, const space_t *p, int k, qk_field_t *x, qk_field_t *r,
                        bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  const bool plain = l == c->nlevel - 1;
  qk_status_t status = plain ? QK_OK : qk_cycle_precondition(c, l, p->z[k], r);
  if (!status) status = v->mg->op->ops->apply_eo(v->mg->op, p->w[k], p->z[k], false, NULL);
  if (status) return status;

  int norm2[QK_GCR_MAX];
  for (int j = 0; j <= k; j++) norm2[j] = QK_CYCLE_NORMS + j;
  return qk_gcr_advance(&v->scalars,
                        &(qk_gcr_step_t){.n = k,
                                         .dots = QK_CYCLE_DOTS,
                                         .norm2 = norm2,
                                         .w = p->w,
                                         .z = p->z,
                                         .x = x,
                                         .r = r,
                                         .next = plain && k + 1 < p->n ? p->z[k + 1] : NULL,
                                         .x_zero = x_zero,
                                         .mask = v->running});
}

/* r = r - Mhat x made nearly 0 by more of x (x_zero: x is set). Runs of as many directions as gcr_step takes. */
static qk_status_t gcr(qk_cycle_t *c, int l, qk_field_t *x, qk_field_t *r, bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  const int total = v->params->iterations, most = total < QK_GCR_MAX ? total : QK_GCR_MAX;
  bool any = true;
  space_t p;
  qk_status_t status = reserve_space(c, l, most, &p);
  if (status) return status;
  if (v->running) status = look(c, v, r, true, &any);
  if (!status && x_zero && !any) status = blas(v, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  for (int i = 0; i < total && !status && any; i++) {
    const int k = i % most;
    if (k == 0 && l == c->nlevel - 1)
      status = blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {p.z[0]->v, r->v}});
    if (!status) status = step(c, l, &p, k, x, r, x_zero);
    x_zero = false;
    if (!status && v->running && i + 1 < total) status = look(c, v, r, false, &any);
  }
  release_space(c, l, &p);
  return status;
}

/* The same with what the low modes give to begin with. */
static qk_status_t deflated(qk_cycle_t *c, int l, qk_field_t *x, const qk_field_t *r) {
  qk_cycle_level_t *v = &c->level[l];
  qk_field_t *left;
  qk_status_t status = reserve(c, l, QK_EVEN, &left);
  if (status) return status;
  status = qk_deflation_apply(c->mg->deflation, x, r);
  if (!status) status = v->mg->op->ops->apply_eo(v->mg->op, left, x, false, r);
  if (!status) status = gcr(c, l, x, left, false);
  qk_work_release(v->mg->work, left);
  return status;
}

qk_status_t qk_cycle_solve_level(qk_cycle_t *c, int l, qk_field_t *e, const qk_field_t *b) {
  qk_cycle_level_t *v = &c->level[l];
  qk_operator_t *op = v->mg->op;
  qk_field_t even = {.dev = e->dev, .v = qk_field_parity(e, QK_EVEN)}, *r;
  qk_status_t status = reserve(c, l, QK_EVEN, &r);
  if (status) return status;
  status = op->ops->prepare_eo(op, r, b);
  if (!status)
    status = c->mg->deflation && l == c->nlevel - 1 ? deflated(c, l, &even, r)
                                                    : gcr(c, l, &even, r, true);
  if (!status) status = op->ops->reconstruct_eo(op, e, &even, b);
  qk_work_release(v->mg->work, r);
  return status;
}
