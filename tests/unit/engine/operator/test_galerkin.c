/* Prolongators and coarse operators on every level against what defines them. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/multigrid/nullspace.h"
#include "tests/conformance/chain.h"
#include "tests/conformance/operator_suite.h"

static const chain_plan_t plans[] = {
    {"random:6x4x8x12:3", 2, {6}, {{3, 2, 2, 3}}, 0.7, 0.3, QK_SINGLE, 0, 0},
    {"random:4x4x4x8:5", 2, {24}, {{2, 2, 2, 2}}, 1.2, 0.9, QK_HALF, 0, 0},
    {"random:4x4x4x4:2", 2, {8}, {{1, 2, 1, 2}}, 0, 0, QK_SINGLE, 0, 0},
    {"random:8x4x8x8:9", 3, {4, 6}, {{2, 1, 2, 2}, {2, 2, 2, 1}}, 1.769, 0.5, QK_SINGLE, 0, 0},
    {"random:8x8x8x4:6", 3, {24, 24}, {{2, 2, 2, 1}, {2, 2, 2, 2}}, 1, 0, QK_HALF, 0, 0},
    {"builtin:weak:8x8x8x8:4", 3, {8, 6}, {{2, 2, 2, 2}, {2, 2, 1, 2}}, 1, 0, QK_HALF, 0, 0},
    {"random:8x4x8x8:9", 3, {4, 6}, {{2, 1, 2, 2}, {2, 2, 2, 1}}, 1.769, 0.5, QK_SINGLE, 0.7, 1},
    {"random:4x4x4x8:5", 2, {24}, {{2, 2, 2, 2}}, 0, 0.9, QK_HALF, -0.4, 1},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

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

#define OK(call) cr_assert((call) == QK_OK, "%s", #call)

typedef void case_fn(chain_t *c, const chain_plan_t *plan, int l, int nrhs);

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

static void expect(double d, double limit, const char *what, const chain_plan_t *plan, int l,
                   int nrhs) {
  cr_expect(d <= limit, "%s, %s, level %d, %d columns: off by %g > %g", what, plan->gauge, l, nrhs,
            d, limit);
}

static double bound(const chain_plan_t *plan, double single, double half) {
  return plan->store == QK_HALF ? half : single;
}

/* P^+ P = 1; the same on half of the fine sites makes (P_e)^+ P_e + (P_o)^+ P_o. */
static void orthonormal_case(chain_t *c, const chain_plan_t *plan, int l, int nrhs) {
  qk_field_t *phi = noise(c, l, nrhs, 3), *back = reserve(c, l, nrhs, QK_FULL);
  qk_field_t *fine = reserve(c, l - 1, nrhs, QK_FULL);
  qk_prolongator_prolong(c->down[l - 1], fine, phi, false);
  qk_prolongator_restrict(c->down[l - 1], back, fine);
  OK(qk_dev_status(&c->rig.dev));
  expect(distance(c, back->v, phi->v), bound(plan, 1e-5, 1e-3), "P^+ P", plan, l, nrhs);
  qk_work_release(c->work[l - 1], fine);
  qk_work_release(c->work[l], back);
  qk_work_release(c->work[l], phi);
}

Test(galerkin, prolongator_is_orthonormal) {
  for_all(orthonormal_case);
}

/* Every other column is of flavour -1; NULL without a twist. */
static uint8_t *mixed_flavours(const chain_t *c) {
  uint8_t host[QK_MAX_RHS];
  if (c->op[0]->twist == 0) return NULL;
  for (int i = 0; i < QK_MAX_RHS; i++) host[i] = i % 2 == 0;
  return rig_flavours(&c->rig, host, QK_MAX_RHS);
}

/* M_c = P^+ M P, of either flavour. */
static void product_case(chain_t *c, const chain_plan_t *plan, int l, int nrhs) {
  qk_operator_t *fine_op = c->op[l - 1], *op = c->op[l];
  qk_field_t *phi = noise(c, l, nrhs, 4), *left = reserve(c, l, nrhs, QK_FULL),
             *right = reserve(c, l, nrhs, QK_FULL);
  qk_field_t *fine = reserve(c, l - 1, nrhs, QK_FULL), *image = reserve(c, l - 1, nrhs, QK_FULL);
  uint8_t *minus = mixed_flavours(c);
  qk_flavours_set(op, minus);
  for (int dagger = 0; dagger < 2; dagger++) {
    qk_prolongator_prolong(c->down[l - 1], fine, phi, false);
    OK(qk_dev_status(&c->rig.dev));
    OK(fine_op->ops->apply(fine_op, image, fine, dagger, NULL, 0));
    qk_prolongator_restrict(c->down[l - 1], left, image);
    OK(qk_dev_status(&c->rig.dev));
    OK(op->ops->apply(op, right, phi, dagger, NULL, 0));
    expect(distance(c, right->v, left->v), bound(plan, 2e-5, 4e-3), dagger ? "M^+" : "M", plan, l,
           nrhs);
  }
  qk_flavours_set(op, NULL);
  if (minus) c->rig.dev.ops->free(c->rig.dev.ctx, minus);
  qk_work_release(c->work[l - 1], image);
  qk_work_release(c->work[l - 1], fine);
  qk_work_release(c->work[l], right);
  qk_work_release(c->work[l], left);
  qk_work_release(c->work[l], phi);
}

Test(galerkin, coarse_operator_is_the_galerkin_product) {
  for_all(product_case);
}

Test(galerkin, without_exact_matrices_the_parts_remain) {
  chain_t c;
  const chain_plan_t plan = plans[3];
  chain_open(&c, &plan);
  int64_t before = c.rig.dev.ops->allocated(c.rig.dev.ctx);
  qk_coarse_drop_exact(c.op[1]);
  cr_expect(c.rig.dev.ops->allocated(c.rig.dev.ctx) < before);
  qk_coarse_drop_exact(c.op[1]);
  const subject_t s = {.name = plan.gauge, .op = c.op[1], .tol = {0, 4e-7, 0}};
  operator_suite_parts(&s, QK_SINGLE, 4);
  product_case(&c, &plan, 1, 4);
  chain_close(&c);
}

Test(galerkin, an_adjoint_without_gamma5_is_refused) {
  chain_t c;
  qk_err_t err = {0};
  qk_operator_t *op = NULL;
  const qk_coarse_params_t params = {.store = QK_SINGLE};
  chain_open(&c, &plans[2]);
  const int64_t before = c.rig.dev.ops->allocated(c.rig.dev.ctx);
  c.op[0]->adjoint = QK_ADJOINT_PARTS;
  cr_expect_eq(qk_coarse_create(c.op[0], c.down[0], &c.dev[1], c.work[1], &params, &op, &err),
               QK_UNSUPPORTED);
  cr_expect(strstr(err.text, "wilson"), "%s", err.text);
  cr_expect(op == NULL && (int64_t)c.rig.dev.ops->allocated(c.rig.dev.ctx) == before);
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
