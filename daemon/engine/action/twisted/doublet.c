/*
 * doublet.c: the non-degenerate doublet of twisted mass fermions (R. Frezzotti, G. C. Rossi,
 * hep-lat/0311008), with the clover term:
 *
 *   M = A + i mu gamma_5 tau_3 - epsilon tau_1 - 1/2 hop,   A = 4 + m + C
 *   T^-1 = (A - i mu gamma_5 tau_3 + epsilon tau_1) B,      B = (A^2 + mu^2 - epsilon^2)^-1
 *
 * A right-hand side is two vectors, of the upper flavour and of the lower (field.h: inner). The
 * operator works on the links and on A of one of twisted-clover with the same mu, its base, which
 * multigrid is made of. T^-1 is two passes for each vector: B with the hop before it, then
 * w_k -> (A -+ i mu gamma_5) w_k + epsilon w_(1-k). A and B commute with gamma_5.
 */
#include <math.h>

#include "daemon/base/mem.h"
#include "daemon/engine/action/composed.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"

enum { VECTORS = 2 };
/* Up to this epsilon / mu coarse levels stand for a Schur complement. */
static const double most_schur = 1.5;

typedef struct doublet {
  qk_composed_t made; /* first: a qk_operator_t * is a doublet_t * */
  double epsilon;
  /* A +- i mu gamma_5, and its inverse: what the base has for both flavours */
  qk_local_t t[VECTORS][QK_PRECS], t_inverse[VECTORS][QK_PRECS];
} doublet_t;

/* ---- pieces ---------------------------------------------------------------------------------- */

static qk_spinor_t vector(const qk_field_t *f, int k) {
  return qk_field_vector(f, k).v;
}

/* The part of vector k on these sites. */
static qk_spinor_t part(const qk_field_t *f, int k, qk_subset_t subset) {
  const qk_field_t v = qk_field_vector(f, k);
  return qk_field_parity(&v, subset);
}

static qk_field_t *take(const doublet_t *d, const qk_field_t *like, qk_subset_t subset) {
  return qk_work_take(d->made.op.work, like->v.prec, like->v.nrhs, subset);
}

/* A qk_eo_pass_t whose z and in are parts of these fields, on all vectors, with B: out =
 * B (c_hop hop in + c_z z). */
typedef struct sum {
  bool dagger;
  const int *block;
  double c_hop, c_z;
  const qk_field_t *in, *z; /* of one parity or full; NULL: none */
} sum_t;

static void times_b(doublet_t *d, const sum_t *s, const qk_field_t *out) {
  const qk_subset_t to = out->v.subset;
  for (int k = 0; k < VECTORS; k++) {
    qk_eo_pass_t p = {.dagger = s->dagger,
                      .diag_on_sum = true,
                      .local = &qk_eo_parts(d->made.op.base)->more[out->v.prec],
                      .block = s->block,
                      .c_hop = s->c_hop,
                      .c_z = s->c_z};
    if (s->z) p.z = part(s->z, k, to);
    const qk_spinor_t none = {.data = NULL};
    qk_eo_pass(d->made.op.base, &p, vector(out, k), s->in ? vector(s->in, k) : none);
  }
}

/* out = T^-1 w + c_x x for B w, T^-1+ for dagger; x may be out. */
static void mix(doublet_t *d, bool dagger, const qk_field_t *w, double c_x, const qk_field_t *x,
                const qk_field_t *out) {
  for (int k = 0; k < VECTORS; k++) {
    qk_eo_pass_t p = {.dagger = dagger,
                      .local = &d->t[1 - k][w->v.prec],
                      .c_z = 1,
                      .z = vector(w, k),
                      .c_y = d->epsilon,
                      .y = vector(w, 1 - k),
                      .c_x = c_x};
    if (x) p.x = vector(x, k);
    qk_eo_pass(d->made.op.base, &p, vector(out, k), p.z);
  }
}

/* out = T^-1 (c_hop hop in + c_z z) + c_x x */
static void inverse(doublet_t *d, const sum_t *s, double c_x, const qk_field_t *x,
                    const qk_field_t *out) {
  qk_field_t *w = take(d, out, out->v.subset);
  times_b(d, s, w);
  mix(d, s->dagger, w, c_x, x, out);
  qk_work_release(d->made.op.work, w);
}

/* out = c_x x + c_z T z + c_hop hop in, of the same sites; with T^+ and hop^+ for dagger. */
static void direct(doublet_t *d, const sum_t *s, double c_x, const qk_field_t *x,
                   const qk_field_t *out) {
  for (int k = 0; k < VECTORS; k++) {
    qk_eo_pass_t p = {.dagger = s->dagger,
                      .local = &d->t[k][out->v.prec],
                      .c_hop = s->c_hop,
                      .c_z = s->c_z,
                      .c_x = c_x};
    if (s->z) {
      p.z = vector(s->z, k);
      p.y = vector(s->z, 1 - k);
      p.c_y = -d->epsilon * s->c_z;
    }
    if (x) p.x = vector(x, k);
    qk_eo_pass(d->made.op.base, &p, vector(out, k), s->in ? vector(s->in, k) : p.z);
  }
}

