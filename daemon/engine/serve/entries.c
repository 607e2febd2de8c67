#include "daemon/engine/serve/entries.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/extent.h"
#include "daemon/engine/lattice/gamma_basis.h"
#include "daemon/engine/modes/eigens.h"

qk_status_t qk_entry_explain(const qk_inflight_t *inflight, qk_status_t status, qk_err_t *err) {
  return qk_device_explain(&inflight->setup->dev, status, err);
}

/* ---- wall sums ------------------------------------------------------------------------------- */

static size_t wall_numbers(const qk_inflight_t *inflight) {
  return (size_t)QK_WALL_SUMS * (size_t)inflight->setup->geom.global[3];
}

qk_status_t qk_entry_make_walls(qk_inflight_t *inflight) {
  if (!qk_solver_wall_sums(inflight->setup->solver, 0)) return QK_OK;
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++) {
    double **walls = &inflight->entry[i].walls;
    *walls = qk_calloc(wall_numbers(inflight), sizeof **walls);
    if (!*walls) return QK_NO_MEMORY;
  }
  return QK_OK;
}

void qk_entry_free_walls(qk_inflight_t *inflight) {
  for (int i = 0; i < QK_INFLIGHT_MAX; i++) qk_free(inflight->entry[i].walls);
}

void qk_entry_take_walls(const qk_inflight_t *inflight, qk_inflight_entry_t *entry) {
  const double *walls = qk_solver_wall_sums(entry->solver, entry->slot);
  if (!walls || !entry->walls) return;
  memcpy(entry->walls, walls, wall_numbers(inflight) * sizeof *walls);
  entry->result.walls = entry->walls;
  entry->result.times = inflight->setup->geom.global[3];
}

/* ---- five dimensions ------------------------------------------------------------------------- */

int qk_entry_columns(const qk_inflight_t *inflight) {
  return qk_geom_slices(inflight->setup->op->dev->geom);
}

static qk_status_t read_slices(qk_field_io_t *port, qk_segment_t *in, const qk_fill_t *fill,
                               const qk_field_t *five, qk_err_t *err) {
  double matrix[4][4][2];
  qk_status_t status = QK_OK;
  qk_gamma_basis_import(fill->basis, matrix);
  for (in->first = 0; in->first < five->v.nrhs && status == QK_OK; in->first++)
    status = qk_field_io_read_open(port, in, matrix, five, in->first, err);
  return status;
}

static qk_status_t read_source(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry,
                               qk_err_t *err) {
  const qk_fill_t *fill = &entry->fill;
  qk_segment_t in;
  qk_status_t status = qk_segment_open_many(inflight->port->wire, fill->shm_in, fill->in_double,
                                            qk_entry_columns(inflight), false, &in, err);
  if (status != QK_OK) return status;
  status = read_slices(inflight->port, &in, fill, entry->five, err);
  qk_segment_close(&in);
  return status;
}

/* QK_DEVICE_MEMORY, the same on all ranks, is a verdict on this right-hand side. */
static qk_status_t reserve(const qk_inflight_t *inflight, qk_inflight_entry_t *entry,
                           qk_err_t *verdict, qk_err_t *err) {
  const qk_loaded_t *s = inflight->setup;
  qk_err_t why = {0};
  qk_status_t status = qk_field_create(s->op->dev, QK_DOUBLE, 1, QK_FULL, &entry->five);
  status = qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, &why), &why);
  if (status == QK_OK) return QK_OK;
  qk_entry_free_five(entry);
  qk_err_prefix(&why, "a solution of five dimensions");
  if (status != QK_DEVICE_MEMORY && status != QK_NO_MEMORY) {
    *err = why;
    return status;
  }
  *verdict = why;
  return QK_OK;
}

