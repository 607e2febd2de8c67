#include "daemon/engine/action/eo.h"

#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/halo.h"

enum { HOP_FLOPS = 1320 }; /* with the sum of its eight terms, per site */

typedef struct eo {
  qk_operator_t op; /* first: a qk_operator_t * is an eo_t * */
  qk_eo_parts_t parts;
  bool given_back[QK_PRECS]; /* T is, for now */
  qk_flavours_t flavours;
  qk_halo_t *halo;
} eo_t;

/* ---- one pass of the hop kernel -------------------------------------------------------------- */

/* Blocks end at the edges of ranks. */
static bool needs_halo(const qk_hop_args_t *args) {
  for (int mu = 0; mu < 4; mu++)
    if (args->lat.split[mu] && args->block[mu] == 0) return args->c_hop != 0;
  return false;
}

static void launch(const qk_device_t *dev, const qk_hop_args_t *args) {
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->hop(dev->ctx, args));
}

/* Of a pass, on all sites and without ghosts. */
static qk_hop_args_t hop_args(const eo_t *e, const qk_eo_pass_t *p, qk_spinor_t out,
                              qk_spinor_t in) {
  const qk_eo_parts_t *parts = &e->parts;
  const qk_prec_t prec = p->c_hop != 0 ? in.prec : out.prec;
  qk_hop_args_t args = {.lat = e->op.dev->geom->lat,
                        .out_parity = out.subset,
                        .region = QK_REGION_ALL,
                        .dagger = p->dagger,
                        .diag_on_sum = p->diag_on_sum,
                        .hops = p->hops,
                        .c_hop = p->c_hop,
                        .c_z = p->c_z,
                        .c_x = p->c_x,
                        .c_y = p->c_y,
                        .rough = e->op.rough,
                        .minus = p->local ? NULL : e->flavours.minus,
                        .links = parts->links[prec],
                        .diag = p->local     ? *p->local
                                : p->inverse ? parts->inverse[prec]
                                             : parts->t[prec],
                        .in = in,
                        .z = p->z,
                        .x = p->x,
                        .y = p->y,
                        .out = out};
  memcpy(args.phase, parts->phase, sizeof args.phase);
  memcpy(args.weight, parts->weight, sizeof args.weight);
  for (int mu = 0; p->block && mu < 4; mu++) args.block[mu] = p->block[mu];
  return args;
}

void qk_eo_pass(qk_operator_t *op, const qk_eo_pass_t *p, qk_spinor_t out, qk_spinor_t in) {
  eo_t *e = (eo_t *)op;
  const qk_device_t *dev = e->op.dev;
  if (e->parts.stencil) {
    e->parts.stencil->pass(op, e->halo, p, out, in);
    return;
  }
  qk_hop_args_t args = hop_args(e, p, out, in);
  if (!needs_halo(&args)) {
    launch(dev, &args);
    return;
  }
  if (qk_dev_ok(dev)) qk_dev_note(dev, qk_halo_begin(e->halo, &args));
  args.region = QK_REGION_INTERIOR;
  launch(dev, &args);
  qk_dev_note(dev, qk_halo_end(e->halo)); /* the neighbours wait for our messages either way */
  args.region = QK_REGION_BOUNDARY;
  launch(dev, &args);
}

/* A pass for several right-hand sides: p[k] differs from p[0] by its fields alone. */
typedef struct passes {
  int n;
  qk_eo_pass_t p[QK_RHS_TOGETHER];
  qk_spinor_t out[QK_RHS_TOGETHER], in[QK_RHS_TOGETHER];
} passes_t;

static void pass_each(eo_t *e, const passes_t *s) {
  const qk_device_t *dev = e->op.dev;
  const uint8_t *minus = e->flavours.minus;
  qk_hop_each_args_t args = {.hop = hop_args(e, &s->p[0], s->out[0], s->in[0]), .n = s->n};
  for (int k = 0; k < s->n; k++) {
    args.of[k].in = s->in[k].data;
    args.of[k].z = s->p[k].z.data;
    args.of[k].x = s->p[k].x.data;
    args.of[k].y = s->p[k].y.data;
    args.of[k].out = s->out[k].data;
  }
  if (s->n > 1 && !e->parts.stencil && !needs_halo(&args.hop)) {
    if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->hop_each(dev->ctx, &args));
    return;
  }
  for (int k = 0; k < s->n; k++) {
    if (minus) e->flavours.minus = minus + k;
    qk_eo_pass(&e->op, &s->p[k], s->out[k], s->in[k]);
  }
  e->flavours.minus = minus;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* T^-1 of this precision has given back its memory. */
