#include "daemon/engine/multigrid/coarsest.h"

#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/multigrid/cycle_impl.h"

static void reduce(const qk_cycle_level_t *v, qk_deflation_t *d, qk_field_t *x, qk_field_t *r) {
  const qk_device_t *dev = &v->mg->dev;
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_deflation_reduce(d, x, r));
}

/* x and r of the right-hand sides of flavour -1, by their own low modes. */
static void reduce_minus(qk_cycle_t *c, int l, qk_field_t *x, qk_field_t *r, qk_field_t *whole) {
  const qk_cycle_level_t *v = &c->level[l];
  const uint8_t *minus = v->mg->op->flavours->minus;
  qk_field_t *y = qk_cycle_take(c, l);
  reduce(v, c->mg->deflation_minus, y, whole);
  qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {x->v, y->v}, .mask = minus});
  qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {r->v, whole->v}, .mask = minus});
  qk_cycle_give(c, l, y);
}

static void reduce_both(qk_cycle_t *c, int l, qk_field_t *x, qk_field_t *r) {
  const qk_cycle_level_t *v = &c->level[l];
  qk_field_t *whole = qk_cycle_take(c, l);
  qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {whole->v, r->v}});
  reduce(v, c->mg->deflation, x, r);
  reduce_minus(c, l, x, r, whole);
  qk_cycle_give(c, l, whole);
}

/* GCR on what the low modes leave. */
static void deflated(qk_cycle_t *c, int l, qk_field_t *x, qk_field_t *r) {
  if (c->level[l].mg->op->flavours->minus && c->mg->deflation_minus)
    reduce_both(c, l, x, r);
  else
    reduce(&c->level[l], c->mg->deflation, x, r);
  qk_cycle_gcr(c, l, NULL, x, r, false);
}

void qk_coarsest_solve(qk_cycle_t *c, qk_field_t *x, qk_field_t *r) {
  const int last = c->nlevel - 1;
  if (c->mg->deflation)
    deflated(c, last, x, r);
  else
    qk_cycle_gcr(c, last, NULL, x, r, true);
}
