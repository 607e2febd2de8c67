/*
 * solver_system.c: the system of a slot in double, M x = b, in fields of one column.
 *
 * What begins, updates or ends a slot are passes over its own fields alone, whatever the width of the block that
 * iterates; only r and xi cross between the two.
 */
#include <math.h>

#include "daemon/engine/krylov/solver_impl.h"

/* ---- life ---------------------------------------------------------------------------------------------- */

qk_status_t qk_system_create(qk_solver_t *s) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot && !status; i++) {
    qk_system_t *y = &s->system[i];
    status = qk_field_create(s->dev, QK_DOUBLE, 1, QK_FULL, &y->b);
    if (!status) status = qk_field_create(s->dev, QK_DOUBLE, 1, QK_FULL, &y->x);
    if (!status) status = qk_field_create(s->dev, QK_DOUBLE, 1, QK_EVEN, &y->bhat);
  }
  if (!status && s->params.deflation) status = qk_deflation_prepare(s->params.deflation, 1);
  return status;
}

void qk_system_destroy(qk_solver_t *s) {
  for (int i = s->nslot - 1; i >= 0; i--) {
    qk_field_destroy(s->system[i].bhat);
    qk_field_destroy(s->system[i].x);
    qk_field_destroy(s->system[i].b);
  }
}

/* ---- pieces -------------------------------------------------------------------------------------------- */

/* The even half of a full field, as a field. */
static qk_field_t even_of(const qk_field_t *full) {
  return (qk_field_t){.dev = full->dev, .v = qk_field_parity(full, QK_EVEN)};
}

static qk_status_t copy(const qk_solver_t *s, const qk_field_t *to, const qk_field_t *from) {
  return qk_solver_blas(s, QK_BLAS_COPY, &(qk_blas_args_t){.f = {to->v, from->v}});
}

/* Slots whose columns stand beside each other in a block: they cost little more than one. */
typedef struct run {
  int first, n;
} run_t;

/* The next slots from `at` on that have the same mark, not 0. n = 0: there are none. */
static run_t next_run(const qk_solver_t *s, const uint8_t *mark, int at) {
  while (at < s->nslot && !mark[at]) at++;
  run_t run = {at, 0};
  while (at < s->nslot && mark[at] == mark[run.first] &&
         at / QK_COLUMNS_MOST == run.first / QK_COLUMNS_MOST)
    at++;
  run.n = at - run.first;
  return run;
}

static run_t run_after(const qk_solver_t *s, const uint8_t *mark, run_t run) {
  return next_run(s, mark, run.first + run.n);
}

/* Columns of r = f[]. */
static qk_status_t hand_over(const qk_solver_t *s, run_t run, qk_field_t *const f[]) {
  qk_column_copy_args_t args = {.to = s->r->v, .from = f[0]->v, .to_rhs = run.first, .n = run.n};
  for (int k = 0; k < run.n; k++) args.lone[k] = f[k]->v.data;
  return s->dev->ops->column_copy(s->dev->ctx, &args);
}

/* f[] += columns of xi. */
static qk_status_t add_corrections(const qk_solver_t *s, run_t run, const qk_field_t f[]) {
  qk_column_copy_args_t args = {
      .to = f[0].v, .from = s->xi->v, .from_rhs = run.first, .add = 1, .n = run.n};
  for (int k = 0; k < run.n; k++) args.lone[k] = f[k].v.data;
  return s->dev->ops->column_copy(s->dev->ctx, &args);
}

static qk_status_t residual(const qk_solver_t *s, int i, qk_field_t *r, const qk_field_t *x) {
  return s->op->ops->apply_eo(s->op, r, x, false, s->system[i].bhat);
}

/* x += what deflation makes of r = bhat - Mhat x, and r anew. Nothing without deflation. */
static qk_status_t deflate(qk_solver_t *s, int i, qk_field_t *x, qk_field_t *r) {
  qk_field_t *e;
  if (!s->params.deflation) return QK_OK;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &e);
  if (status) return status;
  status = qk_deflation_apply(s->params.deflation, e, r);
  if (!status) status = qk_solver_blas(s, QK_BLAS_ADD, &(qk_blas_args_t){.f = {x->v, e->v}});
  if (!status) status = residual(s, i, r, x);
  qk_work_release(s->work, e);
  return status;
}

/* |f|^2 of slot i, to be fetched by qk_solver_norms. */
static qk_status_t norm2(const qk_solver_t *s, int i, const qk_field_t *f) {
  double *red = qk_scalars_at(&s->scalars, QK_SOLVER_NORM) + 2 * i;
  return qk_solver_blas(s, QK_BLAS_NORM2, &(qk_blas_args_t){.f = {f->v}, .red = red});
}

static qk_status_t zero(const qk_solver_t *s, const qk_field_t *f) {
  return qk_solver_blas(s, QK_BLAS_ZERO, &(qk_blas_args_t){.f = {f->v}});
}

/* ---- the life of a right-hand side --------------------------------------------------------------------- */

qk_status_t qk_system_source_norms(qk_solver_t *s, const uint8_t *mask, double *n2) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot && !status; i++)
    if (mask[i]) status = norm2(s, i, s->system[i].b);
  return status ? status : qk_solver_norms(s, n2);
}

