#include "daemon/engine/serve/inflight.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/krylov/parity_system.h"
#include "daemon/engine/placement/placement.h"
#include "daemon/engine/serve/entries.h"
#include "daemon/engine/serve/masses.h"
#include "daemon/engine/serve/open_slices.h"
#include "daemon/engine/serve/source.h"
#include "daemon/engine/serve/works.h"
#include "daemon/engine/transfer/staging.h"

/* What is beside the solver's iterations. */
static qk_status_t begin_copies(void *self) {
  const qk_inflight_t *inflight = self;
  qk_err_t err = {0};
  return qk_staging_copy(inflight->stage, &err);
}

static qk_status_t make_norms(qk_inflight_t *inflight) {
  const qk_loaded_t *s = inflight->setup;
  const size_t bytes =
      (size_t)(s->nslot + 1) * (size_t)qk_entry_columns(inflight) * 2 * sizeof(double);
  qk_status_t status = s->ops->alloc(s->ctx, bytes, (void **)&inflight->norms);
  return status ? status : s->ops->alloc_host(s->ctx, bytes, (void **)&inflight->norms_host);
}

static qk_status_t make_minus(qk_inflight_t *inflight) {
  const qk_loaded_t *s = inflight->setup;
  const uint8_t is = 1;
  qk_status_t status = s->ops->alloc(s->ctx, sizeof is, (void **)&inflight->minus);
  if (status == QK_OK)
    status = s->ops->copy(s->ctx, inflight->minus, &is, sizeof is, QK_COPY_TO_DEVICE, 0);
  return status == QK_OK ? s->ops->queue_sync(s->ctx, 0) : status;
}

static qk_status_t make_memory(qk_inflight_t *inflight) {
  const qk_status_t norms = make_norms(inflight);
  const qk_status_t status = norms != QK_OK ? norms : qk_entry_make_walls(inflight);
  return status != QK_OK || !inflight->setup->action->has_flavours ? status : make_minus(inflight);
}

static void set_beside(const qk_inflight_t *inflight, qk_beside_t beside) {
  const qk_loaded_t *s = inflight->setup;
  qk_solver_set_beside(s->solver, beside);
  if (s->single_rhs != NULL) qk_solver_set_beside(s->single_rhs, beside);
}

qk_status_t qk_inflight_create(qk_loaded_t *setup, qk_field_io_t *port, qk_inflight_t **inflight,
                               qk_err_t *err) {
  qk_inflight_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(setup->geom.comm, s != NULL ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) {
    qk_free(s);
    return status;
  }
  s->setup = setup;
  s->port = port;
  for (int i = 0; i < QK_INFLIGHT_MAX; i++) s->entry[i].out.fd = s->entry[i].object.fd = -1;
  status = qk_projector_create(setup, port->wire, &s->projector, err);
  if (status == QK_OK)
    status = qk_comm_agree(setup->geom.comm, qk_entry_explain(s, make_memory(s), err), err);
  if (status == QK_OK)
    status =
        qk_staging_create(qk_loaded_fields(setup), port->wire, setup->pinned, QK_PINNED_STAGING,
                          setup->plan.staging, setup->plan.leaving, &s->stage, err);
  if (status != QK_OK) {
    qk_inflight_destroy(s);
    return status;
  }
  set_beside(s, (qk_beside_t){begin_copies, s});
  *inflight = s;
  return QK_OK;
}

void qk_inflight_destroy(qk_inflight_t *inflight) {
  if (inflight == NULL) return;
  const qk_loaded_t *s = inflight->setup;
  set_beside(inflight, (qk_beside_t){NULL, NULL});
  qk_works_fini(inflight);
  qk_mass_block_drop(inflight);
  qk_staging_destroy(inflight->stage);
  qk_projector_destroy(inflight->projector);
  for (int i = 0; i < QK_INFLIGHT_MAX; i++) {
    qk_segment_close(&inflight->entry[i].out);
    qk_object_close(&inflight->entry[i].object);
    qk_entry_free_five(&inflight->entry[i]);
  }
  qk_entry_free_walls(inflight);
  if (inflight->norms_host != NULL) s->ops->free_host(s->ctx, inflight->norms_host);
  if (inflight->norms != NULL) s->ops->free(s->ctx, inflight->norms);
  if (inflight->minus != NULL) s->ops->free(s->ctx, inflight->minus);
  qk_free(inflight);
}

/* ---- queries --------------------------------------------------------------------------------- */

