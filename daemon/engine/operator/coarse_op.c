#include "daemon/engine/operator/coarse_op.h"

#include "daemon/base/mem.h"

/* ---- one pass of the kernel ------------------------------------------------------------------------ */

/* What a pass computes; coefficients as in qk_coarse_args_t. */
typedef struct pass {
  const qk_coarse_links_t *diag;  /* NULL: 1 */
  const qk_coarse_links_t *links; /* NULL: yhat */
  uint32_t hops;                  /* 0: all */
  const int *block;               /* NULL: hops are not cut */
  double c_hop, c_z, c_x;
  qk_spinor_t z, x;
} pass_t;

/* Blocks end at the edges of ranks. */
static bool needs_halo(const qk_coarse_args_t *args) {
  for (int mu = 0; mu < 4; mu++)
    if (args->lat.split[mu] && args->block[mu] == 0) return args->c_hop != 0;
  return false;
}

static qk_status_t run_pass(qk_coarse_op_t *c, const pass_t *p, qk_spinor_t out, qk_spinor_t in) {
  const qk_device_t *dev = c->op.dev;
  qk_coarse_args_t args = {.lat = dev->geom->lat,
                           .out_parity = out.subset,
                           .region = QK_REGION_ALL,
                           .hops = p->hops,
                           .c_hop = p->c_hop,
                           .c_z = p->c_z,
                           .c_x = p->c_x,
                           .links = p->links ? *p->links : c->yhat,
                           .in = in,
                           .z = p->z,
                           .x = p->x,
                           .out = out};
  if (p->diag) args.diag = *p->diag;
  for (int mu = 0; p->block && mu < 4; mu++) args.block[mu] = p->block[mu];
  if (!needs_halo(&args)) return dev->ops->coarse(dev->ctx, &args);

  qk_status_t status = qk_halo_begin_coarse(c->halo, &args);
  if (status) return status;
  args.region = QK_REGION_INTERIOR;
  status = dev->ops->coarse(dev->ctx, &args);
  qk_status_t arrived = qk_halo_end(c->halo); /* the neighbours wait for our messages either way */
  if (status || arrived) return status ? status : arrived;
  args.region = QK_REGION_BOUNDARY;
  return dev->ops->coarse(dev->ctx, &args);
}

static qk_status_t gamma5(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in) {
  qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = in, .out = out};
  return c->op.dev->ops->chiral(c->op.dev->ctx, &args);
}

/* ---- the table --------------------------------------------------------------------------------------- */

static bool fits(const qk_field_t *out, const qk_field_t *in, qk_subset_t subset) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return a->prec == QK_SINGLE && b->prec == QK_SINGLE && a->nrhs == b->nrhs && out != in &&
         a->subset == subset && b->subset == subset;
}

/* out = x + s A (in + Yhat in); x absent: 0. */
static qk_status_t apply_m(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x,
                           double s) {
  qk_field_t *t;
  qk_status_t status = qk_work_reserve(c->op.work, QK_SINGLE, in.nrhs, QK_FULL, &t);
  if (status) return status;
  pass_t first = {.c_hop = 1, .c_x = 1, .x = in};
  pass_t second = {.diag = &c->a, .c_z = s, .z = t->v};
  if (x) {
    second.c_x = 1;
    second.x = x->v;
  }
  status = run_pass(c, &first, t->v, in);
  if (!status) status = run_pass(c, &second, out, in);
  qk_work_release(c->op.work, t);
  return status;
}

static qk_status_t coarse_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool dagger, const qk_field_t *x, double c) {
  qk_coarse_op_t *self = (qk_coarse_op_t *)op;
  qk_field_t *t;
  if (!fits(out, in, QK_FULL)) return QK_BAD_ARGUMENT;
  op->applications[QK_SINGLE]++;
  if (!dagger) return apply_m(self, out->v, in->v, x, x ? c : 1);

  /* x + c G5 M G5 in = G5 (G5 x + c M G5 in) */
  qk_status_t status = qk_work_reserve(op->work, QK_SINGLE, in->v.nrhs, QK_FULL, &t);
  if (status) return status;
  qk_field_t *gx = NULL;
  if (x) status = qk_work_reserve(op->work, QK_SINGLE, in->v.nrhs, QK_FULL, &gx);
  if (!status && x) status = gamma5(self, gx->v, x->v);
  if (!status) status = gamma5(self, t->v, in->v);
  if (!status) status = apply_m(self, out->v, t->v, gx, x ? c : 1);
  if (!status) status = gamma5(self, out->v, out->v);
  qk_work_release(op->work, gx);
  qk_work_release(op->work, t);
  return status;
}

