#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/lattice/halo.h"
#include "daemon/engine/operator/operator.h"

/* What the kernels need of the gauge field, in one precision. */
typedef struct precision_set {
  qk_links_t links;
  qk_local_t diag, inverse; /* A and A^-1; numbers when csw == 0 */
} precision_set_t;

typedef struct wilson {
  qk_operator_t op; /* first: a qk_operator_t * is a wilson_t * */
  qk_wilson_params_t params;
  precision_set_t set[3];
  qk_halo_t *halo;
} wilson_t;

/* ---- one pass of the hop kernel -------------------------------------------------------------- */

/* What a pass computes besides the hop; coefficients as in qk_hop_args_t. */
typedef struct pass {
  bool dagger, diag_on_sum, inverse;
  uint32_t hops;    /* 0: all */
  const int *block; /* NULL: hops are not cut */
  double c_hop, c_z, c_x;
  qk_spinor_t z, x;
} pass_t;

/* Blocks end at the edges of ranks. */
static bool needs_halo(const qk_hop_args_t *args) {
  for (int mu = 0; mu < 4; mu++)
    if (args->lat.split[mu] && args->block[mu] == 0) return args->c_hop != 0;
  return false;
}

static void launch(const qk_device_t *dev, const qk_hop_args_t *args) {
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->hop(dev->ctx, args));
}

static void run_pass(wilson_t *w, const pass_t *p, qk_spinor_t out, qk_spinor_t in) {
  const qk_device_t *dev = w->op.dev;
  const precision_set_t *set = &w->set[out.prec];
  qk_hop_args_t args = {.lat = dev->geom->lat,
                        .out_parity = out.subset,
                        .region = QK_REGION_ALL,
                        .dagger = p->dagger,
                        .diag_on_sum = p->diag_on_sum,
                        .hops = p->hops,
                        .c_hop = p->c_hop,
                        .c_z = p->c_z,
                        .c_x = p->c_x,
                        .links = set->links,
                        .diag = p->inverse ? set->inverse : set->diag,
                        .in = in,
                        .z = p->z,
                        .x = p->x,
                        .out = out};
  memcpy(args.phase, w->params.phase, sizeof args.phase);
  for (int mu = 0; p->block && mu < 4; mu++) args.block[mu] = p->block[mu];
  if (!needs_halo(&args)) {
    launch(dev, &args);
    return;
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_halo_begin(w->halo, &args));
  args.region = QK_REGION_INTERIOR;
  launch(dev, &args);
  qk_dev_note(dev, qk_halo_end(w->halo)); /* the neighbours wait for our messages either way */
  args.region = QK_REGION_BOUNDARY;
  launch(dev, &args);
}

/* ---- the table ------------------------------------------------------------------------------- */

static bool fits(const wilson_t *w, const qk_field_t *out, const qk_field_t *in,
                 qk_subset_t subset) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return w->params.want[a->prec] && a->prec == b->prec && a->nrhs == b->nrhs && out != in &&
         a->subset == subset && b->subset == subset;
}

static qk_status_t wilson_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool dagger, const qk_field_t *x, double c) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, out, in, QK_FULL)) return QK_BAD_ARGUMENT;
  double s = x ? c : 1;
  pass_t p = {.dagger = dagger, .c_hop = -0.5 * s, .c_z = s, .z = in->v};
  if (x) {
    p.c_x = 1;
    p.x = x->v;
  }
  op->applications[in->v.prec]++;
  run_pass(w, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_field_t *take(const qk_operator_t *op, const qk_spinor_t *like, qk_subset_t subset) {
  return qk_work_take(op->work, like->prec, like->nrhs, subset);
}

/* out = second in, where the hop of `second` is that of `first` in. */
static void two_passes(wilson_t *w, const pass_t *first, const pass_t *second, qk_spinor_t out,
                       qk_spinor_t in) {
  qk_field_t *odd = take(&w->op, &in, QK_ODD);
  run_pass(w, first, odd->v, in);
  run_pass(w, second, out, odd->v);
  qk_work_release(w->op.work, odd);
}

/* Mhat = 1 - 1/4 A_ee^-1 hop A_oo^-1 hop;  Mhat^+ = 1 - 1/4 hop^+ A_oo^-1 hop^+ A_ee^-1. */
static qk_status_t wilson_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       bool dagger, const qk_field_t *x) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  const pass_t first = {.dagger = dagger, .diag_on_sum = true, .inverse = true, .c_hop = 1};
  const pass_t second = {.dagger = dagger,
                         .diag_on_sum = !dagger,
                         .inverse = true,
                         .c_hop = -0.25,
                         .c_x = 1,
                         .x = in->v};
  op->applications[in->v.prec]++;
  if (dagger) {
    qk_field_t *even = take(op, &in->v, QK_EVEN);
    const pass_t scale = {.diag_on_sum = true, .inverse = true, .c_z = 1, .z = in->v};
    run_pass(w, &scale, even->v, in->v);
    two_passes(w, &first, &second, out->v, even->v);
    qk_work_release(op->work, even);
  } else {
    two_passes(w, &first, &second, out->v, in->v);
  }
  /* x and `in` both stand outside of A^-1, which the kernel fuses one of */
  if (x) qk_dev_blas(op->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {out->v, x->v, out->v}});
  return qk_dev_status(op->dev);
}

