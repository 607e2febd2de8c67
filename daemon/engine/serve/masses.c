#include "daemon/engine/serve/masses.h"

#include <math.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/base/mem.h"
#include "daemon/engine/lattice/extent.h"
#include "daemon/engine/masses/masses.h"
#include "daemon/engine/serve/source.h"

enum { ITERATIONS = 10 }; /* of a step */

typedef struct qk_mass_block {
  qk_masses_t *solver;
  qk_field_t *one; /* a source, or a solution */
  int nsource, nmass;
  uint64_t family[QK_MASSES_SOURCES];
  double mass[QK_MASSES_MAX];
  int exponent[QK_MASSES_SOURCES]; /* sources are solved for times 2^-this */
  double norm_b[QK_MASSES_SOURCES];
  double since;
} block_t;

/* ---- who waits ------------------------------------------------------------------------------- */

static bool waits(const qk_inflight_entry_t *entry) {
  return entry->state == QK_ENTRY_WAITING && entry->fill.has_mass;
}

/* The first of a family that waits; -1: none does. */
static int lead_of(const qk_inflight_t *inflight, uint64_t family) {
  for (int k = 0; k < inflight->nwaiting; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (waits(entry) && entry->fill.family == family && !entry->follows)
      return inflight->waiting[k];
  }
  return -1;
}

void qk_mass_block_follow(qk_inflight_t *inflight, int entry) {
  qk_inflight_entry_t *e = &inflight->entry[entry];
  e->follows = e->fill.has_mass && lead_of(inflight, e->fill.family) >= 0;
}

void qk_mass_block_lead(qk_inflight_t *inflight, uint64_t family) {
  if (lead_of(inflight, family) >= 0) return;
  for (int k = 0; k < inflight->nwaiting; k++) {
    qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (!waits(entry) || entry->fill.family != family) continue;
    entry->follows = false;
    return;
  }
}

/* Its source is here, or need not come. */
static bool has_source(const qk_inflight_t *inflight, uint64_t family) {
  const int lead = lead_of(inflight, family);
  return lead >= 0 && qk_entry_is_ready(inflight, &inflight->entry[lead]);
}

/* Whether no more of the block come soon, and no source is on its way: those that found no buffer
 * have to wait for those that did. */
static bool is_complete(const qk_inflight_t *inflight, uint64_t block) {
  bool last = inflight->blocks_go, ready = false;
  for (int k = 0; k < inflight->nwaiting; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (!waits(entry) || entry->fill.block != block) continue;
    if (entry->buffer && !qk_buffer_done(entry->buffer)) return false;
    last |= entry->fill.block_left == 0;
    ready |= has_source(inflight, entry->fill.family);
  }
  return last && ready;
}

/* The first one of a block that is complete; -1: none. */
static int first_of(const qk_inflight_t *inflight) {
  for (int k = 0; k < inflight->nwaiting; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (waits(entry) && has_source(inflight, entry->fill.family) &&
        is_complete(inflight, entry->fill.block))
      return inflight->waiting[k];
  }
  return -1;
}

/* ---- what it is made of ---------------------------------------------------------------------- */

static int find_family(const block_t *b, uint64_t family) {
  int j = 0;
  while (j < b->nsource && b->family[j] != family) j++;
  return j;
}

static int find_mass(const block_t *b, double mass) {
  int k = 0;
  while (k < b->nmass && b->mass[k] != mass) k++;
  return k;
}

/* Whether two could be solved with one limit. */
static bool agree(const qk_fill_t *a, const qk_fill_t *b) {
  return a->block == b->block && a->stopping.tol == b->stopping.tol && a->max_iter == b->max_iter;
}

/* Sources and masses of those that wait with `first`, no more sources than `most`. */
static void list(const qk_inflight_t *inflight, int first, int most, block_t *b) {
  const qk_fill_t *like = &inflight->entry[first].fill;
  b->nsource = b->nmass = 0;
  for (int k = 0; k < inflight->nwaiting; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (!waits(entry) || !agree(&entry->fill, like) || !has_source(inflight, entry->fill.family))
      continue;
    const int j = find_family(b, entry->fill.family), m = find_mass(b, entry->fill.mass);
    if (j == most || m == QK_MASSES_MAX) continue;
    if (j == b->nsource) b->family[b->nsource++] = entry->fill.family;
    if (m == b->nmass) b->mass[b->nmass++] = entry->fill.mass;
  }
}

