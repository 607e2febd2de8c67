#include "daemon/engine/krylov/solver.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/engine/krylov/solver_impl.h"
#include "proto/limits.h"

static const qk_method_t *const methods[] = {&qk_method_bicgstab, &qk_method_cg,
                                             &qk_method_block_cg, &qk_method_gcr};
enum { NMETHOD = sizeof methods / sizeof *methods };

/* Residual drop after which r is recomputed in double: well above what the inner precision resolves
 * after the growth of errors in xi, as seldom as that allows. */
static const double default_reliable[] = {[QK_DOUBLE] = 1e-8, [QK_SINGLE] = 1e-3, [QK_HALF] = 1e-1};
/* With a preconditioner r is recomputed after a number of iterations that is the same for all
 * slots, so that slots filled together share the passes over the block. These thresholds are for
 * faster reductions. */
static const double preconditioned_reliable[] = {
    [QK_DOUBLE] = 1e-10, [QK_SINGLE] = 1e-5, [QK_HALF] = 1e-2};
_Static_assert(sizeof default_reliable == QK_PRECS * sizeof *default_reliable &&
                   sizeof preconditioned_reliable == sizeof default_reliable,
               "each precision has its thresholds");

/* Iterations after which a recursion in low precision has drifted enough to be looked after. */
enum { REFRESH = 64, PRECONDITIONED_HALF = 5 };

/* ---- scalars, masks -------------------------------------------------------------------------- */

qk_status_t qk_solver_field(qk_solver_t *s, qk_field_t **field) {
  return qk_field_create(s->dev, s->params.inner, s->nslot, s->op->system, field);
}

void qk_solver_set_beside(qk_solver_t *s, qk_beside_t beside) {
  s->beside = beside;
}

qk_status_t qk_solver_await(qk_solver_t *s) {
  if (s->beside.begin && qk_dev_ok(s->dev)) qk_dev_note(s->dev, s->beside.begin(s->beside.self));
  qk_scalars_fetch(&s->scalars, 0, s->scalars.n);
  return qk_dev_status(s->dev);
}

void qk_solver_norms(qk_solver_t *s, double *norm2) {
  qk_scalars_total(&s->scalars, QK_SOLVER_NORM, 1);
  for (int i = 0; i < s->nslot; i++) norm2[i] = qk_scalars_host(&s->scalars, QK_SOLVER_NORM, i)[0];
}

void qk_solver_norm2(qk_solver_t *s, qk_spinor_t v, double *norm2) {
  double *red = qk_scalars_at(&s->scalars, QK_SOLVER_NORM);
  qk_solver_blas(s, QK_BLAS_NORM2, (qk_blas_args_t){.f = {v}, .red = red});
  qk_scalars_fold(&s->scalars, red, 1, v.nrhs);
  qk_solver_norms(s, norm2);
}

const double *qk_solver_factor(qk_solver_t *s, int i, double value) {
  qk_scalars_set(&s->scalars, QK_SOLVER_FACTOR, i, value, 0);
  qk_scalars_store(&s->scalars, QK_SOLVER_FACTOR, 1);
  return qk_scalars_of(&s->scalars, QK_SOLVER_FACTOR, i);
}

/* Bytes of a mask: one for each column of the block. */
static size_t columns_of(const qk_solver_t *s) {
  return (size_t)s->nslot * (size_t)qk_geom_slices(s->dev->geom);
}

static qk_status_t move_mask(const qk_solver_t *s, size_t at) {
  qk_status_t status = s->dev->ops->copy(s->dev->ctx, s->mask + at, s->mask_host + at,
                                         columns_of(s), QK_COPY_TO_DEVICE, 0);
  return status ? status : s->dev->ops->queue_sync(s->dev->ctx, 0);
}

static const uint8_t *upload(const qk_solver_t *s, size_t at) {
  if (qk_dev_ok(s->dev)) qk_dev_note(s->dev, move_mask(s, at));
  return s->mask + at;
}

const uint8_t *qk_solver_running_mask(const qk_solver_t *s) {
  return s->mask;
}

/* Of all columns of slot i. */
static void set_mask(const qk_solver_t *s, size_t at, int i, uint8_t value) {
  const size_t slices = columns_of(s) / (size_t)s->nslot;
  memset(s->mask_host + at + (size_t)i * slices, value, slices);
}

void qk_solver_set_running(qk_solver_t *s) {
  for (int i = 0; i < s->nslot; i++) set_mask(s, 0, i, s->slot[i].state == QK_SLOT_RUNNING);
  upload(s, 0);
}

