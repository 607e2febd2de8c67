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

/* v becomes orthonormal on each aggregate, and the vectors from `first` on. */
static qk_status_t fill(qk_prolongator_t *p, int first, qk_field_t *v, qk_err_t *err) {
  const qk_device_t *dev = p->fine;
  int64_t dependent = 0;
  qk_orthonormalise_args_t ortho = {.agg = p->t.agg, .v = v->v, .dependent = &dependent};
  qk_status_t status = dev->ops->orthonormalise(dev->ctx, &ortho);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) return status;
  status = judge(dev, dependent, err);
  if (status) return status;
  qk_transfer_copy_args_t set = {.t = p->t, .v = v->v, .first = first};
  return dev->ops->transfer_set(dev->ctx, &set);
}

/* Where the coarse level is whole: the aggregates of this rank. */
static qk_status_t cut(qk_prolongator_t *p, const int block[4]) {
  const int nvec = p->coarse->geom->ncomp / 2;
  p->cut = p->coarse;
  if (!p->coarse->geom->whole) return QK_OK;
  const qk_status_t status = qk_geom_coarsen(p->fine->geom, block, nvec, &p->cut_geom, NULL);
  if (status) return status;
  p->cut_dev = *p->fine;
  p->cut_dev.geom = &p->cut_geom;
  p->cut = &p->cut_dev;
  return qk_gather_create(p->cut, p->coarse, &p->gather);
}

/* Without vectors; *prolongator also after an error. Not collective. */
static qk_status_t allocate(const qk_device_t *fine, const qk_device_t *coarse, const int block[4],
                            qk_prec_t prec, qk_prolongator_t **prolongator) {
  qk_prolongator_t *p = *prolongator = qk_calloc(1, sizeof *p);
  void *data = NULL;
  if (!p) return QK_NO_MEMORY;
  *p = (qk_prolongator_t){.fine = fine, .coarse = coarse};
  qk_status_t status = cut(p, block);
  if (status) return status;
  p->t = (qk_transfer_t){.agg = {.fine = fine->geom->lat, .coarse = p->cut->geom->lat},
                         .prec = prec,
                         .ncomp = fine->geom->ncomp,
                         .nvec = coarse->geom->ncomp / 2};
  for (int mu = 0; mu < 4; mu++) p->t.agg.block[mu] = block[mu];
  status = fine->ops->alloc(fine->ctx, fine->ops->transfer_bytes(&p->t), &data);
  p->t.data = data;
  return status;
}

static qk_status_t finish(qk_prolongator_t *p, qk_status_t status, qk_prolongator_t **prolongator,
                          qk_err_t *err) {
  if (status) {
    qk_prolongator_destroy(p);
    return qk_fail(err, status, "prolongator: %s", qk_status_text(status));
  }
  *prolongator = p;
  return QK_OK;
}

qk_status_t qk_prolongator_create(const qk_device_t *fine, const qk_device_t *coarse,
                                  const int block[4], qk_prec_t prec, qk_field_t *v,
                                  qk_prolongator_t **prolongator, qk_err_t *err) {
  qk_prolongator_t *p;
  qk_status_t status = allocate(fine, coarse, block, prec, &p);
  status = qk_comm_agree(fine->geom->comm, status, err);
  return finish(p, status ? status : fill(p, 0, v, err), prolongator, err);
}

/* ---- vectors in turns ------------------------------------------------------------------------ */

static qk_status_t clear(const qk_prolongator_t *p) {
  const qk_device_t *dev = p->fine;
  return dev->ops->zero(dev->ctx, p->t.data, dev->ops->transfer_bytes(&p->t), 0);
}

qk_status_t qk_prolongator_reserve(const qk_device_t *fine, const qk_device_t *coarse,
                                   const int block[4], qk_prec_t prec,
                                   qk_prolongator_t **prolongator, qk_err_t *err) {
  qk_prolongator_t *p;
  qk_status_t status = allocate(fine, coarse, block, prec, &p);
  status = qk_comm_agree(fine->geom->comm, status ? status : clear(p), err);
  return finish(p, status, prolongator, err);
}

/* v -= P P^+ v; b: work space. */
static void project_out(const qk_prolongator_t *p, qk_field_t *v, qk_field_t *b) {
  const qk_device_t *dev = p->coarse;
  const qk_chiral_args_t negate = {.plus = -1, .minus = -1, .in = b->v, .out = b->v};
  qk_prolongator_restrict(p, b, v);
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->chiral(dev->ctx, &negate));
  qk_prolongator_prolong(p, v, b, true);
}

/* Columns of `null` from `first` on = those of b. */
static void place(const qk_device_t *dev, int first, const qk_field_t *b, qk_field_t *null) {
  for (int i = 0; i < b->v.nrhs; i++) {
    const qk_rhs_copy_args_t args = {
        .to = null->v, .from = b->v, .to_rhs = first + i, .from_rhs = i};
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &args));
  }
}

/* Work fields of join: v as it was, and its products. */
typedef struct joining {
  qk_field_t *raw, *b;
} joining_t;

static qk_status_t joining_create(const qk_prolongator_t *p, const qk_field_t *v, joining_t *w) {
  const qk_status_t status = qk_field_create(p->fine, QK_SINGLE, v->v.nrhs, QK_FULL, &w->raw);
  return status ? status : qk_field_create(p->coarse, QK_SINGLE, v->v.nrhs, QK_FULL, &w->b);
}