static bool is_in(const block_t *b, const qk_fill_t *like, const qk_inflight_entry_t *entry) {
  return waits(entry) && agree(&entry->fill, like) &&
         find_family(b, entry->fill.family) < b->nsource &&
         find_mass(b, entry->fill.mass) < b->nmass;
}

/* In single, or in double where there are no links in single. Corrections that follow single are
 * those of each mass: where an application is dear, they cost more than double does. */
static qk_prec_t precision(const qk_loaded_t *s) {
  if (s->op->inexact) return QK_DOUBLE;
  return s->inner == QK_SINGLE ? QK_SINGLE : QK_DOUBLE;
}

static qk_status_t make_solver(const qk_loaded_t *s, block_t *b, qk_err_t *err) {
  qk_masses_params_t params = {.inner = precision(s), .nrhs = b->nsource, .n = b->nmass};
  memcpy(params.mass, b->mass, sizeof params.mass);
  qk_status_t status = qk_field_create(&s->dev, QK_DOUBLE, 1, QK_FULL, &b->one);
  status = qk_comm_agree(s->geom.comm, qk_device_explain(&s->dev, status, err), err);
  return status == QK_OK ? qk_masses_create(s->op, s->work, &params, &b->solver, err) : status;
}

void qk_mass_block_drop(qk_inflight_t *inflight) {
  block_t *b = inflight->masses;
  if (!b) return;
  qk_masses_destroy(b->solver);
  qk_field_destroy(b->one);
  qk_free(b);
  inflight->masses = NULL;
}

/* Of as many sources as there is room for. */
static qk_status_t make_block(qk_inflight_t *inflight, int first, qk_err_t *err) {
  const qk_loaded_t *s = inflight->setup;
  int most = QK_MASSES_SOURCES;
  for (;;) {
    block_t *b = inflight->masses = qk_calloc(1, sizeof *b);
    qk_status_t status = qk_comm_agree(s->geom.comm, b ? QK_OK : QK_NO_MEMORY, err);
    if (status == QK_OK) {
      list(inflight, first, most, b);
      most = b->nsource;
      status = make_solver(s, b, err);
    }
    if (status == QK_OK) return QK_OK;
    qk_mass_block_drop(inflight);
    if (status != QK_DEVICE_MEMORY || most == 1) return status;
    most /= 2;
    *err = (qk_err_t){0};
  }
}

/* All that wait with this source, or the whole of the block, end with the verdict. */
static void refuse(qk_inflight_t *inflight, const qk_fill_t *like, uint64_t family,
                   const qk_err_t *verdict) {
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++) {
    const qk_inflight_entry_t *entry = &inflight->entry[i];
    if (waits(entry) && agree(&entry->fill, like) && (family == 0 || entry->fill.family == family))
      qk_entry_refuse(inflight, i, verdict);
  }
}

/* ---- sources --------------------------------------------------------------------------------- */

static void scale(const block_t *b, int exponent, const qk_device_t *dev, double *scalar) {
  const double factor[2] = {ldexp(1, exponent), 0};
  if (exponent == 0) return;
  qk_dev_copy(dev, scalar, factor, sizeof factor, QK_COPY_TO_DEVICE);
  qk_dev_blas(dev, QK_BLAS_SCALE, (qk_blas_args_t){.f = {b->one->v}, .c = {scalar}});
  qk_dev_sync(dev);
}

