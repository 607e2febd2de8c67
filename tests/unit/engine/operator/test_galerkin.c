/* Prolongators and coarse operators on every level against what defines them. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/multigrid/nullspace.h"
#include "daemon/engine/operator/galerkin.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

enum { LEVELS = 3 };

/* One hierarchy: levels above 0 are made of noise, which is as good as any
 * vectors for what is tested. */
typedef struct chain {
  qk_rig_t rig;
  int nlevel;
  qk_geom_t geom[LEVELS];
  qk_device_t dev[LEVELS];
  qk_work_t *work[LEVELS];
  qk_operator_t *op[LEVELS];
  qk_prolongator_t *down[LEVELS];
} chain_t;

typedef struct plan {
  const char *gauge;
  int nlevel, nvec[2], block[2][4];
  double csw, twist; /* boundary phases exp(i twist (1, 2, 3, 4)) */
  qk_prec_t store;
} plan_t;

static const plan_t plans[] = {
    {"random:6x4x8x12:3", 2, {6}, {{3, 2, 2, 3}}, 0.7, 0.3, QK_SINGLE},
    {"random:4x4x4x8:5", 2, {24}, {{2, 2, 2, 2}}, 1.2, 0.9, QK_HALF},
    {"random:4x4x4x4:2", 2, {8}, {{1, 2, 1, 2}}, 0, 0, QK_SINGLE},
    {"random:8x4x8x8:9", 3, {4, 6}, {{2, 1, 2, 2}, {2, 2, 2, 1}}, 1.769, 0.5, QK_SINGLE},
    {"random:8x8x8x4:6", 3, {24, 24}, {{2, 2, 2, 1}, {2, 2, 2, 2}}, 1, 0, QK_HALF},
    {"builtin:weak:8x8x8x8:4", 3, {8, 6}, {{2, 2, 2, 2}, {2, 2, 1, 2}}, 1, 0, QK_HALF},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

static qk_operator_t *wilson(const qk_rig_t *rig, const plan_t *plan) {
  qk_err_t err = {0};
  qk_operator_t *op;
  qk_action_params_t p = params_wilson(0.1, plan->csw, 1);
  p.link_reals[QK_SINGLE] = 18;
  p.want[QK_HALF] = false;
  for (int mu = 0; mu < 4; mu++) {
    p.phase[mu][0] = cos((mu + 1) * plan->twist);
    p.phase[mu][1] = sin((mu + 1) * plan->twist);
  }
  rig_must(qk_operator_create(&rig->dev, rig->work, rig->links, &p, &op, &err), "operator", &err);
  return op;
}

static void chain_open(chain_t *c, const plan_t *plan) {
  qk_err_t err = {0};
  memset(c, 0, sizeof *c);
  rig_open(&c->rig, NULL, plan->gauge, NULL);
  c->rig.op = wilson(&c->rig, plan);
  c->nlevel = plan->nlevel;
  c->geom[0] = c->rig.geom;
  c->dev[0] = c->rig.dev;
  c->work[0] = c->rig.work;
  c->op[0] = c->rig.op;
  for (int l = 0; l + 1 < plan->nlevel; l++) {
    const qk_coarse_params_t params = {.store = plan->store, .exact = l + 2 < plan->nlevel};
    qk_field_t *v;
    rig_must(qk_geom_coarsen(&c->geom[l], plan->block[l], plan->nvec[l], &c->geom[l + 1], &err),
             "geometry", &err);
    c->dev[l + 1] = c->dev[0];
    c->dev[l + 1].geom = &c->geom[l + 1];
    rig_must(qk_work_create(&c->dev[l + 1], &c->work[l + 1]), "work", NULL);
    rig_must(qk_field_create(&c->dev[l], QK_SINGLE, plan->nvec[l], QK_FULL, &v), "vectors", NULL);
    rig_must(qk_nullspace_random(&c->dev[l], 7, v), "noise", NULL);
    rig_must(qk_prolongator_create(&c->dev[l], &c->dev[l + 1], plan->block[l], plan->store, v,
                                   &c->down[l], &err),
             "prolongator", &err);
    qk_field_destroy(v);
    rig_must(qk_coarse_create(c->op[l], c->down[l], &c->dev[l + 1], c->work[l + 1], &params,
                              &c->op[l + 1], &err),
             "coarse operator", &err);
  }
}

static void chain_close(chain_t *c) {
  for (int l = c->nlevel - 1; l > 0; l--) {
    c->op[l]->ops->destroy(c->op[l]);
    qk_prolongator_destroy(c->down[l - 1]);
    qk_work_destroy(c->work[l]);
  }
  rig_close(&c->rig);
}

static qk_field_t *reserve(chain_t *c, int l, int nrhs, qk_subset_t subset) {
  qk_field_t *f;
  rig_must(qk_work_reserve(c->work[l], QK_SINGLE, nrhs, subset, &f), "field", NULL);
  return f;
}

static qk_field_t *noise(chain_t *c, int l, int nrhs, int seed) {
  qk_field_t *f = reserve(c, l, nrhs, QK_FULL);
  rig_must(qk_nullspace_random(&c->dev[l], (uint64_t)seed, f), "noise", NULL);
  return f;
}

static void blas(chain_t *c, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b, qk_spinor_t d) {
  qk_blas_args_t args = {.op = op, .f = {a, b, d}};
  rig_must(c->rig.dev.ops->blas(c->rig.dev.ctx, &args), "blas", NULL);
}

static void dots(chain_t *c, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b, double out[][2]) {
  const qk_ops_t *ops = c->rig.dev.ops;
  void *red = NULL;
  size_t bytes = (size_t)a.nrhs * 2 * sizeof(double);
  rig_must(ops->alloc(c->rig.dev.ctx, bytes, &red), "scalars", NULL);
  qk_blas_args_t args = {.op = op, .f = {a, b}, .red = red};
  rig_must(ops->blas(c->rig.dev.ctx, &args), "blas", NULL);
  rig_must(ops->copy(c->rig.dev.ctx, out, red, bytes, QK_COPY_TO_HOST, 0), "copy", NULL);
  rig_must(ops->queue_sync(c->rig.dev.ctx, 0), "sync", NULL);
  ops->free(c->rig.dev.ctx, red);
}

/* Worst |a - b| / |b| of the columns; a is overwritten. */
static double distance(chain_t *c, qk_spinor_t a, qk_spinor_t b) {
  double diff[QK_MAX_RHS][2], norm[QK_MAX_RHS][2], worst = 0;
  blas(c, QK_BLAS_SUB, a, a, b);
  dots(c, QK_BLAS_NORM2, a, a, diff);
  dots(c, QK_BLAS_NORM2, b, b, norm);
  for (int i = 0; i < a.nrhs; i++) {
    double d = sqrt(diff[i][0] / norm[i][0]);
    if (!(d <= worst)) worst = d;
  }
  return worst;
}

static void gamma5(chain_t *c, qk_spinor_t v) {
  qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = v, .out = v};
  rig_must(c->rig.dev.ops->chiral(c->rig.dev.ctx, &args), "gamma_5", NULL);
}