const uint8_t *qk_solver_upload_mask(qk_solver_t *s, const uint8_t *mask) {
  for (int i = 0; i < s->nslot; i++) set_mask(s, columns_of(s), i, mask[i]);
  return upload(s, columns_of(s));
}

/* ---- flavours -------------------------------------------------------------------------------- */

static size_t flavours_at(const qk_solver_t *s) {
  return 2 * columns_of(s);
}

void qk_solver_for_slot(const qk_solver_t *s, int i) {
  qk_flavours_set(s->op, s->op->twist != 0 ? s->mask + flavours_at(s) + i : NULL);
}

void qk_solver_for_block(const qk_solver_t *s) {
  qk_solver_for_slot(s, 0);
}

void qk_solver_no_flavours(const qk_solver_t *s) {
  qk_flavours_set(s->op, NULL);
}

qk_deflation_t *qk_solver_deflation(const qk_solver_t *s, int i) {
  const bool minus = s->op->twist != 0 && s->mask_host[flavours_at(s) + (size_t)i];
  return minus ? s->params.deflation_minus : s->params.deflation;
}

qk_status_t qk_solver_set_flavour(qk_solver_t *s, int slot, int flavour) {
  if (slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_FREE ||
      (flavour != 1 && flavour != -1))
    return QK_BAD_ARGUMENT;
  uint8_t *minus = s->mask_host + flavours_at(s) + slot;
  if (*minus == (flavour < 0)) return QK_OK;
  *minus = flavour < 0;
  s->w[slot].group = 0; /* its column is of no use to those that it was solved with */
  upload(s, flavours_at(s));
  return qk_dev_status(s->dev);
}

qk_status_t qk_solver_set_measure(qk_solver_t *s, int slot, const qk_measure_t *measure) {
  const bool full = measure->kind == QK_MEASURE_FULL;
  if (slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_FREE ||
      measure->kind > QK_MEASURE_UNIT || (!full && measure->parity == QK_FULL) ||
      (measure->kind == QK_MEASURE_UNIT && !(measure->unit > 0)) ||
      (!full && (s->dev->geom->inner > 1 || s->op->outer)))
    return QK_BAD_ARGUMENT;
  s->system[slot].measure = *measure;
  return QK_OK;
}

/* ---- groups ---------------------------------------------------------------------------------- */

qk_status_t qk_solver_set_group(qk_solver_t *s, int slot, uint64_t group) {
  if (slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_FREE) return QK_BAD_ARGUMENT;
  s->wanted[slot] = group;
  return QK_OK;
}

/* Of the slots that are filled together. Flavours are different operators. */
static void set_groups(qk_solver_t *s, const uint8_t *mask) {
  const uint8_t *minus = s->mask_host + flavours_at(s);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    s->w[i].group = ++s->groups;
    for (int k = 0; k < i; k++)
      if (mask[k] && s->wanted[i] != 0 && s->wanted[k] == s->wanted[i] && minus[k] == minus[i])
        s->w[i].group = s->w[k].group;
  }
}

/* ---- life ------------------------------------------------------------------------------------ */

static qk_status_t no_such_method(const char *name, qk_err_t *err) {
  char list[80] = "";
  for (int i = 0; i < NMETHOD; i++)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
             i == 0             ? ""
             : i == NMETHOD - 1 ? " or "
                                : ", ",
             methods[i]->name);
  return qk_fail(err, QK_BAD_ARGUMENT, "solver \"%s\": %s", name ? name : "", list);
}

/* What it iterates on: for plain CG perhaps the square. The vectors of a deflation are made for
 * normal equations. */
static qk_operator_t *system_operator(qk_operator_t *op, const qk_solver_params_t *p) {
  const bool cg = p->method && strcmp(p->method, qk_method_cg.name) == 0;
  return cg && op->squared && !p->deflation ? op->squared : op;
}

