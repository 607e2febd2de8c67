/*
 * solver_system.c: the system of a slot in double, M x = b, in fields of one RHS.
 *
 * Beginning, updating or ending a slot are passes over its own fields alone, whatever the width of
 * the block. Only r and xi are copied between these fields and the block.
 */
#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t create_fields(const qk_operator_t *op, qk_system_t *y) {
  const qk_device_t *dev = op->dev;
  qk_status_t status = qk_field_create(dev, QK_DOUBLE, 1, QK_FULL, &y->b);
  if (status) return status;
  status = qk_field_create(dev, QK_DOUBLE, 1, QK_FULL, &y->x);
  return status ? status : qk_field_create(dev, QK_DOUBLE, 1, op->system, &y->bhat);
}

qk_status_t qk_system_create(qk_solver_t *s) {
  for (int i = 0; i < s->nslot; i++) {
    qk_status_t status = create_fields(s->op, &s->system[i]);
    if (status) return status;
  }
  return s->params.deflation ? qk_deflation_prepare(s->params.deflation, 1) : QK_OK;
}

void qk_system_destroy(qk_solver_t *s) {
  for (int i = s->nslot - 1; i >= 0; i--) {
    qk_field_destroy(s->system[i].bhat);
    qk_field_destroy(s->system[i].x);
    qk_field_destroy(s->system[i].b);
  }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* The part of a full field that the system is about, as a field. */
static qk_field_t part_of(const qk_solver_t *s, const qk_field_t *full) {
  return (qk_field_t){.dev = full->dev, .v = qk_field_parity(full, s->op->system)};
}

static void copy(const qk_solver_t *s, const qk_field_t *to, const qk_field_t *from) {
  qk_solver_blas(s, QK_BLAS_COPY, (qk_blas_args_t){.f = {to->v, from->v}});
}

/* Slots whose RHS stand beside each other in a block: they cost little more than one. */
typedef struct run {
  int first, n;
} run_t;

/* The next slots from `at` on that have the same mark, not 0. n = 0: there are none. */
static run_t next_run(const qk_solver_t *s, const uint8_t *mark, int at) {
  while (at < s->nslot && !mark[at]) at++;
  run_t run = {at, 0};
  while (at < s->nslot && mark[at] == mark[run.first] &&
         at / QK_RHS_TOGETHER == run.first / QK_RHS_TOGETHER)
    at++;
  run.n = at - run.first;
  return run;
}

static run_t run_after(const qk_solver_t *s, const uint8_t *mark, run_t run) {
  return next_run(s, mark, run.first + run.n);
}

static void rhs_copy(const qk_solver_t *s, const qk_rhs_copy_args_t *args) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->dev->ops->rhs_copy(s->dev->ctx, args));
}

/* RHS of r = f[]. */
static void hand_over(const qk_solver_t *s, run_t run, qk_field_t *const f[]) {
  qk_rhs_copy_args_t args = {.to = s->r->v, .from = f[0]->v, .to_rhs = run.first, .n = run.n};
  for (int k = 0; k < run.n; k++) args.single_rhs[k] = f[k]->v.data;
  rhs_copy(s, &args);
}

/* f[] += RHS of xi. */
static void add_corrections(const qk_solver_t *s, run_t run, const qk_field_t f[]) {
  qk_rhs_copy_args_t args = {
      .to = f[0].v, .from = s->xi->v, .from_rhs = run.first, .add = 1, .n = run.n};
  for (int k = 0; k < run.n; k++) args.single_rhs[k] = f[k].v.data;
  rhs_copy(s, &args);
}

static void residual(const qk_solver_t *s, int i, qk_field_t *r, const qk_field_t *x) {
  if (qk_dev_ok(s->dev))
    qk_dev_note(s->dev, s->op->ops->apply_system(s->op, r, x, false, s->system[i].bhat));
}

/* x += what deflation makes of r = bhat - Mhat x, and r anew. Nothing without deflation. */
static void deflate(qk_solver_t *s, int i, qk_field_t *x, qk_field_t *r) {
  if (!s->params.deflation) return;
  qk_field_t *e = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, qk_deflation_apply(s->params.deflation, e, r));
  qk_solver_blas(s, QK_BLAS_ADD, (qk_blas_args_t){.f = {x->v, e->v}});
  residual(s, i, r, x);
  qk_work_release(s->work, e);
}

/* |f|^2 of slot i, to be fetched by qk_solver_norms. */
static void norm2(const qk_solver_t *s, int i, const qk_field_t *f) {
  double *red = qk_scalars_at(&s->scalars, QK_SOLVER_NORM) + 2 * i;
  qk_solver_blas(s, QK_BLAS_NORM2, (qk_blas_args_t){.f = {f->v}, .red = red});
}

static void zero(const qk_solver_t *s, const qk_field_t *f) {
  qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {f->v}});
}