#define OK(call) cr_assert((call) == QK_OK, "%s", #call)

typedef void case_fn(chain_t *c, const plan_t *plan, int l, int nrhs);

/* run for each coarse level l. */
static void for_all(case_fn *run) {
  const int nrhs[] = {1, 5, 12};
  for (int i = 0; i < PLANS; i++) {
    chain_t c;
    chain_open(&c, &plans[i]);
    for (int l = 1; l < c.nlevel; l++)
      for (int k = 0; k < 3; k++) run(&c, &plans[i], l, nrhs[k]);
    chain_close(&c);
  }
}

static void expect(double d, double limit, const char *what, const plan_t *plan, int l, int nrhs) {
  cr_expect(d <= limit, "%s, %s, level %d, %d columns: off by %g > %g", what, plan->gauge, l, nrhs,
            d, limit);
}

static double bound(const plan_t *plan, double single, double half) {
  return plan->store == QK_HALF ? half : single;
}

/* P^+ P = 1; the same on half of the fine sites makes (P_e)^+ P_e + (P_o)^+ P_o. */
static void orthonormal_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_field_t *phi = noise(c, l, nrhs, 3), *back = reserve(c, l, nrhs, QK_FULL);
  qk_field_t *fine = reserve(c, l - 1, nrhs, QK_FULL);
  OK(qk_prolongator_prolong(c->down[l - 1], fine, phi, false));
  OK(qk_prolongator_restrict(c->down[l - 1], back, fine));
  expect(distance(c, back->v, phi->v), bound(plan, 1e-5, 1e-3), "P^+ P", plan, l, nrhs);
  qk_work_release(c->work[l - 1], fine);
  qk_work_release(c->work[l], back);
  qk_work_release(c->work[l], phi);
}

Test(galerkin, prolongator_is_orthonormal) {
  for_all(orthonormal_case);
}

