/*
 * solver_system.c: the system of a slot in double, M x = b, in fields of one column.
 *
 * What begins, updates or ends a slot are passes over its own fields alone, whatever the width of the block that
 * iterates; only r and xi cross between the two.
 */
#include <math.h>

#include "daemon/engine/solver_impl.h"

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

/* Column i of r = f. */
static qk_status_t hand_over(const qk_solver_t *s, int i, const qk_field_t *f) {
  qk_column_copy_args_t args = {.to = s->r->v, .from = f->v, .to_rhs = i};
  return s->dev->ops->column_copy(s->dev->ctx, &args);
}

/* f += column i of xi. */
static qk_status_t add_correction(const qk_solver_t *s, int i, const qk_field_t *f) {
  qk_column_copy_args_t args = {.to = f->v, .from = s->xi->v, .from_rhs = i, .add = 1};
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
  return qk_solver_blas(s, QK_BLAS_NORM2, &(qk_blas_args_t){.f = {f->v}, .red = s->scalar + 2 * i});
}

/* f *= 2^exponent. */
static qk_status_t scale(qk_solver_t *s, int i, const qk_field_t *f, int exponent) {
  if (exponent == 0) return QK_OK;
  const double *factor;
  qk_status_t status = qk_solver_factor(s, i, ldexp(1, exponent), &factor);
  return status ? status
                : qk_solver_blas(s, QK_BLAS_SCALE, &(qk_blas_args_t){.f = {f->v}, .c = {factor}});
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

static qk_status_t begin(qk_solver_t *s, int i) {
  qk_system_t *y = &s->system[i];
  qk_status_t status = scale(s, i, y->b, -s->w[i].exponent);
  if (!status) status = s->op->ops->prepare_eo(s->op, y->bhat, y->b);
  if (!status) status = zero(s, y->x);
  if (status || !s->params.deflation) {
    if (!status) status = hand_over(s, i, y->bhat);
    return status ? status : norm2(s, i, y->bhat);
  }
  qk_field_t *r, xe = even_of(y->x);
  status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &r);
  if (status) return status;
  status = copy(s, r, y->bhat);
  if (!status) status = deflate(s, i, &xe, r);
  if (!status) status = hand_over(s, i, r);
  if (!status) status = norm2(s, i, r);
  qk_work_release(s->work, r);
  return status;
}

qk_status_t qk_system_begin(qk_solver_t *s, const uint8_t *mask, double *n2) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < s->nslot && !status; i++)
    if (mask[i]) status = begin(s, i);
  return status ? status : qk_solver_norms(s, n2);
}

/* With x and r as work fields. */
static qk_status_t update(qk_solver_t *s, int i, bool add, qk_field_t *x, qk_field_t *r,
                          qk_update_t *result) {
  double n2[QK_MAX_RHS];
  qk_field_t xe = even_of(s->system[i].x);
  const bool moved = add || s->params.deflation; /* x is not xe */
  qk_status_t status = copy(s, x, &xe);
  if (!status && add) status = add_correction(s, i, x);
  if (!status) status = residual(s, i, r, x);
  if (!status) status = deflate(s, i, x, r);
  if (!status) status = norm2(s, i, r);
  if (!status) status = qk_solver_norms(s, n2);
  if (status) return status;
  result->norm = sqrt(n2[i]);
  result->taken = moved && result->norm < s->w[i].best;
  result->rejected = moved && !result->taken;
  if (result->taken) status = copy(s, &xe, x);
  if (result->rejected) status = residual(s, i, r, &xe);
  return status ? status : hand_over(s, i, r);
}

qk_status_t qk_system_update(qk_solver_t *s, int i, bool add, qk_update_t *result) {
  qk_field_t *x, *r = NULL;
  qk_status_t status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &x);
  if (status) return status;
  status = qk_work_reserve(s->work, QK_DOUBLE, 1, QK_EVEN, &r);
  if (!status) status = update(s, i, add, x, r, result);
  qk_work_release(s->work, r);
  qk_work_release(s->work, x);
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

qk_status_t qk_system_rescale(qk_solver_t *s, int i) {
  return scale(s, i, s->system[i].x, s->w[i].exponent);
}
