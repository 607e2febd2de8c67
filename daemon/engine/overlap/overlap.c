/*
 * overlap.c: overlap fermions (H. Neuberger, Phys. Lett. B 417 (1998) 141, hep-lat/9707022),
 *
 *   D(m) = 1/2 [(1 + m) + (1 - m) gamma_5 sgn(H)],  H = gamma_5 D_W(-M),  0 < M < 2
 *
 * gamma_5 sgn(H) is V of sign.h. D connects all sites: the system that solvers iterate on is D
 * itself, on the full lattice. What the user gets of a solution D x = b is the propagator
 * (x - b) / (1 - m), the inverse of an operator D_c + m whose D_c anticommutes with gamma_5.
 *
 * CG takes D D^+, which keeps chirality, as a system of its own: D D^+ y = b, x = D^+ y. A source
 * of one chirality, as points and walls in a basis with a diagonal gamma_5 are, then takes one sign
 * function an iteration, others two.
 *
 * The base is D_W(-M), the operator that the other functions of the table make.
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/action/action.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"
#include "daemon/engine/lattice/scalars.h"
#include "daemon/engine/overlap/sign.h"

/* Factors, the same for all right-hand sides. */
enum { OF_IN, OF_V, CHIRALITY, PLUS, MINUS, FACTORS };

typedef struct overlap overlap_t;

typedef struct parts {
  double plus[QK_MAX_RHS], minus[QK_MAX_RHS];
} parts_t;

typedef struct squared {
  qk_operator_t op; /* first: a qk_operator_t * is a squared_t * */
  overlap_t *of;
} squared_t;

struct overlap {
  qk_operator_t op; /* first: a qk_operator_t * is an overlap_t * */
  squared_t squared;
  qk_sign_t *sign;
  bool want[QK_PRECS];
  double mass;
  qk_scalars_t factors;
  qk_flavours_t flavours; /* right-hand sides have none: nobody looks at them */
};

/* ---- calls of an iteration ------------------------------------------------------------------- */

static void blas(const overlap_t *o, qk_blas_op_t op, const qk_field_t *a, const qk_field_t *b,
                 const double *c) {
  qk_dev_blas(o->op.dev, op, (qk_blas_args_t){.f = {a->v, b->v}, .c = {c}});
}

static const double *factor(overlap_t *o, int which, double value) {
  qk_scalars_fill(&o->factors, which, value);
  return qk_scalars_at(&o->factors, which);
}

static qk_field_t *take(const overlap_t *o, const qk_field_t *like) {
  return qk_work_take(o->op.work, like->v.prec, like->v.nrhs, QK_FULL);
}

static void sign(overlap_t *o, qk_field_t *out, const qk_field_t *in, bool dagger,
                 const double *accuracy) {
  qk_sign_apply(o->sign, out, in, dagger, accuracy);
  o->op.applications[in->v.prec]++;
}

/* v is out, or what becomes out, where that is one of the others. */
static qk_field_t *begin(const overlap_t *o, qk_field_t *out, const qk_field_t *in,
                         const qk_field_t *x) {
  const bool apart = out->v.data != in->v.data && (x == NULL || out->v.data != x->v.data);
  return apart ? out : take(o, in);
}

/* out = x + c_v v + c_in in; x NULL: 0. */
static void end(overlap_t *o, qk_field_t *out, qk_field_t *v, double c_v, const qk_field_t *in,
                double c_in, const qk_field_t *x) {
  blas(o, QK_BLAS_SCALE, v, v, factor(o, OF_V, c_v));
  blas(o, QK_BLAS_AXPY, v, in, factor(o, OF_IN, c_in));
  if (x) blas(o, QK_BLAS_ADD, v, x, NULL);
  if (v == out) return;
  blas(o, QK_BLAS_COPY, out, v, NULL);
  qk_work_release(o->op.work, v);
}