qk_status_t qk_entry_enter_five(const qk_inflight_t *inflight, qk_inflight_entry_t *entry,
                                qk_solver_t *solver, int slot, qk_err_t *verdict, qk_err_t *err) {
  qk_operator_t *op = inflight->setup->op;
  if (!entry->fill.five || verdict->code != QK_OK) return QK_OK;
  qk_status_t status = reserve(inflight, entry, verdict, err);
  if (status != QK_OK || verdict->code != QK_OK) return status;
  if (entry->fill.upload) {
    status = read_source(inflight, entry, verdict);
    if (qk_loses_process(status)) *err = *verdict;
    if (status != QK_OK) return qk_loses_process(status) ? status : QK_OK;
  } else {
    status = op->ops->enter(op, entry->five, qk_solver_rhs(solver, slot));
    if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  }
  return qk_entry_explain(inflight, qk_solver_set_five(solver, slot, entry->five), err);
}

static qk_status_t write_slices(qk_field_io_t *port, const qk_segment_t *segment,
                                const double matrix[4][4][2], double factor, const qk_field_t *x,
                                qk_err_t *err) {
  qk_segment_t out = *segment;
  qk_status_t status = QK_OK;
  for (out.first = 0; out.first < x->v.nrhs && status == QK_OK; out.first++)
    status = qk_field_io_write(port, &out, matrix, factor, x, out.first, err);
  return status;
}

void qk_entry_add_columns(qk_inflight_t *inflight, const int entry[], int n) {
  const int columns = qk_entry_columns(inflight);
  double *norm = inflight->norms_host;
  for (int k = 0; k < n; k++) {
    const int used = inflight->entry[entry[k]].five ? columns : 1;
    double sum = 0;
    for (int c = 0; c < used; c++) sum += norm[2 * (k * columns + c)];
    norm[2 * k] = sum;
    norm[2 * k + 1] = 0;
  }
}

void qk_entry_free_five(qk_inflight_entry_t *entry) {
  qk_field_destroy(entry->five);
  entry->five = NULL;
}

/* ---- the queue ------------------------------------------------------------------------------- */

void qk_entry_leave_queue(qk_inflight_t *inflight, int entry) {
  int n = 0;
  for (int i = 0; i < inflight->nwaiting; i++)
    if (inflight->waiting[i] != entry) inflight->waiting[n++] = inflight->waiting[i];
  inflight->nwaiting = n;
}

static uint64_t order_of(const qk_inflight_t *inflight, int entry) {
  return inflight->entry[entry].fill.hint.order;
}

/* Of a user who has nothing else in the engine. */
static bool is_first(const qk_inflight_entry_t *entry) {
  return entry->fill.hint.order == QK_ORDER_FIRST;
}

void qk_entry_enter_queue(qk_inflight_t *inflight, int entry) {
  int at = inflight->nwaiting++;
  while (at > 0 && order_of(inflight, inflight->waiting[at - 1]) > order_of(inflight, entry)) {
    inflight->waiting[at] = inflight->waiting[at - 1];
    at--;
  }
  inflight->waiting[at] = entry;
}

/* The last waiting RHS whose source is here, and that is not one of the first, gives up its buffer
 * and loads again later. */
static void make_buffer(qk_inflight_t *inflight) {
  for (int k = inflight->nwaiting - 1; k >= 0; k--) {
    qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (is_first(entry) || entry->buffer == NULL || !qk_buffer_done(entry->buffer)) continue;
    qk_buffer_drop(entry->buffer);
    entry->buffer = NULL;
    return;
  }
}

/* Whether there is a buffer for the source of an entry. */
static bool has_buffer(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry) {
  return qk_staging_vacant(inflight->stage) > (is_first(entry) ? 0 : inflight->left);
}

qk_status_t qk_entries_load(qk_inflight_t *inflight, qk_err_t *err) {
  for (int k = 0; k < inflight->nwaiting; k++) {
    const int i = inflight->waiting[k];
    qk_inflight_entry_t *entry = &inflight->entry[i];
    qk_err_t verdict = {0};
    if (entry->buffer != NULL || !qk_entry_is_staged(inflight, entry)) continue;
    if (is_first(entry) && !has_buffer(inflight, entry)) make_buffer(inflight);
    if (!has_buffer(inflight, entry)) break;
    const qk_input_t input = qk_fill_input(&entry->fill);
    qk_status_t status = qk_staging_load(inflight->stage, &input, &entry->buffer, &verdict, err);
    if (status != QK_OK) return status;
    if (verdict.code == QK_OK) continue;
    qk_entry_refuse(inflight, i, &verdict);
    k--;
  }
  return QK_OK;
}