int qk_inflight_count(const qk_inflight_t *inflight) {
  return qk_loaded_inflight(inflight->setup);
}

static int count(const qk_inflight_t *inflight, qk_entry_state_t state) {
  int n = 0;
  for (int i = 0; i < qk_inflight_count(inflight); i++) n += inflight->entry[i].state == state;
  return n;
}

int qk_inflight_running(const qk_inflight_t *inflight) {
  return qk_inflight_count(inflight) - count(inflight, QK_ENTRY_FREE);
}

qk_staging_t *qk_inflight_stage(const qk_inflight_t *inflight) {
  return inflight->stage;
}

void qk_inflight_leave_buffers(qk_inflight_t *inflight, int n) {
  inflight->left = n;
}

static bool slots_run(const qk_inflight_t *inflight) {
  const qk_loaded_t *s = inflight->setup;
  return qk_solver_running(s->solver) + (s->single_rhs ? qk_solver_running(s->single_rhs) : 0) > 0;
}

bool qk_inflight_solving(const qk_inflight_t *inflight) {
  return slots_run(inflight) || qk_mass_block_runs(inflight);
}

uint64_t qk_inflight_steps(const qk_inflight_t *inflight) {
  return inflight->steps;
}

static bool slot_is_free(const qk_inflight_t *inflight, int slot) {
  return qk_solver_slot(inflight->setup->solver, slot)->state == QK_SLOT_FREE;
}

static int free_slots(const qk_inflight_t *inflight) {
  int n = 0;
  for (int c = 0; c < inflight->setup->nslot; c++) n += slot_is_free(inflight, c);
  return n;
}

static int waiting_solves(const qk_inflight_t *inflight) {
  int n = 0;
  for (int k = 0; k < inflight->nwaiting; k++)
    n += qk_entry_solves(&inflight->entry[inflight->waiting[k]]);
  return n;
}

int qk_inflight_hungry(const qk_inflight_t *inflight) {
  const int n = free_slots(inflight) - waiting_solves(inflight);
  return n > 0 ? n : 0;
}

bool qk_inflight_busy(const qk_inflight_t *inflight, int entry) {
  return inflight->entry[entry].state != QK_ENTRY_FREE;
}

uint64_t qk_inflight_serial(const qk_inflight_t *inflight, int entry) {
  return inflight->entry[entry].fill.serial;
}

const qk_slot_t *qk_inflight_state(const qk_inflight_t *inflight, int entry) {
  const qk_inflight_entry_t *s = &inflight->entry[entry];
  if (s->state != QK_ENTRY_SOLVING) return NULL;
  return s->solver ? qk_solver_slot(s->solver, s->slot) : &s->shown;
}

/* ---- in: sources ----------------------------------------------------------------------------- */

int qk_inflight_lacking(const qk_inflight_t *inflight) {
  int n = 0;
  for (int k = 0; k < inflight->nwaiting; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    n += qk_entry_is_staged(inflight, entry) && entry->buffer == NULL;
  }
  return n;
}

/* ---- in: slots ------------------------------------------------------------------------------- */

/* Those that take slots together. */
typedef struct group {
  qk_placement_t at;
  qk_solver_t *solver;
  qk_err_t verdict[QK_SLOTS_MAX];
} group_t;

static qk_waiting_t describe(const qk_inflight_t *inflight, int i) {
  const qk_inflight_entry_t *entry = &inflight->entry[i];
  const qk_stopping_t *stopping = &entry->fill.stopping;
  return (qk_waiting_t){.entry = i,
                        .order = entry->fill.hint.order,
                        .tol = qk_stopping_asks_more(stopping) ? 0 : stopping->tol,
                        .batch_only = entry->fill.batch_only,
                        .flavour = entry->fill.flavour,
                        .staged = qk_entry_is_staged(inflight, entry),
                        .arriving = entry->buffer != NULL && !qk_buffer_done(entry->buffer),
                        .ready = qk_entry_is_ready(inflight, entry)};
}

/* What is in the slots of the batch; 0: nothing. */
static void list_flavours(const qk_inflight_t *inflight, int8_t flavour[QK_SLOTS_MAX]) {
  memset(flavour, 0, QK_SLOTS_MAX);
  for (int i = 0; i < qk_inflight_count(inflight); i++) {
    const qk_inflight_entry_t *entry = &inflight->entry[i];
    if (entry->state == QK_ENTRY_SOLVING && entry->solver == inflight->setup->solver)
      flavour[entry->slot] = (int8_t)entry->fill.flavour;
  }
}