/* out = x + c_in in + c D(m) in, or with D(m)^+; x NULL: 0. All may be the same field. */
static void combine_at(overlap_t *o, double m, qk_field_t *out, const qk_field_t *in, bool dagger,
                       const qk_field_t *x, double c_in, double c) {
  qk_field_t *v = begin(o, out, in, x);
  sign(o, v, in, dagger, o->op.accuracy);
  end(o, out, v, 0.5 * c * (1 - m), in, c_in + 0.5 * c * (1 + m), x);
}

static void combine(overlap_t *o, qk_field_t *out, const qk_field_t *in, bool dagger,
                    const qk_field_t *x, double c_in, double c) {
  combine_at(o, o->mass, out, in, dagger, x, c_in, c);
}

static void chiral(const overlap_t *o, qk_field_t *out, const qk_field_t *in, double plus,
                   double minus) {
  const qk_device_t *dev = o->op.dev;
  const qk_chiral_args_t args = {.plus = plus, .minus = minus, .in = in->v, .out = out->v};
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->chiral(dev->ctx, &args));
}

/* |P_+ in|^2 and |P_- in|^2 of the right-hand sides; t is work. Waits. */
static void measure_parts(overlap_t *o, const qk_field_t *in, qk_field_t *t, parts_t *parts) {
  qk_scalars_t *c = &o->factors;
  chiral(o, t, in, 1, 0);
  qk_scalars_reduce(c, PLUS, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {t->v}});
  chiral(o, t, in, 0, 1);
  qk_scalars_reduce(c, MINUS, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {t->v}});
  qk_scalars_fetch(c, PLUS, 2);
  for (int i = 0; i < in->v.nrhs; i++) {
    parts->plus[i] = qk_scalars_host(c, PLUS, i)[0];
    parts->minus[i] = qk_scalars_host(c, MINUS, i)[0];
  }
}

/* True if gamma_5 in = s in for all right-hand sides, those that nobody looks at left out; the
 * signs s as the factor CHIRALITY. t is work. Waits. */
static bool is_chiral(overlap_t *o, const qk_field_t *in, qk_field_t *t, const double *accuracy) {
  parts_t parts;
  bool all = true;
  measure_parts(o, in, t, &parts);
  for (int i = 0; i < in->v.nrhs; i++) {
    const bool plus = parts.minus[i] == 0, minus = parts.plus[i] == 0;
    all = all && (plus || minus || (accuracy && !isfinite(accuracy[i])));
    qk_scalars_set(&o->factors, CHIRALITY, i, plus ? 1 : -1, 0);
  }
  qk_scalars_store(&o->factors, CHIRALITY, 1);
  return all;
}

/* r = b - D D^+ y of b and y of one chirality (y NULL: it has that of b) has of the other one what
 * rounding and the error of V leave. That part goes, as a later r then has one chirality as well,
 * unless it counts: sums of squares are to stay what they are but for 1e-4. */
static void drop_other_part(overlap_t *o, qk_field_t *r, const qk_field_t *y, const qk_field_t *b) {
  static const double most = 1e-4;
  qk_scalars_t *c = &o->factors;
  qk_field_t *t = take(o, r);
  parts_t of_r, of_y, of_b;
  measure_parts(o, b, t, &of_b);
  of_y = of_b;
  if (y) measure_parts(o, y, t, &of_y);
  measure_parts(o, r, t, &of_r);
  for (int i = 0; i < r->v.nrhs; i++) {
    const bool plus =
        of_y.minus[i] == 0 && of_b.minus[i] == 0 && of_r.minus[i] <= most * of_r.plus[i];
    const bool minus =
        of_y.plus[i] == 0 && of_b.plus[i] == 0 && of_r.plus[i] <= most * of_r.minus[i];
    qk_scalars_set(c, CHIRALITY, i, plus ? 1 : minus ? -1 : 0, 0);
    qk_scalars_set(c, OF_V, i, plus || minus ? 0.5 : 1, 0);
  }
  qk_scalars_store(c, CHIRALITY, 1);
  qk_scalars_store(c, OF_V, 1);
  chiral(o, t, r, 1, -1);
  blas(o, QK_BLAS_AXPY, r, t, qk_scalars_at(c, CHIRALITY));
  blas(o, QK_BLAS_SCALE, r, r, qk_scalars_at(c, OF_V));
  qk_work_release(o->op.work, t);
}

