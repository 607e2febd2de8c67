#include "daemon/engine/lattice/norm.h"

#include <float.h>
#include <math.h>

#include "daemon/engine/lattice/extent.h"
#include "daemon/engine/lattice/scalars.h"

qk_status_t qk_norm2_find(const qk_field_t *field, double *norm2) {
  qk_scalars_t found = {0};
  qk_status_t status = qk_scalars_init(&found, field->dev, 1, 1);
  if (status == QK_OK) {
    qk_scalars_reduce(&found, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {field->v}});
    qk_scalars_fetch(&found, 0, 1);
    status = qk_dev_status(field->dev);
    *norm2 = qk_scalars_host(&found, 0, 0)[0];
  }
  qk_scalars_fini(&found);
  return status;
}

qk_status_t qk_norm_of_source(qk_work_t *work, const qk_field_t *source, double *norm,
                              qk_err_t *verdict) {
  static const double one[4][4][2] = {{{1}}, {{0}, {1}}, {{0}, {0}, {1}}, {{0}, {0}, {0}, {1}}};
  double norm2 = 0;
  char place[QK_EXTENT_PLACE];
  qk_extent_t e;
  qk_status_t status = qk_norm2_find(source, &norm2);
  *norm = sqrt(norm2);
  if (status != QK_OK || (norm2 > 0x1p-900 && norm2 < 0x1p900)) return status;
  status = qk_extent_find(work, source, one, 1, &e);
  if (status != QK_OK) return status;
  *norm = e.finite ? e.largest * e.norm : 0;
  if (e.finite && isfinite(*norm)) return QK_OK;
  qk_extent_place(source->dev->geom, &e, place);
  if (e.finite)
    qk_fail(verdict, QK_BAD_ARGUMENT,
            "the source is too large: its norm is over %.3g, and %.3g stands at %s; scale it down",
            DBL_MAX, e.largest, place);
  else
    qk_fail(verdict, QK_NAN_INPUT, "the source is NaN or Inf at %s", place);
  return QK_OK;
}