static void choose(const qk_inflight_t *inflight, group_t *group) {
  const qk_loaded_t *s = inflight->setup;
  const qk_slot_t *slot[QK_SLOTS_MAX];
  int8_t flavour[QK_SLOTS_MAX];
  qk_waiting_t waiting[QK_INFLIGHT_MAX];
  int nwaiting = 0;
  for (int c = 0; c < s->nslot; c++) slot[c] = qk_solver_slot(s->solver, c);
  for (int k = 0; k < inflight->nwaiting; k++)
    if (qk_entry_solves(&inflight->entry[inflight->waiting[k]]))
      waiting[nwaiting++] = describe(inflight, inflight->waiting[k]);
  list_flavours(inflight, flavour);
  qk_place(&(qk_placement_view_t){.slot = slot,
                                  .single = s->single_rhs ? qk_solver_slot(s->single_rhs, 0) : NULL,
                                  .waiting = waiting,
                                  .nslot = s->nslot,
                                  .nwaiting = nwaiting,
                                  .flavour = flavour},
           &group->at);
  group->solver = group->at.single ? s->single_rhs : s->solver;
}

static qk_status_t make_sources(qk_inflight_t *inflight, group_t *group, qk_err_t *err) {
  const qk_fill_t *fill[QK_SLOTS_MAX];
  qk_buffer_t *buffer[QK_SLOTS_MAX];
  qk_field_t *field[QK_SLOTS_MAX];
  for (int k = 0; k < group->at.n; k++) {
    qk_inflight_entry_t *entry = &inflight->entry[group->at.entry[k]];
    fill[k] = &entry->fill;
    buffer[k] = entry->buffer;
    field[k] = qk_solver_rhs(group->solver, group->at.slot[k]);
    entry->buffer = NULL;
  }
  qk_status_t status = qk_source_make(inflight->setup, inflight->port, inflight->stage, group->at.n,
                                      fill, buffer, field, group->verdict, err);
  for (int k = 0; k < group->at.n && status == QK_OK; k++)
    status = qk_entry_enter_five(inflight, &inflight->entry[group->at.entry[k]], group->solver,
                                 group->at.slot[k], &group->verdict[k], err);
  return status;
}

static qk_parity_system_t system_of(const qk_inflight_t *inflight, const qk_fill_t *fill) {
  return (qk_parity_system_t){.is = fill->schur != QUARK__SCHUR__SCHUR_NONE,
                              .symmetric = fill->schur == QUARK__SCHUR__SCHUR_SYMMETRIC,
                              .dagger = fill->dagger,
                              .minus = fill->flavour < 0 ? inflight->minus : NULL,
                              .parity = qk_fill_subset(fill->parity)};
}

/* What is solved for, and how it is measured. */
static qk_status_t begin_system(qk_inflight_t *inflight, qk_solver_t *solver, int slot,
                                qk_inflight_entry_t *entry, qk_err_t *verdict) {
  const qk_loaded_t *s = inflight->setup;
  const qk_parity_system_t system = system_of(inflight, &entry->fill);
  const qk_status_t status = qk_parity_system_begin(
      s->op, s->work, &system, qk_solver_rhs(solver, slot), &entry->measure, verdict);
  if (status != QK_OK) return status;
  if (verdict->code != QK_OK) qk_entry_say_basis(entry, verdict);
  return qk_solver_set_measure(solver, slot, &entry->measure);
}

static qk_status_t begin_systems(qk_inflight_t *inflight, group_t *group, qk_err_t *err) {
  for (int k = 0; k < group->at.n; k++) {
    qk_inflight_entry_t *entry = &inflight->entry[group->at.entry[k]];
    if (group->verdict[k].code != QK_OK) continue;
    const qk_status_t status =
        begin_system(inflight, group->solver, group->at.slot[k], entry, &group->verdict[k]);
    if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  }
  return QK_OK;
}

/* Free slots of the batch follow those that are not. */
static qk_status_t set_idle_flavours(const qk_inflight_t *inflight) {
  const qk_loaded_t *s = inflight->setup;
  int8_t flavour[QK_SLOTS_MAX];
  qk_status_t status = QK_OK;
  list_flavours(inflight, flavour);
  for (int c = 0; c < s->nslot && status == QK_OK; c++)
    if (flavour[c] == 0)
      status = qk_solver_set_flavour(s->solver, c, qk_place_idle_flavour(flavour, s->nslot, c));
  return status;
}

