#include "daemon/engine/action/composed.h"

#include <string.h>

void qk_composed_init(qk_composed_t *c, const qk_composed_ops_t *parts, qk_operator_t *base) {
  c->parts = parts;
  c->geom = *base->dev->geom;
  c->dev = *base->dev;
  c->dev.geom = &c->geom;
  memcpy(c->want, qk_eo_parts(base)->want, sizeof c->want);
  c->op = (qk_operator_t){.dev = &c->dev,
                          .system = QK_EVEN,
                          .flavours = &c->flavours,
                          .base = base,
                          .diag_scale = base->diag_scale};
}

bool qk_composed_alike(const qk_composed_t *c, const qk_field_t *out, const qk_field_t *in,
                       qk_subset_t subset) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return c->want[a->prec] && a->prec == b->prec && a->nrhs == b->nrhs &&
         a->nrhs % qk_geom_slices(&c->geom) == 0 && a->inner == c->geom.inner &&
         b->inner == c->geom.inner && a->subset == subset && b->subset == subset;
}

bool qk_composed_fits(const qk_composed_t *c, const qk_field_t *out, const qk_field_t *in,
                      qk_subset_t subset) {
  return out != in && qk_composed_alike(c, out, in, subset);
}

qk_status_t qk_composed_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                              const qk_field_t *x, double c) {
  qk_composed_t *d = (qk_composed_t *)op;
  if (!qk_composed_fits(d, out, in, QK_FULL)) return QK_BAD_ARGUMENT;
  op->applications[in->v.prec]++;
  d->parts->whole(d, out, in, dagger, x, x ? c : 1);
  return qk_dev_status(op->dev);
}

qk_status_t qk_composed_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                     bool dagger, const qk_field_t *x) {
  qk_composed_t *d = (qk_composed_t *)op;
  const bool in_place = !dagger && x == NULL;
  if (!(in_place ? qk_composed_alike : qk_composed_fits)(d, out, in, QK_EVEN))
    return QK_BAD_ARGUMENT;
  op->applications[in->v.prec]++;
  if (dagger)
    d->parts->adjoint(d, out, in);
  else
    d->parts->twice(d, out, in, NULL, -0.25, 1);
  if (x) qk_dev_blas(op->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {out->v, x->v, out->v}});
  return qk_dev_status(op->dev);
}

qk_status_t qk_composed_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xs,
                                        const qk_field_t *b) {
  qk_composed_t *d = (qk_composed_t *)op;
  if (!qk_composed_fits(d, r, xs, QK_EVEN) || !qk_composed_alike(d, b, b, QK_FULL) ||
      b->v.prec != r->v.prec || b->v.nrhs != r->v.nrhs)
    return QK_BAD_ARGUMENT;
  op->applications[r->v.prec]++;
  d->parts->residual(d, r, xs, b);
  return qk_dev_status(op->dev);
}

static qk_status_t twice(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, const int *block,
                         double c, double c_x) {
  qk_composed_t *d = (qk_composed_t *)op;
  if (!qk_composed_fits(d, out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  op->applications[in->v.prec]++;
  d->parts->twice(d, out, in, block, c, c_x);
  return qk_dev_status(op->dev);
}

qk_status_t qk_composed_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c) {
  return twice(op, out, in, NULL, 0.25 * c, 1 - c);
}

qk_status_t qk_composed_apply_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                     const int block[4]) {
  return twice(op, out, in, block, -0.25, 1);
}
