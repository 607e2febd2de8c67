/*
 * solver_system.c: the system of a slot in double, M x = b, in fields of one RHS.
 *
 * Beginning, updating or ending a slot are passes over its own fields alone, whatever the width of
 * the block. Only r and xi are copied between these fields and the block. Up to QK_RHS_TOGETHER
 * slots that do the same share the passes of an operator that has `each`; none sees the others.
 */
#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"
#include "daemon/engine/lattice/slice.h"

/* ---- life ------------------------------------------------------------------------------------ */

/* The only slot has xs in the field where its solution is made; not if right-hand sides have
 * several vectors, whose even sites do not stand beside each other. */
static bool shares_full(const qk_solver_t *s) {
  return s->nslot == 1 && s->op->dev->geom->inner <= 1;
}

static qk_status_t create_fields(const qk_solver_t *s, qk_system_t *y) {
  const qk_subset_t system = s->op->system;
  const qk_device_t *outer = s->op->outer ? s->op->outer : s->dev;
  qk_status_t status = qk_field_create(outer, QK_DOUBLE, 1, QK_FULL, &y->b);
  if (status) return status;
  return shares_full(s) ? QK_OK : qk_field_create(s->dev, QK_DOUBLE, 1, system, &y->xs);
}

/* Nobody else makes a solution in `full`. */
static void share_full(qk_solver_t *s) {
  qk_system_t *y = &s->system[0];
  if (!shares_full(s)) return;
  y->part = (qk_field_t){.dev = s->dev, .v = qk_field_parity(s->full[0], s->op->system)};
  y->xs = &y->part;
}

/* Right-hand sides of a run, at most. */
static int most_together(const qk_solver_t *s) {
  return s->params.compact || qk_geom_slices(s->dev->geom) > 1 ? 1 : QK_RHS_TOGETHER;
}

/* Passes of the operator are for runs. */
static bool has_each(const qk_solver_t *s) {
  const bool deflated = s->params.deflation || s->params.deflation_minus;
  return s->op->ops->each && !s->op->outer && !deflated;
}

qk_status_t qk_system_create(qk_solver_t *s) {
  qk_status_t status = QK_OK;
  const int most = has_each(s) ? most_together(s) : 1;
  for (int i = 0; !status && i < most && i < s->nslot; i++)
    status = qk_field_create(s->dev, QK_DOUBLE, 1, QK_FULL, &s->full[i]);
  if (status) return status;
  for (int i = 0; i < s->nslot; i++) {
    status = create_fields(s, &s->system[i]);
    if (status) return status;
  }
  share_full(s);
  qk_deflation_t *const both[] = {s->params.deflation, s->params.deflation_minus};
  for (int k = 0; k < 2 && !status; k++)
    if (both[k]) status = qk_deflation_prepare(both[k], 1);
  return status;
}

void qk_system_destroy(qk_solver_t *s) {
  for (int i = s->nslot - 1; i >= 0; i--) {
    if (!shares_full(s)) qk_field_destroy(s->system[i].xs);
    qk_field_destroy(s->system[i].b);
  }
  for (int i = QK_RHS_TOGETHER - 1; i >= 0; i--) qk_field_destroy(s->full[i]);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

static void copy(const qk_solver_t *s, const qk_field_t *to, const qk_field_t *from) {
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, from->v}});
}

/* The right-hand side of M of slot i: its source, or made of that in a work field until it is given
 * back. */
static qk_field_t *take_b(const qk_solver_t *s, int i) {
  if (!s->op->outer || s->system[i].five) return qk_system_source(&s->system[i]);
  qk_field_t *b = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->enter(s->op, b, s->system[i].b));
  return b;
}

static void give_b(const qk_solver_t *s, int i, qk_field_t *b) {
  if (s->op->outer && !s->system[i].five) qk_work_release(s->work, b);
}

/* Slots whose RHS stand beside each other in a block: they cost little more than one. */
typedef struct run {
  int first, n;
} run_t;

