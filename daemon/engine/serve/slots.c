#include "daemon/engine/serve/slots.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/serve/outgoing.h"
#include "daemon/engine/serve/placement.h"
#include "daemon/engine/serve/source.h"
#include "daemon/engine/transfer/stage.h"

typedef enum slot_state {
  FREE,
  WAITING, /* for its source, or for a column */
  SOLVING, /* in a column, until its solution has been taken out of it */
  LEAVING, /* its solution is on the way */
  ENDED    /* result is complete */
} slot_state_t;

typedef struct slot {
  slot_state_t state;
  qk_fill_t fill;
  qk_segment_t out; /* open from fill on where the fill has a shm_out */
  qk_buffer_t
      *buffer; /* WAITING: of the source, once it has begun to come; LEAVING: of the solution */
  qk_solver_t *solver; /* SOLVING */
  int column;          /* SOLVING */
  qk_result_t result;  /* LEAVING, ENDED */
} slot_t;

struct qk_slots {
  qk_loaded_t *setup;
  qk_port_t *port;
  qk_stage_t *stage;
  double *norms, *norms_host;   /* device, and pinned: [nslot + 1][2] */
  int waiting[QK_INFLIGHT_MAX]; /* slots in the order in which they came */
  int nwaiting;
  int left; /* buffers that are not for sources */
  uint64_t steps;
  slot_t slot[QK_INFLIGHT_MAX];
};

static bool loses_process(qk_status_t status) {
  return status >= QK_DEVICE_MEMORY;
}

/* The ranks need not agree on a status of the device, the solver or the communicator: what one rank
 * can see alone ends the process, and with it all ranks. */
static qk_status_t explain(const qk_slots_t *slots, qk_status_t status, qk_err_t *err) {
  return qk_device_explain(&slots->setup->dev, status, err);
}

/* What is beside the solver's iterations. */
static qk_status_t begin_copies(void *self) {
  const qk_slots_t *slots = self;
  qk_err_t err = {0};
  return qk_stage_copy(slots->stage, &err);
}

static qk_status_t make_norms(qk_slots_t *slots) {
  const qk_loaded_t *s = slots->setup;
  const size_t bytes = (size_t)(s->nslot + 1) * 2 * sizeof(double);
  qk_status_t status = s->ops->alloc(s->ctx, bytes, (void **)&slots->norms);
  return status ? status : s->ops->alloc_host(s->ctx, bytes, (void **)&slots->norms_host);
}

static void set_beside(const qk_slots_t *slots, qk_beside_t beside) {
  const qk_loaded_t *s = slots->setup;
  qk_solver_set_beside(s->solver, beside);
  if (s->single_rhs != NULL) qk_solver_set_beside(s->single_rhs, beside);
}

qk_status_t qk_slots_create(qk_loaded_t *setup, qk_port_t *port, qk_slots_t **slots,
                            qk_err_t *err) {
  qk_slots_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(setup->geom.comm, s != NULL ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) {
    qk_free(s);
    return status;
  }
  s->setup = setup;
  s->port = port;
  for (int i = 0; i < QK_INFLIGHT_MAX; i++) s->slot[i].out.fd = -1;
  status = qk_comm_agree(setup->geom.comm, explain(s, make_norms(s), err), err);
  if (status == QK_OK)
    status = qk_stage_create(&setup->dev, port->wire, setup->plan.staging, setup->plan.leaving,
                             &s->stage, err);
  if (status != QK_OK) {
    qk_slots_destroy(s);
    return status;
  }
  set_beside(s, (qk_beside_t){begin_copies, s});
  *slots = s;
  return QK_OK;
}

void qk_slots_destroy(qk_slots_t *slots) {
  if (slots == NULL) return;
  const qk_loaded_t *s = slots->setup;
  set_beside(slots, (qk_beside_t){NULL, NULL});
  qk_stage_destroy(slots->stage);
  for (int i = 0; i < QK_INFLIGHT_MAX; i++) qk_segment_close(&slots->slot[i].out);
  if (slots->norms_host != NULL) s->ops->free_host(s->ctx, slots->norms_host);
  if (slots->norms != NULL) s->ops->free(s->ctx, slots->norms);
  qk_free(slots);
}

/* ---- queries --------------------------------------------------------------------------------- */

int qk_slots_count(const qk_slots_t *slots) {
  return qk_loaded_inflight(slots->setup);
}

static int count(const qk_slots_t *slots, slot_state_t state) {
  int n = 0;
  for (int i = 0; i < qk_slots_count(slots); i++) n += slots->slot[i].state == state;
  return n;
}

