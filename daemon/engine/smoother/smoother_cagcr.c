/*
 * Smoothing s steps at a time: r, Mr, ..., M^s r, then the least squares problem over M r .. M^s r
 * (arXiv:1612.07873 §5.3 calls it CA-GCR). One round of sums over the ranks for s applications.
 */
#include "daemon/engine/smoother/smoother_impl.h"

enum { STEPS = QK_CAGCR_STEPS, DOTS = 0, Y = QK_CAGCR_Y };

/* v[1..n] = M v[0], .., M^n v[0]; then x += sum_i y_i v_i, r -= sum_i y_i v_{i+1} (not if `last`),
 * where v[0] is r. */
static void advance(qk_smoother_t *s, int n, qk_field_t *x, qk_field_t *const *v, bool x_zero,
                    bool last) {
  const qk_device_t *dev = s->dev;
  qk_space_args_t space = {.n = n,
                           .x_zero = x_zero,
                           .last = last,
                           .v = {v[0]->v},
                           .x = x->v,
                           .dots = qk_scalars_at(&s->scalars, DOTS),
                           .y = qk_scalars_at(&s->scalars, Y)};
  qk_gram_args_t gram = {
      .n = n, .nrhs = s->nrhs, .dots = space.dots, .y = qk_scalars_at(&s->scalars, Y)};
  for (int j = 1; j <= n; j++) {
    qk_smoother_mhat(s, v[j], v[j - 1]);
    space.v[j] = v[j]->v;
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->space_dots(dev->ctx, &space));
  qk_scalars_sum(&s->scalars, DOTS, (n + 1) * (n + 2) / 2);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->gram_solve(dev->ctx, &gram));
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->space_step(dev->ctx, &space));
}

static void cagcr_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps, bool x_zero,
                      bool last) {
  qk_field_t *v[STEPS + 1] = {r};
  const int most = steps < STEPS ? steps : STEPS;
  for (int j = 1; j <= most; j++) v[j] = qk_smoother_field(s);
  while (steps > 0) {
    int n = steps < most ? steps : most;
    advance(s, n, x, v, x_zero, last && n == steps);
    x_zero = false;
    steps -= n;
  }
  for (int j = most; j > 0; j--) qk_work_release(s->work, v[j]);
}

const qk_smoother_kind_ops_t qk_smoother_cagcr = {
    .name = "ca-gcr", .nscalar = QK_CAGCR_SCALARS, .sets_x = true, .run = cagcr_run};