/* The next slots from `at` on that have the same mark, not 0. n = 0: there are none. */
static run_t next_run(const qk_solver_t *s, const uint8_t *mark, int at) {
  const int together = most_together(s);
  while (at < s->nslot && !mark[at]) at++;
  run_t run = {at, 0};
  while (at < s->nslot && mark[at] == mark[run.first] && at / together == run.first / together)
    at++;
  run.n = at - run.first;
  return run;
}

static run_t run_after(const qk_solver_t *s, const uint8_t *mark, run_t run) {
  return next_run(s, mark, run.first + run.n);
}

/* A call of the operator for a run of slots. x, out: of each. */
static void call_each(const qk_solver_t *s, run_t run, qk_each_call_t call, qk_field_t *const out[],
                      qk_field_t *const x[]) {
  qk_each_t fields = {.n = run.n};
  for (int k = 0; k < run.n; k++) {
    fields.out[k] = out[k];
    fields.x[k] = x ? x[k] : NULL;
    fields.b[k] = qk_system_source(&s->system[run.first + k]);
  }
  qk_solver_for_slot(s, run.first);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->each(s->op, call, &fields));
  qk_solver_for_block(s);
}

/* bhat of slot i. */
static void prepare(const qk_solver_t *s, int i, qk_field_t *bhat) {
  qk_field_t *b = take_b(s, i);
  qk_solver_for_slot(s, i);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->prepare(s->op, bhat, b));
  qk_solver_for_block(s);
  give_b(s, i, b);
}

static void prepare_run(const qk_solver_t *s, run_t run, qk_field_t *const bhat[]) {
  if (has_each(s)) {
    call_each(s, run, QK_EACH_PREPARE, bhat, NULL);
    return;
  }
  for (int k = 0; k < run.n; k++) prepare(s, run.first + k, bhat[k]);
}

static void rhs_copy(const qk_solver_t *s, const qk_rhs_copy_args_t *args) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->rhs_copy(s->dev->ctx, args));
}

/* All slices of slot i of a block, = or += those of a field of one right-hand side, or the other
 * way round. */
static void copy_slices(const qk_solver_t *s, int i, bool add, bool into_block,
                        const qk_field_t *block, const qk_field_t *f) {
  const int slices = s->scalars.slices;
  const qk_field_t *to = into_block ? block : f, *from = into_block ? f : block;
  if (s->nslot == 1) {
    qk_solver_blas(s, add ? QK_BLAS_ADD : QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, from->v}});
    return;
  }
  for (int k = 0; k < slices; k++) {
    const int here = i * slices + k;
    const qk_rhs_copy_args_t args = {.to = to->v,
                                     .from = from->v,
                                     .to_rhs = into_block ? here : k,
                                     .from_rhs = into_block ? k : here,
                                     .add = add};
    rhs_copy(s, &args);
  }
}

/* RHS of r = f[]. */
static void hand_over(const qk_solver_t *s, run_t run, qk_field_t *const f[]) {
  if (s->scalars.slices > 1) {
    copy_slices(s, run.first, false, true, s->r, f[0]);
    return;
  }
  qk_rhs_copy_args_t args = {.to = s->r->v, .from = f[0]->v, .to_rhs = run.first, .n = run.n};
  for (int k = 0; k < run.n; k++) args.single_rhs[k] = f[k]->v.data;
  rhs_copy(s, &args);
}

/* f[] = RHS of xi, where nothing is added, or xs[] + that. */
static void add_corrections(const qk_solver_t *s, run_t run, bool add, qk_field_t *const f[],
                            qk_field_t *const xs[]) {
  if (s->scalars.slices > 1) {
    copy_slices(s, run.first, add, false, s->xi, f[0]);
    return;
  }
  qk_rhs_copy_args_t args = {
      .to = f[0]->v, .from = s->xi->v, .from_rhs = run.first, .add = add, .n = run.n};
  for (int k = 0; k < run.n; k++) {
    args.single_rhs[k] = f[k]->v.data;
    if (add && f[k] != xs[k]) args.plus[k] = xs[k]->v.data;
  }
  rhs_copy(s, &args);
}