/* Before slots are filled: theirs, and those of slots that stay free. */
static qk_status_t set_flavours(const qk_inflight_t *inflight, qk_solver_t *solver, int n,
                                const int slot[], const int8_t wanted[]) {
  qk_status_t status = QK_OK;
  for (int k = 0; k < n && status == QK_OK; k++)
    status = qk_solver_set_flavour(solver, slot[k], wanted[k]);
  if (status != QK_OK || solver != inflight->setup->solver) return status;
  return set_idle_flavours(inflight);
}

/* How much larger what was solved for is than the source, and so its residuals. */
static double unit_of(const qk_inflight_entry_t *entry) {
  return entry->measure.kind == QK_MEASURE_UNIT ? entry->measure.unit : 1;
}

static qk_status_t take_slots(qk_inflight_t *inflight, qk_err_t *err) {
  group_t group = {0};
  int slot[QK_SLOTS_MAX], n = 0;
  qk_stopping_t stopping[QK_SLOTS_MAX];
  int64_t max_iter[QK_SLOTS_MAX];
  int8_t flavour[QK_SLOTS_MAX];
  choose(inflight, &group);
  if (group.at.n == 0) return QK_OK;
  qk_status_t status = make_sources(inflight, &group, err);
  if (status != QK_OK) return status;
  status = begin_systems(inflight, &group, err);
  if (status != QK_OK) return status;
  for (int k = 0; k < group.at.n; k++) {
    qk_inflight_entry_t *entry = &inflight->entry[group.at.entry[k]];
    if (group.verdict[k].code != QK_OK) {
      qk_entry_refuse(inflight, group.at.entry[k], &group.verdict[k]);
      continue;
    }
    qk_entry_leave_queue(inflight, group.at.entry[k]);
    entry->state = QK_ENTRY_SOLVING;
    entry->solver = group.solver;
    entry->slot = slot[n] = group.at.slot[k];
    stopping[n] = entry->fill.stopping;
    stopping[n].tol_abs *= unit_of(entry);
    flavour[n] = (int8_t)entry->fill.flavour;
    max_iter[n++] = entry->fill.max_iter;
  }
  if (n == 0) return QK_OK;
  status = set_flavours(inflight, group.solver, n, slot, flavour);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  status = qk_solver_fill_until(group.solver, slot, n, stopping, max_iter);
  return qk_entry_explain(inflight, status, err);
}

/* Of a step: neither slots nor heartbeats wait for more. */
enum { WORKS = 2 };

/* Solutions in slots that have ended leave first. */
static qk_status_t work(qk_inflight_t *inflight, qk_err_t *err) {
  bool ended = false;
  for (int i = 0; i < qk_inflight_count(inflight) && !ended; i++) {
    const qk_slot_t *state = qk_inflight_state(inflight, i);
    ended = state != NULL && state->state == QK_SLOT_ENDED;
  }
  return qk_works_step(inflight, WORKS, !ended, err);
}

static qk_status_t feed(qk_inflight_t *inflight, qk_err_t *err) {
  qk_status_t status = qk_entries_load(inflight, err);
  if (status != QK_OK) return status;
  status = take_slots(inflight, err);
  if (status != QK_OK) return status;
  status = qk_mass_block_begin(inflight, err);
  return status == QK_OK ? work(inflight, err) : status;
}

qk_status_t qk_inflight_fill(qk_inflight_t *inflight, int n, const qk_fill_t fill[],
                             qk_err_t *err) {
  for (int k = 0; k < n; k++) {
    qk_inflight_entry_t *entry = &inflight->entry[fill[k].entry];
    qk_err_t verdict = {0};
    QK_ASSERT(entry->state == QK_ENTRY_FREE);
    entry->fill = fill[k];
    const qk_status_t status = qk_entry_open(inflight, entry, &verdict, err);
    if (status != QK_OK) return status;
    if (verdict.code != QK_OK) {
      qk_entry_refuse(inflight, fill[k].entry, &verdict);
      continue;
    }
    entry->state = QK_ENTRY_WAITING;
    entry->solver = NULL;
    qk_mass_block_follow(inflight, fill[k].entry);
    qk_entry_enter_queue(inflight, fill[k].entry);
  }
  return feed(inflight, err);
}

void qk_inflight_blocks_go(qk_inflight_t *inflight, bool go) {
  inflight->blocks_go = go;
}

/* ---- between --------------------------------------------------------------------------------- */