/* ---- the table of the operator --------------------------------------------------------------- */

static void whole(qk_composed_t *made, qk_field_t *out, const qk_field_t *in, bool dagger,
                  const qk_field_t *x, double c) {
  doublet_t *d = (doublet_t *)made;
  direct(d, &(sum_t){.dagger = dagger, .c_hop = -0.5 * c, .in = in, .c_z = c, .z = in}, x ? 1 : 0,
         x, out);
}

static void twice(qk_composed_t *made, qk_field_t *out, const qk_field_t *in, const int *block,
                  double c, double c_x) {
  doublet_t *d = (doublet_t *)made;
  qk_field_t *odd = take(d, in, QK_ODD);
  inverse(d, &(sum_t){.block = block, .c_hop = 1, .in = in}, 0, NULL, odd);
  inverse(d, &(sum_t){.block = block, .c_hop = c, .in = odd}, c_x, in, out);
  qk_work_release(d->made.op.work, odd);
}

/* Mhat^+ = 1 - 1/4 hop^+ T_oo^-1+ hop^+ T_ee^-1+ */
static void adjoint(qk_composed_t *made, qk_field_t *out, const qk_field_t *in) {
  doublet_t *d = (doublet_t *)made;
  qk_field_t *odd = take(d, in, QK_ODD), *even = take(d, in, QK_EVEN);
  inverse(d, &(sum_t){.dagger = true, .c_z = 1, .z = in}, 0, NULL, even);
  inverse(d, &(sum_t){.dagger = true, .c_hop = 1, .in = even}, 0, NULL, odd);
  direct(d, &(sum_t){.dagger = true, .c_hop = -0.25, .in = odd}, 1, in, out);
  qk_work_release(d->made.op.work, even);
  qk_work_release(d->made.op.work, odd);
}

static void residual(qk_composed_t *made, qk_field_t *r, const qk_field_t *xe,
                     const qk_field_t *b) {
  doublet_t *d = (doublet_t *)made;
  qk_field_t *odd = take(d, r, QK_ODD);
  inverse(d, &(sum_t){.c_hop = 0.5, .in = xe, .c_z = 1, .z = b}, 0, NULL, odd);
  inverse(d, &(sum_t){.c_hop = 0.5, .in = odd, .c_z = 1, .z = b}, -1, xe, r);
  qk_work_release(d->made.op.work, odd);
}

static const qk_composed_ops_t applied = {
    .whole = whole, .twice = twice, .residual = residual, .adjoint = adjoint};

static qk_status_t doublet_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  doublet_t *d = (doublet_t *)op;
  if (!d->made.want[b->v.prec] || b->v.subset != QK_FULL || out->v.subset != QK_EVEN)
    return QK_BAD_ARGUMENT;
  qk_field_t *odd = take(d, b, QK_ODD);
  inverse(d, &(sum_t){.c_z = 1, .z = b}, 0, NULL, odd);
  inverse(d, &(sum_t){.c_hop = 0.5, .in = odd, .c_z = 1, .z = b}, 0, NULL, out);
  qk_work_release(op->work, odd);
  return qk_dev_status(op->dev);
}

static qk_status_t doublet_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                       const qk_field_t *b) {
  doublet_t *d = (doublet_t *)op;
  if (!qk_composed_fits(&d->made, x, b, QK_FULL)) return QK_BAD_ARGUMENT;
  qk_field_t *odd = take(d, x, QK_ODD);
  inverse(d, &(sum_t){.c_hop = 0.5, .in = xe, .c_z = 1, .z = b}, 0, NULL, odd);
  for (int k = 0; k < VECTORS; k++) {
    qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {part(x, k, QK_EVEN), vector(xe, k)}});
    qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {part(x, k, QK_ODD), vector(odd, k)}});
  }
  qk_work_release(op->work, odd);
  return qk_dev_status(op->dev);
}

static qk_status_t one_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu,
                           int sense) {
  doublet_t *d = (doublet_t *)op;
  if (!qk_composed_fits(&d->made, out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  for (int k = 0; k < VECTORS; k++) {
    const qk_eo_pass_t p = {
        .local = &d->t[k][in->v.prec], .hops = 1u << (2 * mu + sense), .c_hop = -0.5};
    qk_eo_pass(op->base, &p, vector(out, k), vector(in, k));
  }
  return qk_dev_status(op->dev);
}

static qk_status_t doublet_hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       int mu) {
  return one_hop(op, out, in, mu, 0);
}

static qk_status_t doublet_hop_backward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                        int mu) {
  return one_hop(op, out, in, mu, 1);
}