int qk_slots_running(const qk_slots_t *slots) {
  return qk_slots_count(slots) - count(slots, FREE);
}

qk_stage_t *qk_slots_stage(const qk_slots_t *slots) {
  return slots->stage;
}

void qk_slots_leave_buffers(qk_slots_t *slots, int n) {
  slots->left = n;
}

bool qk_slots_solving(const qk_slots_t *slots) {
  const qk_loaded_t *s = slots->setup;
  return qk_solver_running(s->solver) + (s->single_rhs ? qk_solver_running(s->single_rhs) : 0) > 0;
}

uint64_t qk_slots_steps(const qk_slots_t *slots) {
  return slots->steps;
}

static bool column_is_free(const qk_slots_t *slots, int column) {
  return qk_solver_slot(slots->setup->solver, column)->state == QK_SLOT_FREE;
}

static int free_columns(const qk_slots_t *slots) {
  int n = 0;
  for (int c = 0; c < slots->setup->nslot; c++) n += column_is_free(slots, c);
  return n;
}

int qk_slots_hungry(const qk_slots_t *slots) {
  const int n = free_columns(slots) - slots->nwaiting;
  return n > 0 ? n : 0;
}

bool qk_slots_busy(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].state != FREE;
}

uint64_t qk_slots_ticket(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].fill.ticket;
}

const qk_slot_t *qk_slots_state(const qk_slots_t *slots, int slot) {
  const slot_t *s = &slots->slot[slot];
  return s->state == SOLVING ? qk_solver_slot(s->solver, s->column) : NULL;
}

/* ---- in: sources ----------------------------------------------------------------------------- */

static void leave_queue(qk_slots_t *slots, int slot) {
  int n = 0;
  for (int i = 0; i < slots->nwaiting; i++)
    if (slots->waiting[i] != slot) slots->waiting[n++] = slots->waiting[i];
  slots->nwaiting = n;
}

/* A slot ends that was not solved. */
static void refuse(qk_slots_t *slots, int i, const qk_err_t *err) {
  slot_t *slot = &slots->slot[i];
  if (slot->state == WAITING) leave_queue(slots, i);
  qk_buffer_drop(slot->buffer);
  slot->buffer = NULL;
  qk_segment_close(&slot->out);
  slot->result =
      (qk_result_t){.slot = i, .ticket = slot->fill.ticket, .refused = true, .err = *err};
  slot->state = ENDED;
}

/* Sources that come, or are made of what comes. */
static bool is_staged(const qk_slots_t *slots, const slot_t *slot) {
  return qk_stage_exists(slots->stage) && slot->fill.shm_in[0] != '\0';
}

int qk_slots_lacking(const qk_slots_t *slots) {
  int n = 0;
  for (int k = 0; k < slots->nwaiting; k++) {
    const slot_t *slot = &slots->slot[slots->waiting[k]];
    n += is_staged(slots, slot) && slot->buffer == NULL;
  }
  return n;
}

/* Behind those that wait, or ahead of them. */
static void enter_queue(qk_slots_t *slots, int slot) {
  int at = slots->nwaiting++;
  while (slots->slot[slot].fill.ahead && at > 0 &&
         !slots->slot[slots->waiting[at - 1]].fill.ahead) {
    slots->waiting[at] = slots->waiting[at - 1];
    at--;
  }
  slots->waiting[at] = slot;
}

/* The last waiting RHS whose source is here, and that is not ahead of others, gives up its
 * buffer and loads again later. */
static void make_buffer(qk_slots_t *slots) {
  for (int k = slots->nwaiting - 1; k >= 0; k--) {
    slot_t *slot = &slots->slot[slots->waiting[k]];
    if (slot->fill.ahead || slot->buffer == NULL || !qk_buffer_done(slot->buffer)) continue;
    qk_buffer_drop(slot->buffer);
    slot->buffer = NULL;
    return;
  }
}

/* Whether there is a buffer for the slot's source. */
static bool has_buffer(const qk_slots_t *slots, const slot_t *slot) {
  return qk_stage_vacant(slots->stage) > (slot->fill.ahead ? 0 : slots->left);
}