/* M_c = P^+ M P, and so for single hops and the diagonal part of M. */
static void product_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *fine_op = c->op[l - 1], *op = c->op[l];
  qk_field_t *phi = noise(c, l, nrhs, 4), *left = reserve(c, l, nrhs, QK_FULL),
             *right = reserve(c, l, nrhs, QK_FULL);
  qk_field_t *fine = reserve(c, l - 1, nrhs, QK_FULL), *image = reserve(c, l - 1, nrhs, QK_FULL);
  for (int dagger = 0; dagger < 2; dagger++) {
    OK(qk_prolongator_prolong(c->down[l - 1], fine, phi, false));
    OK(fine_op->ops->apply(fine_op, image, fine, dagger, NULL, 0));
    OK(qk_prolongator_restrict(c->down[l - 1], left, image));
    OK(op->ops->apply(op, right, phi, dagger, NULL, 0));
    expect(distance(c, right->v, left->v), bound(plan, 2e-5, 4e-3), dagger ? "M^+" : "M", plan, l,
           nrhs);
  }
  qk_work_release(c->work[l - 1], image);
  qk_work_release(c->work[l - 1], fine);
  qk_work_release(c->work[l], right);
  qk_work_release(c->work[l], left);
  qk_work_release(c->work[l], phi);
}

Test(galerkin, coarse_operator_is_the_galerkin_product) {
  for_all(product_case);
}

/* M = A + sum_mu (ahead + G5 ahead^+ G5), read off: (a, ahead_mu b) = (G5
 * behind_mu G5 ...) by way of M. */
static void parts_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *op = c->op[l];
  qk_field_t *a = noise(c, l, nrhs, 5), *b = noise(c, l, nrhs, 6);
  qk_field_t *t = reserve(c, l, nrhs, QK_FULL);
  double part[QK_MAX_RHS][2], whole[QK_MAX_RHS][2], sum[QK_MAX_RHS] = {0}, size[QK_MAX_RHS][2];
  double direct[QK_MAX_RHS];
  /* (a, M b) = (a, A b) + sum_mu [(a, Y_mu b) + conj (G5 b, Y_mu G5 a)] */
  OK(op->ops->diag(op, t, b, false));
  dots(c, QK_BLAS_CDOT, a->v, t->v, part);
  for (int i = 0; i < nrhs; i++) sum[i] = direct[i] = part[i][0];
  for (int mu = 0; mu < 4; mu++) {
    OK(op->ops->hop_backward(op, t, b, mu));
    dots(c, QK_BLAS_CDOT, a->v, t->v, part);
    for (int i = 0; i < nrhs; i++) direct[i] += part[i][0];
    OK(op->ops->hop_forward(op, t, b, mu));
    dots(c, QK_BLAS_CDOT, a->v, t->v, part);
    for (int i = 0; i < nrhs; i++) sum[i] += part[i][0];
    for (int i = 0; i < nrhs; i++) direct[i] += part[i][0];
    gamma5(c, a->v);
    gamma5(c, b->v);
    OK(op->ops->hop_forward(op, t, a, mu));
    dots(c, QK_BLAS_CDOT, b->v, t->v, part);
    for (int i = 0; i < nrhs; i++) sum[i] += part[i][0];
    gamma5(c, a->v);
    gamma5(c, b->v);
  }
  OK(op->ops->apply(op, t, b, false, NULL, 0));
  dots(c, QK_BLAS_CDOT, a->v, t->v, whole);
  dots(c, QK_BLAS_NORM2, t->v, t->v, size);
  for (int i = 0; i < nrhs; i++)
    expect(fabs(sum[i] - whole[i][0]) / size[i][0], bound(plan, 1e-6, 1e-3), "parts of M", plan, l,
           nrhs);
  for (int i = 0; i < nrhs; i++)
    expect(fabs(direct[i] - whole[i][0]) / size[i][0], bound(plan, 1e-6, 1e-3), "hops of M", plan,
           l, nrhs);
  qk_work_release(c->work[l], t);
  qk_work_release(c->work[l], b);
  qk_work_release(c->work[l], a);
}

Test(galerkin, parts_add_up_to_the_operator) {
  for_all(parts_case);
}