static qk_status_t take_params(qk_solver_t *s, const qk_solver_params_t *params, qk_err_t *err) {
  qk_solver_params_t *p = &s->params;
  *p = *params;
  for (int i = 0; i < NMETHOD; i++)
    if (p->method && !strcmp(methods[i]->name, p->method)) s->method = methods[i];
  if (!s->method) return no_such_method(p->method, err);
  if (p->nslot == 1 && s->method->of_one) s->method = s->method->of_one;
  if (qk_operator_is_positive(s->op) && s->method == &qk_method_cg) s->method = &qk_method_cg_plain;
  if (qk_operator_is_positive(s->op) && s->method == &qk_method_block_cg)
    s->method = &qk_method_block_cg_plain;
  const int room = QK_COLUMNS_MAX / qk_geom_slices(s->dev->geom);
  const int most = room < QK_MAX_RHS ? room : QK_MAX_RHS;
  if (p->nslot < 1 || p->nslot > most)
    return qk_fail(err, QK_BAD_ARGUMENT, "slots = %d: must be 1 to %d", p->nslot, most);
  if ((unsigned)p->inner >= QK_PRECS)
    return qk_fail(err, QK_BAD_ARGUMENT, "inner precision %d: 0 to %d", (int)p->inner,
                   QK_PRECS - 1);
  if (!(p->reliable >= 0 && p->reliable < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "reliable = %g: must be between 0 and 1", p->reliable);
  if (p->check < 0 || p->check > 1000)
    return qk_fail(err, QK_BAD_ARGUMENT, "check = %d: must be 0 to 1000", p->check);
  if (p->gcr_keep < 0 || p->gcr_keep > QK_GCR_MAX)
    return qk_fail(err, QK_BAD_ARGUMENT, "gcr_keep = %d: must be 0 to %d", p->gcr_keep, QK_GCR_MAX);
  const bool precond = p->precond.apply != NULL;
  if (p->reliable == 0 && !precond) p->reliable = s->method->reliable[p->inner];
  if (p->reliable == 0)
    p->reliable = precond ? preconditioned_reliable[p->inner] : default_reliable[p->inner];
  if (p->deflation && !precond) /* its vectors are in single, and take that much out at a time */
    p->reliable = fmax(p->reliable, default_reliable[QK_SINGLE]);
  p->reliable = fmax(p->reliable, s->method->least_fall[p->inner]);
  if (p->check == 0) p->check = precond || s->op->inexact ? 1 : s->method->check;
  if (p->gcr_keep == 0) p->gcr_keep = precond ? QK_GCR_KEEP_PRECONDITIONED : QK_GCR_KEEP;
  s->refresh = !precond ? REFRESH : qk_prec_scaled(p->inner) ? PRECONDITIONED_HALF : p->gcr_keep;
  p->method = s->method->name;
  s->nslot = p->nslot;
  s->check = p->check;
  return QK_OK;
}

static qk_status_t create_recursion(qk_solver_t *s) {
  void *device = NULL, *host = NULL;
  const bool wide = s->method->wide_solution && qk_prec_scaled(s->params.inner);
  qk_status_t status = s->dev->ops->alloc(s->dev->ctx, 3 * columns_of(s), &device);
  if (status) return status;
  s->mask = device;
  status = s->dev->ops->alloc_host(s->dev->ctx, 3 * columns_of(s), &host);
  if (status) return status;
  s->mask_host = host;
  memset(s->mask_host, 0, 3 * columns_of(s));
  upload(s, flavours_at(s));
  qk_solver_set_running(s);
  status = qk_dev_status(s->dev);
  if (status) return status;
  status = qk_solver_field(s, &s->r);
  if (status) return status;
  status =
      qk_field_create(s->dev, wide ? QK_SINGLE : s->params.inner, s->nslot, s->op->system, &s->xi);
  return status ? status : s->method->create(s);
}

static size_t wall_numbers(const qk_solver_t *s) {
  return (size_t)QK_WALL_SUMS * (size_t)s->dev->geom->global[3];
}

static qk_status_t create_walls(qk_solver_t *s) {
  if (s->dev->geom->global[3] > QK_WALL_TIMES_MAX) return QK_OK;
  s->walls = qk_calloc((size_t)s->nslot * wall_numbers(s), sizeof *s->walls);
  return s->walls ? QK_OK : QK_NO_MEMORY;
}

qk_status_t qk_solver_make(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                           bool system, qk_solver_t **solver, qk_err_t *err) {
  qk_solver_t *s = qk_calloc(1, sizeof *s);
  if (!s) return qk_fail(err, QK_NO_MEMORY, "no memory for the solver");
  s->op = system ? system_operator(op, params) : op;
  s->work = work;
  s->dev = op->dev;
  qk_status_t status = take_params(s, params, err);
  if (status) goto fail;
  s->trace = qk_calloc((size_t)s->check * s->nslot, sizeof *s->trace);
  status = s->trace ? QK_OK : QK_NO_MEMORY;
  if (!status && system) status = qk_system_create(s);
  if (!status && system && op->ops->wall_sums) status = create_walls(s);
  if (!status) status = create_recursion(s);
  status = qk_comm_agree(s->dev->geom->comm, status, err);
  if (status) {
    qk_fail(err, status, "%d slots of the %s solver: %s", s->nslot, s->method->name,
            qk_status_text(status));
    goto fail;
  }
  *solver = s;
  return QK_OK;

fail:
  qk_solver_destroy(s);
  return status;
}

qk_status_t qk_solver_create(qk_operator_t *op, qk_work_t *work, const qk_solver_params_t *params,
                             qk_solver_t **solver, qk_err_t *err) {
  return qk_solver_make(op, work, params, true, solver, err);
}

void qk_solver_destroy(qk_solver_t *s) {
  if (!s) return;
  const qk_ops_t *ops = s->dev->ops;
  if (s->method) s->method->destroy(s);
  qk_scalars_fini(&s->scalars);
  qk_field_destroy(s->xi);
  qk_field_destroy(s->r);
  qk_system_destroy(s);
  if (s->mask_host) ops->free_host(s->dev->ctx, s->mask_host);
  if (s->mask) ops->free(s->dev->ctx, s->mask);
  qk_free(s->walls);
  qk_free(s->trace);
  qk_free(s);
}

/* ---- slots ----------------------------------------------------------------------------------- */

qk_field_t *qk_solver_rhs(qk_solver_t *s, int slot) {
  return s->system[slot].b;
}
const qk_field_t *qk_solver_solution(qk_solver_t *s, int slot) {
  return qk_system_source(&s->system[slot]);
}

qk_status_t qk_solver_set_five(qk_solver_t *s, int slot, qk_field_t *five) {
  if (!s->op->outer || slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_FREE ||
      five->v.prec != QK_DOUBLE || five->v.subset != QK_FULL ||
      five->v.nrhs != qk_geom_slices(s->dev->geom))
    return QK_BAD_ARGUMENT;
  s->system[slot].five = five;
  return QK_OK;
}

const double *qk_solver_wall_sums(const qk_solver_t *s, int slot) {
  return qk_solver_walls(s, slot);
}
const qk_slot_t *qk_solver_slot(const qk_solver_t *s, int slot) {
  return &s->slot[slot];
}

int qk_solver_running(const qk_solver_t *s) {
  int n = 0;
  for (int i = 0; i < s->nslot; i++) n += s->slot[i].state == QK_SLOT_RUNNING;
  return n;
}

void qk_solver_end_slot(qk_solver_t *s, int slot, qk_status_t status) {
  s->slot[slot].state = QK_SLOT_ENDED;
  s->slot[slot].status = status;
  s->slot[slot].seconds = qk_clock_now() - s->w[slot].filled_at;
}

static void forget_walls(qk_solver_t *s, int i) {
  double *sums = qk_solver_walls(s, i);
  for (size_t k = 0; sums && k < wall_numbers(s); k++) sums[k] = NAN;
}

/* Slot i of the mask is reset; those with nothing to solve end here and leave the mask. norm2 in
 * units of 2^(2 lifted). */
static void take_slots(qk_solver_t *s, uint8_t *mask, uint8_t *empty, const double *norm2,
                       const int *lifted) {
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    qk_slot_t *slot = &s->slot[i];
    qk_slot_work_t *w = &s->w[i];
    double norm = sqrt(norm2[i]);
    *w = (qk_slot_work_t){.filled_at = qk_clock_now(), .history_stride = 1};
    slot->state = QK_SLOT_RUNNING;
    slot->status = QK_OK;
    slot->iterations = slot->applications = 0;
    slot->nhistory = 0;
    slot->seconds = 0;
    qk_stop_begin(slot, w);
    forget_walls(s, i);
    slot->norm_b = ldexp(norm, lifted[i]);
    if (!isfinite(slot->norm_b)) slot->norm_b = NAN;
    slot->residual = 1;
    if (slot->why.code == QK_OK && norm > 0) {
      int e;
      frexp(norm, &e);
      w->lifted = lifted[i];
      w->exponent = lifted[i] + e;
      if (abs(w->exponent) <= 20) w->exponent = 0; /* usual sources stay as they are */
      w->norm_b = ldexp(norm, w->lifted - w->exponent);
      continue;
    }
    empty[i] = 1;
    mask[i] = 0;
    slot->residual = norm == 0 ? 0 : NAN;
    if (norm == 0 && slot->stopping.tol_hq > 0) slot->hq_residual = 0;
    qk_solver_end_slot(s, i, slot->why.code);
  }
}

