#include "daemon/engine/serve/parity.h"

#include <math.h>

#include "daemon/engine/serve/norm.h"

qk_status_t qk_parity_keep(const qk_field_t *field, qk_subset_t keep) {
  if (keep == QK_FULL) return QK_OK;
  const qk_subset_t other = keep == QK_EVEN ? QK_ODD : QK_EVEN;
  qk_dev_blas(field->dev, QK_BLAS_ZERO, (qk_blas_args_t){.f = {qk_field_parity(field, other)}});
  return qk_dev_status(field->dev);
}

/* field = A field; its norm becomes *norm where that is asked for. */
static qk_status_t multiply(qk_loaded_t *setup, const qk_fill_t *fill, const uint8_t *minus,
                            const qk_field_t *field, double *norm, qk_err_t *verdict) {
  qk_operator_t *op = setup->op;
  qk_field_t *product;
  qk_status_t status = qk_work_reserve(setup->work, QK_DOUBLE, 1, QK_FULL, &product);
  if (status != QK_OK) return status;
  if (fill->flavour < 0) qk_flavours_set(op, minus);
  status = op->ops->diag(op, product, field, false, false);
  qk_flavours_set(op, NULL);
  qk_dev_blas(field->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {field->v, product->v}});
  qk_work_release(setup->work, product);
  if (status == QK_OK) status = qk_dev_status(field->dev);
  if (status != QK_OK || norm == NULL) return status;
  return qk_norm_of_source(setup->work, field, norm, verdict);
}

static bool is_symmetric(const qk_fill_t *fill) {
  return fill->schur == QUARK__SCHUR__SCHUR_SYMMETRIC;
}

qk_status_t qk_parity_begin(qk_loaded_t *setup, const qk_fill_t *fill, const uint8_t *minus,
                            const qk_field_t *source, qk_measure_t *measure, qk_err_t *verdict) {
  double norm = 0, norm_product = 0;
  *measure = (qk_measure_t){.kind = QK_MEASURE_FULL};
  if (fill->schur == QUARK__SCHUR__SCHUR_NONE) return QK_OK;
  *measure = (qk_measure_t){QK_MEASURE_SCHUR, qk_fill_subset(fill->parity), 1};
  if (!is_symmetric(fill) || fill->dagger) return QK_OK;
  qk_status_t status = qk_norm_of_source(setup->work, source, &norm, verdict);
  if (status != QK_OK || verdict->code != QK_OK) return status;
  status = multiply(setup, fill, minus, source, &norm_product, verdict);
  measure->kind = QK_MEASURE_UNIT;
  if (norm > 0 && norm_product > 0) measure->unit = norm_product / norm;
  return status;
}

qk_status_t qk_parity_end(qk_loaded_t *setup, const qk_fill_t *fill, const uint8_t *minus,
                          const qk_field_t *solution) {
  if (fill->parity == QUARK__PARITY__PARITY_ALL) return QK_OK;
  const qk_status_t status = qk_parity_keep(solution, qk_fill_subset(fill->parity));
  if (status != QK_OK || !is_symmetric(fill) || !fill->dagger) return status;
  return multiply(setup, fill, minus, solution, NULL, NULL);
}