/* r = bhat - Mhat x of slot i, from its source: bhat itself is kept nowhere. */
static void residual(const qk_solver_t *s, int i, qk_field_t *r, const qk_field_t *x) {
  qk_field_t *b = take_b(s, i);
  qk_solver_for_slot(s, i);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->residual_system(s->op, r, x, b));
  qk_solver_for_block(s);
  give_b(s, i, b);
}

/* x += what the deflation of slot i makes of r = bhat - Mhat x. */
static void correct(qk_solver_t *s, int i, const qk_field_t *x, const qk_field_t *r) {
  qk_deflation_t *deflation = qk_solver_deflation(s, i);
  qk_field_t *e = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  qk_solver_for_slot(s, i);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, qk_deflation_apply(deflation, e, r));
  qk_solver_for_block(s);
  qk_solver_blas(s, QK_BLAS_ADD, (qk_blas_args_t){.f = {x->v, e->v}});
  qk_work_release(s->work, e);
}

/* |f|^2 of slot i, to be fetched by qk_solver_norms. */
static void norm2(const qk_solver_t *s, int i, const qk_field_t *f) {
  double *red = qk_scalars_of(&s->scalars, QK_SOLVER_NORM, i);
  qk_solver_blas(s, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}, .red = red});
  qk_scalars_fold(&s->scalars, red, 1, f->v.nrhs);
}

static void zero(const qk_solver_t *s, const qk_field_t *f) {
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {f->v}});
}

/* xs is what stands there. */
static void settle(qk_solver_t *s, int i) {
  if (s->system[i].nothing) zero(s, s->system[i].xs);
  s->system[i].nothing = false;
}

/* True if xs of all slots of the run is nothing, which may do; else it is what stands there. */
static bool is_nothing(qk_solver_t *s, run_t run, bool nothing) {
  for (int k = 0; k < run.n; k++) nothing = nothing && s->system[run.first + k].nothing;
  for (int k = 0; k < run.n && !nothing; k++) settle(s, run.first + k);
  return nothing;
}

/* ---- the life of a right-hand side ----------------------------------------------------------- */

void qk_system_source_norms(qk_solver_t *s, const uint8_t *mask, double *n2) {
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    qk_field_t *b = take_b(s, i);
    norm2(s, i, b);
    give_b(s, i, b);
  }
  qk_solver_norms(s, n2);
}

void qk_system_clear(qk_solver_t *s, const uint8_t *mask) {
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) zero(s, qk_system_source(&s->system[i]));
}

/* xs and |r|^2, from r = bhat. */
static void begin(qk_solver_t *s, int i, qk_field_t *r) {
  qk_system_t *y = &s->system[i];
  y->nothing = true;
  if (qk_solver_deflation(s, i)) {
    settle(s, i);
    correct(s, i, y->xs, r);
    residual(s, i, r, y->xs);
  }
  norm2(s, i, r);
}

static void begin_run(qk_solver_t *s, run_t run) {
  qk_field_t *r[QK_RHS_TOGETHER] = {NULL};
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    r[k] = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
    qk_system_scale(s, i, qk_system_source(&s->system[i]), s->w[i].lifted - s->w[i].exponent);
  }
  prepare_run(s, run, r);
  for (int k = 0; k < run.n; k++) begin(s, run.first + k, r[k]);
  hand_over(s, run, r);
  for (int k = run.n - 1; k >= 0; k--) qk_work_release(s->work, r[k]);
}

void qk_system_begin(qk_solver_t *s, const uint8_t *mask, double *n2) {
  for (run_t run = next_run(s, mask, 0); run.n > 0; run = run_after(s, mask, run))
    begin_run(s, run);
  qk_solver_norms(s, n2);
}

