/*
 * moebius.c: domain wall fermions. With D = D_W(-M5) = a - 1/2 hop, a = 4 - M5 (1 + 3 nu / xi0 - M5
 * on anisotropic lattices), on Ls slices s of a fifth dimension:
 *
 *   (M psi)_s = (b_s D + 1) psi_s + (c_s D - 1) (Delta psi)_s
 *   (Delta psi)_s = P+ psi_(s-1) + P- psi_(s+1), times -m where s wraps around; P+- = (1 +- g5) / 2
 *
 * b = 1, c = 0: D. B. Kaplan, Y. Shamir (hep-lat/9303005); else R. C. Brower, H. Neff, K. Orginos
 * (arXiv:1206.5214), numbers b_s, c_s, which may be complex. With the matrices B5 = b + c Delta
 * between slices and psi' = B5 psi
 *
 *   M = M' B5,  M' = T - 1/2 hop,  T = a + (1 - Delta) B5^-1
 *
 * and M' is what this operator is: the hop acts on sites, T on slices. Its right-hand sides are
 * those of M, its solutions psi'. What a user asks for is the quark in four dimensions:
 *
 *   source eta: D_- P+ eta on slice 0 and D_- P- eta on slice Ls-1, D_- = 1 - c_s D    (enter)
 *   quark:      q = P- psi_0 + P+ psi_(Ls-1)                                           (leave)
 *
 * or, where the solution has five dimensions, psi itself.
 *
 * The mixing of slices is a pass of its own beside the hop (cuda/fifth_ops.h).
 */
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/action/composed.h"
#include "daemon/engine/action/domainwall/slices.h"
#include "daemon/engine/action/domainwall/sums.h"
#include "daemon/engine/action/links.h"
#include "daemon/engine/action/local.h"

enum { PLUS, MINUS }; /* chiralities */

typedef struct wall {
  qk_composed_t made;        /* first: a qk_operator_t * is a wall_t * */
  qk_mix_t t[2], inverse[2]; /* T, T^-1; [1]: their adjoints */
  qk_mix_t enter;            /* b = enter eta + sum_k from_d[k] D project[k] eta */
  qk_mix_t project[2], from_d[2];
  qk_mix_t leave; /* the quark, of psi' */
  qk_mix_t five;  /* psi, of psi' */
  qk_sums_t *sums;
} wall_t;

static const qk_spinor_t none = {.data = NULL};

/* ---- pieces ---------------------------------------------------------------------------------- */

static qk_field_t *take(const wall_t *w, const qk_field_t *like, qk_subset_t subset) {
  return qk_work_take(w->made.op.work, like->v.prec, qk_field_nrhs(like), subset);
}

/* out = c_hop hop in + c_x x, slice by slice. */
static void hop(wall_t *w, bool dagger, const int *block, double c_hop, qk_spinor_t in, double c_x,
                qk_spinor_t x, qk_spinor_t out) {
  const qk_eo_pass_t p = {.dagger = dagger, .block = block, .c_hop = c_hop, .c_x = c_x, .x = x};
  qk_eo_pass(w->made.op.base, &p, out, in);
}

static void mix(const wall_t *w, const qk_mix_t *m, double c_in, qk_spinor_t in, double c_x,
                qk_spinor_t x, qk_spinor_t out) {
  qk_mix_apply(&w->made.dev, m, c_in, in, c_x, x, out);
}

/* ---- the table of the operator --------------------------------------------------------------- */

static void whole(qk_composed_t *made, qk_field_t *out, const qk_field_t *in, bool dagger,
                  const qk_field_t *x, double c) {
  wall_t *w = (wall_t *)made;
  hop(w, dagger, NULL, -0.5 * c, in->v, x ? 1 : 0, x ? x->v : none, out->v);
  mix(w, &w->t[dagger], c, in->v, 1, out->v, out->v);
}