/* out = in - Yhat_eo Yhat_oe in, or x - Mhat in. */
static qk_status_t mhat(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x,
                        const int *block) {
  qk_field_t *odd;
  qk_status_t status = qk_work_reserve(c->op.work, QK_SINGLE, in.nrhs, QK_ODD, &odd);
  if (status) return status;
  pass_t first = {.block = block, .c_hop = 1};
  pass_t second = {.block = block, .c_hop = -1, .c_x = 1, .x = in};
  if (x) {
    second.c_hop = 1;
    second.x = x->v;
    second.c_z = -1;
    second.z = in;
  }
  status = run_pass(c, &first, odd->v, in);
  if (!status) status = run_pass(c, &second, out, odd->v);
  qk_work_release(c->op.work, odd);
  return status;
}

/* Mhat^+ = G5 A_ee Mhat A_ee^-1 G5 */
static qk_status_t mhat_adjoint(qk_coarse_op_t *c, qk_field_t *out, const qk_field_t *in,
                                const qk_field_t *x) {
  qk_field_t *s, *t = NULL;
  qk_status_t status = qk_work_reserve(c->op.work, QK_SINGLE, in->v.nrhs, QK_EVEN, &s);
  if (status) return status;
  status = qk_work_reserve(c->op.work, QK_SINGLE, in->v.nrhs, QK_EVEN, &t);
  if (status) goto done;
  pass_t in_by_a = {.diag = &c->inverse, .c_z = 1, .z = s->v};
  pass_t times_a = {.diag = &c->a, .c_z = 1, .z = s->v};
  status = gamma5(c, s->v, in->v);
  if (!status) status = run_pass(c, &in_by_a, t->v, s->v);
  if (!status) status = mhat(c, s->v, t->v, NULL, NULL);
  if (!status) status = run_pass(c, &times_a, t->v, s->v);
  if (!status) status = gamma5(c, out->v, t->v);
  if (!status && x) {
    qk_blas_args_t sub = {.f = {out->v, x->v, out->v}};
    status = c->op.dev->ops->blas(c->op.dev->ctx, QK_BLAS_SUB, &sub);
  }
done:
  qk_work_release(c->op.work, t);
  qk_work_release(c->op.work, s);
  return status;
}

static qk_status_t coarse_apply_eo(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   bool dagger, const qk_field_t *x) {
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  op->applications[QK_SINGLE]++;
  return dagger ? mhat_adjoint((qk_coarse_op_t *)op, out, in, x)
                : mhat((qk_coarse_op_t *)op, out->v, in->v, x, NULL);
}

static qk_status_t coarse_relax_eo(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   double factor) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  qk_field_t *odd;
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  qk_status_t status = qk_work_reserve(op->work, QK_SINGLE, in->v.nrhs, QK_ODD, &odd);
  if (status) return status;
  pass_t first = {.c_hop = 1}, second = {.c_hop = factor, .c_x = 1 - factor, .x = in->v};
  op->applications[QK_SINGLE]++;
  status = run_pass(c, &first, odd->v, in->v);
  if (!status) status = run_pass(c, &second, out->v, odd->v);
  qk_work_release(op->work, odd);
  return status;
}

static qk_status_t coarse_apply_eo_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                          const int block[4]) {
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  op->applications[QK_SINGLE]++;
  return mhat((qk_coarse_op_t *)op, out->v, in->v, NULL, block);
}

/* out_e = A_ee^-1 b_e - Yhat_eo A_oo^-1 b_o */
static qk_status_t coarse_prepare_eo(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  qk_field_t *odd;
  if (b->v.prec != QK_SINGLE || out->v.prec != QK_SINGLE || b->v.nrhs != out->v.nrhs ||
      b->v.subset != QK_FULL || out->v.subset != QK_EVEN)
    return QK_BAD_ARGUMENT;
  qk_spinor_t be = qk_field_parity(b, QK_EVEN), bo = qk_field_parity(b, QK_ODD);
  qk_status_t status = qk_work_reserve(op->work, QK_SINGLE, b->v.nrhs, QK_ODD, &odd);
  if (status) return status;
  pass_t first = {.diag = &c->inverse, .c_z = 1, .z = bo};
  pass_t second = {.diag = &c->inverse, .c_hop = -1, .c_z = 1, .z = be};
  status = run_pass(c, &first, odd->v, be);
  if (!status) status = run_pass(c, &second, out->v, odd->v);
  qk_work_release(op->work, odd);
  return status;
}

