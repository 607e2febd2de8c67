#include "daemon/engine/lattice/slice.h"

void qk_slice_cut(const qk_field_t *field, int t, const qk_field_t *part) {
  const qk_device_t *dev = field->dev;
  const qk_source_args_t args = {.lat = dev->geom->lat,
                                 .field = part->v,
                                 .kind = QK_SOURCE_HELD,
                                 .site = {0, 0, 0, t},
                                 .spin = -1,
                                 .colour = -1};
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {part->v, field->v}});
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->source(dev->ctx, &args));
}

void qk_slice_clear_outer(const qk_field_t *field, const qk_field_t *part) {
  const int last = field->dev->geom->global[3] - 1;
  for (int k = 0; k < 2; k++) {
    qk_slice_cut(field, k * last, part);
    qk_dev_blas(field->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {field->v, field->v, part->v}});
  }
}