void qk_inflight_cancel(qk_inflight_t *inflight, int i) {
  const qk_inflight_entry_t *entry = &inflight->entry[i];
  const qk_err_t cancelled = {.code = QK_CANCELLED};
  if (entry->state == QK_ENTRY_WAITING) qk_entry_refuse(inflight, i, &cancelled);
  if (entry->state == QK_ENTRY_SOLVING && entry->solver)
    qk_solver_cancel(entry->solver, entry->slot);
  else if (entry->state == QK_ENTRY_SOLVING)
    qk_entry_refuse(inflight, i, &cancelled);
  if (entry->fill.has_mass) qk_mass_block_lead(inflight, entry->fill.family);
}

/* True if the solver begins copies only when the device has its iterations: with several ranks
 * these are submitted piece by piece, and are nearly over then. */
static bool begins_copies(const qk_inflight_t *inflight) {
  return slots_run(inflight) && qk_comm_size(inflight->setup->geom.comm) == 1;
}

static qk_status_t step_solvers(const qk_loaded_t *s) {
  qk_status_t status = s->single_rhs ? qk_solver_step(s->single_rhs) : QK_OK;
  return status == QK_OK ? qk_solver_step(s->solver) : status;
}

/* Copies run beside iterations: while there are any, nobody waits for them. */
qk_status_t qk_inflight_step(qk_inflight_t *inflight, qk_err_t *err) {
  qk_status_t status =
      qk_inflight_solving(inflight) ? QK_OK : qk_staging_poll(inflight->stage, true, err);
  if (status != QK_OK) return status;
  status = feed(inflight, err);
  if (status != QK_OK) return status;
  if (!begins_copies(inflight)) status = qk_staging_copy(inflight->stage, err);
  if (status != QK_OK || !qk_inflight_solving(inflight)) return status;
  inflight->steps++;
  if (slots_run(inflight)) status = qk_entry_explain(inflight, step_solvers(inflight->setup), err);
  if (status != QK_OK) return status;
  status = qk_mass_block_step(inflight, err);
  return status == QK_OK ? qk_staging_poll(inflight->stage, false, err) : status;
}

/* ---- out ------------------------------------------------------------------------------------- */