static bool rests(const eo_t *e, qk_prec_t prec) {
  return e->parts.t[prec].data && !e->parts.inverse[prec].data;
}

static bool alike(const eo_t *e, const qk_field_t *out, const qk_field_t *in, qk_subset_t subset) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return e->parts.want[a->prec] && !rests(e, a->prec) && a->prec == b->prec && a->nrhs == b->nrhs &&
         a->subset == subset && b->subset == subset;
}

static bool fits(const eo_t *e, const qk_field_t *out, const qk_field_t *in, qk_subset_t subset) {
  return out != in && alike(e, out, in, subset);
}

/* Half is read, and single is written. */
static bool widens(const eo_t *e, const qk_field_t *out, const qk_field_t *in) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return e->op.widens && qk_prec_scaled(b->prec) && qk_prec_bytes(a->prec) == (int)sizeof(float) &&
         e->parts.want[b->prec] && !rests(e, b->prec) && a->nrhs == b->nrhs &&
         a->subset == QK_EVEN && b->subset == QK_EVEN;
}

static qk_status_t eo_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                            const qk_field_t *x, double c) {
  eo_t *e = (eo_t *)op;
  if (!fits(e, out, in, QK_FULL) || e->given_back[in->v.prec]) return QK_BAD_ARGUMENT;
  double s = x ? c : 1;
  qk_eo_pass_t p = {.dagger = dagger, .c_hop = -0.5 * s, .c_z = s, .z = in->v};
  if (x) {
    p.c_x = 1;
    p.x = x->v;
  }
  op->applications[in->v.prec]++;
  qk_eo_pass(&e->op, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_field_t *take(const qk_operator_t *op, const qk_spinor_t *like, qk_subset_t subset) {
  return qk_work_take(op->work, like->prec, like->nrhs, subset);
}

/* out = second in, where the hop of `second` is that of `first` in. */
static void two_passes(eo_t *e, const qk_eo_pass_t *first, const qk_eo_pass_t *second,
                       qk_spinor_t out, qk_spinor_t in) {
  qk_field_t *odd = take(&e->op, &in, QK_ODD);
  qk_eo_pass(&e->op, first, odd->v, in);
  qk_eo_pass(&e->op, second, out, odd->v);
  qk_work_release(e->op.work, odd);
}

/* Mhat = 1 - 1/4 T_ee^-1 hop T_oo^-1 hop;  Mhat^+ = 1 - 1/4 hop^+ T_oo^-1+ hop^+ T_ee^-1+. */
static qk_status_t eo_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   bool dagger, const qk_field_t *x) {
  eo_t *e = (eo_t *)op;
  const bool in_place = !dagger && x == NULL;
  if (!(in_place ? alike : fits)(e, out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  const qk_eo_pass_t first = {.dagger = dagger, .diag_on_sum = true, .inverse = true, .c_hop = 1};
  qk_eo_pass_t second = {.dagger = dagger,
                         .diag_on_sum = !dagger,
                         .inverse = true,
                         .c_hop = -0.25,
                         .c_x = 1,
                         .x = in->v};
  if (x && !dagger) {
    second.c_hop = 0.25;
    second.c_x = -1;
    second.c_y = 1;
    second.y = x->v;
  }
  op->applications[in->v.prec]++;
  if (dagger) {
    qk_field_t *even = take(op, &in->v, QK_EVEN);
    const qk_eo_pass_t scale = {
        .dagger = true, .diag_on_sum = true, .inverse = true, .c_z = 1, .z = in->v};
    qk_eo_pass(&e->op, &scale, even->v, in->v);
    two_passes(e, &first, &second, out->v, even->v);
    qk_work_release(op->work, even);
  } else {
    two_passes(e, &first, &second, out->v, in->v);
  }
  if (x && dagger) qk_dev_blas(op->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {out->v, x->v, out->v}});
  return qk_dev_status(op->dev);
}

/* ap and the field p of the system. */
static bool fit_halves(const eo_t *e, const qk_field_t *ap, const qk_field_t *p) {
  return alike(e, p, p, QK_EVEN) && alike(e, ap, ap, QK_ODD) && ap->v.prec == p->v.prec &&
         ap->v.nrhs == p->v.nrhs;
}

/* Of a stencil T is a number and hop^+ = -hop: A = 1/2 T^-1 hop from even to odd sites. */
static qk_status_t stencil_half_system(qk_operator_t *op, qk_field_t *ap, const qk_field_t *p,
                                       const double *pp, const uint8_t *mask, double *red) {
  eo_t *e = (eo_t *)op;
  if (!fit_halves(e, ap, p)) return QK_BAD_ARGUMENT;
  const qk_eo_pass_t pass = {.diag_on_sum = true,
                             .inverse = true,
                             .c_hop = 0.5,
                             .more = pp,
                             .c_more = 1,
                             .red = red,
                             .mask = mask};
  op->applications[p->v.prec]++;
  qk_eo_pass(op, &pass, ap->v, p->v);
  return qk_dev_status(op->dev);
}

static qk_status_t stencil_step_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *p,
                                       const qk_field_t *ap, const qk_ratio_t *ratio,
                                       const uint8_t *mask, double *red) {
  eo_t *e = (eo_t *)op;
  if (!fit_halves(e, ap, p) || !fits(e, r, p, QK_EVEN)) return QK_BAD_ARGUMENT;
  const qk_eo_pass_t pass = {.diag_on_sum = true,
                             .inverse = true,
                             .c_hop = -0.5,
                             .c_x = 1,
                             .x = p->v,
                             .c_y = 1,
                             .y = r->v,
                             .num = ratio->num,
                             .den = ratio->den,
                             .red = red,
                             .mask = mask};
  qk_eo_pass(op, &pass, r->v, ap->v);
  return qk_dev_status(op->dev);
}

/* prepare, or with a residual what is left of it: both T^-1 are fused, and x_e stands outside of
 * the second one. */
static qk_status_t prepare_each(eo_t *e, const qk_each_t *f, bool residual) {
  const qk_eo_pass_t p = {
      .diag_on_sum = true, .inverse = true, .c_hop = 0.5, .c_z = 1, .c_x = residual ? -1 : 0};
  qk_field_t *odd[QK_RHS_TOGETHER] = {NULL};
  passes_t first = {.n = f->n}, second = {.n = f->n};
  for (int k = 0; k < f->n; k++) {
    const qk_spinor_t be = qk_field_parity(f->b[k], QK_EVEN);
    odd[k] = take(&e->op, &f->b[k]->v, QK_ODD);
    first.p[k] = second.p[k] = p;
    first.p[k].c_hop = residual ? 0.5 : 0;
    first.p[k].c_x = 0;
    first.p[k].z = qk_field_parity(f->b[k], QK_ODD);
    first.in[k] = residual ? f->x[k]->v : be;
    first.out[k] = second.in[k] = odd[k]->v;
    second.p[k].z = be;
    if (residual) second.p[k].x = f->x[k]->v;
    second.out[k] = f->out[k]->v;
  }
  pass_each(e, &first);
  pass_each(e, &second);
  for (int k = f->n - 1; k >= 0; k--) qk_work_release(e->op.work, odd[k]);
  return qk_dev_status(e->op.dev);
}

static qk_status_t reconstruct_each(eo_t *e, const qk_each_t *f) {
  passes_t odd = {.n = f->n};
  for (int k = 0; k < f->n; k++) {
    const qk_spinor_t even = qk_field_parity(f->out[k], QK_EVEN);
    if (f->x[k]->v.data != even.data)
      qk_dev_blas(e->op.dev, QK_BLAS_COPY,
                  (qk_blas_args_t){.f = {even, qk_field_parity(f->x[k], QK_EVEN)}});
    odd.p[k] = (qk_eo_pass_t){.diag_on_sum = true,
                              .inverse = true,
                              .c_hop = 0.5,
                              .c_z = 1,
                              .z = qk_field_parity(f->b[k], QK_ODD)};
    odd.out[k] = qk_field_parity(f->out[k], QK_ODD);
    odd.in[k] = even;
  }
  pass_each(e, &odd);
  return qk_dev_status(e->op.dev);
}

static qk_status_t residual_each(eo_t *e, const qk_each_t *f) {
  passes_t s = {.n = f->n};
  for (int k = 0; k < f->n; k++) {
    s.p[k] = (qk_eo_pass_t){.c_hop = 0.5, .c_z = -1, .c_x = 1, .z = f->x[k]->v, .x = f->b[k]->v};
    s.out[k] = f->out[k]->v;
    s.in[k] = f->x[k]->v;
  }
  pass_each(e, &s);
  return qk_dev_status(e->op.dev);
}

/* Whether the fields are those of a call: of a source b and what is made of it. */
static bool fit_call(const eo_t *e, qk_each_call_t call, const qk_field_t *out, const qk_field_t *x,
                     const qk_field_t *b) {
  const qk_prec_t prec = b->v.prec;
  if (b->v.subset != QK_FULL || out->v.prec != prec || out->v.nrhs != b->v.nrhs) return false;
  switch (call) {
  case QK_EACH_PREPARE:
    return e->parts.want[prec] && !rests(e, prec) && out->v.subset == QK_EVEN;
  case QK_EACH_RECONSTRUCT:
    return fits(e, out, b, QK_FULL);
  case QK_EACH_RESIDUAL_SYSTEM:
    return fits(e, out, x, QK_EVEN);
  case QK_EACH_RESIDUAL:
    return fits(e, out, x, QK_FULL) && !e->given_back[prec];
  }
  return false;
}

static qk_status_t eo_each(qk_operator_t *op, qk_each_call_t call, const qk_each_t *f) {
  eo_t *e = (eo_t *)op;
  if (f->n < 1 || f->n > QK_RHS_TOGETHER) return QK_BAD_ARGUMENT;
  for (int k = 0; k < f->n; k++)
    if (!fit_call(e, call, f->out[k], f->x[k], f->b[k])) return QK_BAD_ARGUMENT;
  if (call == QK_EACH_RESIDUAL_SYSTEM || call == QK_EACH_RESIDUAL)
    op->applications[f->b[0]->v.prec] += f->n;
  if (call == QK_EACH_RECONSTRUCT) return reconstruct_each(e, f);
  if (call == QK_EACH_RESIDUAL) return residual_each(e, f);
  return prepare_each(e, f, call == QK_EACH_RESIDUAL_SYSTEM);
}

static qk_status_t eo_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  return eo_each(op, QK_EACH_PREPARE, &(qk_each_t){.n = 1, .out = {out}, .b = {b}});
}

