#include "daemon/engine/krylov/gcr_step.h"

/* |r|^2, which a step of as many directions as there can be does not give. */
static void take_norm(qk_scalars_t *scalars, const qk_gcr_step_t *step, bool given) {
  if (given) {
    const qk_spinor_t *r = &step->r->v;
    qk_scalars_fold(scalars, qk_scalars_at(scalars, step->rr), 1, r->nrhs);
    qk_scalars_sum(scalars, step->rr, 1);
  } else {
    qk_scalars_reduce(scalars, step->rr, 1, QK_BLAS_NORM2,
                      (qk_blas_args_t){.f = {step->r->v}, .mask = step->mask});
  }
}

void qk_gcr_advance(qk_scalars_t *scalars, const qk_gcr_step_t *step) {
  const qk_device_t *dev = scalars->dev;
  const int n = step->n;
  qk_multi_args_t dots = {.n = n + 2,
                          .y = step->w[n]->v,
                          .mask = step->valid,
                          .red = qk_scalars_at(scalars, step->dots)};
  qk_gcr_args_t args = {
      .n = n, .x_zero = step->x_zero, .r = step->r->v, .dots = dots.red, .mask = step->mask};
  for (int k = 0; k <= n; k++) {
    dots.f[k] = args.w[k] = step->w[k]->v;
    if (step->x) args.z[k] = step->z[k]->v;
    args.norm2[k] = qk_scalars_at(scalars, step->norm2[k]);
  }
  const bool norm = step->rr && n + 1 < QK_GCR_MAX;
  if (norm) args.norm2[n + 1] = qk_scalars_at(scalars, step->rr);
  dots.f[n + 1] = step->r->v;
  if (step->x) args.x = step->x->v;
  if (step->next) args.next = step->next->v;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_dot(dev->ctx, &dots));
  qk_scalars_sum(scalars, step->dots, n + 2);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->gcr_step(dev->ctx, &args));
  if (step->rr) take_norm(scalars, step, norm);
}
