#include "daemon/engine/multigrid/cycle_vectors.h"

#include "daemon/base/mem.h"
#include "daemon/engine/multigrid/cycle_impl.h"
#include "daemon/engine/multigrid/mg_levels.h"

struct qk_cycle_vectors {
  qk_cycle_t *cycle;
  qk_operator_t *op;
  void *minus; /* flavours of the lower vectors */
};

qk_status_t qk_cycle_vectors_create(qk_cycle_t *cycle, qk_operator_t *op,
                                    qk_cycle_vectors_t **vectors) {
  *vectors = NULL;
  if (!op->base) return QK_OK;
  qk_cycle_vectors_t *v = qk_calloc(1, sizeof *v);
  if (!v) return QK_NO_MEMORY;
  v->cycle = cycle;
  v->op = op;
  const qk_status_t status = qk_mg_all_minus(op->dev, cycle->nrhs, &v->minus);
  if (status == QK_OK)
    *vectors = v;
  else
    qk_free(v);
  return status;
}

void qk_cycle_vectors_destroy(qk_cycle_vectors_t *v) {
  if (!v) return;
  v->op->dev->ops->free(v->op->dev->ctx, v->minus);
  qk_free(v);
}

/* r in the precision of the cycle: r itself, in `room`, or in *own, a work field. */
static qk_field_t input(const qk_cycle_vectors_t *v, const qk_field_t *r, const qk_field_t *room,
                        qk_field_t **own) {
  const qk_prec_t prec = v->cycle->level[0].prec;
  *own = NULL;
  if (r->v.prec == prec) return *r;
  const size_t bytes = qk_field_bytes(r->dev->geom, prec, r->v.nrhs, r->v.subset);
  qk_field_t in;
  if (room && room->bytes >= bytes) {
    in = qk_field_at(r->dev, prec, r->v.nrhs, r->v.subset, room->v.data);
  } else {
    *own = qk_work_take(v->op->work, prec, r->v.nrhs, r->v.subset);
    in = **own;
  }
  qk_dev_blas(r->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {in.v, r->v}});
  return in;
}

static qk_status_t sweep(qk_cycle_vectors_t *v, qk_field_t *z, const qk_field_t *r,
                         const qk_field_t *b, const uint8_t *mask) {
  qk_status_t status = QK_OK;
  for (int k = 0; k < qk_field_vectors(z) && status == QK_OK; k++) {
    qk_field_t bk = qk_field_vector(b, k), zk = qk_field_vector(z, k);
    status = v->op->ops->vector_system(v->op, &bk, k, r, z);
    if (status != QK_OK) return status;
    qk_flavours_set(v->op->base, k == 0 ? NULL : v->minus);
    status = qk_cycle_apply(v->cycle, &zk, &bk, NULL, mask);
    qk_flavours_set(v->op->base, NULL);
  }
  return status;
}

static qk_status_t apply(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                         const uint8_t *mask) {
  qk_cycle_vectors_t *v = self;
  const qk_device_t *dev = v->op->dev;
  qk_field_t *own;
  const qk_field_t in = input(v, r, room, &own);
  qk_field_t *b = qk_work_take(v->op->work, v->cycle->level[0].prec, r->v.nrhs, r->v.subset);
  if (qk_dev_ok(dev)) qk_dev_note(dev, sweep(v, z, &in, b, mask));
  qk_work_release(v->op->work, b);
  qk_work_release(v->op->work, own);
  return qk_dev_status(dev);
}

qk_precond_t qk_cycle_vectors_precond(qk_cycle_t *cycle, qk_cycle_vectors_t *v) {
  qk_precond_t p = qk_cycle_precond(cycle);
  if (!v) return p;
  p.apply = apply;
  p.self = v;
  return p;
}
