/*
 * A cycle on one level: smoothing around the coarse correction (B_l), and flexible GCR (S. C.
 * Eisenstat, H. C. Elman and M. H. Schultz, SIAM J. Numer. Anal. 20 (1983) 345) with it (S_l).
 *
 * An iteration of GCR: z = B r, w = Mhat z, one block of inner products, one pass for the rest.
 */
#include <math.h>

#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/krylov/gcr_step.h"
#include "daemon/engine/multigrid/cycle_impl.h"

static void blas(const qk_cycle_level_t *v, qk_blas_op_t op, qk_blas_args_t args) {
  qk_dev_blas(&v->mg->dev, op, args);
}

/* out = Mhat in; x given: out = x - Mhat in. */
static void mhat(const qk_cycle_level_t *v, qk_field_t *out, const qk_field_t *in,
                 const qk_field_t *x) {
  const qk_device_t *dev = &v->mg->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, v->mg->op->ops->apply_system(v->mg->op, out, in, false, x));
}

/* A field of the system of level l. */
static qk_field_t *take(qk_cycle_t *c, int l) {
  const qk_cycle_level_t *v = &c->level[l];
  return qk_work_take(v->mg->work, v->prec, c->nrhs, v->mg->op->system);
}

static qk_field_t *take_full(qk_cycle_t *c, int l) {
  const qk_cycle_level_t *v = &c->level[l];
  return qk_work_take(v->mg->work, v->prec, c->nrhs, QK_FULL);
}

static void give(qk_cycle_t *c, int l, qk_field_t *field) {
  qk_work_release(c->level[l].mg->work, field);
}

/* ---- B_l ------------------------------------------------------------------------------------- */

/* b = R A r */
static void restrict_residual(qk_cycle_t *c, int l, qk_field_t *b, const qk_field_t *r) {
  const qk_mg_level_t *mg = c->level[l].mg;
  qk_field_t *t = take(c, l);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, mg->op->ops->diag(mg->op, t, r, false));
  qk_prolongator_restrict(mg->down, b, t);
  give(c, l, t);
}

/* z += P S R A r (z = where not `add`). */
static void correct(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r, bool add) {
  const qk_mg_level_t *mg = c->level[l].mg;
  qk_field_t *b = take_full(c, l + 1), *e = take_full(c, l + 1);
  restrict_residual(c, l, b, r);
  qk_cycle_enter(c, l + 1);
  qk_cycle_solve_level(c, l + 1, e, b);
  qk_cycle_enter(c, l);
  qk_prolongator_prolong(mg->down, z, e, add);
  give(c, l + 1, e);
  give(c, l + 1, b);
}

void qk_cycle_precondition(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r) {
  qk_cycle_level_t *v = &c->level[l];
  const int pre = v->params->pre, post = v->params->post;
  qk_field_t *s = take(c, l);
  if (pre > 0) {
    blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {s->v, r->v}});
    qk_smoother_run(v->smoother, z, s, pre, true);
  }
  correct(c, l, z, pre > 0 ? s : r, pre > 0);
  if (post > 0) {
    mhat(v, s, z, r);
    qk_smoother_run(v->smoother, z, s, post, false);
  }
  give(c, l, s);
}

/* ---- S_l ------------------------------------------------------------------------------------- */

/* The right-hand sides that go on, as they are on the host. */
static void upload_running(qk_cycle_t *c, const qk_cycle_level_t *v) {
  const qk_device_t *dev = &v->mg->dev;
  qk_dev_copy(dev, v->running, v->running_host, (size_t)c->nrhs, QK_COPY_TO_DEVICE);
  qk_dev_sync(dev);
}

/* Which right-hand sides go on, by |r|^2. One that is not finite does not: it keeps nobody waiting.
 * False: none, or something has failed. */
