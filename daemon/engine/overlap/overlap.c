/*
 * overlap.c: overlap fermions (H. Neuberger, Phys. Lett. B 417 (1998) 141, hep-lat/9707022),
 *
 *   D(m) = 1/2 [(1 + m) + (1 - m) gamma_5 sgn(H)],  H = gamma_5 D_W(-M),  0 < M < 2
 *
 * gamma_5 sgn(H) is V of sign.h. D connects all sites: the system that solvers iterate on is D
 * itself, on the full lattice. What the user gets of a solution D x = b is the propagator
 * (x - b) / (1 - m), the inverse of an operator D_c + m whose D_c anticommutes with gamma_5.
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
enum { OF_IN, OF_V, FACTORS };

typedef struct overlap {
  qk_operator_t op; /* first: a qk_operator_t * is an overlap_t * */
  qk_sign_t *sign;
  bool want[QK_PRECS];
  double mass;
  qk_scalars_t factors;
  qk_flavours_t flavours; /* right-hand sides have none: nobody looks at them */
} overlap_t;

/* ---- calls of an iteration ------------------------------------------------------------------- */

static void blas(const overlap_t *o, qk_blas_op_t op, const qk_field_t *a, const qk_field_t *b,
                 const double *c) {
  qk_dev_blas(o->op.dev, op, (qk_blas_args_t){.f = {a->v, b->v}, .c = {c}});
}

static const double *factor(overlap_t *o, int which, double value) {
  qk_scalars_fill(&o->factors, which, value);
  return qk_scalars_at(&o->factors, which);
}

/* out = x + c_in in + c D in, or with D^+; x NULL: 0. All may be the same field. */
static void combine(overlap_t *o, qk_field_t *out, const qk_field_t *in, bool dagger,
                    const qk_field_t *x, double c_in, double c) {
  const bool apart = out->v.data != in->v.data && (x == NULL || out->v.data != x->v.data);
  qk_field_t *v = apart ? out : qk_work_take(o->op.work, in->v.prec, in->v.nrhs, QK_FULL);
  qk_sign_apply(o->sign, v, in, dagger);
  blas(o, QK_BLAS_SCALE, v, v, factor(o, OF_V, 0.5 * c * (1 - o->mass)));
  blas(o, QK_BLAS_AXPY, v, in, factor(o, OF_IN, c_in + 0.5 * c * (1 + o->mass)));
  if (x) blas(o, QK_BLAS_ADD, v, x, NULL);
  if (!apart) {
    blas(o, QK_BLAS_COPY, out, v, NULL);
    qk_work_release(o->op.work, v);
  }
  o->op.applications[in->v.prec]++;
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

static qk_status_t ov_residual_system(qk_operator_t *op, qk_field_t *r, const qk_field_t *xs,
                                      const qk_field_t *b) {
  overlap_t *o = (overlap_t *)op;
  if (!fits(o, r, xs) || !alike(o, r, b)) return QK_BAD_ARGUMENT;
  combine(o, r, xs, false, b, 0, -1);
  return qk_dev_status(op->dev);
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
                          .diag_scale = 1};
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
  if (!(qk_value(v, "mass") < 1))
    return qk_fail(err, QK_BAD_ARGUMENT, "mass = %.15g: must be below 1", qk_value(v, "mass"));
  if (!(height(v) < 2))
    return qk_fail(err, QK_BAD_ARGUMENT, "M = %.15g: must be below 2", height(v));
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

/* D is normal; CG on its normal equations converges at any mass. */
static const char *const method[] = {"cg", "gcr", "bicgstab", NULL};

const qk_action_t qk_action_overlap = {.name = "overlap",
                                       .adjoint = QK_ADJOINT_GAMMA5,
                                       .chirality = QK_CHIRALITY_NONE,
                                       .method = method,
                                       .check = check,
                                       .bytes = bytes,
                                       .local = local,
                                       .compose = compose};