/* Of full fields alone: a parity is not part of both vectors of a field. */
static qk_status_t doublet_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                               bool dagger) {
  doublet_t *d = (doublet_t *)op;
  if (!qk_composed_fits(&d->made, out, in, QK_FULL)) return QK_BAD_ARGUMENT;
  direct(d, &(sum_t){.dagger = dagger, .c_hop = 1, .in = in}, 0, NULL, out);
  return qk_dev_status(op->dev);
}

static qk_status_t doublet_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                bool inverted, bool dagger) {
  doublet_t *d = (doublet_t *)op;
  if (!qk_composed_fits(&d->made, out, in, in->v.subset)) return QK_BAD_ARGUMENT;
  const sum_t s = {.dagger = dagger, .c_z = 1, .z = in};
  if (inverted)
    inverse(d, &s, 0, NULL, out);
  else
    direct(d, &s, 0, NULL, out);
  return qk_dev_status(op->dev);
}

/* ---- vectors of the base ----------------------------------------------------------------------
 *
 * Mhat x = r is M x = b with b = T r on even sites and 0 on odd ones, and the lines of that, of M_k
 * of the base and its T_k, are M_k x_k = b_k + epsilon x_(1-k). So on even sites
 *   Mhat_0 x_0 = r_0 - epsilon T_0^-1 r_1                                   (x_1 is not known: 0)
 *   Mhat_1 x_1 = r_1 + epsilon T_1^-1 (x_0 - r_0 + 1/2 hop T_1^-1 y),  y = 1/2 T_0^-1 hop x_0
 * where y is x_0 on odd sites. */

static const qk_local_t *inverse_of(const doublet_t *d, int k, const qk_field_t *like) {
  return &d->t_inverse[k][like->v.prec];
}

static void upper_system(doublet_t *d, qk_field_t *out, const qk_field_t *r) {
  const qk_eo_pass_t p = {.local = inverse_of(d, 0, r),
                          .c_z = -d->epsilon,
                          .z = vector(r, 1),
                          .c_x = 1,
                          .x = vector(r, 0)};
  qk_eo_pass(d->made.op.base, &p, out->v, p.z);
}

static void lower_system(doublet_t *d, qk_field_t *out, const qk_field_t *r, const qk_field_t *z) {
  qk_field_t *odd = take(d, r, QK_ODD), *even = take(d, r, QK_EVEN);
  const qk_spinor_t x = vector(even, 0), y = vector(odd, 0), v = vector(odd, 1);
  qk_dev_blas(d->made.op.dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {x, vector(z, 0)}});
  qk_eo_pass_t p = {.diag_on_sum = true, .local = inverse_of(d, 0, r), .c_hop = 0.5};
  qk_eo_pass(d->made.op.base, &p, y, x);
  p = (qk_eo_pass_t){.local = inverse_of(d, 1, r), .c_z = 1, .z = y};
  qk_eo_pass(d->made.op.base, &p, v, y);
  qk_dev_blas(d->made.op.dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {x, x, vector(r, 0)}});
  p = (qk_eo_pass_t){.diag_on_sum = true,
                     .local = inverse_of(d, 1, r),
                     .c_hop = 0.5 * d->epsilon,
                     .c_z = d->epsilon,
                     .z = x,
                     .c_x = 1,
                     .x = vector(r, 1)};
  qk_eo_pass(d->made.op.base, &p, out->v, v);
  qk_work_release(d->made.op.work, even);
  qk_work_release(d->made.op.work, odd);
}

static qk_status_t doublet_vector_system(qk_operator_t *op, qk_field_t *out, int k,
                                         const qk_field_t *r, const qk_field_t *z) {
  doublet_t *d = (doublet_t *)op;
  if (!d->made.want[r->v.prec] || out->v.prec != r->v.prec || r->v.inner != VECTORS || k < 0 ||
      k >= VECTORS)
    return QK_BAD_ARGUMENT;
  if (k == 0)
    upper_system(d, out, r);
  else
    lower_system(d, out, r, z);
  return qk_dev_status(op->dev);
}

static void doublet_destroy(qk_operator_t *op) {
  if (!op) return;
  qk_operator_t *base = op->base;
  qk_work_destroy(op->work);
  qk_free(op);
  base->ops->destroy(base);
}

static const qk_operator_ops_t doublet_ops = {.apply = qk_composed_apply,
                                              .apply_system = qk_composed_apply_system,
                                              .prepare = doublet_prepare,
                                              .reconstruct = doublet_reconstruct,
                                              .residual_system = qk_composed_residual_system,
                                              .relax = qk_composed_relax,
                                              .apply_blocks = qk_composed_apply_blocks,
                                              .hop_forward = doublet_hop_forward,
                                              .hop_backward = doublet_hop_backward,
                                              .hop = doublet_hop,
                                              .diag = doublet_diag,
                                              .vector_system = doublet_vector_system,
                                              .destroy = doublet_destroy};

