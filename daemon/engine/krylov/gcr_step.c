#include "daemon/engine/krylov/gcr_step.h"

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
  dots.f[n + 1] = step->r->v;
  if (step->x) args.x = step->x->v;
  if (step->next) args.next = step->next->v;
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->multi_dot(dev->ctx, &dots));
  qk_scalars_sum(scalars, step->dots, n + 2);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->gcr_step(dev->ctx, &args));
}
