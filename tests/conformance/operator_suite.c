#include "tests/conformance/operator_suite.h"

#include <criterion/criterion.h>
#include <math.h>

enum { FIELDS = 8 };

/* A check under way: the subject with one precision and width of block. Fields are released in
 * reverse at its end. */
typedef struct run {
  const subject_t *s;
  qk_operator_t *op;
  const qk_device_t *dev;
  qk_prec_t prec;
  int nrhs, nfield;
  double tol, forms; /* of the subject */
  /* Where there is a twist: flavours on the device, [QK_MAX_RHS] each: mixed, mixed the other way,
   * all minus. */
  const uint8_t *mixed, *minus; /* minus: what the checks are run with */
  qk_field_t *field[FIELDS];
} run_t;

typedef void check_fn(run_t *r);

/* 0 is of +1, and so is the only one of a block; both are in each tile. */
static bool is_minus(int rhs) {
  return rhs % 3 == 1;
}

#define OK(call) cr_assert((call) == QK_OK, "%s: %s", r->s->name, #call)

/* ---- fields ---------------------------------------------------------------------------------- */

static qk_field_t *take(run_t *r, qk_subset_t subset) {
  cr_assert_lt(r->nfield, FIELDS);
  OK(qk_work_reserve(r->op->work, r->prec, r->nrhs, subset, &r->field[r->nfield]));
  return r->field[r->nfield++];
}

static void give_back(run_t *r) {
  while (r->nfield > 0) qk_work_release(r->op->work, r->field[--r->nfield]);
}

static void blas(run_t *r, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b, qk_spinor_t c) {
  const qk_blas_args_t args = {.op = op, .f = {a, b, c}};
  OK(r->dev->ops->blas(r->dev->ctx, &args));
}

/* a = b + c a */
static void xpay(run_t *r, qk_spinor_t a, qk_spinor_t b, double c) {
  double factor[QK_COLUMNS_MAX][2], *device = NULL;
  const qk_ops_t *ops = r->dev->ops;
  for (int i = 0; i < a.nrhs; i++) {
    factor[i][0] = c;
    factor[i][1] = 0;
  }
  OK(ops->alloc(r->dev->ctx, sizeof factor, (void **)&device));
  OK(ops->copy(r->dev->ctx, device, factor, sizeof factor, QK_COPY_TO_DEVICE, 0));
  const qk_blas_args_t args = {.op = QK_BLAS_XPAY, .f = {a, b}, .c = {device}};
  OK(ops->blas(r->dev->ctx, &args));
  OK(ops->queue_sync(r->dev->ctx, 0));
  ops->free(r->dev->ctx, device);
}

static void copy(run_t *r, qk_spinor_t to, qk_spinor_t from) {
  const qk_blas_args_t args = {.op = QK_BLAS_COPY, .f = {to, from}};
  OK(r->dev->ops->blas(r->dev->ctx, &args));
}

static qk_field_t *noise(run_t *r, int seed) {
  qk_field_t *f = take(r, QK_FULL), *single;
  OK(qk_work_reserve(r->op->work, QK_SINGLE, r->nrhs, QK_FULL, &single));
  for (int k = 0; k < qk_field_vectors(single); k++) {
    const qk_noise_args_t args = {.lat = r->dev->geom->lat,
                                  .field = qk_field_vector(single, k).v,
                                  .rhs = -1,
                                  .seed = (uint64_t)seed + 1000 * (uint64_t)k};
    OK(r->dev->ops->noise(r->dev->ctx, &args));
  }
  copy(r, f->v, single->v);
  qk_work_release(r->op->work, single);
  return f;
}

/* The part of a full field that the system acts on. */
static void copy_system(run_t *r, const qk_field_t *to, const qk_field_t *full) {
  for (int k = 0; k < qk_field_vectors(full); k++) {
    const qk_field_t v = qk_field_vector(full, k);
    copy(r, qk_field_vector(to, k).v, qk_field_parity(&v, r->op->system));
  }
}

static qk_field_t *system_noise(run_t *r, int seed) {
  qk_field_t *f = take(r, r->op->system), *full = noise(r, seed);
  copy_system(r, f, full);
  qk_work_release(r->op->work, r->field[--r->nfield]);
  return f;
}