static qk_status_t begin_loads(qk_slots_t *slots, qk_err_t *err) {
  for (int k = 0; k < slots->nwaiting; k++) {
    const int i = slots->waiting[k];
    slot_t *slot = &slots->slot[i];
    qk_err_t verdict = {0};
    if (slot->buffer != NULL || !is_staged(slots, slot)) continue;
    if (slot->fill.ahead && !has_buffer(slots, slot)) make_buffer(slots);
    if (!has_buffer(slots, slot)) break;
    qk_status_t status = qk_stage_load(slots->stage, slot->fill.shm_in, slot->fill.in_double,
                                       &slot->buffer, &verdict, err);
    if (status != QK_OK) return status;
    if (verdict.code == QK_OK) continue;
    refuse(slots, i, &verdict);
    k--;
  }
  return QK_OK;
}

/* ---- in: columns ----------------------------------------------------------------------------- */

/* Those that take columns together. */
typedef struct group {
  qk_placement_t at;
  qk_solver_t *solver;
  qk_err_t verdict[QK_SLOTS_MAX];
} group_t;

static bool is_ready(const qk_slots_t *slots, const slot_t *slot) {
  if (!is_staged(slots, slot)) return true;
  return slot->buffer != NULL && qk_buffer_done(slot->buffer);
}

static qk_waiting_t describe(const qk_slots_t *slots, int i) {
  const slot_t *slot = &slots->slot[i];
  return (qk_waiting_t){.entry = i,
                        .order = slot->fill.ahead ? QK_ORDER_FIRST : 1,
                        .tol = slot->fill.tol,
                        .staged = is_staged(slots, slot),
                        .arriving = slot->buffer != NULL && !qk_buffer_done(slot->buffer),
                        .ready = is_ready(slots, slot)};
}

static void choose(const qk_slots_t *slots, group_t *group) {
  const qk_loaded_t *s = slots->setup;
  const qk_slot_t *slot[QK_SLOTS_MAX];
  qk_waiting_t waiting[QK_INFLIGHT_MAX];
  for (int c = 0; c < s->nslot; c++) slot[c] = qk_solver_slot(s->solver, c);
  for (int k = 0; k < slots->nwaiting; k++) waiting[k] = describe(slots, slots->waiting[k]);
  qk_place(&(qk_placement_view_t){.slot = slot,
                                  .single = s->single_rhs ? qk_solver_slot(s->single_rhs, 0) : NULL,
                                  .waiting = waiting,
                                  .nslot = s->nslot,
                                  .nwaiting = slots->nwaiting},
           &group->at);
  group->solver = group->at.single ? s->single_rhs : s->solver;
}

static qk_status_t make_sources(qk_slots_t *slots, group_t *group, qk_err_t *err) {
  const qk_fill_t *fill[QK_SLOTS_MAX];
  qk_buffer_t *buffer[QK_SLOTS_MAX];
  qk_field_t *field[QK_SLOTS_MAX];
  for (int k = 0; k < group->at.n; k++) {
    slot_t *slot = &slots->slot[group->at.entry[k]];
    fill[k] = &slot->fill;
    buffer[k] = slot->buffer;
    field[k] = qk_solver_rhs(group->solver, group->at.slot[k]);
    slot->buffer = NULL;
  }
  return qk_source_make(slots->setup, slots->port, slots->stage, group->at.n, fill, buffer, field,
                        group->verdict, err);
}

static qk_status_t take_columns(qk_slots_t *slots, qk_err_t *err) {
  group_t group = {0};
  int column[QK_SLOTS_MAX], n = 0;
  double tol[QK_SLOTS_MAX];
  int64_t max_iter[QK_SLOTS_MAX];
  choose(slots, &group);
  if (group.at.n == 0) return QK_OK;
  qk_status_t status = make_sources(slots, &group, err);
  if (status != QK_OK) return status;
  for (int k = 0; k < group.at.n; k++) {
    slot_t *slot = &slots->slot[group.at.entry[k]];
    if (group.verdict[k].code != QK_OK) {
      refuse(slots, group.at.entry[k], &group.verdict[k]);
      continue;
    }
    leave_queue(slots, group.at.entry[k]);
    slot->state = SOLVING;
    slot->solver = group.solver;
    slot->column = column[n] = group.at.slot[k];
    tol[n] = slot->fill.tol;
    max_iter[n++] = slot->fill.max_iter;
  }
  if (n == 0) return QK_OK;
  return explain(slots, qk_solver_fill_many(group.solver, column, n, tol, max_iter), err);
}

static qk_status_t feed(qk_slots_t *slots, qk_err_t *err) {
  qk_status_t status = begin_loads(slots, err);
  return status == QK_OK ? take_columns(slots, err) : status;
}

