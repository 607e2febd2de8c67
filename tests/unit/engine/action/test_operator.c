#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/rig.h"
#include "tests/support/values.h"

static const char *rough = "random:4x6x2x8:7";

static double bound(qk_prec_t prec) {
  return prec == QK_DOUBLE ? 1e-14 : prec == QK_SINGLE ? 2e-6 : 4e-3;
}

/* Fields of one kind, released in reverse. */
static void reserve(qk_rig_t *rig, qk_prec_t prec, int nrhs, qk_subset_t subset, int n,
                    qk_field_t **f) {
  for (int i = 0; i < n; i++)
    cr_assert(qk_work_reserve(rig->work, prec, nrhs, subset, &f[i]) == QK_OK);
}

static void release(qk_rig_t *rig, int n, qk_field_t **f) {
  while (n--) qk_work_release(rig->work, f[n]);
}

static void copy(qk_rig_t *rig, qk_spinor_t to, qk_spinor_t from) {
  qk_blas_args_t a = {.op = QK_BLAS_COPY, .f = {to, from}};
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &a) == QK_OK);
}

static void scalar(qk_rig_t *rig, qk_blas_op_t op, qk_spinor_t a, qk_spinor_t b, double out[][2]) {
  void *red = NULL;
  size_t bytes = (size_t)a.nrhs * 2 * sizeof(double);
  cr_assert(rig->dev.ops->alloc(rig->dev.ctx, bytes, &red) == QK_OK);
  qk_blas_args_t args = {.op = op, .f = {a, b}, .red = red};
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &args) == QK_OK);
  cr_assert(rig->dev.ops->copy(rig->dev.ctx, out, red, bytes, QK_COPY_TO_HOST, 0) == QK_OK);
  cr_assert(rig->dev.ops->queue_sync(rig->dev.ctx, 0) == QK_OK);
  rig->dev.ops->free(rig->dev.ctx, red);
}

/* |a - b| / |b| of every column; a is overwritten. */
static void expect_close(qk_rig_t *rig, qk_spinor_t a, qk_spinor_t b, double tol,
                         const char *what) {
  double diff[QK_MAX_RHS][2], norm[QK_MAX_RHS][2];
  qk_blas_args_t sub = {.op = QK_BLAS_SUB, .f = {a, a, b}};
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &sub) == QK_OK);
  scalar(rig, QK_BLAS_NORM2, a, a, diff);
  scalar(rig, QK_BLAS_NORM2, b, b, norm);
  for (int i = 0; i < a.nrhs; i++) {
    double d = sqrt(diff[i][0] / norm[i][0]);
    cr_expect(d <= tol, "%s, column %d of %d, precision %d: off by %g > %g", what, i, a.nrhs,
              (int)a.prec, d, tol);
  }
}

static void fill(qk_rig_t *rig, qk_field_t *f, int seed) {
  double *v = rig_vector(rig);
  for (int i = 0; i < f->v.nrhs; i++) {
    rig_random(rig, (uint64_t)(seed + i), v);
    rig_import(rig, f, i, v);
  }
  qk_free(v);
}

typedef void case_fn(qk_rig_t *rig, qk_prec_t prec, int nrhs);

static void for_all(case_fn *run) {
  const int nrhs[] = {1, 5, 8, 12};
  qk_rig_t rig;
  rig_open(&rig, NULL, rough, NULL);
  for (int clover = 0; clover < 2; clover++) {
    rig_operator(&rig, 0.3, clover ? 0.7 : 0, -1);
    for (int p = 0; p < 3; p++)
      for (int k = 0; k < 4; k++) run(&rig, (qk_prec_t)p, nrhs[k]);
  }
  rig_close(&rig);
}

/* b = M x: the even-odd system of b has the solution x_e, and reconstruction gives back x. */
static void even_odd_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  qk_operator_t *op = rig->op;
  qk_field_t *full[3], *even[3];
  reserve(rig, prec, nrhs, QK_FULL, 3, full);
  reserve(rig, prec, nrhs, QK_EVEN, 3, even);
  fill(rig, full[0], 1);
  cr_assert(op->ops->apply(op, full[1], full[0], false, NULL, 0) == QK_OK);
  copy(rig, even[0]->v, qk_field_parity(full[0], QK_EVEN));
  cr_assert(op->ops->apply_system(op, even[1], even[0], false, NULL) == QK_OK);
  cr_assert(op->ops->prepare(op, even[2], full[1]) == QK_OK);
  expect_close(rig, even[2]->v, even[1]->v, 4 * bound(prec), "Mhat x_e");
  cr_assert(op->ops->reconstruct(op, full[2], even[0], full[1]) == QK_OK);
  expect_close(rig, full[2]->v, full[0]->v, 8 * bound(prec), "reconstruction");
  release(rig, 3, even);
  release(rig, 3, full);
}