/* G5 of op->adjoint, with the vectors exchanged where it says so. */
static void gamma5(run_t *r, const qk_field_t *f) {
  for (int k = 0; k < qk_field_vectors(f); k++) {
    const qk_spinor_t v = qk_field_vector(f, k).v;
    const qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = v, .out = v};
    OK(r->dev->ops->chiral(r->dev->ctx, &args));
  }
  if (r->op->adjoint != QK_ADJOINT_EXCHANGED) return;
  qk_field_t *old = take(r, f->v.subset);
  copy(r, old->v, f->v);
  for (int k = 0; k < 2; k++) copy(r, qk_field_vector(f, k).v, qk_field_vector(old, 1 - k).v);
}

/* ---- numbers --------------------------------------------------------------------------------- */

typedef double scalars_t[QK_COLUMNS_MAX][2];

/* Of each right-hand side, with all its slices. */
static void reduce(run_t *r, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b, scalars_t out) {
  void *red = NULL;
  const size_t bytes = (size_t)a.nrhs * 2 * sizeof(double);
  const qk_ops_t *ops = r->dev->ops;
  OK(ops->alloc(r->dev->ctx, bytes, &red));
  const qk_blas_args_t args = {.op = op, .f = {a, b}, .red = red};
  OK(ops->blas(r->dev->ctx, &args));
  OK(ops->copy(r->dev->ctx, out, red, bytes, QK_COPY_TO_HOST, 0));
  OK(ops->queue_sync(r->dev->ctx, 0));
  ops->free(r->dev->ctx, red);
  const int ls = qk_geom_slices(r->dev->geom);
  for (int i = 0; i < a.nrhs / ls; i++)
    for (int k = 0; k < 2; k++) {
      double sum = 0;
      for (int s = 0; s < ls; s++) sum += out[i * ls + s][k];
      out[i][k] = sum;
    }
}

static void expect(const run_t *r, double off, double limit, const char *what, int rhs) {
  cr_expect(off <= limit, "%s, %s: precision %d, right-hand side %d of %d: off by %g > %g",
            r->s->name, what, (int)r->prec, rhs, r->nrhs, off, limit);
}

/* |a - b| / |unit| of every right-hand side; a is overwritten. */
static void expect_near(run_t *r, qk_spinor_t a, qk_spinor_t b, qk_spinor_t unit, double limit,
                        const char *what) {
  scalars_t diff, norm;
  blas(r, QK_BLAS_SUB, a, a, b);
  reduce(r, QK_BLAS_NORM2, a, a, diff);
  reduce(r, QK_BLAS_NORM2, unit, unit, norm);
  for (int i = 0; i < r->nrhs; i++) expect(r, sqrt(diff[i][0] / norm[i][0]), limit, what, i);
}