static void twice(qk_composed_t *made, qk_field_t *out, const qk_field_t *in, const int *block,
                  double c, double c_x) {
  wall_t *w = (wall_t *)made;
  qk_field_t *odd = take(w, in, QK_ODD);
  hop(w, false, block, 1, in->v, 0, none, odd->v);
  mix(w, &w->inverse[0], 1, odd->v, 0, none, odd->v);
  qk_field_t *even = out == in ? take(w, in, QK_EVEN) : out;
  hop(w, false, block, 1, odd->v, 0, none, even->v);
  mix(w, &w->inverse[0], c, even->v, c_x, in->v, out->v);
  if (even != out) qk_work_release(w->made.op.work, even);
  qk_work_release(w->made.op.work, odd);
}

/* Mhat^+ = 1 - 1/4 hop^+ T_oo^-1+ hop^+ T_ee^-1+ */
static void adjoint(qk_composed_t *made, qk_field_t *out, const qk_field_t *in) {
  wall_t *w = (wall_t *)made;
  qk_field_t *odd = take(w, in, QK_ODD);
  mix(w, &w->inverse[1], 1, in->v, 0, none, out->v);
  hop(w, true, NULL, 1, out->v, 0, none, odd->v);
  mix(w, &w->inverse[1], 1, odd->v, 0, none, odd->v);
  hop(w, true, NULL, -0.25, odd->v, 1, in->v, out->v);
  qk_work_release(w->made.op.work, odd);
}

static void residual(qk_composed_t *made, qk_field_t *r, const qk_field_t *xe,
                     const qk_field_t *b) {
  wall_t *w = (wall_t *)made;
  qk_field_t *odd = take(w, r, QK_ODD);
  hop(w, false, NULL, 0.5, xe->v, 1, qk_field_parity(b, QK_ODD), odd->v);
  mix(w, &w->inverse[0], 1, odd->v, 0, none, odd->v);
  hop(w, false, NULL, 0.5, odd->v, 1, qk_field_parity(b, QK_EVEN), r->v);
  mix(w, &w->inverse[0], 1, r->v, -1, xe->v, r->v);
  qk_work_release(w->made.op.work, odd);
}

static const qk_composed_ops_t applied = {
    .whole = whole, .twice = twice, .residual = residual, .adjoint = adjoint};

static qk_status_t wall_prepare(qk_operator_t *op, qk_field_t *out, const qk_field_t *b) {
  wall_t *w = (wall_t *)op;
  if (!w->made.want[b->v.prec] || b->v.subset != QK_FULL || out->v.subset != QK_EVEN ||
      b->v.nrhs != out->v.nrhs)
    return QK_BAD_ARGUMENT;
  qk_field_t *odd = take(w, b, QK_ODD);
  mix(w, &w->inverse[0], 1, qk_field_parity(b, QK_ODD), 0, none, odd->v);
  hop(w, false, NULL, 0.5, odd->v, 1, qk_field_parity(b, QK_EVEN), out->v);
  mix(w, &w->inverse[0], 1, out->v, 0, none, out->v);
  qk_work_release(op->work, odd);
  return qk_dev_status(op->dev);
}

static qk_status_t wall_reconstruct(qk_operator_t *op, qk_field_t *x, const qk_field_t *xe,
                                    const qk_field_t *b) {
  wall_t *w = (wall_t *)op;
  if (!qk_composed_fits(&w->made, x, b, QK_FULL)) return QK_BAD_ARGUMENT;
  const qk_spinor_t even = qk_field_parity(x, QK_EVEN), odd = qk_field_parity(x, QK_ODD);
  if (xe->v.data != even.data)
    qk_dev_blas(op->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {even, qk_field_parity(xe, QK_EVEN)}});
  hop(w, false, NULL, 0.5, even, 1, qk_field_parity(b, QK_ODD), odd);
  mix(w, &w->inverse[0], 1, odd, 0, none, odd);
  return qk_dev_status(op->dev);
}

static qk_status_t one_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, int mu,
                           int sense) {
  wall_t *w = (wall_t *)op;
  if (!qk_composed_fits(&w->made, out, in, QK_FULL) || mu < 0 || mu > 3) return QK_BAD_ARGUMENT;
  const qk_eo_pass_t p = {.hops = 1u << (2 * mu + sense), .c_hop = -0.5};
  qk_eo_pass(op->base, &p, out->v, in->v);
  return qk_dev_status(op->dev);
}