qk_status_t qk_slots_fill(qk_slots_t *slots, int n, const qk_fill_t fill[], qk_err_t *err) {
  for (int k = 0; k < n; k++) {
    slot_t *slot = &slots->slot[fill[k].slot];
    qk_err_t verdict = {0};
    QK_ASSERT(slot->state == FREE);
    slot->fill = fill[k];
    qk_status_t status = QK_OK;
    if (fill[k].shm_out[0] != '\0')
      status = qk_segment_open(slots->port->wire, fill[k].shm_out, fill[k].is_double, true,
                               &slot->out, &verdict);
    if (loses_process(status)) {
      *err = verdict;
      return status;
    }
    if (status != QK_OK) {
      refuse(slots, fill[k].slot, &verdict);
      continue;
    }
    slot->state = WAITING;
    enter_queue(slots, fill[k].slot);
  }
  return feed(slots, err);
}

/* ---- between --------------------------------------------------------------------------------- */

void qk_slots_cancel(qk_slots_t *slots, int i) {
  const slot_t *slot = &slots->slot[i];
  const qk_err_t cancelled = {.code = QK_CANCELLED};
  if (slot->state == WAITING) refuse(slots, i, &cancelled);
  if (slot->state == SOLVING) qk_solver_cancel(slot->solver, slot->column);
}

/* True if the solver begins copies only when the device has its iterations: with several ranks
 * these are submitted piece by piece, and are nearly over then. */
static bool begins_copies(const qk_slots_t *slots) {
  return qk_slots_solving(slots) && qk_comm_size(slots->setup->geom.comm) == 1;
}

/* Copies run beside iterations: while there are any, nobody waits for them. */
qk_status_t qk_slots_step(qk_slots_t *slots, qk_err_t *err) {
  const qk_loaded_t *s = slots->setup;
  qk_status_t status = qk_slots_solving(slots) ? QK_OK : qk_stage_poll(slots->stage, true, err);
  if (status == QK_OK) status = feed(slots, err);
  if (status == QK_OK && !begins_copies(slots)) status = qk_stage_copy(slots->stage, err);
  if (status != QK_OK || !qk_slots_solving(slots)) return status;
  slots->steps++;
  if (s->single_rhs) status = qk_solver_step(s->single_rhs);
  if (status == QK_OK) status = qk_solver_step(s->solver);
  status = explain(slots, status, err);
  return status == QK_OK ? qk_stage_poll(slots->stage, false, err) : status;
}

/* ---- out ------------------------------------------------------------------------------------- */