Test(operator, even_odd_agrees_with_full) {
  for_all(even_odd_case);
}

/* (a, Mhat b) = (Mhat^+ a, b), the same for M. */
static void adjoint_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  qk_operator_t *op = rig->op;
  double left[QK_MAX_RHS][2], right[QK_MAX_RHS][2], size[QK_MAX_RHS][2];
  for (int eo = 0; eo < 2; eo++) {
    qk_field_t *full[3], *f[3];
    reserve(rig, prec, nrhs, QK_FULL, 3, full);
    reserve(rig, prec, nrhs, QK_EVEN, 3, f);
    fill(rig, full[0], 1);
    fill(rig, full[1], 51);
    qk_field_t **v = full;
    if (eo) {
      v = f;
      for (int i = 0; i < 2; i++) copy(rig, f[i]->v, qk_field_parity(full[i], QK_EVEN));
    }
    for (int dagger = 0; dagger < 2; dagger++) {
      qk_status_t status = eo ? op->ops->apply_system(op, v[2], v[1 - dagger], dagger, NULL)
                              : op->ops->apply(op, v[2], v[1 - dagger], dagger, NULL, 0);
      cr_assert(status == QK_OK);
      scalar(rig, QK_BLAS_CDOT, dagger ? v[2]->v : v[0]->v, dagger ? v[1]->v : v[2]->v,
             dagger ? right : left);
    }
    scalar(rig, QK_BLAS_NORM2, v[0]->v, v[0]->v, size);
    for (int i = 0; i < nrhs; i++) {
      double d = hypot(left[i][0] - right[i][0], left[i][1] - right[i][1]) / size[i][0];
      cr_expect(d < 10 * bound(prec), "%s, precision %d, column %d: %g", eo ? "Mhat" : "M",
                (int)prec, i, d);
    }
    release(rig, 3, f);
    release(rig, 3, full);
  }
}

Test(operator, dagger_is_the_adjoint) {
  for_all(adjoint_case);
}

/* Fused forms against the plain ones. */
static void fused_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  qk_operator_t *op = rig->op;
  qk_field_t *f[4];
  for (int eo = 0; eo < 2; eo++) {
    qk_field_t *full[2];
    reserve(rig, prec, nrhs, QK_FULL, 2, full);
    reserve(rig, prec, nrhs, eo ? QK_EVEN : QK_FULL, 4, f);
    fill(rig, full[0], 3);
    fill(rig, full[1], 77);
    for (int i = 0; i < 2; i++)
      copy(rig, f[i]->v, eo ? qk_field_parity(full[i], QK_EVEN) : full[i]->v);
    if (eo) {
      cr_assert(op->ops->apply_system(op, f[2], f[0], true, f[1]) == QK_OK);
      cr_assert(op->ops->apply_system(op, f[3], f[0], true, NULL) == QK_OK);
    } else {
      cr_assert(op->ops->apply(op, f[2], f[0], true, f[1], -1) == QK_OK);
      cr_assert(op->ops->apply(op, f[3], f[0], true, NULL, 0) == QK_OK);
    }
    qk_blas_args_t sub = {.op = QK_BLAS_SUB, .f = {f[3]->v, f[1]->v, f[3]->v}};
    cr_assert(rig->dev.ops->blas(rig->dev.ctx, &sub) == QK_OK);
    expect_close(rig, f[2]->v, f[3]->v, 2 * bound(prec), eo ? "x - Mhat in" : "x - M in");
    release(rig, 4, f);
    release(rig, 2, full);
  }
}

Test(operator, fused_residual_is_the_residual) {
  for_all(fused_case);
}

static void gamma5(qk_rig_t *rig, qk_spinor_t v) {
  qk_chiral_args_t args = {.plus = 1, .minus = -1, .in = v, .out = v};
  cr_assert(rig->dev.ops->chiral(rig->dev.ctx, &args) == QK_OK);
}

/* M = A + sum_mu (H_mu + G5 H_mu^+ G5): (a, M b) from hop_forward and diag alone, and with
 * hop_backward for the second. */