static qk_status_t wall_hop_forward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                    int mu) {
  return one_hop(op, out, in, mu, 0);
}

static qk_status_t wall_hop_backward(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                     int mu) {
  return one_hop(op, out, in, mu, 1);
}

static qk_status_t wall_hop(qk_operator_t *op, qk_field_t *out, const qk_field_t *in, bool dagger) {
  const wall_t *w = (const wall_t *)op;
  return w->made.want[in->v.prec] ? op->base->ops->hop(op->base, out, in, dagger) : QK_BAD_ARGUMENT;
}

static qk_status_t wall_diag(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                             bool inverted, bool dagger) {
  wall_t *w = (wall_t *)op;
  if (!qk_composed_fits(&w->made, out, in, in->v.subset)) return QK_BAD_ARGUMENT;
  mix(w, inverted ? &w->inverse[dagger] : &w->t[dagger], 1, in->v, 0, none, out->v);
  return qk_dev_status(op->dev);
}

/* ---- four dimensions ------------------------------------------------------------------------- */

static bool is_outer(const wall_t *w, const qk_field_t *four, const qk_field_t *five) {
  return four->v.nrhs * qk_geom_slices(&w->made.geom) == five->v.nrhs &&
         four->v.prec == five->v.prec && four->v.subset == QK_FULL && five->v.subset == QK_FULL &&
         w->made.want[four->v.prec];
}

static qk_status_t wall_enter(qk_operator_t *op, qk_field_t *b, const qk_field_t *source) {
  wall_t *w = (wall_t *)op;
  if (!is_outer(w, source, b)) return QK_BAD_ARGUMENT;
  mix(w, &w->enter, 1, source->v, 0, none, b->v);
  if (!w->from_d[0].rows) return qk_dev_status(op->dev);
  qk_operator_t *base = op->base;
  const qk_spinor_t *v = &source->v;
  qk_field_t *eta = qk_work_take(base->work, v->prec, v->nrhs, QK_FULL);
  qk_field_t *d = qk_work_take(base->work, v->prec, v->nrhs, QK_FULL);
  for (int k = 0; k < 2; k++) {
    mix(w, &w->project[k], 1, *v, 0, none, eta->v);
    if (qk_dev_ok(op->dev)) qk_dev_note(op->dev, base->ops->apply(base, d, eta, false, NULL, 0));
    mix(w, &w->from_d[k], 1, d->v, 1, b->v, b->v);
  }
  qk_work_release(base->work, d);
  qk_work_release(base->work, eta);
  return qk_dev_status(op->dev);
}

static qk_status_t wall_leave(qk_operator_t *op, qk_field_t *quark, const qk_field_t *x) {
  wall_t *w = (wall_t *)op;
  if (qk_composed_fits(&w->made, quark, x, QK_FULL) && quark != x) {
    mix(w, &w->five, 1, x->v, 0, none, quark->v);
    return qk_dev_status(op->dev);
  }
  if (!is_outer(w, quark, x)) return QK_BAD_ARGUMENT;
  mix(w, &w->leave, 1, x->v, 0, none, quark->v);
  return qk_dev_status(op->dev);
}

static qk_status_t wall_wall_sums(qk_operator_t *op, const qk_field_t *source, const qk_field_t *x,
                                  double *out) {
  wall_t *w = (wall_t *)op;
  if (!is_outer(w, source, x) || source->v.nrhs != 1 || x->v.prec != QK_DOUBLE)
    return QK_BAD_ARGUMENT;
  return qk_sums_take(w->sums, op->work, source, x, out);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void free_matrices(wall_t *w) {
  qk_mix_t *all[] = {&w->t[0],      &w->t[1],       &w->inverse[0], &w->inverse[1],
                     &w->enter,     &w->project[0], &w->project[1], &w->from_d[0],
                     &w->from_d[1], &w->leave,      &w->five};
  qk_sums_destroy(w->sums);
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) qk_mix_destroy(&w->made.dev, all[i]);
}

static void wall_destroy(qk_operator_t *op) {
  if (!op) return;
  wall_t *w = (wall_t *)op;
  qk_operator_t *base = op->base;
  free_matrices(w);
  qk_work_destroy(op->work);
  qk_free(w);
  base->ops->destroy(base);
}