static qk_local_t conjugate(qk_local_t t) {
  for (int c = 0; c < 2; c++) t.q[c][1] = -t.q[c][1];
  return t;
}

static void set_terms(doublet_t *d, const qk_eo_parts_t *parts) {
  for (int p = 0; p < QK_PRECS; p++) {
    d->t[0][p] = parts->t[p];
    d->t[1][p] = conjugate(parts->t[p]);
    d->t_inverse[0][p] = parts->inverse[p];
    d->t_inverse[1][p] = conjugate(parts->inverse[p]);
  }
}

/* The upper flavour eliminated leaves S = M_- - epsilon^2 M_+^-1 for the lower. In the continuum,
 * at maximal twist, D anticommutes with gamma_5, so that on modes of D^2 = -lambda^2
 *   S = p D - i q mu gamma_5,  p, q = 1 +- epsilon^2 / (lambda^2 + mu^2).
 * Coarse levels have scale (D - i twist mu gamma_5), numbers for all modes: between those of lambda
 * = 0 and of large ones, where iterations were measured to be fewest (docs/decisions.md). */
static qk_schur_t schur_of(double r) {
  const double r2 = r * r;
  if (r == 0 || !(fabs(r) < most_schur)) return (qk_schur_t){.is = false};
  return (qk_schur_t){.is = true, .twist = sqrt(fmax(1 - r2, 0.1) / (1 + r2)), .scale = 1 + r2 / 3};
}

static void describe(qk_operator_t *op) {
  op->ops = &doublet_ops;
  op->action = "doublet";
  op->adjoint = QK_ADJOINT_EXCHANGED;
  op->chirality = QK_CHIRALITY_SPIN;
  op->flops_full = VECTORS * (op->base->flops_full + 48);
  op->flops_system = VECTORS * (op->base->flops_system + 48);
}

static qk_status_t compose(const qk_action_params_t *params, qk_operator_t *base,
                           qk_operator_t **op, qk_err_t *err) {
  doublet_t *d = qk_calloc(1, sizeof *d);
  qk_status_t status = QK_NO_MEMORY;
  if (d) {
    qk_composed_init(&d->made, &applied, base);
    d->made.geom.inner = VECTORS;
    d->epsilon = qk_value(&params->values, "epsilon");
    set_terms(d, qk_eo_parts(base));
    base->schur = schur_of(d->epsilon / base->twist);
    describe(&d->made.op);
    status = qk_work_create(&d->made.dev, &d->made.op.work);
  }
  if (status == QK_OK) {
    *op = &d->made.op;
    return QK_OK;
  }
  qk_free(d);
  base->ops->destroy(base);
  return qk_fail(err, status, "no memory for the operator");
}

/* ---- the table of the action ----------------------------------------------------------------- */

static double twist(const qk_values_t *v) {
  return qk_value(v, "mu");
}

static double number_of(const qk_values_t *v) {
  return 4 + qk_value(v, "mass");
}

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  const double a = number_of(v), mu = twist(v), epsilon = qk_value(v, "epsilon");
  const bool clover = qk_value(v, "csw") != 0;
  if (!clover && !(a * a + mu * mu - epsilon * epsilon > 0))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "epsilon = %.15g: (4 + mass)^2 + mu^2 - epsilon^2 must be positive, so its "
                   "magnitude must be below %.15g",
                   epsilon, hypot(a, mu));
  return qk_links_check_apart(v, clover, err);
}

static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_values_t *v = &in->params->values;
  const double a = number_of(v), epsilon = qk_value(v, "epsilon");
  const qk_clover_t clover = {.a = a, .csw = qk_value(v, "csw"), .plane = {1, 1, 1, 1, 1, 1}};
  if (clover.csw != 0) return qk_local_doublet_clover(in, &clover, twist(v), epsilon, parts, err);
  qk_local_doublet_number(a, twist(v), epsilon, parts);
  return QK_OK;
}

/* A, and two inverses of squares. */
static int64_t bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                     bool making) {
  if (qk_value(&params->values, "csw") == 0) return 0;
  return qk_local_clover_bytes(ops, lat, params, making) / 2 * 3;
}

/* BiCGStab stagnates near maximal twist. */
static const char *const method[] = {"mg", "cg", "gcr", "bicgstab", NULL};

const qk_action_t qk_action_doublet = {.name = "doublet",
                                       .adjoint = QK_ADJOINT_TWISTED,
                                       .chirality = QK_CHIRALITY_SPIN,
                                       .method = method,
                                       .check = check,
                                       .twist = twist,
                                       .bytes = bytes,
                                       .local = local,
                                       .compose = compose};