/* x_o = A_oo^-1 b_o - Yhat_oe x_e */
static qk_status_t coarse_reconstruct_eo(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                         const qk_field_t *b) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(x, b, QK_FULL) || xe->v.prec != QK_SINGLE) return QK_BAD_ARGUMENT;
  qk_spinor_t even = qk_field_parity(x, QK_EVEN);
  if (xe->v.data != even.data) {
    qk_blas_args_t copy = {.f = {even, qk_field_parity(xe, QK_EVEN)}};
    qk_status_t status = op->dev->ops->blas(op->dev->ctx, QK_BLAS_COPY, &copy);
    if (status) return status;
  }
  pass_t p = {.diag = &c->inverse, .c_hop = -1, .c_z = 1, .z = qk_field_parity(b, QK_ODD)};
  return run_pass(c, &p, qk_field_parity(x, QK_ODD), even);
}

static qk_status_t coarse_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                               bool inverse) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(out, in, in->v.subset)) return QK_BAD_ARGUMENT;
  const qk_coarse_links_t *a = c->exact_a.data ? &c->exact_a : &c->a;
  pass_t p = {.diag = inverse ? &c->inverse : a, .c_z = 1, .z = in->v};
  return run_pass(c, &p, out->v, in->v);
}

static qk_status_t coarse_hop_ahead(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                    int mu) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  qk_field_t *t;
  if (!fits(out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  pass_t hop = {.hops = 1u << (2 * mu), .c_hop = 1};
  if (c->exact_y.data) {
    hop.links = &c->exact_y;
    return run_pass(c, &hop, out->v, in->v);
  }
  qk_status_t status = qk_work_reserve(op->work, QK_SINGLE, in->v.nrhs, QK_FULL, &t);
  if (status) return status;
  pass_t times_a = {.diag = &c->a, .c_z = 1, .z = t->v};
  status = run_pass(c, &hop, t->v, in->v);
  if (!status) status = run_pass(c, &times_a, out->v, in->v);
  qk_work_release(op->work, t);
  return status;
}

static void free_links(const qk_device_t *dev, qk_coarse_links_t *links) {
  if (links->data) dev->ops->free(dev->ctx, links->data);
  links->data = NULL;
}

void qk_coarse_drop_exact(qk_operator_t *coarse) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)coarse;
  free_links(coarse->dev, &c->exact_y);
  free_links(coarse->dev, &c->exact_a);
}

static void coarse_destroy(qk_operator_t *op) {
  if (!op) return;
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  qk_coarse_drop_exact(op);
  free_links(op->dev, &c->inverse);
  free_links(op->dev, &c->a);
  free_links(op->dev, &c->yhat);
  qk_halo_destroy(c->halo);
  qk_free(c);
}

static const qk_operator_ops_t coarse_ops = {.name = "coarse",
                                             .apply = coarse_apply,
                                             .apply_eo = coarse_apply_eo,
                                             .prepare_eo = coarse_prepare_eo,
                                             .reconstruct_eo = coarse_reconstruct_eo,
                                             .relax_eo = coarse_relax_eo,
                                             .apply_eo_blocks = coarse_apply_eo_blocks,
                                             .hop_ahead = coarse_hop_ahead,
                                             .diag = coarse_diag,
                                             .destroy = coarse_destroy};

qk_status_t qk_coarse_op_create(const qk_device_t *dev, qk_work_t *work, qk_coarse_op_t **coarse) {
  qk_coarse_op_t *c = qk_calloc(1, sizeof *c);
  if (!c) return QK_NO_MEMORY;
  int64_t product = 8 * (int64_t)dev->geom->ncomp * dev->geom->ncomp;
  c->op = (qk_operator_t){.ops = &coarse_ops,
                          .dev = dev,
                          .work = work,
                          .diag_scale = 1,
                          .flops_full = 9 * product,
                          .flops_eo = 8 * product};
  qk_status_t status = qk_halo_create(dev, &c->halo);
  if (status) {
    qk_free(c);
    return status;
  }
  *coarse = c;
  return QK_OK;
}