static const qk_operator_ops_t wall_ops = {.apply = qk_composed_apply,
                                           .apply_system = qk_composed_apply_system,
                                           .prepare = wall_prepare,
                                           .reconstruct = wall_reconstruct,
                                           .residual_system = qk_composed_residual_system,
                                           .relax = qk_composed_relax,
                                           .apply_blocks = qk_composed_apply_blocks,
                                           .hop_forward = wall_hop_forward,
                                           .hop_backward = wall_hop_backward,
                                           .hop = wall_hop,
                                           .diag = wall_diag,
                                           .enter = wall_enter,
                                           .leave = wall_leave,
                                           .wall_sums = wall_wall_sums,
                                           .destroy = wall_destroy};

/* ---- matrices -------------------------------------------------------------------------------- */

typedef struct numbers {
  int ls;
  double a, mass;
  double complex b[QK_LS_MAX], c[QK_LS_MAX];
} numbers_t;

/* Number s of a parameter that has one for all slices, or one for each. */
static double slice_value(const qk_values_t *v, const char *key, int s) {
  int n = 0;
  const double *x = qk_value_reals(v, key, &n);
  return x[n == 1 ? 0 : s];
}

static double number_of(const qk_values_t *v) {
  return 1 + 3 * qk_value(v, "nu") / qk_value(v, "xi0") - qk_value(v, "M5");
}

static void read_numbers(const qk_values_t *v, numbers_t *n) {
  *n = (numbers_t){.ls = (int)qk_value(v, "Ls"), .a = number_of(v), .mass = qk_value(v, "mass")};
  for (int s = 0; s < n->ls; s++) {
    n->b[s] = slice_value(v, "b", s) + I * slice_value(v, "b-im", s);
    n->c[s] = slice_value(v, "c", s) + I * slice_value(v, "c-im", s);
  }
}

/* Of chirality +1 from the slice behind, of -1 from the one ahead. */
static void set_delta(const numbers_t *n, qk_slices_t *delta) {
  memset(delta, 0, sizeof *delta);
  delta->rows = delta->columns = n->ls;
  for (int s = 0; s < n->ls; s++) {
    delta->m[PLUS][s][(s + n->ls - 1) % n->ls] = s == 0 ? -n->mass : 1;
    delta->m[MINUS][s][(s + 1) % n->ls] = s == n->ls - 1 ? -n->mass : 1;
  }
}

/* unit times 1 + factor[s] a */
static void set_affine(const qk_slices_t *a, const double complex *unit,
                       const double complex *factor, qk_slices_t *out) {
  *out = *a;
  for (int k = 0; k < 2; k++)
    for (int s = 0; s < a->rows; s++) {
      for (int r = 0; r < a->columns; r++) out->m[k][s][r] *= factor[s];
      out->m[k][s][s] += unit[s];
    }
}

/* All matrices of an operator, in one piece: they are large for a stack. */
typedef struct matrices {
  qk_slices_t delta, b5, five, one_less, quotient;
  qk_slices_t t, t_adjoint, inverse, inverse_adjoint, enter, project[2], from_d[2], surface, leave;
} matrices_t;

static void set_shape(qk_slices_t *m, int rows, int columns) {
  memset(m, 0, sizeof *m);
  m->rows = rows;
  m->columns = columns;
}

/* Those that lead from four dimensions. */
static void set_sources(const numbers_t *n, matrices_t *m) {
  const int slice[2] = {0, n->ls - 1}; /* of chirality +1, of -1 */
  set_shape(&m->enter, n->ls, 1);
  for (int k = 0; k < 2; k++) {
    set_shape(&m->project[k], 1, 1);
    set_shape(&m->from_d[k], n->ls, 1);
    m->enter.m[k][slice[k]][0] = m->project[k].m[k][0][0] = 1;
    m->from_d[k].m[PLUS][slice[k]][0] = m->from_d[k].m[MINUS][slice[k]][0] = -n->c[slice[k]];
  }
}