static qk_status_t wilson_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  wilson_t *w = (wilson_t *)op;
  if (!w->params.want[b->v.prec] || b->v.subset != QK_FULL || out->v.subset != QK_EVEN)
    return QK_BAD_ARGUMENT;
  qk_spinor_t be = qk_field_parity(b, QK_EVEN), bo = qk_field_parity(b, QK_ODD);
  const pass_t first = {.diag_on_sum = true, .inverse = true, .c_z = 1, .z = bo};
  const pass_t second = {.diag_on_sum = true, .inverse = true, .c_hop = 0.5, .c_z = 1, .z = be};
  two_passes(w, &first, &second, out->v, be);
  return qk_dev_status(op->dev);
}

static qk_status_t wilson_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                      const qk_field_t *b) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, x, b, QK_FULL)) return QK_BAD_ARGUMENT;
  qk_spinor_t even = qk_field_parity(x, QK_EVEN);
  if (xe->v.data != even.data)
    qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {even, qk_field_parity(xe, QK_EVEN)}});
  pass_t p = {.diag_on_sum = true,
              .inverse = true,
              .c_hop = 0.5,
              .c_z = 1,
              .z = qk_field_parity(b, QK_ODD)};
  run_pass(w, &p, qk_field_parity(x, QK_ODD), even);
  return qk_dev_status(op->dev);
}

/* out = c_hop A_ee^-1 hop A_oo^-1 hop in + c_x in; block NULL: hops are not cut. */
static qk_status_t twice(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, const int *block,
                         double c_hop, double c_x) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  pass_t first = {.diag_on_sum = true, .inverse = true, .block = block, .c_hop = 1};
  pass_t second = first;
  second.c_hop = c_hop;
  second.c_x = c_x;
  second.x = in->v;
  op->applications[in->v.prec]++;
  two_passes(w, &first, &second, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t wilson_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                double c) {
  return twice(op, out, in, NULL, 0.25 * c, 1 - c);
}

static qk_status_t wilson_apply_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       const int block[4]) {
  return twice(op, out, in, block, -0.25, 1);
}

/* Hops of one direction. sense: 0 from n+mu, 1 from n-mu. */
static qk_status_t one_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu,
                           int sense) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  pass_t p = {.hops = 1u << (2 * mu + sense), .c_hop = -0.5};
  run_pass(w, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t wilson_hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                      int mu) {
  return one_hop(op, out, in, mu, 0);
}

static qk_status_t wilson_hop_backward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       int mu) {
  return one_hop(op, out, in, mu, 1);
}