/* Source j of the block, of norm about 1. */
static qk_status_t make_source(qk_inflight_t *inflight, int j, qk_err_t *verdict, qk_err_t *err) {
  const qk_loaded_t *s = inflight->setup;
  block_t *b = inflight->masses;
  qk_inflight_entry_t *entry = &inflight->entry[lead_of(inflight, b->family[j])];
  const qk_fill_t *fill = &entry->fill;
  qk_buffer_t *buffer = entry->buffer;
  entry->buffer = NULL;
  qk_status_t status = qk_source_make(inflight->setup, inflight->port, inflight->stage, 1, &fill,
                                      &buffer, &b->one, verdict, err);
  if (status != QK_OK || verdict->code != QK_OK) return status;
  status = qk_norm_of_source(s->work, b->one, &b->norm_b[j], verdict);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  if (verdict->code != QK_OK) {
    qk_entry_say_basis(entry, verdict);
    return QK_OK;
  }
  const double norm = b->norm_b[j];
  b->exponent[j] = norm > 0x1p-100 && norm < 0x1p100 ? 0 : norm > 0 ? ilogb(norm) : 0;
  /* in two steps: neither factor is out of range */
  scale(b, -b->exponent[j] / 2, &s->dev, inflight->norms);
  scale(b, -(b->exponent[j] - b->exponent[j] / 2), &s->dev, inflight->norms);
  const qk_rhs_copy_args_t args = {
      .to = qk_masses_source(b->solver)->v, .from = b->one->v, .to_rhs = j};
  if (qk_dev_ok(&s->dev)) qk_dev_note(&s->dev, s->ops->rhs_copy(s->ctx, &args));
  return qk_entry_explain(inflight, qk_dev_status(&s->dev), err);
}

static qk_status_t make_sources(qk_inflight_t *inflight, const qk_fill_t *like, qk_err_t *err) {
  const block_t *b = inflight->masses;
  qk_status_t status = QK_OK;
  for (int j = 0; j < b->nsource && status == QK_OK; j++) {
    qk_err_t verdict = {0};
    status = make_source(inflight, j, &verdict, err);
    if (status == QK_OK && verdict.code != QK_OK) refuse(inflight, like, b->family[j], &verdict);
  }
  return status;
}

/* They leave the queue; true where there are some. */
static bool enter(qk_inflight_t *inflight, const qk_fill_t *like) {
  const block_t *b = inflight->masses;
  bool any = false;
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++) {
    qk_inflight_entry_t *entry = &inflight->entry[i];
    if (!is_in(b, like, entry)) continue;
    qk_entry_leave_queue(inflight, i);
    entry->state = QK_ENTRY_SOLVING;
    entry->solver = NULL;
    entry->mass = find_mass(b, entry->fill.mass);
    entry->source = find_family(b, entry->fill.family);
    entry->shown = (qk_slot_t){.state = QK_SLOT_RUNNING, .residual = 1};
    any = true;
  }
  return any;
}

/* What is left behind for want of room begins its family anew. */
static void lead_all(qk_inflight_t *inflight) {
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++)
    if (waits(&inflight->entry[i])) qk_mass_block_lead(inflight, inflight->entry[i].fill.family);
}

qk_status_t qk_mass_block_begin(qk_inflight_t *inflight, qk_err_t *err) {
  const int first = inflight->masses ? -1 : first_of(inflight);
  if (first < 0) return QK_OK;
  const qk_fill_t like = inflight->entry[first].fill;
  const double since = qk_clock_now();
  qk_err_t verdict = {0};
  qk_status_t status = make_block(inflight, first, &verdict);
  if (status == QK_DEVICE_MEMORY || status == QK_NO_MEMORY) {
    qk_err_prefix(&verdict, "several masses");
    refuse(inflight, &like, 0, &verdict);
    return QK_OK;
  }
  if (status != QK_OK) {
    *err = verdict;
    return status;
  }
  inflight->masses->since = since;
  status = make_sources(inflight, &like, err);
  if (status != QK_OK) return status;
  if (!enter(inflight, &like)) {
    qk_mass_block_drop(inflight);
    return QK_OK;
  }
  lead_all(inflight);
  status = qk_masses_begin(inflight->masses->solver, like.stopping.tol, like.max_iter);
  return qk_entry_explain(inflight, status, err);
}

/* ---- between --------------------------------------------------------------------------------- */

static bool is_of_block(const qk_inflight_entry_t *entry) {
  return entry->state == QK_ENTRY_SOLVING && entry->fill.has_mass;
}

static bool any_left(const qk_inflight_t *inflight) {
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++)
    if (is_of_block(&inflight->entry[i])) return true;
  return false;
}

bool qk_mass_block_runs(const qk_inflight_t *inflight) {
  return inflight->masses && !qk_masses_is_over(inflight->masses->solver);
}

static void show(qk_inflight_t *inflight) {
  const block_t *b = inflight->masses;
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++) {
    qk_inflight_entry_t *entry = &inflight->entry[i];
    if (!is_of_block(entry)) continue;
    entry->shown.iterations = qk_masses_iterations(b->solver);
    entry->shown.residual = qk_masses_residual(b->solver, entry->source);
  }
}