static void expect_close(run_t *r, qk_spinor_t a, qk_spinor_t b, double limit, const char *what) {
  expect_near(r, a, b, b, limit, what);
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* M (x + y) = M x + M y, for x and y of other sizes. */
static void check_linear(run_t *r) {
  qk_field_t *x = noise(r, 1), *y = noise(r, 31), *mx = take(r, QK_FULL), *my = take(r, QK_FULL);
  blas(r, QK_BLAS_ADD, y->v, x->v, x->v);
  OK(r->op->ops->apply(r->op, mx, x, false, NULL, 0));
  OK(r->op->ops->apply(r->op, my, y, false, NULL, 0)); /* M (x + y) */
  blas(r, QK_BLAS_SUB, y->v, y->v, x->v);
  OK(r->op->ops->apply(r->op, x, y, false, NULL, 0)); /* M y */
  blas(r, QK_BLAS_ADD, mx->v, x->v, x->v);
  expect_close(r, mx->v, my->v, r->tol, "linear");
}

/* b = M x: the system of b has the solution x_e, and reconstruct gives x. */
static void check_even_odd(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  const qk_subset_t system = r->op->system;
  qk_field_t *x = noise(r, 2), *b = take(r, QK_FULL), *back = take(r, QK_FULL);
  qk_field_t *xs = take(r, system), *left = take(r, system), *right = take(r, system);
  OK(ops->apply(r->op, b, x, false, NULL, 0));
  copy_system(r, xs, x);
  OK(ops->apply_system(r->op, left, xs, false, NULL));
  OK(ops->prepare(r->op, right, b));
  expect_close(r, right->v, left->v, r->forms, "Mhat x_s = prepare(M x)");
  OK(ops->reconstruct(r->op, back, xs, b));
  /* rounding is of the size of T^-1 b, which is that of x but where Mhat is positive and large */
  qk_field_t *size = take(r, QK_FULL);
  OK(ops->diag(r->op, size, b, true, false));
  const qk_spinor_t unit = qk_operator_is_positive(r->op) ? size->v : x->v;
  expect_near(r, back->v, x->v, unit, r->forms, "reconstruct");
}

/* From the source, and of prepare and Mhat: |b| and |x| are of one size. */
static void check_residual(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  qk_field_t *b = noise(r, 12), *xs = system_noise(r, 13);
  qk_field_t *bhat = take(r, r->op->system), *plain = take(r, r->op->system);
  qk_field_t *from_source = take(r, r->op->system);
  OK(ops->prepare(r->op, bhat, b));
  OK(ops->apply_system(r->op, plain, xs, false, bhat));
  OK(ops->residual_system(r->op, from_source, xs, b));
  expect_close(r, from_source->v, plain->v, r->forms, "prepare(b) - Mhat x");
}

/* As relax and sums of fields make it, into a field of its own and in place. */
static void check_neumann(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  if (!ops->neumann) return;
  qk_field_t *in = system_noise(r, 14), *x = system_noise(r, 15), *y = system_noise(r, 16);
  qk_field_t *want = take(r, r->op->system), *got = take(r, r->op->system);
  OK(ops->relax(r->op, want, in, 1));
  OK(ops->neumann(r->op, got, in, 1, NULL, 0, NULL));
  expect_close(r, got->v, want->v, r->forms, "(1 - Mhat) in");
  blas(r, QK_BLAS_SUB, want->v, want->v, x->v);
  blas(r, QK_BLAS_ADD, want->v, y->v, y->v);
  OK(ops->neumann(r->op, y, in, 1, x, -1, y));
  expect_close(r, y->v, want->v, r->forms, "y + (1 - Mhat) in - x");
}

/* Scalars of right-hand sides on the device: |p|^2, twice that, (p, Mhat p), |r|^2. */
enum { HALVES_PP, HALVES_TWICE, HALVES_PQ, HALVES_RR, HALVES_SCALARS };

/* ap = A p and step -= 1/2 Mhat p; what was summed. */
static void run_halves(run_t *r, const qk_field_t *p, qk_field_t *ap, qk_field_t *step,
                       const scalars_t pp, scalars_t sums[HALVES_SCALARS]) {
  const qk_ops_t *ops = r->dev->ops;
  double *at[HALVES_SCALARS];
  void *room = NULL;
  memset(sums, 0, HALVES_SCALARS * sizeof *sums);
  for (int i = 0; i < r->nrhs; i++) {
    sums[HALVES_PP][i][0] = pp[i][0];
    sums[HALVES_TWICE][i][0] = 2 * pp[i][0];
  }
  OK(ops->alloc(r->dev->ctx, HALVES_SCALARS * sizeof *sums, &room));
  for (int k = 0; k < HALVES_SCALARS; k++) at[k] = (double *)room + k * 2 * QK_COLUMNS_MAX;
  OK(ops->copy(r->dev->ctx, room, sums, HALVES_SCALARS * sizeof *sums, QK_COPY_TO_DEVICE, 0));
  OK(r->op->ops->half_system(r->op, ap, p, at[HALVES_PP], NULL, at[HALVES_PQ]));
  const qk_ratio_t ratio = {at[HALVES_PP], at[HALVES_TWICE]};
  OK(r->op->ops->step_system(r->op, step, p, ap, &ratio, NULL, at[HALVES_RR]));
  OK(ops->copy(r->dev->ctx, sums, room, HALVES_SCALARS * sizeof *sums, QK_COPY_TO_HOST, 0));
  OK(ops->queue_sync(r->dev->ctx, 0));
  ops->free(r->dev->ctx, room);
}

/* An iteration of CG by the halves of Mhat, beside Mhat itself. */
static void check_halves(run_t *r) {
  if (!r->op->ops->half_system) return;
  const qk_subset_t others = r->op->system == QK_EVEN ? QK_ODD : QK_EVEN;
  qk_field_t *p = system_noise(r, 18), *r_old = system_noise(r, 19), *ap = take(r, others);
  qk_field_t *mp = take(r, r->op->system), *got = take(r, r->op->system);
  scalars_t pp, product, rr, sums[HALVES_SCALARS];
  reduce(r, QK_BLAS_NORM2, p->v, p->v, pp);
  OK(r->op->ops->apply_system(r->op, mp, p, false, NULL));
  reduce(r, QK_BLAS_CDOT, p->v, mp->v, product);
  copy(r, got->v, r_old->v);
  run_halves(r, p, ap, got, pp, sums);
  reduce(r, QK_BLAS_NORM2, got->v, got->v, rr);
  for (int i = 0; i < r->nrhs; i++) {
    const double pq = product[i][0], norm2 = rr[i][0];
    expect(r, fabs(sums[HALVES_PQ][i][0] - pq) / pq, 4 * r->forms, "(p, Mhat p)", i);
    expect(r, fabs(sums[HALVES_RR][i][0] - norm2) / norm2, 4 * r->forms, "|r|^2", i);
  }
  xpay(r, mp->v, r_old->v, -0.5);
  expect_close(r, got->v, mp->v, r->forms, "r - Mhat p / 2");
}

static void apply_either(run_t *r, bool system, qk_field_t *out, qk_field_t *in, bool dagger) {
  if (system)
    OK(r->op->ops->apply_system(r->op, out, in, dagger, NULL));
  else
    OK(r->op->ops->apply(r->op, out, in, dagger, NULL, 0));
}

/* (a, M b) = (M^+ a, b), the same for Mhat. */
static void adjoint_of(run_t *r, bool system) {
  qk_field_t *a = system ? system_noise(r, 3) : noise(r, 3);
  qk_field_t *b = system ? system_noise(r, 33) : noise(r, 33), *t = take(r, a->v.subset);
  scalars_t left, right, size;
  apply_either(r, system, t, b, false);
  reduce(r, QK_BLAS_CDOT, a->v, t->v, left);
  reduce(r, QK_BLAS_NORM2, t->v, t->v, size);
  apply_either(r, system, t, a, true);
  reduce(r, QK_BLAS_CDOT, t->v, b->v, right);
  for (int i = 0; i < r->nrhs; i++)
    expect(r, hypot(left[i][0] - right[i][0], left[i][1] - right[i][1]) / size[i][0],
           0.2 * r->forms, system ? "adjoint of Mhat" : "adjoint of M", i);
}

static void check_adjoint(run_t *r) {
  adjoint_of(r, false);
  give_back(r);
  adjoint_of(r, true);
}

/* M^+ + M = 2 T, and Mhat is hermitian. */
static void check_anti(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  qk_field_t *x = noise(r, 4), *sum = take(r, QK_FULL), *t = take(r, QK_FULL);
  OK(ops->apply(r->op, sum, x, true, NULL, 0));
  OK(ops->apply(r->op, t, x, false, NULL, 0));
  blas(r, QK_BLAS_ADD, sum->v, t->v, t->v);
  OK(ops->diag(r->op, t, x, false, false));
  blas(r, QK_BLAS_ADD, t->v, t->v, t->v);
  expect_near(r, sum->v, t->v, x->v, 8 * r->tol, "M^+ + M = 2 T"); /* |M x| is some |x| */
  give_back(r);
  qk_field_t *in = system_noise(r, 4), *left = take(r, r->op->system);
  qk_field_t *right = take(r, r->op->system);
  OK(ops->apply_system(r->op, left, in, true, NULL));
  OK(ops->apply_system(r->op, right, in, false, NULL));
  expect_close(r, right->v, left->v, r->tol, "Mhat^+ = Mhat");
}

/* M^+ = G5 M G5, with M of the other flavour where that is what is declared. */
static void check_declared(run_t *r) {
  if (r->op->adjoint == QK_ADJOINT_PARTS) return;
  if (r->op->adjoint == QK_ADJOINT_ANTI) {
    check_anti(r);
    return;
  }
  const uint8_t *minus = r->op->flavours->minus;
  qk_field_t *x = noise(r, 4), *left = take(r, QK_FULL), *right = take(r, QK_FULL);
  OK(r->op->ops->apply(r->op, left, x, true, NULL, 0));
  gamma5(r, x);
  if (r->mixed)
    qk_flavours_set(r->op, minus == r->mixed ? r->mixed + QK_MAX_RHS : r->mixed + 2 * QK_MAX_RHS);
  OK(r->op->ops->apply(r->op, right, x, false, NULL, 0));
  qk_flavours_set(r->op, minus);
  gamma5(r, right);
  expect_close(r, right->v, left->v, r->tol, "M^+ = G5 M G5");
}

static qk_field_t *of_flavours(run_t *r, bool system, qk_field_t *x, const uint8_t *minus) {
  qk_field_t *out = take(r, x->v.subset);
  qk_flavours_set(r->op, minus);
  apply_either(r, system, out, x, false);
  qk_flavours_set(r->op, r->minus);
  return out;
}

/* Each right-hand side of a mixed block is, to the bit, what it is in a block of its own flavour,
 * though in half the difference of equals is a rounding; the flavours differ. */
static void check_flavours(run_t *r) {
  if (!r->mixed) return;
  for (int system = 0; system < 2; system++) {
    qk_field_t *x = system ? system_noise(r, 11) : noise(r, 11);
    qk_field_t *m = of_flavours(r, system, x, r->mixed), *plus = of_flavours(r, system, x, NULL);
    qk_field_t *minus = of_flavours(r, system, x, r->mixed + 2 * QK_MAX_RHS);
    scalars_t apart, from_plus, from_minus;
    blas(r, QK_BLAS_SUB, x->v, plus->v, minus->v);
    reduce(r, QK_BLAS_NORM2, x->v, x->v, apart);
    blas(r, QK_BLAS_SUB, plus->v, plus->v, m->v);
    reduce(r, QK_BLAS_NORM2, plus->v, plus->v, from_plus);
    blas(r, QK_BLAS_SUB, minus->v, minus->v, m->v);
    reduce(r, QK_BLAS_NORM2, minus->v, minus->v, from_minus);
    for (int i = 0; i < r->nrhs; i++) {
      const bool other = is_minus(i);
      const double off = (other ? from_minus : from_plus)[i][0];
      cr_expect(apart[i][0] > 0, "%s: the flavours are the same", r->s->name);
      expect(r, off / apart[i][0], qk_prec_scaled(r->prec) ? 1e-10 : 0,
             "a flavour in a mixed block", i);
    }
    give_back(r);
  }
}

/* x - M in and x - Mhat in, of M and of M^+. */
static void check_fused(run_t *r) {
  for (int system = 0; system < 2; system++)
    for (int dagger = 0; dagger < 2; dagger++) {
      qk_field_t *in = system ? system_noise(r, 5) : noise(r, 5);
      qk_field_t *x = system ? system_noise(r, 35) : noise(r, 35);
      qk_field_t *fused = take(r, in->v.subset), *plain = take(r, in->v.subset);
      if (system)
        OK(r->op->ops->apply_system(r->op, fused, in, dagger, x));
      else
        OK(r->op->ops->apply(r->op, fused, in, dagger, x, -1));
      apply_either(r, system, plain, in, dagger);
      blas(r, QK_BLAS_SUB, plain->v, x->v, plain->v);
      expect_close(r, fused->v, plain->v, r->tol, system ? "x - Mhat in" : "x - M in");
      give_back(r);
    }
}

/* M = T + the eight hops, and T^-1 T = 1. */
static void check_parts(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  if (!ops->hop_forward) return;
  qk_field_t *x = noise(r, 6), *sum = take(r, QK_FULL), *t = take(r, QK_FULL);
  OK(ops->diag(r->op, sum, x, false, false));
  for (int mu = 0; mu < 4; mu++) {
    OK(ops->hop_forward(r->op, t, x, mu));
    blas(r, QK_BLAS_ADD, sum->v, t->v, t->v);
    OK(ops->hop_backward(r->op, t, x, mu));
    blas(r, QK_BLAS_ADD, sum->v, t->v, t->v);
  }
  OK(ops->apply(r->op, t, x, false, NULL, 0));
  expect_close(r, sum->v, t->v, r->forms, "T and hops add up to M");
  OK(ops->diag(r->op, sum, x, false, false));
  OK(ops->diag(r->op, t, sum, true, false));
  expect_close(r, t->v, x->v, r->forms, "T^-1 T = 1");
}

/* M = T - hop / 2 and its adjoint, of the operators of actions; and T^-1+ T^+ = 1. */
static void check_hop(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  const double minus_half = -0.5;
  for (int dagger = 0; dagger < 2 && ops->hop; dagger++) {
    qk_field_t *x = noise(r, 10), *sum = take(r, QK_FULL), *t = take(r, QK_FULL);
    OK(ops->hop(r->op, sum, x, dagger));
    OK(ops->diag(r->op, t, x, false, dagger));
    xpay(r, sum->v, t->v, minus_half);
    OK(ops->apply(r->op, t, x, dagger, NULL, 0));
    expect_close(r, sum->v, t->v, r->forms, "T - hop / 2 is M");
    OK(ops->diag(r->op, sum, x, false, dagger));
    OK(ops->diag(r->op, t, sum, true, dagger));
    expect_close(r, t->v, x->v, r->forms, "T^-1 T = 1, with daggers");
    give_back(r);
  }
}

/* With c = 1 a residual; and linear in c: the step from 1 to 2 is that from 0 to 1. */
static void check_relax(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  qk_field_t *x = system_noise(r, 7), *one = take(r, r->op->system), *two = take(r, r->op->system);
  OK(ops->relax(r->op, one, x, 1));
  OK(ops->apply_system(r->op, two, x, false, x));
  /* 1 - Mhat may be small, and where Mhat is positive large */
  const qk_spinor_t unit = qk_operator_is_positive(r->op) ? one->v : x->v;
  expect_near(r, two->v, one->v, unit, r->tol, "relax with c = 1");
  OK(ops->relax(r->op, two, x, 2));
  blas(r, QK_BLAS_SUB, two->v, two->v, one->v);
  blas(r, QK_BLAS_SUB, one->v, one->v, x->v);
  expect_close(r, two->v, one->v, r->tol, "relax is linear in c");
}

/* One block for the whole lattice cuts nothing off; between blocks of one site there is no hop. */
static void check_blocks(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  const int32_t *l = r->dev->geom->lat.l;
  const int whole[4] = {l[0], l[1], l[2], l[3]}, site[4] = {1, 1, 1, 1};
  if (!ops->apply_blocks) return;
  qk_field_t *x = system_noise(r, 8), *cut = take(r, r->op->system), *m = take(r, r->op->system);
  OK(ops->apply_system(r->op, m, x, false, NULL));
  OK(ops->apply_blocks(r->op, cut, x, whole));
  expect_close(r, cut->v, m->v, r->tol, "one block");
  OK(ops->apply_blocks(r->op, cut, x, site));
  expect_close(r, cut->v, x->v, r->tol, "blocks of a site");
}

/* The last right-hand side of a block as it is alone: noise of a block of one has the same
 * numbers, as those of a right-hand side depend on its index, and index 0 is in both. */
static void check_alone(run_t *r) {
  run_t one = *r;
  one.nrhs = 1;
  one.nfield = 0;
  qk_field_t *x = noise(r, 9), *m = take(r, QK_FULL);
  qk_field_t *y = noise(&one, 9), *my = take(&one, QK_FULL);
  scalars_t many, single;
  OK(r->op->ops->apply(r->op, m, x, false, NULL, 0));
  OK(r->op->ops->apply(r->op, my, y, false, NULL, 0));
  reduce(r, QK_BLAS_NORM2, m->v, m->v, many);
  reduce(&one, QK_BLAS_NORM2, my->v, my->v, single);
  expect(r, fabs(many[0][0] / single[0][0] - 1), r->tol, "alone and in a block", 0);
  reduce(r, QK_BLAS_CDOT, x->v, m->v, many);
  reduce(&one, QK_BLAS_CDOT, y->v, my->v, single);
  const double off = hypot(many[0][0] - single[0][0], many[0][1] - single[0][1]);
  expect(r, off / hypot(single[0][0], single[0][1]), r->tol, "(x, M x) alone and in a block", 0);
  give_back(&one);
}

/* `in` and `out` the same, of other sites, of another width, a direction that does not exist. */
static void check_refusals(run_t *r) {
  const qk_operator_ops_t *ops = r->op->ops;
  qk_operator_t *op = r->op;
  run_t other = *r;
  other.nrhs = r->nrhs + 1;
  other.nfield = 0;
  qk_field_t *f = take(r, QK_FULL), *g = take(r, QK_FULL), *e = take(r, QK_EVEN);
  qk_field_t *d = take(r, QK_EVEN), *wide = take(&other, QK_FULL);
#define REFUSED(call)                                                                              \
  cr_expect((call) == QK_BAD_ARGUMENT, "%s does not refuse %s", r->s->name, #call)
  REFUSED(ops->apply(op, f, f, false, NULL, 0));
  REFUSED(ops->apply(op, f, wide, false, NULL, 0));
  REFUSED(ops->apply(op, e, d, false, NULL, 0));
  REFUSED(ops->apply_system(op, e, f, false, NULL));
  if (op->system != QK_FULL) REFUSED(ops->prepare(op, f, g));
  REFUSED(ops->reconstruct(op, wide, e, f));
  REFUSED(ops->residual_system(op, e, e, f));
  REFUSED(ops->residual_system(op, e, d, d));
  REFUSED(ops->residual_system(op, e, d, wide));
  REFUSED(ops->residual_system(op, f, d, g));
  if (ops->hop_forward) {
    REFUSED(ops->hop_forward(op, e, d, 0));
    REFUSED(ops->hop_forward(op, f, g, 4));
    REFUSED(ops->hop_backward(op, f, g, -1));
  }
  REFUSED(ops->diag(op, f, e, false, false));
#undef REFUSED
  give_back(&other);
}

/* Each application of M or Mhat counts once, for its precision alone. */
static void check_counts(run_t *r) {
  int64_t before[3];
  for (int p = 0; p < 3; p++) before[p] = r->op->applications[p];
  qk_field_t *b = noise(r, 12), *x = system_noise(r, 10), *m = take(r, r->op->system);
  OK(r->op->ops->apply_system(r->op, m, x, false, NULL));
  OK(r->op->ops->relax(r->op, m, x, 1));
  OK(r->op->ops->residual_system(r->op, m, x, b));
  for (int p = 0; p < 3; p++)
    cr_expect_eq(r->op->applications[p] - before[p], p == (int)r->prec ? 3 : 0, "%s: applications",
                 r->s->name);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static uint8_t *flavours_on_device(const subject_t *s) {
  const qk_device_t *dev = s->op->dev;
  uint8_t host[3][QK_MAX_RHS];
  void *device = NULL;
  if (s->op->twist == 0) return NULL;
  for (int i = 0; i < QK_MAX_RHS; i++) {
    host[0][i] = is_minus(i);
    host[1][i] = !host[0][i];
    host[2][i] = 1;
  }
  cr_assert_eq(dev->ops->alloc(dev->ctx, sizeof host, &device), QK_OK);
  cr_assert_eq(dev->ops->copy(dev->ctx, device, host, sizeof host, QK_COPY_TO_DEVICE, 0), QK_OK);
  cr_assert_eq(dev->ops->queue_sync(dev->ctx, 0), QK_OK);
  return device;
}

static run_t run_of(const subject_t *s, qk_prec_t prec, int nrhs) {
  return (run_t){.s = s,
                 .op = s->op,
                 .dev = s->op->dev,
                 .prec = prec,
                 .nrhs = nrhs,
                 .tol = s->tol[prec],
                 .forms = s->forms > 0 ? s->forms : s->tol[prec]};
}

static void run(const subject_t *s, qk_prec_t prec, int nrhs, check_fn *check) {
  run_t r = run_of(s, prec, nrhs);
  check(&r);
  give_back(&r);
}

/* With all right-hand sides of flavour +1, and mixed. */
static void run_flavours(const subject_t *s, qk_prec_t prec, int nrhs, check_fn *check) {
  run_t r = run_of(s, prec, nrhs);
  uint8_t *mixed = flavours_on_device(s);
  r.mixed = mixed;
  check(&r);
  give_back(&r);
  if (!mixed) return;
  r.minus = mixed;
  qk_flavours_set(s->op, r.minus);
  check(&r);
  give_back(&r);
  qk_flavours_set(s->op, NULL);
  s->op->dev->ops->free(s->op->dev->ctx, mixed);
}

void operator_suite_parts(const subject_t *s, qk_prec_t prec, int nrhs) {
  run(s, prec, nrhs, check_parts);
}

void operator_suite(const subject_t *s) {
  static const int nrhs[] = {1, 5, 8, 12};
  static check_fn *const check[] = {check_linear, check_even_odd, check_residual, check_neumann,
                                    check_halves, check_adjoint,  check_declared, check_fused,
                                    check_parts,  check_hop,      check_relax,    check_blocks,
                                    check_alone,  check_flavours, check_refusals, check_counts};
  for (int p = 0; p < 3; p++)
    for (int k = 0; s->tol[p] > 0 && k < 4; k++)
      for (size_t c = 0; c < sizeof check / sizeof check[0]; c++)
        run_flavours(s, (qk_prec_t)p, nrhs[k], check[c]);
}
