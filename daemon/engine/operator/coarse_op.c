#include "daemon/engine/operator/coarse_op.h"

#include "daemon/base/mem.h"

/* ---- one pass of the kernel ------------------------------------------------------------------ */

/* What a pass computes; coefficients as in qk_coarse_args_t. */
typedef struct pass {
  const qk_coarse_links_t *diag;  /* of both flavours; NULL: 1 */
  const qk_coarse_links_t *links; /* of all; NULL: yhat */
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

static void launch(const qk_device_t *dev, const qk_coarse_args_t *args) {
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->coarse(dev->ctx, args));
}

/* Matrices of right-hand sides without and with `minus`. both NULL: none. */
static void choose(const qk_coarse_op_t *c, const qk_coarse_links_t *both, qk_coarse_links_t *plus,
                   qk_coarse_links_t *minus) {
  if (!both) return;
  const bool twisted = c->op.twist != 0;
  *plus = both[twisted && c->other];
  *minus = both[twisted && !c->other];
}

static void run_pass(qk_coarse_op_t *c, const pass_t *p, qk_spinor_t out, qk_spinor_t in) {
  const qk_device_t *dev = c->op.dev;
  qk_coarse_args_t args = {.lat = dev->geom->lat,
                           .out_parity = out.subset,
                           .region = QK_REGION_ALL,
                           .hops = p->hops,
                           .c_hop = p->c_hop,
                           .c_z = p->c_z,
                           .c_x = p->c_x,
                           .minus = c->op.twist != 0 ? c->op.flavours->minus : NULL,
                           .in = in,
                           .z = p->z,
                           .x = p->x,
                           .out = out};
  choose(c, c->yhat, &args.links, &args.links_minus);
  choose(c, p->diag, &args.diag, &args.diag_minus);
  if (p->links)
    args.links = args.links_minus = *p->links;
  else if (c->op.rough)
    args.eight = c->eight;
  for (int mu = 0; p->block && mu < 4; mu++) args.block[mu] = p->block[mu];
  if (!needs_halo(&args)) {
    launch(dev, &args);
    return;
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_halo_begin_coarse(c->halo, &args));
  args.region = QK_REGION_INTERIOR;
  launch(dev, &args);
  qk_dev_note(dev, qk_halo_end(c->halo)); /* the neighbours wait for our messages either way */
  args.region = QK_REGION_BOUNDARY;
  launch(dev, &args);
}

static void gamma5(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in) {
  const qk_device_t *dev = c->op.dev;
  qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = in, .out = out};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->chiral(dev->ctx, &args));
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool fits(const qk_field_t *out, const qk_field_t *in, qk_subset_t subset) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return a->prec == QK_SINGLE && b->prec == QK_SINGLE && a->nrhs == b->nrhs && out != in &&
         a->subset == subset && b->subset == subset;
}

static qk_field_t *take(const qk_operator_t *op, int nrhs, qk_subset_t subset) {
  return qk_work_take(op->work, QK_SINGLE, nrhs, subset);
}

/* out = x + s A (in + Yhat in); x absent: 0. */
static void apply_m(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x,
                    double s) {
  qk_field_t *t = take(&c->op, in.nrhs, QK_FULL);
  pass_t first = {.c_hop = 1, .c_x = 1, .x = in};
  pass_t second = {.diag = c->a, .c_z = s, .z = t->v};
  if (x) {
    second.c_x = 1;
    second.x = x->v;
  }
  run_pass(c, &first, t->v, in);
  run_pass(c, &second, out, in);
  qk_work_release(c->op.work, t);
}

/* out = x + s G5 M G5 in = G5 (G5 x + s M G5 in), M of the other flavour */
static void apply_m_adjoint(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x,
                            double s) {
  qk_field_t *t = take(&c->op, in.nrhs, QK_FULL);
  qk_field_t *gx = x ? take(&c->op, in.nrhs, QK_FULL) : NULL;
  if (x) gamma5(c, gx->v, x->v);
  gamma5(c, t->v, in);
  c->other = true;
  apply_m(c, out, t->v, gx, s);
  c->other = false;
  gamma5(c, out, out);
  qk_work_release(c->op.work, gx);
  qk_work_release(c->op.work, t);
}

static qk_status_t coarse_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool dagger, const qk_field_t *x, double c) {
  qk_coarse_op_t *self = (qk_coarse_op_t *)op;
  if (!fits(out, in, QK_FULL)) return QK_BAD_ARGUMENT;
  if (dagger && op->schur.is) return QK_UNSUPPORTED;
  op->applications[QK_SINGLE]++;
  if (dagger)
    apply_m_adjoint(self, out->v, in->v, x, x ? c : 1);
  else
    apply_m(self, out->v, in->v, x, x ? c : 1);
  return qk_dev_status(op->dev);
}

