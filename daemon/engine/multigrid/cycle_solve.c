/*
 * A cycle on one level: smoothing around the coarse correction (B_l), and the solve that uses it
 * (S_l): GCR with B_l, on the coarsest level what coarsest.h has.
 */
#include "daemon/engine/multigrid/coarsest.h"
#include "daemon/engine/multigrid/cycle_impl.h"

/* ---- B_l ------------------------------------------------------------------------------------- */

/* b = R A r */
static void restrict_residual(qk_cycle_t *c, int l, qk_field_t *b, const qk_field_t *r) {
  const qk_mg_level_t *mg = c->level[l].mg;
  qk_field_t *t = qk_cycle_take(c, l);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, mg->op->ops->diag(mg->op, t, r, false, false));
  qk_prolongator_restrict(mg->down, b, t);
  qk_cycle_give(c, l, t);
}

/* The right-hand sides stand for a Schur complement on coarse levels. */
static bool is_schur(const qk_cycle_t *c, int l) {
  const qk_operator_t *op = c->level[0].mg->op;
  return l == 0 && op->schur.is && op->flavours->minus;
}

/* z += P S R A r (z = where not `add`). */
static void correct(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r, bool add) {
  const qk_mg_level_t *mg = c->level[l].mg;
  qk_field_t *b = qk_cycle_take_full(c, l + 1), *e = qk_cycle_take_full(c, l + 1);
  restrict_residual(c, l, b, r);
  if (is_schur(c, l))
    qk_cycle_blas(&c->level[l + 1], QK_BLAS_SCALE,
                  (qk_blas_args_t){.f = {b->v}, .c = {c->schur_factor}});
  qk_cycle_enter(c, l + 1);
  qk_cycle_solve_level(c, l + 1, e, b);
  qk_cycle_enter(c, l);
  qk_prolongator_prolong(mg->down, z, e, add);
  qk_cycle_give(c, l + 1, e);
  qk_cycle_give(c, l + 1, b);
}

/* The smoother's residual of z is known after the last smoothing, and so is Mhat z, but for the
 * rounding of its sums. */
static void smooth_last(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r, qk_field_t *s,
                        qk_field_t *w) {
  qk_cycle_level_t *v = &c->level[l];
  qk_cycle_mhat(v, s, z, r);
  if (l == 0 && c->wide)
    qk_smoother_run_wide(v->smoother, c->wide, z, s);
  else
    qk_smoother_run(v->smoother, z, s, v->params->post, false, w == NULL);
  if (w) qk_cycle_blas(v, QK_BLAS_SUB, (qk_blas_args_t){.f = {w->v, r->v, s->v}});
}

void qk_cycle_precondition(qk_cycle_t *c, int l, qk_field_t *z, const qk_field_t *r,
                           qk_field_t *w) {
  qk_cycle_level_t *v = &c->level[l];
  const int pre = v->params->pre, post = v->params->post;
  /* The complement is not known on this level: after its correction the residual would be that of
   * another operator, so all smoothing comes before it. */
  const bool both_before = is_schur(c, l) && post > 0;
  const bool before = pre > 0 || both_before, after = post > 0 && !both_before;
  qk_field_t *s = qk_cycle_take(c, l);
  if (before) qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {s->v, r->v}});
  if (pre > 0) qk_smoother_run(v->smoother, z, s, pre, true, false);
  if (both_before) qk_smoother_run(v->smoother, z, s, post, pre <= 0, false);
  correct(c, l, z, before ? s : r, before);
  if (after)
    smooth_last(c, l, z, r, s, w);
  else if (w)
    qk_cycle_mhat(v, w, z, NULL);
  qk_cycle_give(c, l, s);
}

/* ---- S_l ------------------------------------------------------------------------------------- */

void qk_cycle_solve_level(qk_cycle_t *c, int l, qk_field_t *e, const qk_field_t *b) {
  const qk_mg_level_t *mg = c->level[l].mg;
  const qk_operator_ops_t *ops = mg->op->ops;
  qk_field_t x = {.dev = e->dev, .v = qk_field_parity(e, mg->op->system)};
  qk_field_t *r = qk_cycle_take(c, l);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, ops->prepare(mg->op, r, b));
  if (l == c->nlevel - 1)
    qk_coarsest_solve(c, &x, r);
  else
    qk_cycle_gcr(c, l, qk_cycle_precondition, &x, r, true);
  if (qk_dev_ok(&mg->dev)) qk_dev_note(&mg->dev, ops->reconstruct(mg->op, e, &x, b));
  qk_cycle_give(c, l, r);
}
