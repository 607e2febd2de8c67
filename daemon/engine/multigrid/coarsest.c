#include "daemon/engine/multigrid/coarsest.h"

#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/multigrid/cycle_impl.h"

/* x of the right-hand sides of flavour -1, by their own low modes. */
static void other_flavour(qk_cycle_t *c, int l, qk_field_t *x, const qk_field_t *r) {
  const qk_cycle_level_t *v = &c->level[l];
  const qk_device_t *dev = &v->mg->dev;
  qk_field_t *y = qk_cycle_take(c, l);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_deflation_apply(c->mg->deflation_minus, y, r));
  qk_cycle_blas(v, QK_BLAS_COPY,
                (qk_blas_args_t){.f = {x->v, y->v}, .mask = v->mg->op->flavours->minus});
  qk_cycle_give(c, l, y);
}

/* GCR on what the low modes leave. */
static void deflated(qk_cycle_t *c, int l, qk_field_t *x, const qk_field_t *r) {
  qk_cycle_level_t *v = &c->level[l];
  const qk_device_t *dev = &v->mg->dev;
  qk_field_t *left = qk_cycle_take(c, l);
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_deflation_apply(c->mg->deflation, x, r));
  if (v->mg->op->flavours->minus && c->mg->deflation_minus) other_flavour(c, l, x, r);
  qk_cycle_mhat(v, left, x, r);
  qk_cycle_gcr(c, l, NULL, x, left, false);
  qk_cycle_give(c, l, left);
}

void qk_coarsest_solve(qk_cycle_t *c, qk_field_t *x, qk_field_t *r) {
  const int last = c->nlevel - 1;
  if (c->mg->deflation)
    deflated(c, last, x, r);
  else
    qk_cycle_gcr(c, last, NULL, x, r, true);
}