static void parts_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  const qk_operator_ops_t *ops = rig->op->ops;
  double part[QK_MAX_RHS][2], whole[QK_MAX_RHS][2], sum[QK_MAX_RHS], size[QK_MAX_RHS][2];
  double direct[QK_MAX_RHS];
  qk_field_t *f[3], *e[3];
  reserve(rig, prec, nrhs, QK_FULL, 3, f);
  reserve(rig, prec, nrhs, QK_EVEN, 3, e);
  fill(rig, f[0], 1);
  fill(rig, f[1], 51);
  cr_assert(ops->diag(rig->op, f[2], f[1], false) == QK_OK);
  scalar(rig, QK_BLAS_CDOT, f[0]->v, f[2]->v, part);
  for (int i = 0; i < nrhs; i++) sum[i] = direct[i] = part[i][0];
  for (int k = 0; k < 8; k++) {
    /* behind: Re (G5 b, H G5 a) */
    if (k % 2) gamma5(rig, f[0]->v);
    if (k % 2) gamma5(rig, f[1]->v);
    cr_assert(ops->hop_forward(rig->op, f[2], f[1 - k % 2], k / 2) == QK_OK);
    scalar(rig, QK_BLAS_CDOT, f[k % 2]->v, f[2]->v, part);
    for (int i = 0; i < nrhs; i++) sum[i] += part[i][0];
    if (k % 2) gamma5(rig, f[0]->v);
    if (k % 2) gamma5(rig, f[1]->v);
    cr_assert((k % 2 ? ops->hop_backward : ops->hop_forward)(rig->op, f[2], f[1], k / 2) == QK_OK);
    scalar(rig, QK_BLAS_CDOT, f[0]->v, f[2]->v, part);
    for (int i = 0; i < nrhs; i++) direct[i] += part[i][0];
  }
  cr_assert(ops->apply(rig->op, f[2], f[1], false, NULL, 0) == QK_OK);
  scalar(rig, QK_BLAS_CDOT, f[0]->v, f[2]->v, whole);
  scalar(rig, QK_BLAS_NORM2, f[2]->v, f[2]->v, size);
  for (int i = 0; i < nrhs; i++) {
    double d = fabs(sum[i] - whole[i][0]) / size[i][0];
    cr_expect(d < bound(prec), "parts, precision %d, column %d of %d: %g", (int)prec, i, nrhs, d);
    d = fabs(direct[i] - whole[i][0]) / size[i][0];
    cr_expect(d < bound(prec), "hops, precision %d, column %d of %d: %g", (int)prec, i, nrhs, d);
  }
  copy(rig, e[0]->v, qk_field_parity(f[0], QK_EVEN));
  cr_assert(ops->diag(rig->op, e[1], e[0], false) == QK_OK);
  cr_assert(ops->diag(rig->op, e[2], e[1], true) == QK_OK);
  expect_close(rig, e[2]->v, e[0]->v, 4 * bound(prec), "A^-1 A");
  release(rig, 3, e);
  release(rig, 3, f);
}

Test(operator, parts_add_up_to_the_whole) {
  for_all(parts_case);
}

/* n even fields, the first of noise. */
static void reserve_even(qk_rig_t *rig, qk_prec_t prec, int nrhs, int n, qk_field_t *e[]) {
  qk_field_t *full[1];
  reserve(rig, prec, nrhs, QK_EVEN, n, e);
  reserve(rig, prec, nrhs, QK_FULL, 1, full);
  fill(rig, full[0], 2);
  copy(rig, e[0]->v, qk_field_parity(full[0], QK_EVEN));
  release(rig, 1, full);
}

/* With c = 1 a residual; and linear in c: the step from 1 to 2 is that from 0 to 1. */
static void relax_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  const qk_operator_ops_t *ops = rig->op->ops;
  qk_field_t *e[4];
  reserve_even(rig, prec, nrhs, 4, e);
  cr_assert(ops->relax(rig->op, e[1], e[0], 1) == QK_OK);
  cr_assert(ops->apply_system(rig->op, e[2], e[0], false, e[0]) == QK_OK);
  expect_close(rig, e[2]->v, e[1]->v, 4 * bound(prec), "one step");
  cr_assert(ops->relax(rig->op, e[2], e[0], 2) == QK_OK);
  qk_blas_args_t second = {.op = QK_BLAS_SUB, .f = {e[2]->v, e[2]->v, e[1]->v}};
  qk_blas_args_t first = {.op = QK_BLAS_SUB, .f = {e[3]->v, e[1]->v, e[0]->v}};
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &second) == QK_OK);
  cr_assert(rig->dev.ops->blas(rig->dev.ctx, &first) == QK_OK);
  expect_close(rig, e[2]->v, e[3]->v, 4 * bound(prec), "linear");
  release(rig, 4, e);
}

Test(operator, relaxes) {
  for_all(relax_case);
}

/* One block for the whole lattice cuts nothing off; between blocks of one site
 * there is no hop at all. */
static void blocks_case(qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  const qk_operator_ops_t *ops = rig->op->ops;
  const int32_t *l = rig->geom.lat.l;
  const int whole[4] = {l[0], l[1], l[2], l[3]}, site[4] = {1, 1, 1, 1};
  qk_field_t *e[3];
  reserve_even(rig, prec, nrhs, 3, e);
  cr_assert(ops->apply_system(rig->op, e[1], e[0], false, NULL) == QK_OK);
  cr_assert(ops->apply_blocks(rig->op, e[2], e[0], whole) == QK_OK);
  expect_close(rig, e[2]->v, e[1]->v, bound(prec), "one block");
  cr_assert(ops->apply_blocks(rig->op, e[2], e[0], site) == QK_OK);
  expect_close(rig, e[2]->v, e[0]->v, bound(prec), "blocks of a site");
  release(rig, 3, e);
}

