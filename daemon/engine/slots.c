#include "daemon/engine/slots.h"

#include <math.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/source.h"

typedef struct slot {
  bool busy;
  qk_solver_t *solver; /* where it is, of a busy one */
  int column;
  qk_fill_t fill;
  qk_segment_t out; /* open from fill to retire where the fill has a shm_out */
} slot_t;

struct qk_slots {
  qk_setup_t *setup;
  qk_port_t *port;
  double *norms; /* device, [nslot][2] */
  slot_t slot[QK_SLOTS_MAX];
};

static bool loses_process(qk_status_t status) {
  return status >= QK_DEVICE_MEMORY;
}

/* The ranks need not agree on a status of the device, the solver or the communicator: what one rank
 * can see alone ends the process, and with it all ranks. */
static qk_status_t explain(const qk_slots_t *slots, qk_status_t status, qk_err_t *err) {
  return qk_setup_explain(slots->setup, status, err);
}

qk_status_t qk_slots_create(qk_port_t *port, qk_slots_t **slots, qk_err_t *err) {
  qk_setup_t *setup = port->setup;
  qk_slots_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(setup->geom.comm, s != NULL ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) {
    qk_free(s);
    return status;
  }
  s->setup = setup;
  s->port = port;
  for (int i = 0; i < QK_SLOTS_MAX; i++) s->slot[i].out.fd = -1;
  status =
      setup->ops->alloc(setup->ctx, (size_t)setup->nslot * 2 * sizeof(double), (void **)&s->norms);
  status = qk_comm_agree(setup->geom.comm, explain(s, status, err), err);
  if (status != QK_OK) {
    qk_slots_destroy(s);
    return status;
  }
  *slots = s;
  return QK_OK;
}

void qk_slots_destroy(qk_slots_t *slots) {
  if (slots == NULL) return;
  const qk_setup_t *s = slots->setup;
  for (int i = 0; i < QK_SLOTS_MAX; i++) qk_segment_close(&slots->slot[i].out);
  if (slots->norms != NULL) s->ops->free(s->ctx, slots->norms);
  qk_free(slots);
}

int qk_slots_running(const qk_slots_t *slots) {
  const qk_setup_t *s = slots->setup;
  return qk_solver_running(s->solver) + (s->lone ? qk_solver_running(s->lone) : 0);
}

bool qk_slots_busy(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].busy;
}

uint64_t qk_slots_ticket(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].fill.ticket;
}

const qk_slot_t *qk_slots_state(const qk_slots_t *slots, int slot) {
  return qk_solver_slot(slots->slot[slot].solver, slots->slot[slot].column);
}

/* ---- in ------------------------------------------------------------------------------------------ */

/* Opens the segments of the solutions. */
static qk_status_t open_outputs(qk_slots_t *slots, int n, const qk_fill_t fill[],
                                qk_err_t verdict[], qk_err_t *err) {
  for (int i = 0; i < n; i++) {
    slot_t *to = &slots->slot[fill[i].slot];
    QK_ASSERT(!to->busy);
    verdict[i] = (qk_err_t){0};
    if (fill[i].shm_out[0] == '\0') continue;
    qk_status_t opened = qk_segment_open(slots->port->wire, fill[i].shm_out, fill[i].is_double,
                                         true, &to->out, &verdict[i]);
    if (!loses_process(opened)) continue;
    *err = verdict[i];
    return opened;
  }
  return QK_OK;
}

qk_status_t qk_slots_fill(qk_slots_t *slots, int n, const qk_fill_t fill[], qk_err_t verdict[],
                          qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  const bool lone = s->lone != NULL && n == 1 && qk_slots_running(slots) == 0;
  qk_solver_t *solver = lone ? s->lone : s->solver;
  int column[QK_SLOTS_MAX], taken[QK_SLOTS_MAX], ntaken = 0;
  double tol[QK_SLOTS_MAX];
  int64_t max_iter[QK_SLOTS_MAX];
  for (int i = 0; i < n; i++) column[i] = lone ? 0 : fill[i].slot;
  qk_status_t status = open_outputs(slots, n, fill, verdict, err);
  if (status == QK_OK)
    status = qk_source_make(slots->port, qk_solver_rhs(solver), n, fill, column, verdict, err);
  if (status != QK_OK) return status;
  for (int i = 0; i < n; i++) {
    slot_t *to = &slots->slot[fill[i].slot];
    if (verdict[i].code != QK_OK) {
      qk_segment_close(&to->out);
      continue;
    }
    to->fill = fill[i];
    to->busy = true;
    to->solver = solver;
    to->column = taken[ntaken] = column[i];
    tol[ntaken] = fill[i].tol;
    max_iter[ntaken++] = fill[i].max_iter;
  }
  if (ntaken == 0) return QK_OK;
  return explain(slots, qk_solver_fill_many(solver, taken, ntaken, tol, max_iter), err);
}