static void close_outputs(qk_inflight_entry_t *entry) {
  qk_entry_free_five(entry);
  qk_segment_close(&entry->out);
  qk_object_close(&entry->object);
}

void qk_entry_refuse(qk_inflight_t *inflight, int i, const qk_err_t *err) {
  qk_inflight_entry_t *entry = &inflight->entry[i];
  if (entry->state == QK_ENTRY_WAITING) qk_entry_leave_queue(inflight, i);
  qk_buffer_drop(entry->buffer);
  entry->buffer = NULL;
  close_outputs(entry);
  entry->result =
      (qk_result_t){.entry = i, .serial = entry->fill.serial, .refused = true, .err = *err};
  entry->state = QK_ENTRY_ENDED;
}

bool qk_entry_is_staged(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry) {
  const bool reads = entry->fill.shm_in[0] != '\0' && !(entry->fill.five && entry->fill.upload);
  return reads && !entry->follows && qk_staging_exists(inflight->stage);
}

bool qk_entry_is_ready(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry) {
  if (!qk_entry_is_staged(inflight, entry)) return true;
  return entry->buffer != NULL && qk_buffer_done(entry->buffer);
}

void qk_entry_say_basis(const qk_inflight_entry_t *entry, qk_err_t *err) {
  const size_t n = strlen(err->text);
  if (entry->fill.basis == QK_BASIS_DEGRAND_ROSSI) return;
  snprintf(err->text + n, sizeof err->text - n, " (of the source in the basis %s)",
           qk_gamma_basis_name(QK_BASIS_DEGRAND_ROSSI));
}

/* ---- out ------------------------------------------------------------------------------------- */

bool qk_entry_needs_buffer(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry,
                           bool has_solution) {
  return entry->fill.shm_out[0] != '\0' && !qk_entry_projects(entry) && has_solution &&
         !entry->fill.five && qk_staging_exists(inflight->stage);
}

static const qk_kept_t *kept_of(const qk_inflight_t *inflight, const qk_fill_t *fill) {
  const qk_eigens_t *eigens = inflight->setup->eigens;
  const qk_kept_t *kept = NULL;
  qk_err_t unknown = {0};
  const bool is = eigens && qk_eigens_find(eigens, fill->project, &kept, &unknown) == QK_OK;
  return is ? kept : NULL;
}

static qk_projection_t projection_of(const qk_fill_t *fill) {
  qk_projection_t what = {.name = fill->project,
                          .count = fill->project_count,
                          .is_double = fill->is_double,
                          .factor = fill->factor};
  qk_fill_export(fill, what.matrix);
  return what;
}

qk_status_t qk_entry_open(qk_inflight_t *inflight, qk_inflight_entry_t *entry, qk_err_t *verdict,
                          qk_err_t *err) {
  const qk_fill_t *fill = &entry->fill;
  qk_status_t status = QK_OK;
  if (fill->shm_out[0] == '\0') return QK_OK;
  if (qk_entry_projects(entry)) {
    const qk_projection_t what = projection_of(fill);
    return qk_projector_open(inflight->projector, kept_of(inflight, fill), &what, fill->shm_out,
                             &entry->object, verdict, err);
  }
  if (fill->five)
    status = qk_segment_open_many(inflight->port->wire, fill->shm_out, fill->is_double,
                                  qk_entry_columns(inflight), true, &entry->out, verdict);
  else
    status = qk_segment_open(inflight->port->wire, fill->shm_out, fill->is_double,
                             qk_fill_subset(fill->parity), true, &entry->out, verdict);
  if (!qk_loses_process(status)) return QK_OK;
  *err = *verdict;
  return status;
}

