#include "daemon/engine/serve/works.h"

#include <math.h>

#include "daemon/base/clock.h"
#include "daemon/engine/krylov/parity_system.h"
#include "daemon/engine/lattice/extent.h"
#include "daemon/engine/operator/part.h"
#include "daemon/engine/serve/entries.h"
#include "daemon/engine/serve/open_slices.h"
#include "daemon/engine/serve/source.h"

enum { IN, OUT, ROOM };

qk_status_t qk_works_by_adjoint(const qk_operator_t *op, qk_fill_t *fill, qk_err_t *err) {
  if (!fill->dagger || fill->work != QUARK__WORK__WORK_SOLVE) return QK_OK;
  if (op->adjoint == QK_ADJOINT_TWISTED) fill->flavour = -fill->flavour;
  if (op->adjoint == QK_ADJOINT_TWISTED || op->adjoint == QK_ADJOINT_GAMMA5) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "dagger: the adjoint of the action %s is not gamma_5 M gamma_5, and is not solved "
                 "for",
                 op->action);
}

/* ---- fields ---------------------------------------------------------------------------------- */

void qk_works_fini(qk_inflight_t *inflight) {
  for (int i = 0; i < 3; i++) {
    qk_field_destroy(inflight->field[i]);
    inflight->field[i] = NULL;
  }
}

/* ---- what is done ---------------------------------------------------------------------------- */

static qk_part_t part_of(const qk_fill_t *fill) {
  static const qk_part_kind_t kind[] = {
      [QUARK__WORK__WORK_M] = QK_PART_M,
      [QUARK__WORK__WORK_HOP] = QK_PART_HOP,
      [QUARK__WORK__WORK_DIAG] = QK_PART_DIAG,
      [QUARK__WORK__WORK_DIAG_INVERSE] = QK_PART_DIAG_INVERSE,
      [QUARK__WORK__WORK_DIAG_INVERSE_HOP] = QK_PART_DIAG_INVERSE_HOP,
      [QUARK__WORK__WORK_SCHUR] = QK_PART_SCHUR,
  };
  return (qk_part_t){.kind = kind[fill->work],
                     .dagger = fill->dagger,
                     .asymmetric = fill->schur == QUARK__SCHUR__SCHUR_ASYMMETRIC,
                     .parity = qk_fill_subset(fill->parity)};
}

static bool smears_only(const qk_fill_t *fill) {
  return fill->work == QUARK__WORK__WORK_SMEAR;
}

static int fields_of(const qk_fill_t *fill) {
  if (smears_only(fill)) return 1;
  return qk_part_needs_room(part_of(fill).kind) ? 3 : 2;
}

/* Sources alone are fields of the user's problem, others those of the operator. */
static qk_status_t make_fields(qk_inflight_t *inflight, const qk_fill_t *fill) {
  const qk_operator_t *op = inflight->setup->op;
  const qk_device_t *dev = smears_only(fill) && op->outer ? op->outer : op->dev;
  qk_status_t status = QK_OK;
  for (int i = 0; i < fields_of(fill) && status == QK_OK; i++) {
    qk_field_t **field = &inflight->field[i];
    if (*field != NULL && (*field)->dev == dev) continue;
    qk_field_destroy(*field);
    *field = NULL;
    status = qk_field_create(dev, QK_DOUBLE, 1, QK_FULL, field);
  }
  return status;
}

/* *result: the field that holds it. */
static qk_status_t apply(qk_inflight_t *inflight, const qk_fill_t *fill, qk_field_t **result) {
  qk_operator_t *op = inflight->setup->op;
  *result = inflight->field[IN];
  if (smears_only(fill)) return QK_OK;
  const qk_part_t part = part_of(fill);
  *result = inflight->field[OUT];
  if (fill->flavour < 0) qk_flavours_set(op, inflight->minus);
  qk_status_t status =
      qk_part_apply(op, &part, *result, inflight->field[IN], inflight->field[ROOM]);
  qk_flavours_set(op, NULL);
  if (status != QK_OK) return status;
  status = qk_parity_keep(*result, part.parity);
  return status == QK_OK ? qk_open_slices_clear(inflight->setup, *result) : status;
}

/* ---- one of them ----------------------------------------------------------------------------- */

