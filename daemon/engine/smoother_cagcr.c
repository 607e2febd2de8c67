/*
 * Smoothing s steps at a time: r, Mr, ..., M^s r, then the least squares problem over M r .. M^s r
 * (arXiv:1612.07873 §5.3 calls it CA-GCR). One round of sums over the ranks for s applications.
 */
#include "daemon/engine/smoother_impl.h"

enum {
  STEPS = QK_GRAM_MAX,
  DOTS = 0, /* (v_i,v_j), column by column */
  Y = (STEPS + 1) * (STEPS + 2) / 2,
  NSCALAR = Y + STEPS
};

/* v[1..n] = M v[0], .., M^n v[0], and the products of all pairs but (v_0, v_0). */
static qk_status_t make_space(qk_smoother_t *s, int n, qk_field_t *const *v) {
  const qk_ops_t *ops = s->dev->ops;
  qk_status_t status = QK_OK;
  for (int j = 1; j <= n && !status; j++) {
    status = s->op->ops->apply_eo(s->op, v[j], v[j - 1], false, NULL);
    qk_multi_args_t dots = {
        .n = j + 1, .y = v[j]->v, .red = qk_scalars_at(&s->scalars, DOTS + j * (j + 1) / 2)};
    for (int i = 0; i <= j; i++) dots.f[i] = v[i]->v;
    if (!status) status = ops->multi_dot(s->dev->ctx, &dots);
  }
  return status ? status : qk_scalars_sum(&s->scalars, DOTS, (n + 1) * (n + 2) / 2);
}

/* x += sum_i y_i v_i, r -= sum_i y_i v_{i+1}; v[0] is r. */
static qk_status_t take_step(qk_smoother_t *s, int n, qk_field_t *x, qk_field_t *const *v) {
  const qk_ops_t *ops = s->dev->ops;
  qk_gram_args_t gram = {.n = n,
                         .nrhs = s->nrhs,
                         .dots = qk_scalars_at(&s->scalars, DOTS),
                         .y = qk_scalars_at(&s->scalars, Y)};
  qk_status_t status = ops->gram_solve(s->dev->ctx, &gram);
  qk_multi_args_t add = {.n = n, .y = x->v, .c = gram.y, .sign = 1};
  for (int i = 0; i < n; i++) add.f[i] = v[i]->v;
  if (!status) status = ops->multi_axpy(s->dev->ctx, &add);
  add.y = v[0]->v;
  add.sign = -1;
  for (int i = 0; i < n; i++) add.f[i] = v[i + 1]->v;
  return status ? status : ops->multi_axpy(s->dev->ctx, &add);
}

static qk_status_t cagcr_run(qk_smoother_t *s, qk_field_t *x, qk_field_t *r, int steps) {
  qk_field_t *v[STEPS + 1] = {r};
  int most = steps < STEPS ? steps : STEPS, made = 0;
  qk_status_t status = QK_OK;
  while (made < most && !status) {
    status = qk_smoother_field(s, &v[made + 1]);
    if (!status) made++;
  }
  while (steps > 0 && !status) {
    int n = steps < most ? steps : most;
    status = make_space(s, n, v);
    if (!status) status = take_step(s, n, x, v);
    steps -= n;
  }
  for (int j = made; j > 0; j--) qk_work_release(s->work, v[j]);
  return status;
}

const qk_smoother_kind_ops_t qk_smoother_cagcr = {
    .name = "ca-gcr", .nscalar = NSCALAR, .run = cagcr_run};