/* Of entries with the same vectors, n <= QK_PROJECT_RHS. */
static qk_status_t project(qk_inflight_t *inflight, int n, qk_inflight_entry_t *const entry[],
                           const qk_field_t *const x[], qk_err_t *err) {
  qk_projection_t what[QK_PROJECT_RHS] = {{0}};
  const qk_object_t *object[QK_PROJECT_RHS] = {0};
  qk_err_t verdict[QK_PROJECT_RHS] = {{0}};
  for (int i = 0; i < n; i++) {
    what[i] = projection_of(&entry[i]->fill);
    object[i] = &entry[i]->object;
  }
  const qk_status_t status = qk_projector_run(
      inflight->projector, kept_of(inflight, &entry[0]->fill), n, what, x, object, verdict, err);
  for (int i = 0; i < n; i++) qk_entry_end(entry[i], true, &verdict[i]);
  return status;
}

static bool same_projection(const qk_inflight_entry_t *a, const qk_inflight_entry_t *b) {
  return strcmp(a->fill.project, b->fill.project) == 0 &&
         a->fill.project_count == b->fill.project_count;
}

static bool is_solved(const qk_inflight_entry_t *entry) {
  const qk_status_t status = entry->result.err.code;
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

qk_status_t qk_entries_project(qk_inflight_t *inflight, const int ended[], int n, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < n && status == QK_OK; i++) {
    qk_inflight_entry_t *entry[QK_PROJECT_RHS];
    const qk_field_t *x[QK_PROJECT_RHS];
    int m = 0;
    for (int k = i; k < n && m < QK_PROJECT_RHS; k++) {
      qk_inflight_entry_t *other = &inflight->entry[ended[k]];
      if (!qk_entry_projects(other) || other->state != QK_ENTRY_SOLVING || !is_solved(other) ||
          (m == 0 ? k > i : !same_projection(entry[0], other)))
        continue;
      x[m] = qk_solver_solution(other->solver, other->slot);
      entry[m++] = other;
    }
    if (m > 0) status = project(inflight, m, entry, x, err);
  }
  return status;
}

qk_status_t qk_entry_leave(qk_inflight_t *inflight, qk_inflight_entry_t *entry, const qk_field_t *x,
                           bool has_solution, qk_err_t *err) {
  const qk_fill_t *fill = &entry->fill;
  const bool written = fill->shm_out[0] != '\0' && has_solution;
  double matrix[4][4][2];
  qk_err_t why = {0};
  qk_status_t status = QK_OK;
  if (written && qk_entry_projects(entry)) return project(inflight, 1, &entry, &x, err);
  qk_fill_export(fill, matrix);
  if (qk_entry_needs_buffer(inflight, entry, has_solution)) {
    entry->state = QK_ENTRY_LEAVING;
    return qk_staging_store(inflight->stage, &entry->out, matrix, fill->factor, x, &entry->buffer,
                            err);
  }
  if (written)
    status = fill->five
                 ? write_slices(inflight->port, &entry->out, matrix, fill->factor, x, &why)
                 : qk_field_io_write(inflight->port, &entry->out, matrix, fill->factor, x, 0, &why);
  if (qk_loses_process(status)) *err = why;
  qk_entry_end(entry, written, &why);
  return qk_loses_process(status) ? status : QK_OK;
}

void qk_entry_end(qk_inflight_entry_t *entry, bool written, const qk_err_t *why) {
  if (why->code == QK_OK)
    entry->result.written = written;
  else
    entry->result.err = *why;
  close_outputs(entry);
  entry->state = QK_ENTRY_ENDED;
}

/* ---- memory of projections ------------------------------------------------------------------- */