static bool has_solution(qk_status_t status) {
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

/* |x|^2 of n slots, into norms_host. */
static qk_status_t solution_norms(qk_slots_t *slots, const int ended[], int n, qk_err_t *err) {
  const qk_loaded_t *s = slots->setup;
  qk_status_t status = QK_OK;
  for (int k = 0; k < n && status == QK_OK; k++) {
    const slot_t *slot = &slots->slot[ended[k]];
    qk_blas_args_t args = {.op = QK_BLAS_NORM2,
                           .f = {qk_solver_solution(slot->solver, slot->column)->v},
                           .red = slots->norms + 2 * k};
    status = s->ops->blas(s->ctx, &args);
  }
  if (status == QK_OK)
    status = s->ops->copy(s->ctx, slots->norms_host, slots->norms, (size_t)n * 2 * sizeof(double),
                          QK_COPY_TO_HOST, 0);
  if (status == QK_OK) status = s->ops->queue_sync(s->ctx, 0);
  status = explain(slots, status, err);
  if (status != QK_OK) return status;
  return explain(slots, qk_comm_sum(s->geom.comm, slots->norms_host, 2 * n), err);
}

/* What the solver found wrong with a source, which it has in a basis of its own. */
static qk_err_t word_on(const slot_t *slot, const qk_slot_t *state) {
  qk_err_t err = {.code = state->status};
  if (state->status != state->why.code) return err;
  err = state->why;
  if (slot->fill.basis != QK_BASIS_DEGRAND_ROSSI) {
    const size_t n = strlen(err.text);
    snprintf(err.text + n, sizeof err.text - n, " (of the source in the basis %s)",
             qk_basis_name(QK_BASIS_DEGRAND_ROSSI));
  }
  return err;
}

static qk_status_t take_result(qk_slots_t *slots, int i, double norm2_x, qk_err_t *err) {
  slot_t *slot = &slots->slot[i];
  const qk_slot_t *state = qk_slots_state(slots, i);
  slot->result = (qk_result_t){.slot = i,
                               .ticket = slot->fill.ticket,
                               .err = word_on(slot, state),
                               .tol = slot->fill.tol,
                               .true_residual = state->residual,
                               .norm_b = state->norm_b,
                               .iterations = state->iterations,
                               .applications = state->applications,
                               .seconds = state->seconds};
  if (!has_solution(state->status)) return QK_OK;
  qk_err_t verdict = {0};
  qk_status_t status = qk_outgoing_check(slots->setup->work, &slot->fill,
                                         qk_solver_solution(slot->solver, slot->column), norm2_x,
                                         &slot->result.norm_x, &verdict);
  /* a breakdown is the first cause of numbers that are none */
  if (verdict.code != QK_OK && state->status != QK_BREAKDOWN) slot->result.err = verdict;
  return explain(slots, status, err);
}

/* The solution has been written, or could not be. */
static void end(slot_t *slot, bool written, const qk_err_t *why) {
  if (why->code == QK_OK)
    slot->result.written = written;
  else
    slot->result.err = *why;
  qk_segment_close(&slot->out);
  slot->state = ENDED;
}

/* Whether a column that ended so leaves through a buffer. */
static bool needs_buffer(const qk_slots_t *slots, const slot_t *slot, qk_status_t status) {
  return slot->fill.shm_out[0] != '\0' && has_solution(status) && qk_stage_exists(slots->stage);
}

/* The solution leaves the column, which is free then. */
static qk_status_t leave_column(qk_slots_t *slots, slot_t *slot, qk_err_t *err) {
  const qk_field_t *x = qk_solver_solution(slot->solver, slot->column);
  const bool written = slot->fill.shm_out[0] != '\0' && has_solution(slot->result.err.code);
  double basis[4][4][2];
  qk_err_t why = {0};
  qk_status_t status = QK_OK;
  qk_basis_export(slot->fill.basis, basis);
  if (needs_buffer(slots, slot, slot->result.err.code)) {
    status =
        qk_stage_store(slots->stage, &slot->out, basis, slot->fill.factor, x, &slot->buffer, err);
    slot->state = LEAVING;
  } else {
    if (written)
      status = qk_port_write(slots->port, &slot->out, basis, slot->fill.factor, x, 0, &why);
    if (loses_process(status)) *err = why;
    end(slot, written, &why);
    status = loses_process(status) ? status : QK_OK;
  }
  qk_solver_clear(slot->solver, slot->column);
  return status;
}

/* Those that have ended and can leave. */
static int choose_leaving(const qk_slots_t *slots, int leaving[]) {
  qk_ended_t ended[QK_SLOTS_MAX + 1];
  int n = 0;
  for (int i = 0; i < qk_slots_count(slots); i++) {
    const slot_t *slot = &slots->slot[i];
    const qk_slot_t *state = qk_slots_state(slots, i);
    if (state == NULL || state->state != QK_SLOT_ENDED) continue;
    const bool single = slot->solver != slots->setup->solver;
    ended[n++] = (qk_ended_t){.entry = i,
                              .slot = single ? QK_SLOT_SINGLE : slot->column,
                              .needs_buffer = needs_buffer(slots, slot, state->status)};
  }
  return qk_place_leave(ended, n, qk_stage_room(slots->stage), slots->setup->plan.leaving, leaving);
}

/* Columns that have ended, as far as their solutions can leave. */
static qk_status_t clear_columns(qk_slots_t *slots, qk_err_t *err) {
  int ended[QK_SLOTS_MAX + 1];
  const int n = choose_leaving(slots, ended);
  if (n == 0) return QK_OK;
  qk_status_t status = solution_norms(slots, ended, n, err);
  for (int k = 0; k < n && status == QK_OK; k++) {
    slot_t *slot = &slots->slot[ended[k]];
    status = take_result(slots, ended[k], slots->norms_host[2 * k], err);
    if (status == QK_OK) status = leave_column(slots, slot, err);
  }
  return status;
}

qk_status_t qk_slots_retire(qk_slots_t *slots, qk_result_t result[], int *n, qk_err_t *err) {
  *n = 0;
  qk_status_t status = clear_columns(slots, err);
  for (int i = 0; i < qk_slots_count(slots) && status == QK_OK; i++) {
    slot_t *slot = &slots->slot[i];
    if (slot->state == LEAVING && qk_buffer_done(slot->buffer)) {
      qk_err_t why;
      qk_buffer_stored(slot->buffer, &why);
      slot->buffer = NULL;
      end(slot, true, &why);
    }
    if (slot->state != ENDED) continue;
    result[(*n)++] = slot->result;
    slot->state = FREE;
  }
  return status;
}