static bool look(qk_cycle_t *c, qk_cycle_level_t *v, const qk_field_t *r, bool first) {
  qk_scalars_t *s = &v->scalars;
  bool any = false;
  blas(v, QK_BLAS_NORM2, (qk_blas_args_t){.f = {r->v}, .red = qk_scalars_at(s, QK_CYCLE_RR)});
  qk_scalars_total(s, QK_CYCLE_RR, 1);
  for (int i = 0; i < c->nrhs; i++) {
    double rr = qk_scalars_host(s, QK_CYCLE_RR, i)[0];
    if (first) v->target[i] = v->params->tol * v->params->tol * rr;
    bool on = isfinite(rr) && rr > v->target[i];
    v->running_host[i] = on && (first || v->running_host[i]);
    any = any || v->running_host[i];
  }
  upload_running(c, v);
  return any && qk_dev_ok(&v->mg->dev);
}

/* The directions of one run of GCR, w before z. */
typedef struct space {
  int n;
  qk_field_t *w[QK_GCR_MAX], *z[QK_GCR_MAX];
} space_t;

static void release_space(qk_cycle_t *c, int l, space_t *p) {
  for (int k = p->n - 1; k >= 0; k--) {
    give(c, l, p->z[k]);
    give(c, l, p->w[k]);
  }
}

static void take_space(qk_cycle_t *c, int l, int n, space_t *p) {
  p->n = n;
  for (int k = 0; k < n; k++) {
    p->w[k] = take(c, l);
    p->z[k] = take(c, l);
  }
}

/* Step k of a run. Without preconditioner z[k] is r already, and z[k+1] will be. */
static void step(qk_cycle_t *c, int l, const space_t *p, int k, qk_field_t *x, qk_field_t *r,
                 bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  const bool plain = l == c->nlevel - 1;
  int norm2[QK_GCR_MAX];
  for (int j = 0; j <= k; j++) norm2[j] = QK_CYCLE_NORMS + j;
  if (!plain) qk_cycle_precondition(c, l, p->z[k], r);
  mhat(v, p->w[k], p->z[k], NULL);
  qk_gcr_advance(&v->scalars, &(qk_gcr_step_t){.n = k,
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

/* Reduces r = r - Mhat x by adding to x (x_zero: x is set). Runs of as many directions as
 * gcr_step allows. */
static void gcr(qk_cycle_t *c, int l, qk_field_t *x, qk_field_t *r, bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  const int total = v->params->iterations, most = total < QK_GCR_MAX ? total : QK_GCR_MAX;
  space_t p;
  take_space(c, l, most, &p);
  bool any = !v->running || look(c, v, r, true);
  if (x_zero && !any) blas(v, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  for (int i = 0; i < total && any && qk_dev_ok(&v->mg->dev); i++) {
    const int k = i % most;
    if (k == 0 && l == c->nlevel - 1)
      blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {p.z[0]->v, r->v}});
    step(c, l, &p, k, x, r, x_zero);
    x_zero = false;
    if (v->running && i + 1 < total) any = look(c, v, r, false);
  }
  release_space(c, l, &p);
}

/* The same with what the low modes give to begin with. */
static void deflated(qk_cycle_t *c, int l, qk_field_t *x, const qk_field_t *r) {
  qk_cycle_level_t *v = &c->level[l];
  const qk_device_t *dev = &v->mg->dev;
  qk_field_t *left = take(c, l);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_deflation_apply(c->mg->deflation, x, r));
  mhat(v, left, x, r);
  gcr(c, l, x, left, false);
  give(c, l, left);
}

void qk_cycle_solve_level(qk_cycle_t *c, int l, qk_field_t *e, const qk_field_t *b) {
  const qk_mg_level_t *mg = c->level[l].mg;
  const qk_operator_ops_t *ops = mg->op->ops;
  qk_field_t x = {.dev = e->dev, .v = qk_field_parity(e, mg->op->system)};
  qk_field_t *r = take(c, l);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, ops->prepare(mg->op, r, b));
  if (c->mg->deflation && l == c->nlevel - 1)
    deflated(c, l, &x, r);
  else
    gcr(c, l, &x, r, true);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, ops->reconstruct(mg->op, e, &x, b));
  give(c, l, r);
}