/* out = x + c_in in + c (V + V^+) in. It keeps chirality: V^+ = gamma_5 V gamma_5 of what has one
 * takes no application of its own. The bits are the same. */
static void combine_both(overlap_t *o, qk_field_t *out, const qk_field_t *in, const qk_field_t *x,
                         double c_in, double c, const double *accuracy) {
  qk_field_t *v = begin(o, out, in, x), *w = take(o, in);
  const bool one = is_chiral(o, in, w, accuracy);
  sign(o, v, in, false, accuracy);
  if (one) {
    chiral(o, w, v, 1, -1);
    blas(o, QK_BLAS_AXPY, v, w, qk_scalars_at(&o->factors, CHIRALITY));
  } else {
    sign(o, w, in, true, accuracy);
    blas(o, QK_BLAS_ADD, v, w, NULL);
  }
  qk_work_release(o->op.work, w);
  end(o, out, v, c, in, c_in, x);
}

/* out = x + c_in in + c D D^+ in; D is normal, D D^+ = 1/2 (1 + m^2) + 1/4 (1 - m^2) (V + V^+). */
static void combine_squared(overlap_t *o, qk_field_t *out, const qk_field_t *in,
                            const qk_field_t *x, double c_in, double c) {
  const double m2 = o->mass * o->mass;
  combine_both(o, out, in, x, c_in + 0.5 * c * (1 + m2), 0.25 * c * (1 - m2),
               o->squared.op.accuracy);
}

/* ---- the table of the operator --------------------------------------------------------------- */

static bool alike(const overlap_t *o, const qk_field_t *out, const qk_field_t *in) {
  const qk_spinor_t *a = &out->v, *b = &in->v;
  return o->want[a->prec] && a->prec == b->prec && a->nrhs == b->nrhs && a->nrhs <= QK_MAX_RHS &&
         a->subset == QK_FULL && b->subset == QK_FULL;
}

static bool fits(const overlap_t *o, const qk_field_t *out, const qk_field_t *in) {
  return out != in && alike(o, out, in);
}

static qk_status_t ov_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                            const qk_field_t *x, double c) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, out, in)) return QK_BAD_ARGUMENT;
  combine(o, out, in, dagger, x, 0, x ? c : 1);
  return qk_dev_status(op->dev);
}

static qk_status_t ov_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   bool dagger, const qk_field_t *x) {
  overlap_t *o = (overlap_t *)op;
  const bool in_place = !dagger && x == NULL;
  if (!(in_place ? alike : fits)(o, out, in)) return QK_BAD_ARGUMENT;
  combine(o, out, in, dagger, x, 0, x ? -1 : 1);
  return qk_dev_status(op->dev);
}

static qk_status_t copy(overlap_t *o, qk_field_t *out, const qk_field_t *in) {
  if (!alike(o, out, in)) return QK_BAD_ARGUMENT;
  if (out->v.data != in->v.data) blas(o, QK_BLAS_COPY, out, in, NULL);
  return qk_dev_status(o->op.dev);
}

static qk_status_t ov_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  return copy((overlap_t *)op, out, b);
}

static qk_status_t ov_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xs,
                                  const qk_field_t *b) {
  overlap_t *o = (overlap_t *)op;
  return fits(o, x, b) ? copy(o, x, xs) : QK_BAD_ARGUMENT;
}

/* r = b - D(m) x */
static qk_status_t residual_at(overlap_t *o, qk_field_t *r, const qk_field_t *x,
                               const qk_field_t *b, double m) {
  if (!fits(o, r, x) || !alike(o, r, b)) return QK_BAD_ARGUMENT;
  combine_at(o, m, r, x, false, b, 0, -1);
  return qk_dev_status(o->op.dev);
}