static void even_odd_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *op = c->op[l];
  qk_field_t *x = noise(c, l, nrhs, 8), *b = reserve(c, l, nrhs, QK_FULL),
             *back = reserve(c, l, nrhs, QK_FULL);
  qk_field_t *xe = reserve(c, l, nrhs, QK_EVEN), *left = reserve(c, l, nrhs, QK_EVEN),
             *right = reserve(c, l, nrhs, QK_EVEN);
  const double tol = bound(plan, 2e-5, 4e-3);
  OK(op->ops->apply(op, b, x, false, NULL, 0));
  blas(c, QK_BLAS_COPY, xe->v, qk_field_parity(x, QK_EVEN), xe->v);
  OK(op->ops->apply_system(op, left, xe, false, NULL));
  OK(op->ops->prepare(op, right, b));
  expect(distance(c, right->v, left->v), tol, "Mhat x_e", plan, l, nrhs);
  OK(op->ops->reconstruct(op, back, xe, b));
  expect(distance(c, back->v, x->v), tol, "reconstruction", plan, l, nrhs);
  /* the fused residual, and A^-1 A = 1 */
  OK(op->ops->apply_system(op, right, xe, false, left));
  double rest[QK_MAX_RHS][2], norm[QK_MAX_RHS][2];
  dots(c, QK_BLAS_NORM2, right->v, right->v, rest);
  dots(c, QK_BLAS_NORM2, left->v, left->v, norm);
  for (int i = 0; i < nrhs; i++)
    expect(sqrt(rest[i][0] / norm[i][0]), 2e-6, "x - Mhat in", plan, l, nrhs);
  OK(op->ops->diag(op, left, xe, false));
  OK(op->ops->diag(op, right, left, true));
  expect(distance(c, right->v, xe->v), tol, "A^-1 A", plan, l, nrhs);
  qk_work_release(c->work[l], right);
  qk_work_release(c->work[l], left);
  qk_work_release(c->work[l], xe);
  qk_work_release(c->work[l], back);
  qk_work_release(c->work[l], b);
  qk_work_release(c->work[l], x);
}

Test(galerkin, even_odd_agrees_with_full) {
  for_all(even_odd_case);
}

/* (a, M b) = (M^+ a, b), for M and Mhat. */
static void adjoint_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *op = c->op[l];
  qk_field_t *full[3] = {noise(c, l, nrhs, 10), noise(c, l, nrhs, 11), NULL}, *even[3];
  double left[QK_MAX_RHS][2], right[QK_MAX_RHS][2], size[QK_MAX_RHS][2];
  full[2] = reserve(c, l, nrhs, QK_FULL);
  for (int i = 0; i < 3; i++) even[i] = reserve(c, l, nrhs, QK_EVEN);
  for (int i = 0; i < 2; i++)
    blas(c, QK_BLAS_COPY, even[i]->v, qk_field_parity(full[i], QK_EVEN), even[i]->v);
  for (int eo = 0; eo < 2; eo++) {
    qk_field_t **f = eo ? even : full;
    for (int dagger = 0; dagger < 2; dagger++) {
      OK(eo ? op->ops->apply_system(op, f[2], f[1 - dagger], dagger, NULL)
            : op->ops->apply(op, f[2], f[1 - dagger], dagger, NULL, 0));
      dots(c, QK_BLAS_CDOT, dagger ? f[2]->v : f[0]->v, dagger ? f[1]->v : f[2]->v,
           dagger ? right : left);
    }
    dots(c, QK_BLAS_NORM2, f[2]->v, f[2]->v, size);
    for (int i = 0; i < nrhs; i++)
      expect(hypot(left[i][0] - right[i][0], left[i][1] - right[i][1]) / size[i][0],
             bound(plan, 1e-5, 2e-3), eo ? "adjoint of Mhat" : "adjoint of M", plan, l, nrhs);
  }
  for (int i = 2; i >= 0; i--) qk_work_release(c->work[l], even[i]);
  for (int i = 2; i >= 0; i--) qk_work_release(c->work[l], full[i]);
}

Test(galerkin, dagger_is_the_adjoint) {
  for_all(adjoint_case);
}

/* Three even fields, the first of noise. */
static void reserve_even(chain_t *c, int l, int nrhs, qk_field_t *e[3]) {
  for (int i = 0; i < 3; i++) e[i] = reserve(c, l, nrhs, QK_EVEN);
  qk_field_t *x = noise(c, l, nrhs, 12);
  blas(c, QK_BLAS_COPY, e[0]->v, qk_field_parity(x, QK_EVEN), e[0]->v);
  qk_work_release(c->work[l], x);
}

