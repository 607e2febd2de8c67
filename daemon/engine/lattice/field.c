#include "daemon/engine/lattice/field.h"

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

static int64_t tile_count(int ntile, int64_t nsites) {
  return ntile ? nsites * ntile : nsites / QK_TILE;
}

size_t qk_spinor_data_bytes(const qk_spinor_t *v) {
  return (size_t)tile_count(v->ntile, v->nsites) * QK_TILE * 2 * (size_t)v->ncomp *
         (size_t)qk_prec_bytes(v->prec);
}

size_t qk_spinor_bytes(const qk_spinor_t *v) {
  size_t scales = (size_t)tile_count(v->ntile, v->nsites) * QK_TILE * sizeof(float);
  return qk_spinor_data_bytes(v) + (qk_prec_scaled(v->prec) ? scales : 0);
}

void qk_spinor_place(qk_spinor_t *v, void *memory) {
  v->data = memory;
  v->scale = qk_prec_scaled(v->prec) ? (float *)((char *)memory + qk_spinor_data_bytes(v)) : NULL;
}

static qk_spinor_t shape_of(const qk_geom_t *geom, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  const int64_t sites = subset == QK_FULL ? 2 * (int64_t)geom->lat.vcb : geom->lat.vcb;
  const int columns = nrhs * qk_geom_slices(geom);
  return (qk_spinor_t){.prec = prec,
                       .subset = subset,
                       .ncomp = geom->ncomp,
                       .nrhs = columns,
                       .inner = geom->inner,
                       .ntile = columns == 1 ? 0 : (columns + QK_TILE - 1) / QK_TILE,
                       .nsites = sites * (geom->inner > 1 ? geom->inner : 1)};
}

size_t qk_field_bytes(const qk_geom_t *geom, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  qk_spinor_t v = shape_of(geom, prec, nrhs, subset);
  return qk_spinor_bytes(&v);
}

qk_status_t qk_field_create(const qk_device_t *dev, qk_prec_t prec, int nrhs, qk_subset_t subset,
                            qk_field_t **field) {
  qk_field_t *f = qk_malloc(sizeof *f);
  if (!f) return QK_NO_MEMORY;
  void *memory = NULL;
  *f = (qk_field_t){.dev = dev, .v = shape_of(dev->geom, prec, nrhs, subset)};
  f->bytes = qk_spinor_bytes(&f->v);
  qk_status_t status = dev->ops->alloc(dev->ctx, f->bytes, &memory);
  if (status) goto fail_alloc;
  status = dev->ops->zero(dev->ctx, memory, f->bytes, 0);
  if (status) goto fail_zero;
  qk_spinor_place(&f->v, memory);
  *field = f;
  return QK_OK;

fail_zero:
  dev->ops->free(dev->ctx, memory);
fail_alloc:
  qk_free(f);
  return status;
}

qk_field_t qk_field_at(const qk_device_t *dev, qk_prec_t prec, int nrhs, qk_subset_t subset,
                       void *memory) {
  qk_field_t f = {.dev = dev, .v = shape_of(dev->geom, prec, nrhs, subset)};
  f.bytes = qk_spinor_bytes(&f.v);
  qk_spinor_place(&f.v, memory);
  return f;
}

void qk_field_destroy(qk_field_t *field) {
  if (!field) return;
  field->dev->ops->free(field->dev->ctx, field->v.data);
  qk_free(field);
}

/* Piece i of equal ones, of the size of v. */
static void advance(qk_spinor_t *v, int i) {
  v->data = (char *)v->data + i * qk_spinor_data_bytes(v);
  if (v->scale) v->scale += i * tile_count(v->ntile, v->nsites) * QK_TILE;
}

qk_spinor_t qk_field_parity(const qk_field_t *field, qk_subset_t parity) {
  qk_spinor_t v = field->v;
  if (v.subset != QK_FULL || parity == QK_FULL) return v;
  QK_ASSERT(v.inner <= 1);
  v.subset = parity;
  v.nsites /= 2;
  if (parity == QK_ODD) advance(&v, 1);
  return v;
}

qk_field_t qk_field_vector(const qk_field_t *field, int k) {
  qk_field_t f = *field;
  const int n = f.v.inner;
  if (n <= 1) return f;
  f.v.inner = 1;
  f.v.nsites /= n;
  f.bytes /= (size_t)n;
  advance(&f.v, k);
  return f;
}