/* Projected twice, since what is left of v may be small. */
static qk_status_t join(qk_prolongator_t *p, int first, qk_field_t *v, qk_field_t *null,
                        const joining_t *w, qk_err_t *err) {
  const qk_device_t *dev = p->fine;
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {w->raw->v, v->v}});
  for (int pass = 0; first > 0 && pass < 2; pass++) project_out(p, v, w->b);
  qk_status_t status = qk_comm_agree(dev->geom->comm, qk_dev_status(dev), err);
  if (status) return status;
  status = fill(p, first, v, err);
  if (status) return status;
  qk_prolongator_restrict(p, w->b, w->raw);
  place(dev, first, w->b, null);
  qk_dev_sync(dev);
  return qk_comm_agree(dev->geom->comm, qk_dev_status(dev), err);
}

qk_status_t qk_prolongator_join(qk_prolongator_t *p, int first, qk_field_t *v, qk_field_t *null,
                                qk_err_t *err) {
  joining_t w = {NULL, NULL};
  qk_status_t status = qk_comm_agree(p->fine->geom->comm, joining_create(p, v, &w), err);
  if (status == QK_OK) status = join(p, first, v, null, &w, err);
  qk_field_destroy(w.b);
  qk_field_destroy(w.raw);
  return status ? qk_fail(err, status, "prolongator: %s", qk_status_text(status)) : QK_OK;
}

/* ---- more test vectors than vectors ---------------------------------------------------------- */

static qk_status_t copy_leading(const qk_device_t *dev, const qk_field_t *v, qk_field_t *leading) {
  for (int i = 0; i < leading->v.nrhs; i++) {
    const qk_rhs_copy_args_t args = {.to = leading->v, .from = v->v, .to_rhs = i, .from_rhs = i};
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->rhs_copy(dev->ctx, &args));
  }
  return qk_dev_status(dev);
}

/* The first columns of v become the vectors. */
static qk_status_t fill_leading(qk_prolongator_t *p, const qk_field_t *v, qk_err_t *err) {
  const qk_device_t *dev = p->fine;
  qk_field_t *leading = NULL;
  qk_status_t status = qk_field_create(dev, QK_SINGLE, p->t.nvec, QK_FULL, &leading);
  status = status ? status : copy_leading(dev, v, leading);
  status = qk_comm_agree(dev->geom->comm, status, err);
  status = status ? status : fill(p, 0, leading, err);
  qk_field_destroy(leading);
  return status;
}

static qk_status_t condense(qk_prolongator_t *p, qk_field_t *v, qk_field_t *null,
                            const joining_t *w, qk_err_t *err) {
  const qk_device_t *dev = p->fine;
  const qk_principal_args_t principal = {.agg = p->t.agg, .v = v->v, .keep = p->t.nvec};
  qk_dev_blas(dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {w->raw->v, v->v}});
  qk_status_t status = qk_dev_status(dev);
  status = status ? status : dev->ops->principal(dev->ctx, &principal);
  if (status == QK_UNSUPPORTED) status = QK_OK; /* the first test vectors are the vectors then */
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) return status;
  status = fill_leading(p, v, err);
  if (status) return status;
  qk_prolongator_restrict(p, null, w->raw);
  qk_dev_sync(dev);
  return qk_comm_agree(dev->geom->comm, qk_dev_status(dev), err);
}

qk_status_t qk_prolongator_condense(qk_prolongator_t *p, qk_field_t *v, qk_field_t *null,
                                    qk_err_t *err) {
  joining_t w = {NULL, NULL};
  qk_status_t status = qk_field_create(p->fine, QK_SINGLE, v->v.nrhs, QK_FULL, &w.raw);
  status = qk_comm_agree(p->fine->geom->comm, status, err);
  status = status ? status : condense(p, v, null, &w, err);
  qk_field_destroy(w.raw);
  return status ? qk_fail(err, status, "prolongator: %s", qk_status_text(status)) : QK_OK;
}

void qk_prolongator_destroy(qk_prolongator_t *p) {
  if (!p) return;
  qk_gather_destroy(p->gather);
  if (p->t.data) p->fine->ops->free(p->fine->ctx, p->t.data);
  qk_free(p);
}

void qk_prolongator_vectors(const qk_prolongator_t *p, int first, qk_field_t *v) {
  const qk_device_t *dev = p->fine;
  qk_transfer_copy_args_t get = {.t = p->t, .v = v->v, .first = first};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->transfer_get(dev->ctx, &get));
}

void qk_prolongator_restrict(const qk_prolongator_t *p, qk_field_t *coarse,
                             const qk_field_t *fine) {
  const qk_device_t *dev = p->fine;
  const qk_field_t own = p->gather ? qk_gather_room(p->gather, coarse) : *coarse;
  const qk_transfer_args_t args = {
      .t = p->t, .parity = fine->v.subset, .fine = fine->v, .coarse = own.v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->restrict_(dev->ctx, &args));
  if (p->gather) qk_gather_all(p->gather, coarse);
}

void qk_prolongator_prolong(const qk_prolongator_t *p, qk_field_t *fine, const qk_field_t *coarse,
                            bool add) {
  const qk_device_t *dev = p->fine;
  const qk_field_t own = p->gather ? qk_gather_own(p->gather, coarse) : *coarse;
  const qk_transfer_args_t args = {
      .t = p->t, .parity = fine->v.subset, .add = add, .fine = fine->v, .coarse = own.v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->prolong(dev->ctx, &args));
}