/* ---- the life of a right-hand side ----------------------------------------------------------- */

void qk_system_source_norms(qk_solver_t *s, const uint8_t *mask, double *n2) {
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) norm2(s, i, s->system[i].b);
  qk_solver_norms(s, n2);
}

void qk_system_clear(qk_solver_t *s, const uint8_t *mask) {
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) zero(s, s->system[i].x);
}

/* x, and r of bhat, deflated. */
static void begin_deflated(qk_solver_t *s, int i) {
  const qk_system_t *y = &s->system[i];
  qk_field_t xe = part_of(s, y->x), *r = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  copy(s, r, y->bhat);
  deflate(s, i, &xe, r);
  hand_over(s, (run_t){i, 1}, &r);
  norm2(s, i, r);
  qk_work_release(s->work, r);
}

static void begin(qk_solver_t *s, int i) {
  const qk_system_t *y = &s->system[i];
  qk_system_scale(s, i, y->b, s->w[i].lifted - s->w[i].exponent);
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->op->ops->prepare(s->op, y->bhat, y->b));
  zero(s, y->x);
  if (s->params.deflation)
    begin_deflated(s, i);
  else
    norm2(s, i, y->bhat);
}

/* r = bhat. */
static void begin_recursion(const qk_solver_t *s, const uint8_t *mask) {
  for (run_t run = next_run(s, mask, 0); run.n > 0; run = run_after(s, mask, run)) {
    qk_field_t *bhat[QK_RHS_TOGETHER];
    for (int k = 0; k < run.n; k++) bhat[k] = s->system[run.first + k].bhat;
    hand_over(s, run, bhat);
  }
}

void qk_system_begin(qk_solver_t *s, const uint8_t *mask, double *n2) {
  for (int i = 0; i < s->nslot; i++)
    if (mask[i]) begin(s, i);
  if (!s->params.deflation) begin_recursion(s, mask);
  qk_solver_norms(s, n2);
}

/* With work fields: old, what x_e was, and r. */
static void update(qk_solver_t *s, run_t run, bool add, qk_field_t *const old[],
                   qk_field_t *const r[], qk_update_t result[]) {
  double n2[QK_MAX_RHS];
  qk_field_t xe[QK_RHS_TOGETHER] = {{0}};
  const bool moved = add || s->params.deflation;
  for (int k = 0; k < run.n; k++) {
    xe[k] = part_of(s, s->system[run.first + k].x);
    if (moved) copy(s, old[k], &xe[k]);
  }
  if (add) add_corrections(s, run, xe);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    residual(s, i, r[k], &xe[k]);
    deflate(s, i, &xe[k], r[k]);
    norm2(s, i, r[k]);
  }
  qk_solver_norms(s, n2);
  for (int k = 0; k < run.n; k++) {
    const int i = run.first + k;
    qk_update_t *u = &result[i];
    u->norm = sqrt(n2[i]);
    u->taken = moved && u->norm < s->w[i].best;
    u->rejected = moved && !u->taken;
    if (!u->rejected) continue;
    copy(s, &xe[k], old[k]);
    residual(s, i, r[k], &xe[k]);
  }
  hand_over(s, run, r);
}

static void update_run(qk_solver_t *s, run_t run, bool add, qk_update_t result[]) {
  qk_field_t *work[2 * QK_RHS_TOGETHER];
  for (int k = 0; k < 2 * run.n; k++) work[k] = qk_work_take(s->work, QK_DOUBLE, 1, s->op->system);
  update(s, run, add, work, work + run.n, result);
  for (int k = 2 * run.n - 1; k >= 0; k--) qk_work_release(s->work, work[k]);
}

void qk_system_update(qk_solver_t *s, const uint8_t *mask, const uint8_t *add,
                      qk_update_t result[]) {
  uint8_t mark[QK_MAX_RHS] = {0};
  for (int i = 0; i < s->nslot; i++) mark[i] = !mask[i] ? 0 : add[i] ? 2 : 1;
  for (run_t run = next_run(s, mark, 0); run.n > 0; run = run_after(s, mark, run))
    update_run(s, run, mark[run.first] == 2, result);
}

/* x from x_e, and r = b - M x. */
static qk_status_t reconstruct(const qk_solver_t *s, const qk_system_t *y, qk_field_t *r) {
  qk_field_t xe = part_of(s, y->x);
  qk_status_t status = s->op->ops->reconstruct(s->op, y->x, &xe, y->b);
  return status ? status : s->op->ops->apply(s->op, r, y->x, false, y->b, -1);
}

void qk_system_reconstruct(qk_solver_t *s, const uint8_t *mask, double *n2) {
  qk_field_t *r = qk_work_take(s->work, QK_DOUBLE, 1, QK_FULL);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, reconstruct(s, &s->system[i], r));
    norm2(s, i, r);
  }
  qk_work_release(s->work, r);
  qk_solver_norms(s, n2);
}