void qk_solver_clear_correction(qk_solver_t *s, const uint8_t *mask) {
  if (s->method->clear) {
    s->method->clear(s, mask);
  } else {
    const uint8_t *on = qk_solver_upload_mask(s, mask);
    qk_solver_blas(s, QK_BLAS_ZERO, (qk_blas_args_t){.f = {s->xi->v}, .mask = on});
  }
}

static void begin_slots(qk_solver_t *s, const uint8_t *mask) {
  double norm2[QK_MAX_RHS];
  qk_system_begin(s, mask, norm2);
  qk_solver_clear_correction(s, mask);
  for (int i = 0; i < s->nslot; i++) {
    if (!mask[i]) continue;
    qk_slot_work_t *w = &s->w[i];
    w->best = w->lowest = sqrt(norm2[i]);
    const double wanted = qk_stop_first(&s->slot[i].stopping, s->slot[i].norm_b);
    w->target = 0.9 * wanted * w->norm_b / s->op->diag_scale;
  }
  s->method->start(s, mask);
}

qk_status_t qk_solver_fill_until(qk_solver_t *s, const int *slot, int n,
                                 const qk_stopping_t *stopping, const int64_t *max_iter) {
  uint8_t mask[QK_MAX_RHS] = {0}, empty[QK_MAX_RHS] = {0};
  for (int i = 0; i < n; i++) {
    int k = slot[i];
    if (k < 0 || k >= s->nslot || s->slot[k].state != QK_SLOT_FREE || mask[k] ||
        !qk_stopping_is_valid(&stopping[i]) || max_iter[i] < 1)
      return QK_BAD_ARGUMENT;
    mask[k] = 1;
  }
  double norm2[QK_MAX_RHS];
  int lifted[QK_MAX_RHS] = {0};
  if (s->failed) return s->failed;
  for (int i = 0; i < n; i++) {
    s->slot[slot[i]].stopping = stopping[i];
    s->slot[slot[i]].max_iter = max_iter[i];
    s->slot[slot[i]].why = (qk_err_t){0};
  }
  qk_system_measure(s, mask, norm2, lifted);
  qk_status_t status = qk_dev_status(s->dev);
  if (status) return status;
  take_slots(s, mask, empty, norm2, lifted);
  set_groups(s, mask);
  if (memchr(empty, 1, sizeof empty)) qk_system_clear(s, empty);
  qk_solver_for_block(s);
  if (memchr(mask, 1, sizeof mask)) begin_slots(s, mask);
  qk_solver_no_flavours(s);
  qk_solver_set_running(s);
  return qk_dev_status(s->dev);
}