static qk_status_t ov_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xs,
                                      const qk_field_t *b) {
  overlap_t *o = (overlap_t *)op;
  return residual_at(o, r, xs, b, o->mass);
}

static qk_status_t ov_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, out, in)) return QK_BAD_ARGUMENT;
  combine(o, out, in, false, NULL, 1, -c);
  return qk_dev_status(op->dev);
}

/* T = 1. */
static qk_status_t ov_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse,
                           bool dagger) {
  (void)inverse;
  (void)dagger;
  overlap_t *o = (overlap_t *)op;
  return fits(o, out, in) ? copy(o, out, in) : QK_BAD_ARGUMENT;
}

/* solution = (x - solution) / (1 - m): it holds the source. */
static qk_status_t ov_leave(qk_operator_t *op, qk_field_t *solution, const qk_field_t *x) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, solution, x)) return QK_BAD_ARGUMENT;
  blas(o, QK_BLAS_SCALE, solution, solution, factor(o, OF_IN, -1));
  blas(o, QK_BLAS_ADD, solution, x, NULL);
  blas(o, QK_BLAS_SCALE, solution, solution, factor(o, OF_V, 1 / (1 - o->mass)));
  return qk_dev_status(op->dev);
}

static void ov_destroy(qk_operator_t *op) {
  overlap_t *o = (overlap_t *)op;
  if (!op) return;
  qk_scalars_fini(&o->factors);
  qk_sign_destroy(o->sign);
  if (op->base) op->base->ops->destroy(op->base);
  qk_free(o);
}

static const qk_operator_ops_t overlap_ops = {.apply = ov_apply,
                                              .apply_system = ov_apply_system,
                                              .prepare = ov_prepare,
                                              .reconstruct = ov_reconstruct,
                                              .residual_system = ov_residual_system,
                                              .relax = ov_relax,
                                              .diag = ov_diag,
                                              .leave = ov_leave,
                                              .destroy = ov_destroy};

/* ---- D D^+ as an operator of its own --------------------------------------------------------- */

static overlap_t *of(qk_operator_t *op) {
  return ((squared_t *)op)->of;
}

static qk_status_t sq_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger,
                            const qk_field_t *x, double c) {
  return ov_apply(&of(op)->op, out, in, dagger, x, c);
}

static qk_status_t sq_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                   bool dagger, const qk_field_t *x) {
  const bool in_place = !dagger && x == NULL;
  if (!(in_place ? alike : fits)(of(op), out, in)) return QK_BAD_ARGUMENT;
  combine_squared(of(op), out, in, x, 0, x ? -1 : 1);
  return qk_dev_status(op->dev);
}

static qk_status_t sq_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  return copy(of(op), out, b);
}

/* x = D^+ y */
static qk_status_t sq_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *y,
                                  const qk_field_t *b) {
  overlap_t *o = of(op);
  if (!fits(o, x, b) || !alike(o, x, y)) return QK_BAD_ARGUMENT;
  combine(o, x, y, true, NULL, 0, 1);
  return qk_dev_status(op->dev);
}

/* By D^+ and D, one after the other: it is to be the residual of D x = b, and with the shorter form
 * that is off by what V^+ V = 1 is. */
static qk_status_t sq_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *y,
                                      const qk_field_t *b) {
  overlap_t *o = of(op);
  if (!fits(o, r, y) || !alike(o, r, b)) return QK_BAD_ARGUMENT;
  qk_field_t *x = take(o, y);
  combine(o, x, y, true, NULL, 0, 1);
  combine(o, r, x, false, b, 0, -1);
  qk_work_release(o->op.work, x);
  drop_other_part(o, r, y, b);
  return qk_dev_status(op->dev);
}

static qk_status_t sq_relax(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, double c) {
  overlap_t *o = of(op);
  if (!fits(o, out, in)) return QK_BAD_ARGUMENT;
  combine_squared(o, out, in, NULL, 1, -c);
  return qk_dev_status(op->dev);
}