/* ---- the full operator ----------------------------------------------------------------------- */

/* x from xs, and r = b - M x. What is made of the source begins in r. */
static qk_status_t reconstruct(const qk_solver_t *s, const qk_system_t *y, qk_field_t *x,
                               qk_field_t *r) {
  const qk_operator_ops_t *ops = s->op->ops;
  const bool enters = s->op->outer && !y->five;
  const qk_field_t *b = enters ? r : qk_system_source(y);
  const qk_status_t entered = enters ? ops->enter(s->op, r, y->b) : QK_OK;
  if (entered) return entered;
  const qk_status_t status = ops->reconstruct(s->op, x, y->xs, b);
  return status ? status : ops->apply(s->op, r, x, false, b, -1);
}

static qk_field_t half(const qk_field_t *field, qk_subset_t parity) {
  return (qk_field_t){.dev = field->dev, .v = qk_field_parity(field, parity)};
}

/* r on p becomes the residual of the system on p: s, or T^-1 s in `other`, which is returned. */
static const qk_field_t *measured(qk_solver_t *s, int i, qk_field_t *r_p, qk_field_t *r_q,
                                  qk_field_t *other) {
  qk_operator_t *op = s->op;
  const qk_device_t *dev = s->dev;
  qk_field_t *t = qk_work_take(s->work, QK_DOUBLE, 1, r_q->v.subset);
  qk_solver_for_slot(s, i);
  if (qk_dev_ok(dev)) qk_dev_note(dev, op->ops->diag(op, t, r_q, true, false));
  if (qk_dev_ok(dev)) qk_dev_note(dev, op->ops->hop(op, other, t, false));
  const double *factor = qk_solver_factor(s, i, 0.5);
  qk_solver_blas(s, QK_BLAS_AXPY, (qk_blas_args_t){.f = {r_p->v, other->v}, .c = {factor}});
  const bool unit = s->system[i].measure.kind == QK_MEASURE_UNIT;
  if (unit && qk_dev_ok(dev)) qk_dev_note(dev, op->ops->diag(op, other, r_p, true, false));
  qk_solver_for_block(s);
  qk_work_release(s->work, t);
  return unit ? other : r_p;
}

/* |r|^2 of slot i by its measure. */
static void measure(qk_solver_t *s, int i, const qk_field_t *r) {
  const qk_subset_t p = s->system[i].measure.parity;
  if (s->system[i].measure.kind == QK_MEASURE_FULL) {
    norm2(s, i, r);
    return;
  }
  qk_field_t r_p = half(r, p), r_q = half(r, p == QK_EVEN ? QK_ODD : QK_EVEN);
  qk_field_t *other = qk_work_take(s->work, QK_DOUBLE, 1, p);
  norm2(s, i, measured(s, i, &r_p, &r_q, other));
  qk_work_release(s->work, other);
}

/* Of slot i, by its solution x and r = b - M x. On an open boundary x becomes 0 on the outer
 * slices, which do not count. */
static void measure_heavy_quark(qk_solver_t *s, int i, const qk_field_t *x, const qk_field_t *r) {
  const qk_geom_t *geom = s->dev->geom;
  const double sites = (double)geom->volume * qk_field_vectors(x) * qk_geom_slices(geom);
  const double outer = s->op->open ? 2 * (sites / geom->global[3]) : 0;
  const qk_site_ratios_args_t args = {
      .r = r->v, .x = x->v, .red = qk_scalars_of(&s->scalars, QK_SOLVER_NORM, i)};
  double ratios[QK_MAX_RHS];
  if (s->op->open) {
    qk_field_t *part = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
    qk_slice_clear_outer(x, part);
    qk_work_release(s->work, part);
  }
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->site_ratios(s->dev->ctx, &args));
  qk_scalars_fold(&s->scalars, args.red, 1, x->v.nrhs);
  qk_solver_norms(s, ratios);
  if (!qk_dev_ok(s->dev)) return;
  const double zeros = qk_scalars_host(&s->scalars, QK_SOLVER_NORM, i)[1];
  qk_stop_measured(&s->slot[i], ratios[i], zeros - outer, sites - outer);
}