static bool has_solution(qk_status_t status) {
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

/* Of what has been solved the solution that was asked for, 0 where there is none. */
static qk_status_t end_system(const qk_inflight_t *inflight, const qk_fill_t *fill,
                              const qk_field_t *x) {
  const qk_loaded_t *s = inflight->setup;
  const qk_parity_system_t system = system_of(inflight, fill);
  const qk_status_t status = qk_open_slices_clear(s, x);
  return status == QK_OK ? qk_parity_system_end(s->op, s->work, &system, x) : status;
}

/* |x|^2 of n entries, into norms_host; x is 0 on the outer slices of an open boundary, and where it
 * is not asked for. */
static qk_status_t solution_norms(qk_inflight_t *inflight, const int ended[], int n,
                                  qk_err_t *err) {
  const qk_loaded_t *s = inflight->setup;
  const int columns = qk_entry_columns(inflight);
  for (int k = 0; k < n; k++) {
    const qk_inflight_entry_t *entry = &inflight->entry[ended[k]];
    const qk_field_t *x = qk_solver_solution(entry->solver, entry->slot);
    const qk_status_t status = end_system(inflight, &entry->fill, x);
    if (status != QK_OK) return qk_entry_explain(inflight, status, err);
    qk_dev_blas(&s->dev, QK_BLAS_NORM2,
                (qk_blas_args_t){.f = {x->v}, .red = inflight->norms + 2 * columns * k});
  }
  qk_dev_copy(&s->dev, inflight->norms_host, inflight->norms,
              (size_t)(n * columns) * 2 * sizeof(double), QK_COPY_TO_HOST);
  qk_dev_sync(&s->dev);
  qk_entry_add_columns(inflight, ended, n);
  qk_status_t status = qk_entry_explain(inflight, qk_dev_status(&s->dev), err);
  if (status != QK_OK) return status;
  return qk_entry_explain(inflight, qk_comm_sum(s->geom.comm, inflight->norms_host, 2 * n), err);
}

/* What the solver found wrong with a source, which it has in a basis of its own. */
static qk_err_t word_on(const qk_inflight_entry_t *entry, const qk_slot_t *state) {
  qk_err_t err = {.code = state->status};
  if (state->status != state->why.code) return err;
  err = state->why;
  qk_entry_say_basis(entry, &err);
  return err;
}

static qk_status_t take_result(qk_inflight_t *inflight, int i, double norm2_x, qk_err_t *err) {
  qk_inflight_entry_t *entry = &inflight->entry[i];
  const qk_slot_t *state = qk_inflight_state(inflight, i);
  entry->result = (qk_result_t){.entry = i,
                                .serial = entry->fill.serial,
                                .err = word_on(entry, state),
                                .stopping = entry->fill.stopping,
                                .true_residual = state->residual,
                                .hq_residual = state->hq_residual,
                                .norm_b = state->norm_b / unit_of(entry),
                                .iterations = state->iterations,
                                .applications = state->applications,
                                .seconds = state->seconds};
  if (!has_solution(state->status)) return QK_OK;
  qk_entry_take_walls(inflight, entry);
  qk_err_t verdict = {0};
  qk_status_t status = qk_entry_check_range(inflight->setup->work, &entry->fill,
                                            qk_solver_solution(entry->solver, entry->slot), norm2_x,
                                            &entry->result.norm_x, &verdict);
  /* a breakdown is the first cause of numbers that are none */
  if (verdict.code != QK_OK && state->status != QK_BREAKDOWN) entry->result.err = verdict;
  return qk_entry_explain(inflight, status, err);
}

/* The solution leaves the slot, which is free then. */
static qk_status_t leave_slot(qk_inflight_t *inflight, qk_inflight_entry_t *entry, qk_err_t *err) {
  const qk_field_t *x = qk_solver_solution(entry->solver, entry->slot);
  qk_status_t status = QK_OK;
  if (entry->state == QK_ENTRY_SOLVING) /* not projected */
    status = qk_entry_leave(inflight, entry, x, has_solution(entry->result.err.code), err);
  qk_solver_clear(entry->solver, entry->slot);
  return status;
}

/* Those that have ended and can leave. */
static int choose_leaving(const qk_inflight_t *inflight, int leaving[]) {
  qk_ended_t ended[QK_SLOTS_MAX + 1];
  int n = 0;
  for (int i = 0; i < qk_inflight_count(inflight); i++) {
    const qk_inflight_entry_t *entry = &inflight->entry[i];
    const qk_slot_t *state = qk_inflight_state(inflight, i);
    if (state == NULL || state->state != QK_SLOT_ENDED) continue;
    const bool single = entry->solver != inflight->setup->solver;
    ended[n++] = (qk_ended_t){
        .entry = i,
        .slot = single ? QK_SLOT_SINGLE : entry->slot,
        .needs_buffer = qk_entry_needs_buffer(inflight, entry, has_solution(state->status))};
  }
  return qk_place_leave(ended, n, qk_staging_room(inflight->stage), inflight->setup->plan.leaving,
                        leaving);
}

/* Slots that have ended, as far as their solutions can leave. */
static qk_status_t clear_slots(qk_inflight_t *inflight, qk_err_t *err) {
  int ended[QK_SLOTS_MAX + 1];
  const int n = choose_leaving(inflight, ended);
  if (n == 0) return QK_OK;
  qk_status_t status = solution_norms(inflight, ended, n, err);
  for (int k = 0; k < n && status == QK_OK; k++)
    status = take_result(inflight, ended[k], inflight->norms_host[2 * k], err);
  if (status != QK_OK) return status;
  status = qk_entries_project(inflight, ended, n, err);
  for (int k = 0; k < n && status == QK_OK; k++)
    status = leave_slot(inflight, &inflight->entry[ended[k]], err);
  return status == QK_OK ? qk_entry_explain(inflight, set_idle_flavours(inflight), err) : status;
}

qk_status_t qk_inflight_retire(qk_inflight_t *inflight, qk_result_t result[], int *n,
                               qk_err_t *err) {
  *n = 0;
  qk_status_t status = clear_slots(inflight, err);
  if (status != QK_OK) return status;
  status = qk_mass_block_leave(inflight, err);
  for (int i = 0; i < qk_inflight_count(inflight) && status == QK_OK; i++) {
    qk_inflight_entry_t *entry = &inflight->entry[i];
    if (entry->state == QK_ENTRY_LEAVING && qk_buffer_done(entry->buffer)) {
      qk_err_t why;
      qk_buffer_stored(entry->buffer, &why);
      entry->buffer = NULL;
      qk_entry_end(entry, true, &why);
    }
    if (entry->state != QK_ENTRY_ENDED) continue;
    result[(*n)++] = entry->result;
    entry->state = QK_ENTRY_FREE;
  }
  return status;
}