static qk_status_t sq_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool inverse,
                           bool dagger) {
  return ov_diag(&of(op)->op, out, in, inverse, dagger);
}

static qk_status_t sq_leave(qk_operator_t *op, qk_field_t *solution, const qk_field_t *x) {
  return ov_leave(&of(op)->op, solution, x);
}

static const qk_operator_ops_t squared_ops = {.apply = sq_apply,
                                              .apply_system = sq_apply_system,
                                              .prepare = sq_prepare,
                                              .reconstruct = sq_reconstruct,
                                              .residual_system = sq_residual_system,
                                              .relax = sq_relax,
                                              .diag = sq_diag,
                                              .leave = sq_leave};

/* ---- several masses --------------------------------------------------------------------------
 *
 * D(m) D(m)^+ = 1/4 (1 - m^2) (A + shift), A = 2 + V + V^+, shift = 4 m^2 / (1 - m^2): sgn(H) is
 * the same for all masses, and A has its chirality. m = 0 has no shift. */

static double ms_shift(const qk_operator_t *op, double m) {
  (void)op;
  return fabs(m) < 1 ? 4 * m * m / ((1 - m) * (1 + m)) : 0;
}

static qk_status_t ms_apply(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                            double shift) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, out, in)) return QK_BAD_ARGUMENT;
  combine_both(o, out, in, NULL, 2 + shift, 1, op->accuracy);
  return qk_dev_status(op->dev);
}

static qk_status_t ms_lift(qk_operator_t *op, qk_field_t *x, const qk_field_t *y, double m) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, x, y)) return QK_BAD_ARGUMENT;
  combine_at(o, m, x, y, true, x, 0, 4 / ((1 - m) * (1 + m)));
  return qk_dev_status(op->dev);
}

static qk_status_t ms_residual(qk_operator_t *op, qk_field_t *r, const qk_field_t *x,
                               const qk_field_t *b, double m) {
  return residual_at((overlap_t *)op, r, x, b, m);
}

static qk_status_t ms_keep(qk_operator_t *op, qk_field_t *r, const qk_field_t *b) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, r, b)) return QK_BAD_ARGUMENT;
  drop_other_part(o, r, NULL, b);
  return qk_dev_status(op->dev);
}

static qk_status_t ms_leave(qk_operator_t *op, qk_field_t *x, const qk_field_t *b, double m) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, x, b)) return QK_BAD_ARGUMENT;
  blas(o, QK_BLAS_AXPY, x, b, factor(o, OF_IN, -1));
  blas(o, QK_BLAS_SCALE, x, x, factor(o, OF_V, 1 / (1 - m)));
  return qk_dev_status(op->dev);
}

static const qk_masses_ops_t overlap_masses = {.shift = ms_shift,
                                               .apply = ms_apply,
                                               .lift = ms_lift,
                                               .residual = ms_residual,
                                               .keep = ms_keep,
                                               .leave = ms_leave};

/* ---- creation -------------------------------------------------------------------------------- */

static double height(const qk_values_t *v) {
  return qk_value(v, "M");
}

/* |D_W(-M)| <= |4 - M| + 4, as each of the four hops of a direction and back is at most 1 for links
 * that are unitary: to the precision of files. */
static double norm_of(const qk_values_t *v) {
  return (8 - height(v)) * (1 + 1e-5);
}

static qk_sign_params_t sign_of(const qk_action_params_t *params) {
  const qk_values_t *v = &params->values;
  return (qk_sign_params_t){
      .norm = norm_of(v),
      .modes = (int)qk_value(v, "modes"),
      .tol = qk_value(v, "sign-tol"),
      .zolotarev = strcmp(qk_value_word(v, "sign"), "zolotarev") == 0,
      .want = {[QK_DOUBLE] = params->want[QK_DOUBLE], [QK_SINGLE] = params->want[QK_SINGLE]},
      .stored = params->stored,
      .progress = params->progress,
      .arg = params->arg};
}