static qk_status_t wilson_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                               bool inverse) {
  wilson_t *w = (wilson_t *)op;
  if (!fits(w, out, in, in->v.subset)) return QK_BAD_ARGUMENT;
  pass_t p = {.inverse = inverse, .c_z = 1, .z = in->v};
  run_pass(w, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static void wilson_destroy(qk_operator_t *op) {
  if (!op) return;
  wilson_t *w = (wilson_t *)op;
  const qk_device_t *dev = op->dev;
  for (int p = 0; p < 3; p++) {
    const void *held[] = {w->set[p].links.data, w->set[p].diag.data, w->set[p].inverse.data};
    for (int i = 0; i < 3; i++)
      if (held[i]) dev->ops->free(dev->ctx, (void *)held[i]);
  }
  qk_halo_destroy(w->halo);
  qk_free(w);
}

static const qk_operator_ops_t wilson_ops = {.apply = wilson_apply,
                                             .apply_system = wilson_apply_system,
                                             .prepare = wilson_prepare,
                                             .reconstruct = wilson_reconstruct,
                                             .relax = wilson_relax,
                                             .apply_blocks = wilson_apply_blocks,
                                             .hop_forward = wilson_hop_forward,
                                             .hop_backward = wilson_hop_backward,
                                             .diag = wilson_diag,
                                             .destroy = wilson_destroy};

/* ---- creation -------------------------------------------------------------------------------- */

static qk_status_t check_params(const qk_wilson_params_t *p, qk_err_t *err) {
  if (!isfinite(p->mass) || !isfinite(p->csw))
    return qk_fail(err, QK_BAD_ARGUMENT, "mass %g, csw %g: both must be finite", p->mass, p->csw);
  if (p->csw == 0 && p->mass == -4)
    return qk_fail(err, QK_BAD_ARGUMENT, "mass -4 without a clover term: 4 + m must not vanish");
  for (int mu = 0; mu < 4; mu++) {
    double modulus = hypot(p->phase[mu][0], p->phase[mu][1]);
    if (!(fabs(modulus - 1) < 1e-12))
      return qk_fail(err, QK_BAD_ARGUMENT, "boundary phase %d has modulus %.17g: it must be 1", mu,
                     modulus);
  }
  for (int i = 0; i < 3; i++) {
    int r = p->link_reals[i];
    if (p->want[i] && r != 18 && r != 12 && r != 8)
      return qk_fail(err, QK_BAD_ARGUMENT, "link_reals[%d] = %d: must be 18, 12 or 8", i, r);
  }
  return QK_OK;
}

/* The links with their halo, on the device until the caller frees ext->data. */
static qk_status_t upload_links(const qk_device_t *dev, const double *links, qk_gauge_ext_t *ext,
                                qk_err_t *err) {
  double *host;
  int e[4];
  qk_status_t status = qk_gauge_extend(dev->geom, links, &host, e, err);
  if (status) return status;
  size_t bytes = (size_t)e[0] * e[1] * e[2] * e[3] * 4 * 18 * sizeof(double);
  void *device = NULL;
  status = dev->ops->alloc(dev->ctx, bytes, &device);
  if (status) goto done;
  status = dev->ops->copy(dev->ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  if (status) {
    dev->ops->free(dev->ctx, device);
    goto done;
  }
  *ext = (qk_gauge_ext_t){.data = device, .e = {e[0], e[1], e[2], e[3]}};
done:
  qk_free(host);
  return status;
}

static qk_status_t set_links(wilson_t *w, const qk_gauge_args_t *gauge) {
  const qk_device_t *dev = w->op.dev;
  for (int p = 0; p < 3; p++) {
    if (!w->params.want[p]) continue;
    qk_links_t *l = &w->set[p].links;
    void *data = NULL;
    *l = (qk_links_t){.prec = (qk_prec_t)p, .reals = w->params.link_reals[p]};
    size_t bytes = dev->ops->links_bytes(&gauge->lat, l->prec, l->reals);
    qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
    if (status) return status;
    l->data = data;
    status = dev->ops->links_set(dev->ctx, &(qk_links_set_args_t){.gauge = *gauge, .out = *l});
    if (status) return status;
  }
  return QK_OK;
}

static qk_status_t diag_alloc(const qk_device_t *dev, qk_prec_t prec, qk_local_t *diag) {
  void *data = NULL;
  size_t bytes = dev->ops->diag_bytes(&dev->geom->lat, prec);
  qk_status_t status = dev->ops->alloc(dev->ctx, bytes, &data);
  if (!status) *diag = (qk_local_t){.data = data, .prec = prec};
  return status;
}

/* A copy of the double term in each precision that is needed, in the member at `offset` of a
 * set. */
static qk_status_t spread_diag(wilson_t *w, const qk_local_t *from, size_t offset) {
  const qk_device_t *dev = w->op.dev;
  for (int p = 0; p < 3; p++) {
    if (!w->params.want[p]) continue;
    qk_local_t *to = (qk_local_t *)((char *)&w->set[p] + offset);
    qk_status_t status = diag_alloc(dev, (qk_prec_t)p, to);
    const qk_diag_convert_args_t convert = {.lat = dev->geom->lat, .in = *from, .out = to};
    if (!status) status = dev->ops->diag_convert(dev->ctx, &convert);
    if (status) return status;
  }
  return QK_OK;
}

static qk_status_t set_clover(wilson_t *w, const qk_gauge_args_t *gauge, qk_err_t *err) {
  const qk_device_t *dev = w->op.dev;
  const qk_wilson_params_t *par = &w->params;
  qk_local_t term = {0}, inverse = {0};
  int64_t singular = 0;
  qk_status_t status = diag_alloc(dev, QK_DOUBLE, &term);
  if (status) return status;
  status = diag_alloc(dev, QK_DOUBLE, &inverse);
  if (status) goto done;
  const qk_clover_set_args_t set = {
      .gauge = *gauge, .csw = par->csw, .diag = 4 + par->mass, .out = term};
  status = dev->ops->clover_set(dev->ctx, &set);
  if (status) goto done;
  const qk_diag_invert_args_t invert = {
      .lat = gauge->lat, .in = term, .out = &inverse, .singular = &singular};
  status = dev->ops->diag_invert(dev->ctx, &invert);
  if (status) goto done;
  if (singular > 0) {
    status = qk_fail(err, QK_BAD_ARGUMENT,
                     "mass %.15g, csw %.15g: the clover term is singular on %lld sites", par->mass,
                     par->csw, (long long)singular);
    goto done;
  }
  status = spread_diag(w, &term, offsetof(precision_set_t, diag));
  if (!status) status = spread_diag(w, &inverse, offsetof(precision_set_t, inverse));
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
done:
  if (inverse.data) dev->ops->free(dev->ctx, (void *)inverse.data);
  dev->ops->free(dev->ctx, (void *)term.data);
  return status;
}

static void set_scalars(wilson_t *w) {
  double a = 4 + w->params.mass;
  for (int p = 0; p < 3; p++) {
    w->set[p].diag = (qk_local_t){.prec = (qk_prec_t)p, .scalar = a};
    w->set[p].inverse = (qk_local_t){.prec = (qk_prec_t)p, .scalar = 1 / a};
  }
}

qk_status_t qk_wilson_create(const qk_device_t *dev, qk_work_t *work, const double *links,
                             const qk_wilson_params_t *params, qk_operator_t **op, qk_err_t *err) {
  qk_status_t status = check_params(params, err);
  if (status) return status;
  wilson_t *w = qk_calloc(1, sizeof *w);
  if (!w) return qk_fail(err, QK_NO_MEMORY, "no memory for the operator");
  qk_gauge_args_t gauge = {.lat = dev->geom->lat};
  bool clover = params->csw != 0;
  w->op = (qk_operator_t){.ops = &wilson_ops,
                          .action = clover ? "wilson-clover" : "wilson",
                          .system = QK_EVEN,
                          .dev = dev,
                          .work = work,
                          .diag_scale = params->mass == -4 ? 1 : fabs(4 + params->mass),
                          .flops_full = 1320 + (clover ? 504 : 24) + 24,
                          .flops_system = 1320 + (clover ? 504 : 24) + 12};
  w->params = *params;
  status = qk_halo_create(dev, &w->halo);
  if (!status) status = upload_links(dev, links, &gauge.u, err);
  if (!status) status = set_links(w, &gauge);
  if (!status) {
    if (clover)
      status = set_clover(w, &gauge, err);
    else
      set_scalars(w);
  }
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  if (gauge.u.data) dev->ops->free(dev->ctx, (void *)gauge.u.data);
  status = qk_comm_agree(dev->geom->comm, status, err);
  if (status) {
    wilson_destroy(&w->op);
    return qk_fail(err, status, "setting up the operator: %s", qk_status_text(status));
  }
  *op = &w->op;
  return QK_OK;
}