/* out = second in, where the hop of `second` is that of `first` in. */
static void two_passes(qk_coarse_op_t *c, const pass_t *first, const pass_t *second,
                       qk_spinor_t out, qk_spinor_t in) {
  qk_field_t *odd = take(&c->op, in.nrhs, QK_ODD);
  run_pass(c, first, odd->v, in);
  run_pass(c, second, out, odd->v);
  qk_work_release(c->op.work, odd);
}

/* out = in - Yhat_eo Yhat_oe in, or x - Mhat in. */
static void mhat(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x,
                 const int *block) {
  pass_t first = {.block = block, .c_hop = 1};
  pass_t second = {.block = block, .c_hop = -1, .c_x = 1, .x = in};
  if (x) {
    second.c_hop = 1;
    second.x = x->v;
    second.c_z = -1;
    second.z = in;
  }
  two_passes(c, &first, &second, out, in);
}

/* Mhat^+ = G5 A_ee Mhat A_ee^-1 G5, all of the other flavour */
static void mhat_adjoint(qk_coarse_op_t *c, qk_spinor_t out, qk_spinor_t in, const qk_field_t *x) {
  qk_field_t *s = take(&c->op, in.nrhs, QK_EVEN), *t = take(&c->op, in.nrhs, QK_EVEN);
  pass_t in_by_a = {.diag = c->inverse, .c_z = 1, .z = s->v};
  pass_t times_a = {.diag = c->a, .c_z = 1, .z = s->v};
  gamma5(c, s->v, in);
  c->other = true;
  run_pass(c, &in_by_a, t->v, s->v);
  mhat(c, s->v, t->v, NULL, NULL);
  run_pass(c, &times_a, t->v, s->v);
  c->other = false;
  gamma5(c, out, t->v);
  if (x) qk_dev_blas(c->op.dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {out, x->v, out}});
  qk_work_release(c->op.work, t);
  qk_work_release(c->op.work, s);
}

static qk_status_t coarse_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       bool dagger, const qk_field_t *x) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  if (dagger && op->schur.is) return QK_UNSUPPORTED;
  op->applications[QK_SINGLE]++;
  if (dagger)
    mhat_adjoint(c, out->v, in->v, x);
  else
    mhat(c, out->v, in->v, x, NULL);
  return qk_dev_status(op->dev);
}

static qk_status_t coarse_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                double factor) {
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  pass_t first = {.c_hop = 1}, second = {.c_hop = factor, .c_x = 1 - factor, .x = in->v};
  op->applications[QK_SINGLE]++;
  two_passes((qk_coarse_op_t *)op, &first, &second, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t coarse_apply_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       const int block[4]) {
  if (!fits(out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  op->applications[QK_SINGLE]++;
  mhat((qk_coarse_op_t *)op, out->v, in->v, NULL, block);
  return qk_dev_status(op->dev);
}

/* out_e = A_ee^-1 b_e - Yhat_eo A_oo^-1 b_o */
static qk_status_t coarse_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (b->v.prec != QK_SINGLE || out->v.prec != QK_SINGLE || b->v.nrhs != out->v.nrhs ||
      b->v.subset != QK_FULL || out->v.subset != QK_EVEN)
    return QK_BAD_ARGUMENT;
  qk_spinor_t be = qk_field_parity(b, QK_EVEN), bo = qk_field_parity(b, QK_ODD);
  pass_t first = {.diag = c->inverse, .c_z = 1, .z = bo};
  pass_t second = {.diag = c->inverse, .c_hop = -1, .c_z = 1, .z = be};
  two_passes(c, &first, &second, out->v, be);
  return qk_dev_status(op->dev);
}

/* x_o = A_oo^-1 b_o - Yhat_oe x_e */
static qk_status_t coarse_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                      const qk_field_t *b) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(x, b, QK_FULL) || xe->v.prec != QK_SINGLE) return QK_BAD_ARGUMENT;
  qk_spinor_t even = qk_field_parity(x, QK_EVEN);
  if (xe->v.data != even.data)
    qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {even, qk_field_parity(xe, QK_EVEN)}});
  pass_t p = {.diag = c->inverse, .c_hop = -1, .c_z = 1, .z = qk_field_parity(b, QK_ODD)};
  run_pass(c, &p, qk_field_parity(x, QK_ODD), even);
  return qk_dev_status(op->dev);
}