/* Half holds too few digits for the series. */
static void describe(overlap_t *o, const qk_action_params_t *params, qk_operator_t *base) {
  o->mass = qk_value(&params->values, "mass");
  o->want[QK_DOUBLE] = params->want[QK_DOUBLE];
  o->want[QK_SINGLE] = params->want[QK_SINGLE];
  o->op = (qk_operator_t){.ops = &overlap_ops,
                          .dev = base->dev,
                          .work = base->work,
                          .action = "overlap",
                          .system = QK_FULL,
                          .adjoint = QK_ADJOINT_GAMMA5,
                          .chirality = QK_CHIRALITY_NONE,
                          .flavours = &o->flavours,
                          .base = base,
                          .inexact = true,
                          .masses = &overlap_masses,
                          .squared = &o->squared.op,
                          .diag_scale = 1};
  o->squared = (squared_t){.op = o->op, .of = o};
  o->squared.op.ops = &squared_ops;
  o->squared.op.adjoint = QK_ADJOINT_ANTI;
  o->squared.op.squared = NULL;
  o->squared.op.masses = NULL;
}

static qk_status_t make(overlap_t *o, const qk_action_params_t *params, qk_err_t *err) {
  qk_sign_params_t p = sign_of(params);
  qk_operator_t *base = o->op.base;
  p.d = base;
  const qk_status_t status = qk_comm_agree(
      base->dev->geom->comm, qk_scalars_init(&o->factors, base->dev, FACTORS, QK_MAX_RHS), err);
  const qk_status_t made = status == QK_OK ? qk_sign_create(&p, &o->sign, err) : status;
  qk_work_trim(base->work); /* fields of Lanczos */
  if (made != QK_OK) return made;
  o->op.sign = o->squared.op.sign = qk_sign_health(o->sign);
  const qk_prec_t inner = o->want[QK_SINGLE] ? QK_SINGLE : QK_DOUBLE;
  o->op.flops_full = o->op.flops_system = qk_sign_cost(o->sign, inner) * base->flops_full;
  return QK_OK;
}

static qk_status_t compose(const qk_action_params_t *params, qk_operator_t *base,
                           qk_operator_t **op, qk_err_t *err) {
  qk_comm_t *comm = base->dev->geom->comm;
  overlap_t *o = qk_calloc(1, sizeof *o);
  qk_status_t status = qk_comm_agree(comm, o ? QK_OK : QK_NO_MEMORY, err);
  if (status == QK_OK) {
    describe(o, params, base);
    status = make(o, params, err);
  }
  if (status == QK_OK) {
    *op = &o->op;
    return QK_OK;
  }
  if (o && o->op.base) {
    ov_destroy(&o->op);
  } else {
    qk_free(o);
    base->ops->destroy(base);
  }
  return qk_fail(err, status, "the operator: %s", qk_status_text(status));
}

/* ---- the table of the action ----------------------------------------------------------------- */

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  return qk_links_check_apart(v, false, err);
}

/* T of the base. */
static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  (void)err;
  qk_local_number(4 - height(&in->params->values), parts);
  return QK_OK;
}

static int64_t bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                     bool making) {
  (void)ops;
  const qk_sign_params_t p = sign_of(params);
  const int64_t factors = making ? 0 : (int64_t)FACTORS * QK_MAX_RHS * 2 * (int)sizeof(double);
  return qk_sign_bytes(lat, &p, making) + factors;
}

/* CG, on D D^+, converges at any mass. */
static const char *const method[] = {"cg", "gcr", "bicgstab", NULL};

const qk_action_t qk_action_overlap = {.name = "overlap",
                                       .adjoint = QK_ADJOINT_GAMMA5,
                                       .chirality = QK_CHIRALITY_NONE,
                                       .method = method,
                                       .squares = true,
                                       .check = check,
                                       .bytes = bytes,
                                       .local = local,
                                       .compose = compose};
