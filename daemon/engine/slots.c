#include "daemon/engine/slots.h"

#include <math.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/engine/wire.h"

typedef struct slot {
  bool busy;
  qk_fill_t fill;
  qk_segment_t out; /* open from fill to retire where the fill has a shm_out */
} slot_t;

struct qk_slots {
  qk_setup_t *setup;
  qk_wire_t *wire;
  void *part;    /* host, a local vector in double */
  void *column;  /* device, the same */
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

qk_status_t qk_slots_create(qk_setup_t *setup, qk_slots_t **slots, qk_err_t *err) {
  const qk_ops_t *ops = setup->ops;
  qk_slots_t *s = qk_calloc(1, sizeof *s);
  qk_status_t status = qk_comm_agree(setup->geom.comm, s != NULL ? QK_OK : QK_NO_MEMORY, err);
  if (status != QK_OK) goto fail;
  s->setup = setup;
  for (int i = 0; i < QK_SLOTS_MAX; i++) s->slot[i].out.fd = -1;
  status = qk_wire_create(&setup->geom, &s->wire, err);
  if (status != QK_OK) goto fail;

  size_t bytes = qk_wire_part_bytes(s->wire, true);
  status = ops->alloc_host(setup->ctx, bytes, &s->part);
  if (status == QK_OK) status = ops->alloc(setup->ctx, bytes, &s->column);
  if (status == QK_OK)
    status = ops->alloc(setup->ctx, (size_t)setup->nslot * 2 * sizeof(double), (void **)&s->norms);
  status = qk_comm_agree(setup->geom.comm, explain(s, status, err), err);
  if (status != QK_OK) goto fail;
  *slots = s;
  return QK_OK;

fail:
  qk_slots_destroy(s);
  return status;
}

void qk_slots_destroy(qk_slots_t *slots) {
  if (slots == NULL) return;
  const qk_setup_t *s = slots->setup;
  for (int i = 0; i < QK_SLOTS_MAX; i++) qk_segment_close(&slots->slot[i].out);
  if (slots->norms != NULL) s->ops->free(s->ctx, slots->norms);
  if (slots->column != NULL) s->ops->free(s->ctx, slots->column);
  if (slots->part != NULL) s->ops->free_host(s->ctx, slots->part);
  qk_wire_destroy(slots->wire);
  qk_free(slots);
}

bool qk_slots_busy(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].busy;
}

uint64_t qk_slots_ticket(const qk_slots_t *slots, int slot) {
  return slots->slot[slot].fill.ticket;
}

/* ---- in ------------------------------------------------------------------------------------------ */

static qk_column_args_t column_args(const qk_slots_t *slots, const qk_field_t *field,
                                    const qk_fill_t *fill) {
  return (qk_column_args_t){.lat = slots->setup->geom.lat,
                            .field = field->v,
                            .rhs = fill->slot,
                            .is_double = fill->is_double,
                            .wire = slots->column,
                            .factor = 1};
}

static qk_status_t upload(qk_slots_t *slots, const qk_fill_t *fill, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  qk_segment_t in;
  qk_status_t status = qk_segment_open(slots->wire, fill->shm_in, fill->is_double, false, &in, err);
  if (status != QK_OK) return status;
  status = qk_segment_read(slots->wire, &in, slots->part, err);
  qk_segment_close(&in);
  if (status != QK_OK) return status;

  qk_column_args_t args = column_args(slots, qk_solver_rhs(s->solver), fill);
  qk_basis_import(fill->basis, args.basis);
  status = s->ops->copy(s->ctx, slots->column, slots->part,
                        qk_wire_part_bytes(slots->wire, fill->is_double), QK_COPY_TO_DEVICE, 0);
  if (status == QK_OK) status = s->ops->column_import(s->ctx, &args);
  if (status == QK_OK) status = s->ops->queue_sync(s->ctx, 0);
  return explain(slots, status, err);
}

/* A source of another basis: the components that the kernel wrote are read as those of that basis. */
static qk_status_t rotate(qk_slots_t *slots, const qk_fill_t *fill) {
  const qk_setup_t *s = slots->setup;
  qk_column_args_t args = column_args(slots, qk_solver_rhs(s->solver), fill);
  args.is_double = true;
  qk_basis_export(QK_BASIS_DEGRAND_ROSSI, args.basis);
  qk_status_t status = s->ops->column_export(s->ctx, &args);
  if (status != QK_OK) return status;
  qk_basis_import(fill->basis, args.basis);
  return s->ops->column_import(s->ctx, &args);
}

static qk_status_t generate(qk_slots_t *slots, const qk_fill_t *fill, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  for (int mu = 0; mu < 4; mu++)
    if (fill->site[mu] >= s->geom.global[mu] || fill->site[mu] < (mu == 3 ? -1 : 0))
      return qk_fail(err, QK_BAD_ARGUMENT, "%c = %d: the lattice has %d", "xyzt"[mu],
                     fill -> site[mu], s -> geom.global[mu]);
  qk_source_args_t args = {.lat = s->geom.lat,
                           .field = qk_solver_rhs(s->solver)->v,
                           .rhs = fill->slot,
                           .kind = fill->source,
                           .spin = fill->spin,
                           .colour = fill->colour,
                           .seed = fill->seed};
  memcpy(args.site, fill->site, sizeof args.site);
  qk_status_t status = s->ops->source(s->ctx, &args);
  if (status == QK_OK && fill->basis != QK_BASIS_DEGRAND_ROSSI) status = rotate(slots, fill);
  return explain(slots, status, err);
}