/* With c = 1 a residual; and linear in c: the step from 1 to 2 is that from 0 to 1. */
static void relax_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *op = c->op[l];
  qk_field_t *e[3];
  reserve_even(c, l, nrhs, e);
  qk_field_t *const xe = e[0], *const one = e[1], *const other = e[2];
  OK(op->ops->relax(op, one, xe, 1));
  OK(op->ops->apply_system(op, other, xe, false, xe));
  expect(distance(c, other->v, one->v), 1e-4, "one step", plan, l, nrhs);
  OK(op->ops->relax(op, other, xe, 2));
  blas(c, QK_BLAS_SUB, other->v, other->v, one->v);
  blas(c, QK_BLAS_SUB, one->v, one->v, xe->v);
  expect(distance(c, other->v, one->v), 1e-5, "linear", plan, l, nrhs);
  for (int i = 2; i >= 0; i--) qk_work_release(c->work[l], e[i]);
}

Test(galerkin, relaxes) {
  for_all(relax_case);
}

/* With one block for the whole lattice nothing is cut off; with one site a block, Mhat is 1. */
static void blocks_case(chain_t *c, const plan_t *plan, int l, int nrhs) {
  qk_operator_t *op = c->op[l];
  const int32_t *dims = c->geom[l].lat.l;
  const int whole[4] = {dims[0], dims[1], dims[2], dims[3]}, single[4] = {1, 1, 1, 1};
  qk_field_t *e[3];
  reserve_even(c, l, nrhs, e);
  OK(op->ops->apply_system(op, e[1], e[0], false, NULL));
  OK(op->ops->apply_blocks(op, e[2], e[0], whole));
  expect(distance(c, e[2]->v, e[1]->v), 1e-6, "one block", plan, l, nrhs);
  OK(op->ops->apply_blocks(op, e[2], e[0], single));
  expect(distance(c, e[2]->v, e[0]->v), 1e-6, "blocks of a site", plan, l, nrhs);
  for (int i = 2; i >= 0; i--) qk_work_release(c->work[l], e[i]);
}

Test(galerkin, blocks_cut_hops) {
  for_all(blocks_case);
}

Test(galerkin, without_exact_matrices_the_parts_remain) {
  chain_t c;
  plan_t plan = plans[3];
  chain_open(&c, &plan);
  int64_t before = c.rig.dev.ops->allocated(c.rig.dev.ctx);
  qk_coarse_drop_exact(c.op[1]);
  cr_expect(c.rig.dev.ops->allocated(c.rig.dev.ctx) < before);
  qk_coarse_drop_exact(c.op[1]);
  parts_case(&c, &plan, 1, 4);
  product_case(&c, &plan, 1, 4);
  chain_close(&c);
}

Test(galerkin, refuses_fields_that_do_not_fit) {
  chain_t c;
  chain_open(&c, &plans[2]);
  qk_operator_t *op = c.op[1];
  qk_field_t *full = reserve(&c, 1, 2, QK_FULL), *other = reserve(&c, 1, 3, QK_FULL),
             *even = reserve(&c, 1, 2, QK_EVEN), *deep;
  OK(qk_work_reserve(c.work[1], QK_DOUBLE, 2, QK_FULL, &deep));
  cr_expect(op->ops->apply(op, full, full, false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply(op, full, other, false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply(op, full, deep, false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply_system(op, even, full, false, NULL) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->prepare(op, full, other) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->reconstruct(op, other, even, full) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->hop_forward(op, full, other, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->diag(op, full, even, false) == QK_BAD_ARGUMENT);
  qk_work_release(c.work[1], deep);
  qk_work_release(c.work[1], even);
  qk_work_release(c.work[1], other);
  qk_work_release(c.work[1], full);
  chain_close(&c);
}

Test(galerkin, dependent_vectors_are_refused) {
  chain_t c;
  qk_err_t err = {0};
  qk_field_t *v;
  qk_prolongator_t *p = NULL;
  chain_open(&c, &plans[2]);
  int64_t before = c.rig.dev.ops->allocated(c.rig.dev.ctx);
  OK(qk_field_create(&c.dev[0], QK_SINGLE, 8, QK_FULL, &v)); /* zero */
  cr_expect(qk_prolongator_create(&c.dev[0], &c.dev[1], plans[2].block[0], QK_HALF, v, &p, &err) ==
            QK_BREAKDOWN);
  cr_expect(strstr(err.text, "dependent on 128 aggregates"), "%s", err.text);
  qk_field_destroy(v);
  cr_expect(p == NULL && c.rig.dev.ops->allocated(c.rig.dev.ctx) == before);
  chain_close(&c);
}