static qk_status_t make_source(qk_inflight_t *inflight, qk_inflight_entry_t *entry,
                               qk_err_t *verdict, qk_err_t *err) {
  const qk_fill_t *fill = &entry->fill;
  qk_buffer_t *buffer = entry->buffer;
  entry->buffer = NULL;
  return qk_source_make(inflight->setup, inflight->port, inflight->stage, 1, &fill, &buffer,
                        &inflight->field[IN], verdict, err);
}

/* *result: the field that holds it; *why: what its type does not hold of it. */
static qk_status_t produce(qk_inflight_t *inflight, const qk_fill_t *fill, qk_field_t **result,
                           double *norm, qk_err_t *why) {
  double norm2 = 0;
  qk_status_t status = apply(inflight, fill, result);
  if (status != QK_OK) return status;
  status = qk_norm2_find(*result, &norm2);
  if (status != QK_OK) return status;
  return qk_entry_check_range(inflight->setup->work, fill, *result, norm2, norm, why);
}

/* The source is there. */
static qk_status_t work(qk_inflight_t *inflight, qk_inflight_entry_t *entry, double since,
                        qk_err_t *verdict, qk_err_t *err) {
  const qk_fill_t *fill = &entry->fill;
  qk_field_t *result = NULL;
  double norm_b = 0, norm_x = 0;
  qk_err_t why = {0};
  qk_status_t status =
      qk_norm_of_source(inflight->setup->work, inflight->field[IN], &norm_b, verdict);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  if (verdict->code != QK_OK) {
    qk_entry_say_basis(entry, verdict);
    return QK_OK;
  }
  status = produce(inflight, fill, &result, &norm_x, &why);
  if (status != QK_OK) return qk_entry_explain(inflight, status, err);
  entry->result = (qk_result_t){.entry = fill->entry,
                                .serial = fill->serial,
                                .err = why,
                                .worked = true,
                                .norm_b = norm_b,
                                .norm_x = norm_x * fabs(fill->factor),
                                .applications = !smears_only(fill),
                                .seconds = qk_clock_now() - since};
  return qk_entry_leave(inflight, entry, result, why.code == QK_OK, err);
}

static qk_status_t carry_out(qk_inflight_t *inflight, int i, qk_err_t *err) {
  qk_inflight_entry_t *entry = &inflight->entry[i];
  const qk_loaded_t *s = inflight->setup;
  const double since = qk_clock_now();
  qk_err_t verdict = {0};
  qk_status_t status = make_fields(inflight, &entry->fill);
  status = qk_comm_agree(s->geom.comm, qk_entry_explain(inflight, status, &verdict), &verdict);
  if (status != QK_OK && status != QK_DEVICE_MEMORY) {
    *err = verdict;
    return status;
  }
  if (status == QK_DEVICE_MEMORY)
    qk_err_prefix(&verdict, "fields for the work");
  else
    status = make_source(inflight, entry, &verdict, err);
  if (verdict.code == QK_OK && status == QK_OK) {
    qk_entry_leave_queue(inflight, i);
    status = work(inflight, entry, since, &verdict, err);
  }
  if (verdict.code == QK_OK) return status;
  qk_entry_refuse(inflight, i, &verdict);
  return status == QK_DEVICE_MEMORY ? QK_OK : status;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first work that can be carried out now, in the order of the queue; -1: none. *any: some
 * wait. */
static int next(const qk_inflight_t *inflight, bool may_leave, bool *any) {
  const bool room = may_leave && qk_staging_room(inflight->stage) > 0;
  int found = -1;
  *any = false;
  for (int k = inflight->nwaiting - 1; k >= 0; k--) {
    const qk_inflight_entry_t *entry = &inflight->entry[inflight->waiting[k]];
    if (!qk_entry_works(entry)) continue;
    *any = true;
    if (qk_entry_is_ready(inflight, entry) &&
        (room || !qk_entry_needs_buffer(inflight, entry, true)))
      found = inflight->waiting[k];
  }
  return found;
}

qk_status_t qk_works_step(qk_inflight_t *inflight, int most, bool may_leave, qk_err_t *err) {
  qk_status_t status = QK_OK;
  bool any;
  int i = next(inflight, may_leave, &any);
  for (int n = 0; i >= 0 && n < most && status == QK_OK; n++) {
    status = carry_out(inflight, i, err);
    i = next(inflight, may_leave, &any);
  }
  if (!any && status == QK_OK) qk_works_fini(inflight);
  return status;
}