static qk_status_t eo_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                  const qk_field_t *b) {
  return eo_each(op, QK_EACH_RECONSTRUCT, &(qk_each_t){.n = 1, .out = {x}, .x = {xe}, .b = {b}});
}

static qk_status_t eo_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xe,
                                      const qk_field_t *b) {
  return eo_each(op, QK_EACH_RESIDUAL_SYSTEM,
                 &(qk_each_t){.n = 1, .out = {r}, .x = {xe}, .b = {b}});
}

/* out = c_hop T_ee^-1 hop T_oo^-1 hop in + c_x in; block NULL: hops are not cut. */
static qk_status_t twice(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, const int *block,
                         double c_hop, double c_x) {
  eo_t *e = (eo_t *)op;
  if (!fits(e, out, in, QK_EVEN)) return QK_BAD_ARGUMENT;
  qk_eo_pass_t first = {.diag_on_sum = true, .inverse = true, .block = block, .c_hop = 1};
  qk_eo_pass_t second = first;
  second.c_hop = c_hop;
  second.c_x = c_x;
  second.x = in->v;
  op->applications[in->v.prec]++;
  two_passes(e, &first, &second, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t eo_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c) {
  return twice(op, out, in, NULL, 0.25 * c, 1 - c);
}

static qk_status_t eo_neumann(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c,
                              const qk_field_t *x, double c_x, const qk_field_t *y) {
  eo_t *e = (eo_t *)op;
  if (!fits(e, out, in, QK_EVEN) && !widens(e, out, in)) return QK_BAD_ARGUMENT;
  const qk_eo_pass_t first = {.diag_on_sum = true, .inverse = true, .c_hop = 1};
  qk_eo_pass_t second = {.diag_on_sum = true, .inverse = true, .c_hop = 0.25 * c};
  if (x) {
    second.c_x = c_x;
    second.x = x->v;
  }
  if (y) {
    second.c_y = 1;
    second.y = y->v;
  }
  op->applications[in->v.prec]++;
  two_passes(e, &first, &second, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t eo_apply_blocks(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   const int block[4]) {
  return twice(op, out, in, block, -0.25, 1);
}

/* Hops of one direction. sense: 0 from n+mu, 1 from n-mu. */
static qk_status_t one_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu,
                           int sense) {
  eo_t *e = (eo_t *)op;
  if (!fits(e, out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  qk_eo_pass_t p = {.hops = 1u << (2 * mu + sense), .c_hop = -0.5};
  qk_eo_pass(&e->op, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t eo_hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                  int mu) {
  return one_hop(op, out, in, mu, 0);
}

static qk_status_t eo_hop_backward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   int mu) {
  return one_hop(op, out, in, mu, 1);
}

static qk_status_t eo_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger) {
  eo_t *e = (eo_t *)op;
  const qk_spinor_t *a = &out->v, *b = &in->v;
  const bool opposite = a->subset == QK_FULL
                            ? b->subset == QK_FULL
                            : b->subset == (a->subset == QK_EVEN ? QK_ODD : QK_EVEN);
  if (out == in || !opposite || !e->parts.want[a->prec] || a->prec != b->prec || a->nrhs != b->nrhs)
    return QK_BAD_ARGUMENT;
  const qk_eo_pass_t p = {.dagger = dagger, .c_hop = 1};
  qk_eo_pass(&e->op, &p, *a, *b);
  return qk_dev_status(op->dev);
}

static qk_status_t eo_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse,
                           bool dagger) {
  eo_t *e = (eo_t *)op;
  if (!fits(e, out, in, in->v.subset)) return QK_BAD_ARGUMENT;
  if (!inverse && e->given_back[in->v.prec]) return QK_BAD_ARGUMENT;
  qk_eo_pass_t p = {.dagger = dagger, .inverse = inverse, .c_z = 1, .z = in->v};
  qk_eo_pass(&e->op, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t make_local(eo_t *e, qk_local_t *t, qk_prec_t prec) {
  const qk_device_t *dev = e->op.dev;
  const qk_lattice_t *lat = &dev->geom->lat;
  const qk_diag_convert_args_t convert = {.lat = *lat, .in = e->parts.t[QK_DOUBLE], .out = t};
  void *data = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, dev->ops->diag_bytes(lat, prec), &data);
  if (status != QK_OK) return status;
  *t = (qk_local_t){.data = data, .prec = prec};
  status = dev->ops->diag_convert(dev->ctx, &convert);
  return status != QK_OK ? status : dev->ops->queue_sync(dev->ctx, 0);
}

/* T and T^-1 are a field each, and each can be had again of the other. */
static bool are_apart(const eo_t *e) {
  const qk_local_t *t = &e->parts.t[QK_DOUBLE], *inverse = &e->parts.inverse[QK_DOUBLE];
  return t->data && !t->b && inverse->data != t->data;
}

static qk_status_t eo_keep_local(qk_operator_t *op, const bool keep[QK_PRECS]) {
  eo_t *e = (eo_t *)op;
  if (!are_apart(e)) return QK_OK;
  for (int p = 0; p < QK_PRECS; p++) {
    qk_local_t *t = &e->parts.t[p];
    if (p == QK_DOUBLE || !e->parts.want[p] || keep[p] != e->given_back[p]) continue;
    if (keep[p]) {
      qk_status_t status = make_local(e, t, (qk_prec_t)p);
      if (status != QK_OK) return status;
    } else {
      op->dev->ops->free(op->dev->ctx, (void *)t->data);
      t->data = NULL;
    }
    e->given_back[p] = !keep[p];
  }
  return QK_OK;
}

static qk_status_t make_inverse(const qk_device_t *dev, const qk_local_t *t, qk_local_t *inverse) {
  const qk_lattice_t *lat = &dev->geom->lat;
  int64_t singular = 0;
  void *data = NULL;
  qk_status_t status = dev->ops->alloc(dev->ctx, dev->ops->diag_bytes(lat, t->prec), &data);
  if (status != QK_OK) return status;
  *inverse = (qk_local_t){.data = data, .prec = t->prec};
  const qk_diag_invert_args_t args = {.lat = *lat, .in = *t, .out = inverse, .singular = &singular};
  status = dev->ops->diag_invert(dev->ctx, &args);
  return status != QK_OK ? status : dev->ops->queue_sync(dev->ctx, 0);
}

static qk_status_t eo_rest_double(qk_operator_t *op, bool rest) {
  eo_t *e = (eo_t *)op;
  const qk_local_t *t = &e->parts.t[QK_DOUBLE];
  qk_local_t *inverse = &e->parts.inverse[QK_DOUBLE];
  if (!are_apart(e) || rest == rests(e, QK_DOUBLE)) return QK_OK;
  if (!rest) return make_inverse(op->dev, t, inverse);
  op->dev->ops->free(op->dev->ctx, (void *)inverse->data);
  inverse->data = NULL;
  return QK_OK;
}

const qk_eo_parts_t *qk_eo_parts(const qk_operator_t *op) {
  return &((const eo_t *)op)->parts;
}

static void free_stag(const qk_device_t *dev, const qk_stag_links_t *links) {
  const void *held[] = {links->fat.data, links->naik.data};
  for (int i = 0; i < 2; i++)
    if (held[i]) dev->ops->free(dev->ctx, (void *)held[i]);
  for (int mu = 0; mu < 4; mu++) {
    if (links->behind[mu]) dev->ops->free(dev->ctx, (void *)links->behind[mu]);
    if (links->behind_long[mu]) dev->ops->free(dev->ctx, (void *)links->behind_long[mu]);
  }
}

void qk_eo_parts_free(const qk_device_t *dev, qk_eo_parts_t *parts) {
  for (int p = 0; p < QK_PRECS; p++) {
    const bool shared = parts->inverse[p].data == parts->t[p].data;
    const void *held[] = {parts->links[p].data, parts->t[p].data,
                          parts->t[p].b,        shared ? NULL : parts->inverse[p].data,
                          parts->inverse[p].b,  parts->more[p].data};
    for (int i = 0; i < 6; i++)
      if (held[i]) dev->ops->free(dev->ctx, (void *)held[i]);
    free_stag(dev, &parts->stag[p]);
  }
  *parts = (qk_eo_parts_t){0};
}

static void eo_destroy(qk_operator_t *op) {
  if (!op) return;
  eo_t *e = (eo_t *)op;
  qk_eo_parts_free(op->dev, &e->parts);
  qk_halo_destroy(e->halo);
  qk_free(e);
}

#define EO_OPS                                                                                     \
  .apply = eo_apply, .apply_system = eo_apply_system, .prepare = eo_prepare,                       \
  .reconstruct = eo_reconstruct, .residual_system = eo_residual_system, .each = eo_each,           \
  .relax = eo_relax, .neumann = eo_neumann, .apply_blocks = eo_apply_blocks,                       \
  .hop_forward = eo_hop_forward, .hop_backward = eo_hop_backward, .hop = eo_hop, .diag = eo_diag,  \
  .keep_local = eo_keep_local, .rest_double = eo_rest_double, .destroy = eo_destroy

static const qk_operator_ops_t eo_ops = {EO_OPS};
static const qk_operator_ops_t stencil_ops = {EO_OPS, .half_system = stencil_half_system,
                                              .step_system = stencil_step_system};

qk_status_t qk_eo_create(const qk_device_t *dev, qk_work_t *work, const qk_operator_t *description,
                         qk_eo_parts_t *parts, qk_operator_t **op, qk_err_t *err) {
  eo_t *e = qk_calloc(1, sizeof *e);
  if (!e) {
    qk_eo_parts_free(dev, parts);
    return qk_fail(err, QK_NO_MEMORY, "no memory for the operator");
  }
  const qk_eo_stencil_t *stencil = parts->stencil;
  const int hop = stencil ? stencil->flops : HOP_FLOPS, reals = stencil ? 6 : 24;
  e->op = (qk_operator_t){.ops = stencil ? &stencil_ops : &eo_ops,
                          .action = description->action,
                          .system = QK_EVEN,
                          .adjoint = description->adjoint,
                          .chirality = description->chirality,
                          .masses = description->masses,
                          .twist = parts->twist,
                          .flavours = &e->flavours,
                          .dev = dev,
                          .work = work,
                          .widens = stencil == NULL,
                          .diag_scale = parts->scale,
                          .flops_full = hop + parts->flops + reals,
                          .flops_system = hop + parts->flops + reals / 2};
  e->parts = *parts;
  *parts = (qk_eo_parts_t){0};
  const qk_status_t status = qk_halo_create(dev, &e->halo);
  if (status != QK_OK) {
    eo_destroy(&e->op);
    return qk_fail(err, status, "the operator's halo: %s", qk_status_text(status));
  }
  *op = &e->op;
  return QK_OK;
}