/* Want of room, the same on all ranks, ends the block alone. */
static void give_up(qk_inflight_t *inflight, const qk_err_t *why) {
  for (int i = 0; i < qk_loaded_inflight(inflight->setup); i++)
    if (is_of_block(&inflight->entry[i])) qk_entry_refuse(inflight, i, why);
  qk_mass_block_drop(inflight);
}

qk_status_t qk_mass_block_step(qk_inflight_t *inflight, qk_err_t *err) {
  const qk_loaded_t *s = inflight->setup;
  qk_err_t why = {0};
  if (!qk_mass_block_runs(inflight)) return QK_OK;
  if (!any_left(inflight)) { /* all were cancelled */
    qk_mass_block_drop(inflight);
    return QK_OK;
  }
  qk_status_t status = qk_masses_step(inflight->masses->solver, ITERATIONS);
  status = qk_comm_agree(s->geom.comm, qk_entry_explain(inflight, status, &why), &why);
  if (status == QK_OK) {
    show(inflight);
    return QK_OK;
  }
  if (status == QK_DEVICE_MEMORY) {
    qk_err_prefix(&why, "several masses");
    give_up(inflight, &why);
    return QK_OK;
  }
  *err = why;
  return status;
}

/* ---- out ------------------------------------------------------------------------------------- */

/* The solution that it has asked for, in `one`, and its norm. */
static qk_status_t take(const qk_inflight_t *inflight, const qk_inflight_entry_t *entry,
                        double *norm2) {
  const qk_loaded_t *s = inflight->setup;
  const block_t *b = inflight->masses;
  qk_field_t *x = NULL;
  const qk_status_t status = qk_masses_solution(b->solver, entry->mass, &x);
  if (status != QK_OK) return status;
  const qk_rhs_copy_args_t args = {.to = b->one->v, .from = x->v, .from_rhs = entry->source};
  if (qk_dev_ok(&s->dev)) qk_dev_note(&s->dev, s->ops->rhs_copy(s->ctx, &args));
  return qk_norm2_find(b->one, norm2);
}

static qk_status_t end_one(qk_inflight_t *inflight, int i, qk_err_t *err) {
  const block_t *b = inflight->masses;
  qk_inflight_entry_t *entry = &inflight->entry[i];
  const qk_mass_result_t *r = qk_masses_result(b->solver, entry->mass, entry->source);
  const int exponent = b->exponent[entry->source];
  qk_fill_t *fill = &entry->fill;
  double norm2 = 0, norm_x = 0;
  qk_err_t verdict = {.code = r->status};
  qk_status_t status = take(inflight, entry, &norm2);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  fill->factor = ldexp(fill->factor, exponent);
  qk_err_t range = {0};
  status = qk_entry_check_range(inflight->setup->work, fill, b->one, norm2, &norm_x, &range);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  if (range.code != QK_OK) verdict = range;
  entry->result = (qk_result_t){.entry = i,
                                .serial = fill->serial,
                                .err = verdict,
                                .stopping = fill->stopping,
                                .true_residual = r->residual,
                                .hq_residual = NAN,
                                .norm_b = b->norm_b[entry->source],
                                .norm_x = ldexp(norm_x, exponent),
                                .iterations = r->iterations,
                                .applications = r->applications,
                                .seconds = qk_clock_now() - b->since};
  const bool has = verdict.code == QK_OK || verdict.code == QK_NOT_CONVERGED;
  return qk_entry_leave(inflight, entry, b->one, has, err);
}

qk_status_t qk_mass_block_leave(qk_inflight_t *inflight, qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (!inflight->masses || qk_mass_block_runs(inflight)) return QK_OK;
  for (int i = 0; i < qk_loaded_inflight(inflight->setup) && status == QK_OK; i++) {
    const qk_inflight_entry_t *entry = &inflight->entry[i];
    if (!is_of_block(entry)) continue;
    const bool needs = qk_entry_needs_buffer(inflight, entry, true);
    if (!needs || qk_staging_room(inflight->stage) > 0) status = end_one(inflight, i, err);
  }
  if (status == QK_OK && !any_left(inflight)) qk_mass_block_drop(inflight);
  return status;
}