qk_status_t qk_solver_fill_many(qk_solver_t *s, const int *slot, int n, const double *tol,
                                const int64_t *max_iter) {
  qk_stopping_t stopping[QK_MAX_RHS];
  if (n > QK_MAX_RHS) return QK_BAD_ARGUMENT;
  for (int i = 0; i < n; i++) stopping[i] = (qk_stopping_t){.tol = tol[i]};
  return qk_solver_fill_until(s, slot, n, stopping, max_iter);
}

qk_status_t qk_solver_fill(qk_solver_t *s, int slot, double tol, int64_t max_iter) {
  return qk_solver_fill_many(s, &slot, 1, &tol, &max_iter);
}

void qk_solver_cancel(qk_solver_t *s, int slot) {
  if (s->failed || slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_RUNNING) return;
  uint8_t mask[QK_MAX_RHS] = {0};
  qk_status_t otherwise[QK_MAX_RHS] = {QK_OK};
  mask[slot] = 1;
  otherwise[slot] = QK_CANCELLED;
  qk_solver_for_block(s);
  qk_solver_finish(s, mask, otherwise);
  qk_solver_end_slot(s, slot, QK_CANCELLED);
  qk_solver_no_flavours(s);
  qk_solver_set_running(s);
  s->failed = qk_dev_status(s->dev);
}

void qk_solver_clear(qk_solver_t *s, int slot) {
  if (slot < 0 || slot >= s->nslot || s->slot[slot].state != QK_SLOT_ENDED) return;
  s->slot[slot].state = QK_SLOT_FREE;
  s->system[slot].five = NULL;
}