static qk_status_t take_up(qk_slots_t *slots, const qk_fill_t *fill, qk_err_t *err) {
  slot_t *slot = &slots->slot[fill->slot];
  QK_ASSERT(!slot->busy);
  qk_status_t status = QK_OK;
  if (fill->shm_out[0] != '\0')
    status = qk_segment_open(slots->wire, fill->shm_out, fill->is_double, true, &slot->out, err);
  if (status != QK_OK) return status;
  status = fill->upload ? upload(slots, fill, err) : generate(slots, fill, err);
  if (status != QK_OK) {
    qk_segment_close(&slot->out);
    return status;
  }
  slot->fill = *fill;
  slot->busy = true;
  return QK_OK;
}

qk_status_t qk_slots_fill(qk_slots_t *slots, int n, const qk_fill_t fill[], qk_err_t verdict[],
                          qk_err_t *err) {
  int slot[QK_SLOTS_MAX], taken = 0;
  double tol[QK_SLOTS_MAX];
  int64_t max_iter[QK_SLOTS_MAX];
  for (int i = 0; i < n; i++) {
    verdict[i] = (qk_err_t){0};
    qk_status_t status = take_up(slots, &fill[i], &verdict[i]);
    if (loses_process(status)) {
      *err = verdict[i];
      return status;
    }
    if (status != QK_OK) continue;
    slot[taken] = fill[i].slot;
    tol[taken] = fill[i].tol;
    max_iter[taken++] = fill[i].max_iter;
  }
  if (taken == 0) return QK_OK;
  qk_status_t status = qk_solver_fill_many(slots->setup->solver, slot, taken, tol, max_iter);
  return explain(slots, status, err);
}

/* ---- between ------------------------------------------------------------------------------------- */

void qk_slots_cancel(qk_slots_t *slots, int slot) {
  qk_solver_cancel(slots->setup->solver, slot);
}

qk_status_t qk_slots_step(qk_slots_t *slots, qk_err_t *err) {
  return explain(slots, qk_solver_step(slots->setup->solver), err);
}

/* ---- out ----------------------------------------------------------------------------------------- */

static qk_status_t download(qk_slots_t *slots, slot_t *slot, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  const qk_fill_t *fill = &slot->fill;
  qk_column_args_t args = column_args(slots, qk_solver_solution(s->solver), fill);
  qk_basis_export(fill->basis, args.basis);
  args.factor = fill->factor;
  qk_status_t status = s->ops->column_export(s->ctx, &args);
  if (status == QK_OK)
    status = s->ops->copy(s->ctx, slots->part, slots->column,
                          qk_wire_part_bytes(slots->wire, fill->is_double), QK_COPY_TO_HOST, 0);
  if (status == QK_OK) status = s->ops->queue_sync(s->ctx, 0);
  status = explain(slots, status, err);
  return status == QK_OK ? qk_segment_write(slots->wire, &slot->out, slots->part, err) : status;
}

/* |x|^2 of all columns in one pass. */
static qk_status_t solution_norms(qk_slots_t *slots, double norm2[][2], qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  size_t bytes = (size_t)s->nslot * sizeof norm2[0];
  qk_blas_args_t args = {.f = {qk_solver_solution(s->solver)->v}, .red = slots->norms};
  qk_status_t status = s->ops->blas(s->ctx, QK_BLAS_NORM2, &args);
  if (status == QK_OK)
    status = s->ops->copy(s->ctx, norm2, slots->norms, bytes, QK_COPY_TO_HOST, 0);
  if (status == QK_OK) status = s->ops->queue_sync(s->ctx, 0);
  status = explain(slots, status, err);
  if (status != QK_OK) return status;
  return explain(slots, qk_comm_sum(s->geom.comm, norm2[0], 2 * s->nslot), err);
}

static bool has_solution(qk_status_t status) {
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

static qk_status_t retire(qk_slots_t *slots, int i, double norm2_x, qk_result_t *result) {
  slot_t *slot = &slots->slot[i];
  const qk_slot_t *state = qk_solver_slot(slots->setup->solver, i);
  *result = (qk_result_t){.slot = i,
                          .ticket = slot->fill.ticket,
                          .true_residual = state->residual,
                          .norm_b = state->norm_b,
                          .norm_x = has_solution(state->status) ? sqrt(norm2_x) : 0,
                          .iterations = state->iterations,
                          .applications = state->applications,
                          .seconds = state->seconds};
  if (slot->fill.shm_out[0] != '\0' && has_solution(state->status)) {
    qk_status_t status = download(slots, slot, &result->err);
    if (loses_process(status)) return status;
    result->written = status == QK_OK;
  }
  if (result->err.code == QK_OK) result->err.code = state->status;
  qk_segment_close(&slot->out);
  qk_solver_clear(slots->setup->solver, i);
  slot->busy = false;
  return QK_OK;
}

qk_status_t qk_slots_retire(qk_slots_t *slots, qk_result_t result[], int *n, qk_err_t *err) {
  const qk_setup_t *s = slots->setup;
  double norm2[QK_SLOTS_MAX][2];
  int ended[QK_SLOTS_MAX], count = 0;
  *n = 0;
  for (int i = 0; i < s->nslot; i++)
    if (slots->slot[i].busy && qk_solver_slot(s->solver, i)->state == QK_SLOT_ENDED)
      ended[count++] = i;
  if (count == 0) return QK_OK;
  qk_status_t status = solution_norms(slots, norm2, err);
  for (int k = 0; k < count && status == QK_OK; k++) {
    status = retire(slots, ended[k], norm2[ended[k]][0], &result[*n]);
    if (status == QK_OK)
      ++*n;
    else
      *err = result[*n].err;
  }
  return status;
}
