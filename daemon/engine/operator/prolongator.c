#include "daemon/engine/operator/prolongator.h"

#include "daemon/base/mem.h"

/* Aggregates of all ranks whose vectors are dependent: the same verdict everywhere. */
static qk_status_t judge(const qk_device_t *fine, int64_t dependent, qk_err_t *err) {
  uint64_t n = (uint64_t)dependent;
  qk_status_t status = qk_comm_sum_u64(fine->geom->comm, &n, 1);
  if (status) return status;
  if (n == 0) return QK_OK;
  return qk_fail(err, QK_BREAKDOWN, "null vectors are linearly dependent on %llu aggregates",
                 (unsigned long long)n);
}

static qk_status_t fill(qk_prolongator_t *p, qk_field_t *v, qk_err_t *err) {
  const qk_device_t *dev = p->fine;
  int64_t dependent = 0;
  qk_orthonormalise_args_t ortho = {.agg = p->t.agg, .v = v->v, .dependent = &dependent};
  qk_status_t status = dev->ops->orthonormalise(dev->ctx, &ortho);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) return status;
  status = judge(dev, dependent, err);
  if (status) return status;
  qk_transfer_copy_args_t set = {.t = p->t, .v = v->v};
  return dev->ops->transfer_set(dev->ctx, &set);
}

qk_status_t qk_prolongator_create(const qk_device_t *fine, const qk_device_t *coarse,
                                  const int block[4], qk_prec_t prec, qk_field_t *v,
                                  qk_prolongator_t **prolongator, qk_err_t *err) {
  qk_prolongator_t *p = qk_calloc(1, sizeof *p);
  void *data = NULL;
  qk_status_t status = QK_NO_MEMORY;
  if (!p) goto agree;
  *p = (qk_prolongator_t){.fine = fine,
                          .coarse = coarse,
                          .t = {.agg = {.fine = fine->geom->lat, .coarse = coarse->geom->lat},
                                .prec = prec,
                                .ncomp = fine->geom->ncomp,
                                .nvec = coarse->geom->ncomp / 2}};
  for (int mu = 0; mu < 4; mu++) p->t.agg.block[mu] = block[mu];
  status = fine->ops->alloc(fine->ctx, fine->ops->transfer_bytes(&p->t), &data);
  p->t.data = data;
agree:
  status = qk_comm_agree(fine->geom->comm, status, err);
  if (!status) status = fill(p, v, err);
  if (status) {
    qk_prolongator_destroy(p);
    return qk_fail(err, status, "prolongator: %s", qk_status_text(status));
  }
  *prolongator = p;
  return QK_OK;
}

void qk_prolongator_destroy(qk_prolongator_t *p) {
  if (!p) return;
  if (p->t.data) p->fine->ops->free(p->fine->ctx, p->t.data);
  qk_free(p);
}

void qk_prolongator_vectors(const qk_prolongator_t *p, qk_field_t *v) {
  const qk_device_t *dev = p->fine;
  qk_transfer_copy_args_t get = {.t = p->t, .v = v->v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->transfer_get(dev->ctx, &get));
}

void qk_prolongator_restrict(const qk_prolongator_t *p, qk_field_t *coarse,
                             const qk_field_t *fine) {
  const qk_device_t *dev = p->fine;
  qk_transfer_args_t args = {
      .t = p->t, .parity = fine->v.subset, .fine = fine->v, .coarse = coarse->v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->restrict_(dev->ctx, &args));
}

void qk_prolongator_prolong(const qk_prolongator_t *p, qk_field_t *fine, const qk_field_t *coarse,
                            bool add) {
  const qk_device_t *dev = p->fine;
  qk_transfer_args_t args = {
      .t = p->t, .parity = fine->v.subset, .add = add, .fine = fine->v, .coarse = coarse->v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->prolong(dev->ctx, &args));
}