/* rhat = bhat - Mhat xs from r = b - M x, x as it was made of xs: as x_o solves the equations on
 * the other sites up to rounding r_o is nothing, and what is left is T_ee^-1 r_e. `prepare` is the
 * same for any r, for fields of which one parity is not in one piece. */
static void restrict_to_system(const qk_solver_t *s, qk_field_t *rhat, const qk_field_t *r) {
  const qk_operator_ops_t *ops = s->op->ops;
  if (!qk_dev_ok(s->dev)) return;
  if (s->dev->geom->inner > 1) {
    qk_dev_note(s->dev, ops->prepare(s->op, rhat, r));
    return;
  }
  const qk_field_t part = half(r, s->op->system);
  qk_dev_note(s->dev, ops->diag(s->op, rhat, &part, true, false));
}

/* As qk_system_reconstruct, with r = b - M x, which a measure may overwrite; rhat, NULL: not
 * wanted, is then what it was before. */
static double examine(qk_solver_t *s, int i, qk_field_t *r, qk_field_t *rhat) {
  const qk_measure_t *m = &s->system[i].measure;
  double n2[QK_MAX_RHS];
  s->system[i].made = 0;
  settle(s, i);
  qk_solver_for_slot(s, i);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, reconstruct(s, &s->system[i], s->full[0], r));
  if (rhat && m->kind != QK_MEASURE_FULL) restrict_to_system(s, rhat, r);
  qk_solver_for_block(s);
  measure(s, i, r);
  qk_solver_norms(s, n2);
  if (s->slot[i].stopping.tol_hq > 0) measure_heavy_quark(s, i, s->full[0], r);
  return m->kind == QK_MEASURE_UNIT ? n2[i] * m->unit * m->unit : n2[i];
}

double qk_system_reconstruct(qk_solver_t *s, int i) {
  qk_field_t *r = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
  const double n2 = examine(s, i, r, NULL);
  qk_work_release(s->work, r);
  return n2;
}

/* The final check at xs: true if that is the end of slot i, whose solution is in `full`. Otherwise
 * rhat goes on from there. */
static bool conclude(qk_solver_t *s, int i, qk_field_t *rhat) {
  qk_field_t *r = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
  const double n2 = examine(s, i, r, rhat);
  const bool good = qk_dev_ok(s->dev) && qk_solver_reached(s, i, n2);
  if (!good && s->system[i].measure.kind == QK_MEASURE_FULL) {
    qk_solver_for_slot(s, i);
    restrict_to_system(s, rhat, r);
    qk_solver_for_block(s);
  }
  qk_work_release(s->work, r);
  return good;
}

/* Sums of the solution in `full`, in units of the source as it was. */
static void sum_walls(qk_solver_t *s, int i) {
  double *sums = qk_solver_walls(s, i);
  if (!sums) return;
  const int n = QK_WALL_SUMS * s->dev->geom->global[3];
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev,
                s->op->ops->wall_sums(s->op, s->system[i].b, s->full[s->system[i].made], sums));
  for (int k = 0; k < n; k++) sums[k] = ldexp(sums[k], 2 * s->w[i].exponent);
}

void qk_system_end(qk_solver_t *s, int i) {
  qk_field_t *source = qk_system_source(&s->system[i]), **full = &s->full[s->system[i].made];
  if (s->op->ops->leave) {
    if (s->op->outer && !s->system[i].five) sum_walls(s, i);
    if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->leave(s->op, source, *full));
  } else {
    s->system[i].b = *full;
    *full = source;
    share_full(s);
  }
  qk_system_rescale(s, i);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* What becomes of xi; marks of runs. */
typedef enum fate { DROPPED = 1, ADDED, LAST } fate_t;