static qk_status_t make_matrices(const numbers_t *n, matrices_t *m) {
  double complex one[QK_LS_MAX], minus[QK_LS_MAX], a[QK_LS_MAX];
  const int last = n->ls - 1;
  for (int s = 0; s < n->ls; s++) {
    one[s] = 1;
    minus[s] = -1;
    a[s] = n->a;
  }
  set_delta(n, &m->delta);
  set_affine(&m->delta, n->b, n->c, &m->b5);
  set_affine(&m->delta, one, minus, &m->one_less);
  qk_status_t status = qk_slices_invert(&m->b5, &m->five);
  if (status != QK_OK) return status;
  qk_slices_times(&m->one_less, &m->five, &m->quotient);
  set_affine(&m->quotient, a, one, &m->t);
  status = qk_slices_invert(&m->t, &m->inverse);
  qk_slices_adjoint(&m->t, &m->t_adjoint);
  qk_slices_adjoint(&m->inverse, &m->inverse_adjoint);
  set_sources(n, m);
  set_shape(&m->surface, 1, n->ls);
  m->surface.m[MINUS][0][0] = 1;
  m->surface.m[PLUS][0][last] = 1;
  qk_slices_times(&m->surface, &m->five, &m->leave);
  return status;
}

/* b and c are real, and the same on all slices: the axial current is defined. */
static bool is_uniform(const numbers_t *n) {
  bool same = cimag(n->b[0]) == 0 && cimag(n->c[0]) == 0 && n->b[0] + n->c[0] != 0;
  for (int s = 1; s < n->ls; s++) same = same && n->b[s] == n->b[0] && n->c[s] == n->c[0];
  return same;
}

static qk_status_t make_sums(wall_t *w, const numbers_t *n, const matrices_t *m) {
  const qk_sums_in_t in = {.ls = n->ls,
                           .is_uniform = is_uniform(n),
                           .b = creal(n->b[0]),
                           .c = creal(n->c[0]),
                           .five = &m->five};
  return qk_sums_create(w->made.op.base, &in, &w->sums);
}

/* D takes part in right-hand sides of M. */
static bool uses_d(const numbers_t *n) {
  return n->c[0] != 0 || n->c[n->ls - 1] != 0;
}

static qk_status_t upload(wall_t *w, const numbers_t *n, matrices_t *m) {
  const struct {
    const qk_slices_t *from;
    qk_mix_t *to;
    bool wanted;
  } all[] = {
      {&m->t, &w->t[0], true},
      {&m->t_adjoint, &w->t[1], true},
      {&m->inverse, &w->inverse[0], true},
      {&m->inverse_adjoint, &w->inverse[1], true},
      {&m->enter, &w->enter, true},
      {&m->project[0], &w->project[0], uses_d(n)},
      {&m->project[1], &w->project[1], uses_d(n)},
      {&m->from_d[0], &w->from_d[0], uses_d(n)},
      {&m->from_d[1], &w->from_d[1], uses_d(n)},
      {&m->leave, &w->leave, true},
      {&m->five, &w->five, true},
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    if (!all[i].wanted) continue;
    const qk_status_t status = qk_mix_create(&w->made.dev, all[i].from, all[i].to);
    if (status != QK_OK) return status;
  }
  return qk_work_create(&w->made.dev, &w->made.op.work);
}

static void describe(wall_t *w, qk_operator_t *base, int ls) {
  const int64_t mixing = (int64_t)48 * ls * ls;
  qk_operator_t *op = &w->made.op;
  qk_composed_init(&w->made, &applied, base);
  w->made.geom.ls = ls;
  op->ops = &wall_ops;
  op->outer = base->dev;
  op->action = "moebius";
  op->adjoint = QK_ADJOINT_PARTS;
  op->chirality = QK_CHIRALITY_NONE;
  op->diag_scale = 1;
  op->flops_full = ls * base->flops_full + mixing;
  op->flops_system = ls * base->flops_system + mixing;
}

static qk_status_t make(const numbers_t *n, wall_t *w) {
  matrices_t *m = qk_malloc(sizeof *m);
  if (!m) return QK_NO_MEMORY;
  const qk_status_t status = make_matrices(n, m);
  qk_status_t made = status == QK_OK ? upload(w, n, m) : status;
  if (made == QK_OK) made = make_sums(w, n, m);
  qk_free(m);
  return made;
}