Test(operator, blocks_cut_hops) {
  for_all(blocks_case);
}

/* gamma5 = diag(1,1,-1,-1) in the wire basis. */
Test(operator, is_gamma5_hermitian) {
  qk_rig_t rig;
  rig_open(&rig, NULL, rough, NULL);
  rig_operator(&rig, -0.2, 1.3, -1);
  size_t n = rig_reals(&rig);
  double *a = rig_vector(&rig), *b = rig_vector(&rig), *c = rig_vector(&rig);
  rig_random(&rig, 5, a);
  rig_apply(&rig, a, true, b);
  for (size_t i = 0; i < n; i++) a[i] *= i % 24 < 12 ? 1 : -1;
  rig_apply(&rig, a, false, c);
  for (size_t i = 0; i < n; i++) c[i] *= i % 24 < 12 ? 1 : -1;
  cr_expect(rig_distance(&rig, c, b) < 1e-14);
  qk_free(c);
  qk_free(b);
  qk_free(a);
  rig_close(&rig);
}

Test(operator, counts_applications_by_precision) {
  qk_rig_t rig;
  qk_field_t *f[2];
  rig_open(&rig, NULL, rough, NULL);
  rig_operator(&rig, 0.3, 0.7, -1);
  for (int p = 0; p < 3; p++) {
    reserve(&rig, (qk_prec_t)p, 2, QK_EVEN, 2, f);
    for (int i = 0; i <= p; i++) rig.op->ops->apply_system(rig.op, f[1], f[0], false, NULL);
    release(&rig, 2, f);
    cr_expect(rig.op->applications[p] == p + 1);
  }
  rig_close(&rig);
}

Test(operator, refuses_fields_that_do_not_fit) {
  qk_rig_t rig;
  qk_field_t *f[2], *e[2], *single;
  rig_open(&rig, NULL, rough, NULL);
  rig_operator(&rig, 0.3, 0, 1);
  reserve(&rig, QK_DOUBLE, 2, QK_FULL, 2, f);
  reserve(&rig, QK_DOUBLE, 2, QK_EVEN, 2, e);
  reserve(&rig, QK_SINGLE, 2, QK_FULL, 1, &single);
  qk_operator_t *op = rig.op;
  cr_expect(op->ops->apply(op, f[0], f[0], false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply(op, e[0], e[1], false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply(op, f[0], single, false, NULL, 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply_system(op, f[0], f[1], false, NULL) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->prepare(op, f[0], f[1]) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->reconstruct(op, e[0], e[1], f[0]) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->hop_forward(op, e[0], e[1], 0) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->hop_forward(op, f[0], f[1], 4) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->hop_backward(op, f[0], f[1], -1) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->diag(op, f[0], e[0], false) == QK_BAD_ARGUMENT);
  cr_expect(op->ops->apply_blocks(op, f[0], f[1], (int[]){2, 2, 2, 2}) == QK_BAD_ARGUMENT);
  release(&rig, 1, &single);
  release(&rig, 2, e);
  release(&rig, 2, f);
  rig_close(&rig);
}

static void expect_refusal(qk_rig_t *rig, const qk_action_params_t *p, const char *says) {
  qk_operator_t *op = NULL;
  qk_err_t err = {0};
  int64_t device = rig->dev.ops->allocated(rig->dev.ctx), host = qk_mem_bytes();
  cr_expect(qk_operator_create(&rig->dev, rig->work, rig->links, p, &op, &err) == QK_BAD_ARGUMENT);
  cr_expect(op == NULL && strstr(err.text, says), "\"%s\" does not say \"%s\"", err.text, says);
  cr_expect(rig->dev.ops->allocated(rig->dev.ctx) == device && qk_mem_bytes() == host);
}

Test(operator, refuses_bad_parameters_and_singular_terms) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x4x4x4", NULL);
  const qk_action_params_t good = params_wilson(0.1, 1, -1);
  qk_action_params_t p = good;
  p.phase[2][0] = 0.5;
  expect_refusal(&rig, &p, "boundary phase 2");
  p = good;
  p.link_reals[0] = 10;
  expect_refusal(&rig, &p, "link_reals[0] = 10");
  p = good;
  p.values.real[p.values.at[0].first] = -4; /* unit links: the term vanishes on every site */
  expect_refusal(&rig, &p, "singular on 256 sites");
  rig_close(&rig);
}