/* r at xs and its norm, with what deflation adds to xs; or true: it is the end of the slot. */
static bool refresh(qk_solver_t *s, int i, bool last, qk_field_t *r) {
  const qk_field_t *xs = s->system[i].xs;
  const bool deflated = qk_solver_deflation(s, i) != NULL;
  if (!last || deflated) residual(s, i, r, xs);
  if (deflated) correct(s, i, xs, r);
  if (last && conclude(s, i, r)) return true;
  if (!last && deflated) residual(s, i, r, xs);
  norm2(s, i, r);
  return false;
}

/* RHS of r = f[] of those slots of the run that go on. */
static void hand_over_running(const qk_solver_t *s, run_t run, const qk_update_t result[],
                              qk_field_t *const f[]) {
  uint8_t goes_on[QK_MAX_RHS] = {0};
  for (int i = run.first; i < run.first + run.n; i++) goes_on[i] = !result[i].ended;
  for (run_t part = next_run(s, goes_on, 0); part.n > 0; part = run_after(s, goes_on, part))
    hand_over(s, part, f + (part.first - run.first));
}

/* Whether xs of slot i becomes another one. */
static bool moves(const qk_solver_t *s, int i, fate_t fate) {
  return fate != DROPPED || qk_solver_deflation(s, i);
}

/* What follows from |r|^2 for a slot that goes on. */
static void judge(const qk_solver_t *s, int i, fate_t fate, double n2, qk_update_t *u) {
  const bool moved = moves(s, i, fate);
  u->norm = sqrt(n2);
  u->taken = moved && u->norm < s->w[i].best;
  u->rejected = moved && !u->taken;
  u->checked = fate == LAST && u->taken;
}

/* With xs += xi, old what that was before, unless nothing was. */
static void move(qk_solver_t *s, run_t run, fate_t fate, bool nothing, qk_field_t *const xs[],
                 qk_field_t *const old[]) {
  for (int k = 0; k < run.n; k++)
    if (!nothing && moves(s, run.first + k, fate)) copy(s, old[k], xs[k]);
  if (fate != DROPPED) add_corrections(s, run, !nothing, xs, xs);
  for (int k = 0; k < run.n; k++) s->system[run.first + k].nothing = false;
}

/* With work fields: old, what xs was, and r. */
static void update(qk_solver_t *s, run_t run, fate_t fate, qk_field_t *const old[],
                   qk_field_t *const r[], qk_update_t result[]) {
  double n2[QK_MAX_RHS];
  qk_field_t *xs[QK_RHS_TOGETHER] = {NULL};
  for (int k = 0; k < run.n; k++) xs[k] = s->system[run.first + k].xs;
  const bool nothing = is_nothing(s, run, fate != DROPPED);
  move(s, run, fate, nothing, xs, old);
  const bool together = has_each(s) && fate != LAST;
  if (together) call_each(s, run, QK_EACH_RESIDUAL_SYSTEM, r, xs);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    if (together) norm2(s, i, r[k]);
    result[i] = (qk_update_t){.ended = !together && refresh(s, i, fate == LAST, r[k])};
    if (result[i].ended && k < run.n - 1) qk_solver_end_reached(s, i); /* `full` is for the next */
  }
  qk_solver_norms(s, n2);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    if (result[i].ended) continue;
    judge(s, i, fate, n2[i], &result[i]);
    if (!result[i].rejected) continue;
    if (nothing)
      zero(s, xs[k]);
    else
      copy(s, xs[k], old[k]);
    residual(s, i, r[k], xs[k]);
  }
  hand_over_running(s, run, result, r);
}

/* The last slot ends when the work fields are free: sums of five dimensions take as much. */
static void update_run(qk_solver_t *s, run_t run, fate_t fate, qk_update_t result[]) {
  const int last = run.first + run.n - 1;
  qk_field_t *work[2 * QK_RHS_TOGETHER];
  for (int k = 0; k < 2 * run.n; k++) work[k] = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  update(s, run, fate, work, work + run.n, result);
  for (int k = 2 * run.n - 1; k >= 0; k--) qk_work_release(s->work, work[k]);
  if (result[last].ended) qk_solver_end_reached(s, last);
}