static qk_status_t compose(const qk_action_params_t *params, qk_operator_t *base,
                           qk_operator_t **op, qk_err_t *err) {
  numbers_t n;
  wall_t *w = qk_calloc(1, sizeof *w);
  qk_status_t status = QK_NO_MEMORY;
  read_numbers(&params->values, &n);
  if (w) {
    describe(w, base, n.ls);
    status = make(&n, w);
  }
  if (status == QK_OK) {
    *op = &w->made.op;
    return QK_OK;
  }
  if (w) free_matrices(w);
  qk_free(w);
  base->ops->destroy(base);
  if (status == QK_BREAKDOWN)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "b, c, M5, mass: with these numbers b + c Delta, or the local term, has no "
                   "inverse");
  return qk_fail(err, status, "the operator: %s", qk_status_text(status));
}

/* ---- the table of the action ----------------------------------------------------------------- */

static qk_status_t check(const qk_values_t *v, qk_err_t *err) {
  static const char *const key[] = {"b", "c", "b-im", "c-im"};
  const int ls = (int)qk_value(v, "Ls");
  for (int i = 0; i < 4; i++) {
    int n = 0;
    qk_value_reals(v, key[i], &n);
    if (n != 1 && n != ls)
      return qk_fail(err, QK_BAD_ARGUMENT, "%s: %d numbers; give one, or one for each of Ls = %d",
                     key[i], n, ls);
  }
  return qk_links_check_apart(v, false, err);
}

static int slices(const qk_values_t *v) {
  return (int)qk_value(v, "Ls");
}

/* T of the base, D: a number. */
static qk_status_t local(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err) {
  const qk_values_t *v = &in->params->values;
  const double a = number_of(v), weight = qk_value(v, "nu") / qk_value(v, "xi0");
  if (!(fabs(a) > 1e-9))
    return qk_fail(err, QK_BAD_ARGUMENT, "M5 = %.15g: 1 + 3 nu / xi0 - M5 must not be 0",
                   qk_value(v, "M5"));
  qk_local_number(a, parts);
  for (int mu = 0; mu < 3; mu++) parts->weight[mu] = weight;
  parts->weight[3] = 1;
  return QK_OK;
}

static bool all_zero(const qk_values_t *v, const char *key) {
  int n = 0;
  const double *x = qk_value_reals(v, key, &n);
  while (n > 0 && x[n - 1] == 0) n--;
  return n == 0;
}

/* Of the matrices: T and T^-1 with their adjoints, those of sources, those of solutions; of what is
 * measured. */
static int64_t bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const qk_action_params_t *params,
                     bool making) {
  (void)ops;
  (void)making;
  numbers_t n;
  read_numbers(&params->values, &n);
  const bool real = all_zero(&params->values, "b-im") && all_zero(&params->values, "c-im");
  int64_t sources = qk_mix_bytes(n.ls, 1, true);
  const double complex c[2] = {n.c[0], n.c[n.ls - 1]};
  for (int k = 0; k < 2 && uses_d(&n); k++)
    sources += qk_mix_bytes(1, 1, true) + qk_mix_bytes(n.ls, 1, cimag(c[k]) == 0);
  return 5 * qk_mix_bytes(n.ls, n.ls, real) + sources + qk_mix_bytes(1, n.ls, real) +
         qk_sums_bytes(lat, n.ls, is_uniform(&n), creal(n.c[0]), real);
}

/* P+- eta, and D of that. */
static int entering(const qk_values_t *v) {
  numbers_t n;
  read_numbers(v, &n);
  return uses_d(&n) ? 2 : 0;
}

/* Mhat is not positive: CG works on its normal equations. */
static const char *const method[] = {"cg", NULL};

const qk_action_t qk_action_moebius = {.name = "moebius",
                                       .adjoint = QK_ADJOINT_GAMMA5,
                                       .chirality = QK_CHIRALITY_NONE,
                                       .method = method,
                                       .check = check,
                                       .slices = slices,
                                       .entering = entering,
                                       .bytes = bytes,
                                       .local = local,
                                       .compose = compose};
