/*
 * Flexible GCR on a coarse level (S. C. Eisenstat, H. C. Elman and M. H. Schultz, SIAM J. Numer.
 * Anal. 20 (1983) 345).
 *
 * An iteration: z = B r, w = Mhat z, one block of inner products, one pass for the rest.
 */
#include <math.h>

#include "daemon/engine/krylov/gcr_step.h"
#include "daemon/engine/multigrid/cycle_impl.h"

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
  qk_cycle_blas(v, QK_BLAS_NORM2,
                (qk_blas_args_t){.f = {r->v}, .red = qk_scalars_at(s, QK_CYCLE_RR)});
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
    qk_cycle_give(c, l, p->z[k]);
    qk_cycle_give(c, l, p->w[k]);
  }
}

static void take_space(qk_cycle_t *c, int l, int n, space_t *p) {
  p->n = n;
  for (int k = 0; k < n; k++) {
    p->w[k] = qk_cycle_take(c, l);
    p->z[k] = qk_cycle_take(c, l);
  }
}

/* Step k of a run. Without preconditioner z[k] is r already, and z[k+1] will be. */
static void step(qk_cycle_t *c, int l, qk_cycle_precond_fn *precond, const space_t *p, int k,
                 qk_field_t *x, qk_field_t *r, bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  int norm2[QK_GCR_MAX];
  for (int j = 0; j <= k; j++) norm2[j] = QK_CYCLE_NORMS + j;
  if (precond)
    precond(c, l, p->z[k], r, p->w[k]);
  else
    qk_cycle_mhat(v, p->w[k], p->z[k], NULL);
  qk_gcr_advance(&v->scalars,
                 &(qk_gcr_step_t){.n = k,
                                  .dots = QK_CYCLE_DOTS,
                                  .norm2 = norm2,
                                  .w = p->w,
                                  .z = p->z,
                                  .x = x,
                                  .r = r,
                                  .next = !precond && k + 1 < p->n ? p->z[k + 1] : NULL,
                                  .x_zero = x_zero,
                                  .mask = v->running});
}

/* Runs of as many directions as gcr_step allows. */
void qk_cycle_gcr(qk_cycle_t *c, int l, qk_cycle_precond_fn *precond, qk_field_t *x, qk_field_t *r,
                  bool x_zero) {
  qk_cycle_level_t *v = &c->level[l];
  const int total = v->params->iterations, most = total < QK_GCR_MAX ? total : QK_GCR_MAX;
  space_t p;
  take_space(c, l, most, &p);
  bool any = !v->running || look(c, v, r, true);
  if (x_zero && !any) qk_cycle_blas(v, QK_BLAS_ZERO, (qk_blas_args_t){.f = {x->v}});
  for (int i = 0; i < total && any && qk_dev_ok(&v->mg->dev); i++) {
    const int k = i % most;
    if (k == 0 && !precond)
      qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {p.z[0]->v, r->v}});
    step(c, l, precond, &p, k, x, r, x_zero);
    x_zero = false;
    if (v->running && i + 1 < total) any = look(c, v, r, false);
  }
  release_space(c, l, &p);
}