/* ---- the last update, of several slots ------------------------------------------------------- */

/* All measure |b - M x|, and nothing else is made of the solution. */
static bool are_plain(const qk_solver_t *s, run_t run) {
  bool plain = run.n > 1 && has_each(s) && !s->op->ops->leave && !s->op->open;
  for (int k = 0; k < run.n; k++)
    plain = plain && s->system[run.first + k].measure.kind == QK_MEASURE_FULL;
  return plain;
}

/* The check of xs + xi, which stands in the solutions. rhat: the residual of the system of slots
 * that go on. */
static void conclude_run(qk_solver_t *s, run_t run, qk_field_t *const x[], qk_field_t *const rhat[],
                         qk_update_t result[]) {
  double n2[QK_MAX_RHS];
  qk_field_t *r[QK_RHS_TOGETHER] = {NULL};
  for (int k = 0; k < run.n; k++) r[k] = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
  call_each(s, run, QK_EACH_RECONSTRUCT, s->full, x);
  call_each(s, run, QK_EACH_RESIDUAL, r, s->full);
  for (int k = 0; k < run.n; k++) norm2(s, run.first + k, r[k]);
  qk_solver_norms(s, n2);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    if (s->slot[i].stopping.tol_hq > 0) measure_heavy_quark(s, i, s->full[k], r[k]);
    s->system[i].made = k;
    result[i] = (qk_update_t){.ended = qk_dev_ok(s->dev) && qk_solver_reached(s, i, n2[i])};
    if (result[i].ended) continue;
    qk_solver_for_slot(s, i);
    restrict_to_system(s, rhat[k], r[k]);
    qk_solver_for_block(s);
  }
  for (int k = run.n - 1; k >= 0; k--) qk_work_release(s->work, r[k]);
}

/* xs + xi is made where the solution will be, so that xs stays what it was. */
static void last_update(qk_solver_t *s, run_t run, qk_update_t result[]) {
  double n2[QK_MAX_RHS];
  qk_field_t part[QK_RHS_TOGETHER], *x[QK_RHS_TOGETHER] = {NULL}, *xs[QK_RHS_TOGETHER] = {NULL},
                                    *r[QK_RHS_TOGETHER] = {NULL};
  for (int k = 0; k < run.n; k++) {
    part[k] = half(s->full[k], s->op->system);
    x[k] = &part[k];
    xs[k] = s->system[run.first + k].xs;
    r[k] = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  }
  add_corrections(s, run, !is_nothing(s, run, true), x, xs);
  conclude_run(s, run, x, r, result);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    if (result[i].ended) continue;
    norm2(s, i, r[k]);
    qk_solver_norms(s, n2);
    judge(s, i, LAST, n2[i], &result[i]);
    settle(s, i);
    if (result[i].taken)
      copy(s, xs[k], x[k]);
    else
      residual(s, i, r[k], xs[k]);
  }
  hand_over_running(s, run, result, r);
  for (int k = run.n - 1; k >= 0; k--) qk_work_release(s->work, r[k]);
  for (int k = 0; k < run.n; k++)
    if (result[run.first + k].ended) qk_solver_end_reached(s, run.first + k);
}

void qk_system_update(qk_solver_t *s, const uint8_t *mask, const uint8_t *add, const uint8_t *last,
                      qk_update_t result[]) {
  uint8_t mark[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++)
    mark[i] = !mask[i] ? 0 : !add[i] ? DROPPED : last[i] ? LAST : ADDED;
  for (run_t run = next_run(s, mark, 0); run.n > 0; run = run_after(s, mark, run))
    if (mark[run.first] == LAST && are_plain(s, run))
      last_update(s, run, result);
    else
      update_run(s, run, (fate_t)mark[run.first], result);
}
