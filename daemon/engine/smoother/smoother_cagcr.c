/*
 * Smoothing s steps at a time: r, Mr, ..., M^s r, then the least squares problem over M r .. M^s r
 * (arXiv:1612.07873 §5.3 calls it CA-GCR). One round of sums over the ranks for s applications.
 */
#include "daemon/engine/smoother/smoother_impl.h"

enum {
  STEPS = 4, /* as many as one pass over the fields takes */
  DOTS = 0,  /* (v_i,v_j), column by column */
  Y = (STEPS + 1) * (STEPS + 2) / 2,
  NSCALAR = Y + STEPS
};

/* v[1..n] = M v[0], .., M^n v[0]; then x += sum_i y_i v_i, r -= sum_i y_i v_{i+1}, where v[0] is r. */
static qk_status_t advance(qk_smoother_t *s, int n, qk_field_t *x, qk_field_t *const *v,
                           bool x_zero) {
  const qk_ops_t *ops = s->dev->ops;
  qk_space_args_t space = {.n = n,
                           .x_zero = x_zero,
                           .v = {v[0]->v},
                           .x = x->v,
                           .dots = qk_scalars_at(&s->scalars, DOTS),
                           .y = qk_scalars_at(&s->scalars, Y)};
  qk_gram_args_t gram = {
      .n = n, .nrhs = s->nrhs, .dots = space.dots, .y = qk_scalars_at(&s->scalars, Y)};
  qk_status_t status = QK_OK;
  for (int j = 1; j <= n && !status; j++) {
    status = s->op->ops->apply_eo(s->op, v[j], v[j - 1], false, NULL);
    space.v[j] = v[j]->v;
  }
  if (!status) status = ops->space_dots(s->dev->ctx, &space);
  if (!status) status = qk_scalars_sum(&s->scalars, DOTS, (n + 1) * (n + 2) / 2);
  if (!status) status = ops->gram_solve(s->dev->ctx, &gram);
  return status ? status : ops->space_step(s->dev->ctx, &space);
}

static qk_status_t cagcr_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps,
                             bool x_zero) {
  qk_field_t *v[STEPS + 1] = {r};
  int most = steps < STEPS ? steps : STEPS, made = 0;
  qk_status_t status = QK_OK;
  while (made < most && !status) {
    status = qk_smoother_field(s, &v[made + 1]);
    if (!status) made++;
  }
  while (steps > 0 && !status) {
    int n = steps < most ? steps : most;
    status = advance(s, n, x, v, x_zero);
    x_zero = false;
    steps -= n;
  }
  for (int j = made; j > 0; j--) qk_work_release(s->work, v[j]);
  return status;
}

const qk_smoother_kind_ops_t qk_smoother_cagcr = {
    .name = "ca-gcr", .nscalar = NSCALAR, .sets_x = true, .run = cagcr_run};