/* Of device memory, that others in the round may want: contractions and smearing take fields. */
static int64_t wanted(const qk_inflight_t *inflight, const qk_round_t *round) {
  const int64_t fields = QK_PROJECT_SPARE_FIELDS *
                         (int64_t)qk_field_bytes(&inflight->setup->geom, QK_DOUBLE, 1, QK_FULL);
  const qk_round_kind_t kind = round->head.kind;
  if (kind == QK_ROUND_EIGEN || kind == QK_ROUND_EIGEN_DROP) return INT64_MAX;
  if (kind == QK_ROUND_CONTRACT) return fields;
  for (int i = 0; i < round->head.nfill; i++)
    if (qk_smearing_any(&round->fill[i].smear)) return fields;
  return 0;
}

bool qk_entries_rest(qk_inflight_t *inflight, const qk_round_t *round) {
  const int64_t bytes = wanted(inflight, round);
  bool any = false;
  for (int i = 0; i < qk_loaded_inflight(inflight->setup) && !any; i++)
    any = inflight->entry[i].state != QK_ENTRY_FREE && qk_entry_projects(&inflight->entry[i]);
  for (int i = 0; i < round->head.nfill; i++) any |= round->fill[i].project[0] != '\0';
  if (any) return bytes > 0 && qk_projector_yield(inflight->projector, bytes);
  return qk_projector_rest(inflight->projector);
}

/* ---- what its type does not hold of a solution ----------------------------------------------- */

/* What a type holds, and what one says to those who asked for it. */
typedef struct range {
  const char *name, *other;
  double least, most; /* least: with all its digits */
} range_t;

static const range_t single = {"f32", "ask for f64, or ", FLT_MIN, FLT_MAX};
static const range_t dbl = {"f64", "", DBL_MIN, DBL_MAX};

/* Whether the norm alone tells that no number is lost: there are fewer than 2^36, and another basis
 * adds two of them at most. */
static bool fits(const range_t *range, double norm2, double factor) {
  const double norm = sqrt(norm2) * fabs(factor);
  return norm2 > 0x1p-900 && norm2 < 0x1p900 && norm > range->least * 0x1p20 &&
         norm < range->most / 2;
}

static void judge(const range_t *range, const qk_geom_t *geom, const qk_extent_t *e,
                  qk_err_t *verdict) {
  const double norm = e->largest * e->norm;
  char place[QK_EXTENT_PLACE];
  qk_extent_place(geom, e, place);
  if (!e->finite)
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too large: over %.3g at %s; scale the source down", DBL_MAX, place);
  else if (e->largest > range->most || !isfinite(norm))
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too large for %s: %.3g at %s, at most %.3g; %sscale the source down",
            range->name, e->largest, place, range->most, range->other);
  else if (norm < range->least * sqrt(qk_geom_wire_reals(geom) * (double)geom->volume))
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the solution is too small for %s: at most %.3g, at %s, and %s has all its digits from "
            "%.3g on; %sscale the source up",
            range->name, e->largest, place, range->name, range->least, range->other);
}

qk_status_t qk_entry_check_range(qk_work_t *work, const qk_fill_t *fill, const qk_field_t *x,
                                 double norm2, double *norm_x, qk_err_t *verdict) {
  const range_t *range = fill->is_double ? &dbl : &single;
  double basis[4][4][2];
  qk_extent_t e;
  *norm_x = sqrt(norm2);
  if (fits(range, norm2, fill->factor)) return QK_OK;
  if (fill->five) {
    const double n = *norm_x * fabs(fill->factor);
    if (fill->shm_out[0] != '\0' && norm2 != 0 &&
        !(n > range->least * 0x1p20 && n < range->most / 2))
      qk_fail(verdict, QK_BAD_ARGUMENT,
              "the solution has the norm %.3g, which %s may not hold: %sscale the source", n,
              range->name, range->other);
    return QK_OK;
  }
  qk_gamma_basis_export(fill->basis, basis);
  qk_status_t status = qk_extent_find(work, x, basis, fill->factor, &e);
  if (status != QK_OK) return status;
  if (e.finite) *norm_x = e.largest * e.norm / fabs(fill->factor);
  if (fill->shm_out[0] != '\0' && (!e.finite || e.largest > 0))
    judge(range, x->dev->geom, &e, verdict);
  return QK_OK;
}