/* ---- between ------------------------------------------------------------------------------------- */

void qk_slots_cancel(qk_slots_t *slots, int slot) {
  if (!slots->slot[slot].busy) return; /* its fill was refused */
  qk_solver_cancel(slots->slot[slot].solver, slots->slot[slot].column);
}

qk_status_t qk_slots_step(qk_slots_t *slots, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  qk_status_t status = s->lone ? qk_solver_step(s->lone) : QK_OK;
  if (status == QK_OK) status = qk_solver_step(s->solver);
  return explain(slots, status, err);
}

/* ---- out ----------------------------------------------------------------------------------------- */

/* |x|^2 of all columns in one pass. */
static qk_status_t solution_norms(qk_slots_t *slots, qk_solver_t *solver, double norm2[][2],
                                  qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  const qk_spinor_t x = qk_solver_solution(solver)->v;
  size_t bytes = (size_t)x.nrhs * sizeof norm2[0];
  qk_blas_args_t args = {.f = {x}, .red = slots->norms};
  qk_status_t status = s->ops->blas(s->ctx, QK_BLAS_NORM2, &args);
  if (status == QK_OK)
    status = s->ops->copy(s->ctx, norm2, slots->norms, bytes, QK_COPY_TO_HOST, 0);
  if (status == QK_OK) status = s->ops->queue_sync(s->ctx, 0);
  status = explain(slots, status, err);
  if (status != QK_OK) return status;
  return explain(slots, qk_comm_sum(s->geom.comm, norm2[0], 2 * x.nrhs), err);
}

static bool has_solution(qk_status_t status) {
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

static qk_status_t retire(qk_slots_t *slots, int i, double norm2_x, qk_result_t *result) {
  slot_t *slot = &slots->slot[i];
  const qk_slot_t *state = qk_slots_state(slots, i);
  *result = (qk_result_t){.slot = i,
                          .ticket = slot->fill.ticket,
                          .tol = slot->fill.tol,
                          .true_residual = state->residual,
                          .norm_b = state->norm_b,
                          .norm_x = has_solution(state->status) ? sqrt(norm2_x) : 0,
                          .iterations = state->iterations,
                          .applications = state->applications,
                          .seconds = state->seconds};
  if (slot->fill.shm_out[0] != '\0' && has_solution(state->status)) {
    double basis[4][4][2];
    qk_basis_export(slot->fill.basis, basis);
    qk_status_t status =
        qk_port_write(slots->port, &slot->out, basis, slot->fill.factor,
                      qk_solver_solution(slot->solver), slot->column, &result->err);
    if (loses_process(status)) return status;
    result->written = status == QK_OK;
  }
  if (result->err.code == QK_OK) result->err.code = state->status;
  qk_segment_close(&slot->out);
  qk_solver_clear(slot->solver, slot->column);
  slot->busy = false;
  return QK_OK;
}

/* Those of one solver; results are added. */
static qk_status_t retire_from(qk_slots_t *slots, qk_solver_t *solver, qk_result_t result[], int *n,
                               qk_err_t *err) {
  double norm2[QK_SLOTS_MAX][2];
  int ended[QK_SLOTS_MAX], count = 0;
  for (int i = 0; i < slots->setup->nslot; i++) {
    const slot_t *slot = &slots->slot[i];
    if (slot->busy && slot->solver == solver && qk_slots_state(slots, i)->state == QK_SLOT_ENDED)
      ended[count++] = i;
  }
  if (count == 0) return QK_OK;
  qk_status_t status = solution_norms(slots, solver, norm2, err);
  for (int k = 0; k < count && status == QK_OK; k++) {
    const int i = ended[k];
    status = retire(slots, i, norm2[slots->slot[i].column][0], &result[*n]);
    if (status == QK_OK)
      ++*n;
    else
      *err = result[*n].err;
  }
  return status;
}

qk_status_t qk_slots_retire(qk_slots_t *slots, qk_result_t result[], int *n, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  *n = 0;
  qk_status_t status = s->lone ? retire_from(slots, s->lone, result, n, err) : QK_OK;
  return status == QK_OK ? retire_from(slots, s->solver, result, n, err) : status;
}