static qk_status_t coarse_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xe,
                                          const qk_field_t *b) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(r, xe, QK_EVEN) || b->v.prec != QK_SINGLE || b->v.nrhs != r->v.nrhs ||
      b->v.subset != QK_FULL)
    return QK_BAD_ARGUMENT;
  pass_t first = {.diag = c->inverse, .c_hop = -1, .c_z = 1, .z = qk_field_parity(b, QK_ODD)};
  pass_t second = first;
  second.z = qk_field_parity(b, QK_EVEN);
  second.c_x = -1;
  second.x = xe->v;
  op->applications[QK_SINGLE]++;
  two_passes(c, &first, &second, r->v, xe->v);
  return qk_dev_status(op->dev);
}

static qk_status_t coarse_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                               bool inverse, bool dagger) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(out, in, in->v.subset) || dagger) return QK_BAD_ARGUMENT;
  const qk_coarse_links_t exact[2] = {c->exact_a};
  const bool plus = op->twist == 0 || op->flavours->minus == NULL;
  const qk_coarse_links_t *a = exact[0].data && plus ? exact : c->a;
  pass_t p = {.diag = inverse ? c->inverse : a, .c_z = 1, .z = in->v};
  run_pass(c, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

/* Hops of one direction. sense: 0 from n+mu, 1 from n-mu. */
static qk_status_t one_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu,
                           int sense) {
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (!fits(out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  pass_t hop = {.hops = 1u << (2 * mu + sense), .c_hop = 1};
  if (c->exact_y.data) {
    hop.links = &c->exact_y;
    run_pass(c, &hop, out->v, in->v);
  } else {
    qk_field_t *t = take(op, in->v.nrhs, QK_FULL);
    pass_t times_a = {.diag = c->a, .c_z = 1, .z = t->v};
    run_pass(c, &hop, t->v, in->v);
    run_pass(c, &times_a, out->v, in->v);
    qk_work_release(op->work, t);
  }
  return qk_dev_status(op->dev);
}

static qk_status_t coarse_hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                      int mu) {
  return one_hop(op, out, in, mu, 0);
}

static qk_status_t coarse_hop_backward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       int mu) {
  return one_hop(op, out, in, mu, 1);
}

void qk_coarse_op_free_links(const qk_device_t *dev, qk_coarse_links_t *links) {
  if (links->data) dev->ops->free(dev->ctx, links->data);
  links->data = NULL;
}

static void coarse_destroy(qk_operator_t *op) {
  if (!op) return;
  qk_coarse_op_t *c = (qk_coarse_op_t *)op;
  if (c->eight) op->dev->ops->free(op->dev->ctx, c->eight);
  qk_coarse_op_free_links(op->dev, &c->exact_y);
  qk_coarse_op_free_links(op->dev, &c->exact_a);
  for (int f = 1; f >= 0; f--) {
    qk_coarse_op_free_links(op->dev, &c->inverse[f]);
    qk_coarse_op_free_links(op->dev, &c->a[f]);
    qk_coarse_op_free_links(op->dev, &c->yhat[f]);
  }
  qk_halo_destroy(c->halo);
  qk_free(c);
}

static const qk_operator_ops_t coarse_ops = {.apply = coarse_apply,
                                             .apply_system = coarse_apply_system,
                                             .prepare = coarse_prepare,
                                             .reconstruct = coarse_reconstruct,
                                             .residual_system = coarse_residual_system,
                                             .relax = coarse_relax,
                                             .apply_blocks = coarse_apply_blocks,
                                             .hop_forward = coarse_hop_forward,
                                             .hop_backward = coarse_hop_backward,
                                             .diag = coarse_diag,
                                             .destroy = coarse_destroy};

qk_status_t qk_coarse_op_create(const qk_device_t *dev, qk_work_t *work, qk_coarse_op_t **coarse) {
  qk_coarse_op_t *c = qk_calloc(1, sizeof *c);
  if (!c) return QK_NO_MEMORY;
  int64_t product = 8 * (int64_t)dev->geom->ncomp * dev->geom->ncomp;
  c->op = (qk_operator_t){.ops = &coarse_ops,
                          .dev = dev,
                          .work = work,
                          .action = "coarse",
                          .system = QK_EVEN,
                          .chirality = QK_CHIRALITY_SPIN,
                          .diag_scale = 1,
                          .flops_full = 9 * product,
                          .flops_system = 8 * product};
  qk_status_t status = qk_halo_create(dev, &c->halo);
  if (status) {
    qk_free(c);
    return status;
  }
  *coarse = c;
  return QK_OK;
}