qk_status_t qk_system_clear(qk_solver_t *s, const uint8_t *mask) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot && !status; i++)
    if (mask[i]) status = zero(s, s->system[i].x);
  return status;
}

/* x and r of bhat, r as a work field. */
static qk_status_t begin_deflated(qk_solver_t *s, int i, qk_field_t *r) {
  const qk_system_t *y = &s->system[i];
  qk_field_t xe = even_of(y->x);
  qk_status_t status = copy(s, r, y->bhat);
  if (!status) status = deflate(s, i, &xe, r);
  if (!status) status = hand_over(s, (run_t){i, 1}, &r);
  return status ? status : norm2(s, i, r);
}

static qk_status_t begin(qk_solver_t *s, int i) {
  const qk_system_t *y = &s->system[i];
  qk_status_t status = qk_system_scale(s, i, y->b, s->w[i].lifted - s->w[i].exponent);
  if (!status) status = s->op->ops->prepare_eo(s->op, y->bhat, y->b);
  if (!status) status = zero(s, y->x);
  if (status || !s->params.deflation) return status ? status : norm2(s, i, y->bhat);
  qk_field_t *r;
  status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &r);
  if (status) return status;
  status = begin_deflated(s, i, r);
  qk_work_release(s->work, r);
  return status;
}

/* r = bhat. */
static qk_status_t begin_recursion(const qk_solver_t *s, const uint8_t *mask) {
  qk_status_t status = QK_OK;
  for (run_t run = next_run(s, mask, 0); run.n > 0 && !status; run = run_after(s, mask, run)) {
    qk_field_t *bhat[QK_COLUMNS_MOST];
    for (int k = 0; k < run.n; k++) bhat[k] = s->system[run.first + k].bhat;
    status = hand_over(s, run, bhat);
  }
  return status;
}

qk_status_t qk_system_begin(qk_solver_t *s, const uint8_t *mask, double *n2) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot && !status; i++)
    if (mask[i]) status = begin(s, i);
  if (!status && !s->params.deflation) status = begin_recursion(s, mask);
  return status ? status : qk_solver_norms(s, n2);
}

/* With work fields: old, what x_e was, and r. */
static qk_status_t update(qk_solver_t *s, run_t run, bool add, qk_field_t *const old[],
                          qk_field_t *const r[], qk_update_t result[]) {
  double n2[QK_MAX_RHS];
  qk_field_t xe[QK_COLUMNS_MOST] = {{0}};
  const bool moved = add || s->params.deflation;
  qk_status_t status = QK_OK;
  for (int k = 0; k < run.n && !status; k++) {
    xe[k] = even_of(s->system[run.first + k].x);
    if (moved) status = copy(s, old[k], &xe[k]);
  }
  if (!status && add) status = add_corrections(s, run, xe);
  for (int k = 0; k < run.n && !status; k++) {
    const int i = run.first + k;
    status = residual(s, i, r[k], &xe[k]);
    if (!status) status = deflate(s, i, &xe[k], r[k]);
    if (!status) status = norm2(s, i, r[k]);
  }
  if (!status) status = qk_solver_norms(s, n2);
  for (int k = 0; k < run.n && !status; k++) {
    const int i = run.first + k;
    qk_update_t *u = &result[i];
    u->norm = sqrt(n2[i]);
    u->taken = moved && u->norm < s->w[i].best;
    u->rejected = moved && !u->taken;
    if (u->rejected) status = copy(s, &xe[k], old[k]);
    if (u->rejected && !status) status = residual(s, i, r[k], &xe[k]);
  }
  return status ? status : hand_over(s, run, r);
}

static qk_status_t update_run(qk_solver_t *s, run_t run, bool add, qk_update_t result[]) {
  qk_field_t *work[2 * QK_COLUMNS_MOST];
  qk_status_t status = QK_OK;
  int n = 0;
  while (n < 2 * run.n && !status) {
    status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &work[n]);
    n += !status;
  }
  if (!status) status = update(s, run, add, work, work + run.n, result);
  while (n > 0) qk_work_release(s->work, work[--n]);
  return status;
}

qk_status_t qk_system_update(qk_solver_t *s, const uint8_t *mask, const uint8_t *add,
                             qk_update_t result[]) {
  uint8_t mark[QK_MAX_RHS] = {0};
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot; i++) mark[i] = !mask[i] ? 0 : add[i] ? 2 : 1;
  for (run_t run = next_run(s, mark, 0); run.n > 0 && !status; run = run_after(s, mark, run))
    status = update_run(s, run, mark[run.first] == 2, result);
  return status;
}

qk_status_t qk_system_reconstruct(qk_solver_t *s, const uint8_t *mask, double *n2) {
  qk_field_t *r = NULL;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_FULL, &r);
  for (int i = 0; i < s->nslot && !status; i++) {
    if (!mask[i]) continue;
    const qk_system_t *y = &s->system[i];
    qk_field_t xe = even_of(y->x);
    status = s->op->ops->reconstruct_eo(s->op, y->x, &xe, y->b);
    if (!status) status = s->op->ops->apply(s->op, r, y->x, false, y->b, -1);
    if (!status) status = norm2(s, i, r);
  }
  qk_work_release(s->work, r);
  return status ? status : qk_solver_norms(s, n2);
}
