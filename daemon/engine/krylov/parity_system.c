#include "daemon/engine/krylov/parity_system.h"

#include "daemon/engine/lattice/extent.h"

qk_status_t qk_parity_keep(const qk_field_t *field, qk_subset_t keep) {
  if (keep == QK_FULL) return QK_OK;
  const qk_subset_t other = keep == QK_EVEN ? QK_ODD : QK_EVEN;
  qk_dev_blas(field->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {qk_field_parity(field, other)}});
  return qk_dev_status(field->dev);
}

/* field = T field */
static qk_status_t multiply(qk_operator_t *op, qk_work_t *work, const qk_parity_system_t *system,
                            const qk_field_t *field) {
  qk_field_t *product;
  qk_status_t status = qk_work_reserve(work, QK_DOUBLE, 1, QK_FULL, &product);
  if (status != QK_OK) return status;
  qk_flavours_set(op, system->minus);
  qk_dev_note(op->dev, op->ops->diag(op, product, field, false, false));
  qk_flavours_set(op, NULL);
  qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {field->v, product->v}});
  qk_work_release(work, product);
  return qk_dev_status(op->dev);
}

qk_status_t qk_parity_system_begin(qk_operator_t *op, qk_work_t *work,
                                   const qk_parity_system_t *system, const qk_field_t *b,
                                   qk_measure_t *measure, qk_err_t *verdict) {
  double before = 0, after = 0;
  *measure = (qk_measure_t){.kind = QK_MEASURE_FULL};
  if (!system->is) return QK_OK;
  *measure = (qk_measure_t){QK_MEASURE_SCHUR, system->parity, 1};
  if (!system->symmetric || system->dagger) return QK_OK;
  qk_status_t status = qk_norm_of_source(work, b, &before, verdict);
  if (status != QK_OK || verdict->code != QK_OK) return status;
  status = multiply(op, work, system, b);
  if (status != QK_OK) return status;
  measure->kind = QK_MEASURE_UNIT;
  status = qk_norm_of_source(work, b, &after, verdict);
  if (before > 0 && after > 0) measure->unit = after / before;
  return status;
}

qk_status_t qk_parity_system_end(qk_operator_t *op, qk_work_t *work,
                                 const qk_parity_system_t *system, const qk_field_t *x) {
  const qk_status_t status = qk_parity_keep(x, system->parity);
  if (status != QK_OK || !system->is || !system->symmetric || !system->dagger) return status;
  return multiply(op, work, system, x);
}
