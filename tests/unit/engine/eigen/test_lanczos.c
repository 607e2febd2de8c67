/* Lowest modes of Mhat^+ Mhat against a dense matrix, and what is made of them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/eigen/deflation.h"
#include "daemon/engine/eigen/hermitian.h"
#include "tests/support/dense.h"
#include "tests/unit/engine/eigen/deflation_kit.h"

static const char *rough = "random:4x2x2x4:5";
static const double mass = -0.7;

static void open_rough(qk_rig_t *rig) {
  rig_open(rig, NULL, rough, NULL);
  rig_operator(rig, mass, 0, -1);
}

/* ---- against the dense matrix ---------------------------------------------------------------- */

static int parity_of(const int dims[4], int site) {
  int sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    sum += site % dims[mu];
    site /= dims[mu];
  }
  return sum % 2;
}

/* All eigenvalues of Mhat^+ Mhat, Mhat = 1 - M_eo M_oe / a^2 of the plain operator; malloc'd. */
static double *dense_values(const qk_rig_t *rig, int *count) {
  const int *dims = rig->geom.global, sites = (int)rig->geom.volume, n = 6 * sites;
  double complex *m = dense_wilson(dims, rig->links, mass, -1), *hat, *square;
  int *even = malloc((size_t)n * sizeof *even), *odd = malloc((size_t)n * sizeof *odd), ne = 0,
      no = 0;
  hat = calloc((size_t)n * (size_t)n, sizeof *hat);
  square = calloc((size_t)n * (size_t)n, sizeof *square);
  double *w = malloc((size_t)n * sizeof *w), a2 = (4 + mass) * (4 + mass);
  for (int i = 0; i < 12 * sites; i++) *(parity_of(dims, i / 12) ? &odd[no++] : &even[ne++]) = i;
  for (int i = 0; i < n; i++)
    for (int k = 0; k < n; k++) {
      double complex out = m[even[i] * 12 * sites + odd[k]] / a2;
      for (int j = 0; out != 0 && j < n; j++)
        hat[i * n + j] -= out * m[odd[k] * 12 * sites + even[j]];
    }
  for (int i = 0; i < n; i++) hat[i * n + i] += 1;
  for (int k = 0; k < n; k++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j <= i; j++) square[j * n + i] += conj(hat[k * n + i]) * hat[k * n + j];
  cr_assert_eq(qk_hermitian_eigen(rig->comm, n, square, w), QK_OK);
  free(square);
  free(hat);
  free(odd);
  free(even);
  free(m);
  *count = n;
  return w;
}

static void expect_orthonormal(qk_rig_t *rig, const qk_eigen_t *e, double tol) {
  qk_basis_args_t a = {.n = e->nblock};
  const int n = e->nblock * QK_EIGEN_BLOCK;
  double complex *c = malloc((size_t)n * QK_EIGEN_BLOCK * sizeof *c);
  void *device = NULL;
  const size_t bytes = (size_t)n * QK_EIGEN_BLOCK * sizeof *c;
  cr_assert_eq(rig->dev.ops->alloc(rig->dev.ctx, bytes, &device), QK_OK);
  a.c = device;
  for (int b = 0; b < e->nblock; b++) a.v[b] = e->block[b]->v;
  for (int b = 0; b < e->nblock; b++) {
    a.y = e->block[b]->v;
    cr_assert_eq(rig->dev.ops->basis_dot(rig->dev.ctx, &a), QK_OK);
    cr_assert_eq(rig->dev.ops->copy(rig->dev.ctx, c, device, bytes, QK_COPY_TO_HOST, 0), QK_OK);
    cr_assert_eq(rig->dev.ops->queue_sync(rig->dev.ctx, 0), QK_OK);
    for (int k = 0; k < n * QK_EIGEN_BLOCK; k++) {
      const int i = k / QK_EIGEN_BLOCK, j = b * QK_EIGEN_BLOCK + k % QK_EIGEN_BLOCK;
      const double want = i == j && i < e->n;
      cr_expect(cabs(c[k] - want) < tol, "(v_%d, v_%d) = %g + %gi", i, j, creal(c[k]), cimag(c[k]));
    }
  }
  rig->dev.ops->free(rig->dev.ctx, device);
  free(c);
}

static void expect_lowest(qk_rig_t *rig, const qk_lanczos_params_t *p, const double *want) {
  qk_eigen_t *e = NULL;
  qk_err_t err = {0};
  rig_must(qk_lanczos(rig->op, rig->work, p, NULL, NULL, &e, &err), "lanczos", &err);
  cr_assert_eq(e->n, p->n);
  const double unit = p->prec == QK_DOUBLE ? 1e-12 : 2e-6;
  for (int i = 0; i < e->n; i++) {
    cr_expect(fabs(e->value[i] - want[i]) < unit * e->top, "%d: value %d is %.12g, not %.12g", p->n,
              i, e->value[i], want[i]);
    cr_expect(e->residual[i] <= p->tol * e->top, "value %d: residual %g", i, e->residual[i]);
  }
  expect_orthonormal(rig, e, p->prec == QK_DOUBLE ? 1e-13 : 3e-6);
  qk_eigen_destroy(e);
}

Test(lanczos, finds_the_lowest_modes) {
  qk_rig_t rig;
  int count;
  open_rough(&rig);
  double *want = dense_values(&rig, &count);
  const qk_lanczos_params_t params[] = {
      {.n = 1, .tol = 1e-11, .prec = QK_DOUBLE, .seed = 1},
      {.n = 8, .tol = 1e-11, .prec = QK_DOUBLE, .seed = 2},
      {.n = 30, .tol = 1e-11, .prec = QK_DOUBLE, .seed = 3},
      {.n = 20, .tol = 1e-5, .prec = QK_SINGLE, .seed = 4},
      {.n = 12, .tol = 1e-11, .space = 32, .order = 8, .prec = QK_DOUBLE, .restarts = 200},
      {.n = 12, .tol = 1e-11, .window = 1.5 * want[11], .top = 1.1 * want[count - 1]},
  };
  for (size_t i = 0; i < sizeof params / sizeof *params; i++) expect_lowest(&rig, &params[i], want);
  free(want);
  rig_close(&rig);
}

/* What lies above the top grows, too: the upper end of the spectrum is not to be taken for the
 * lower one, however soon it converges. */
Test(lanczos, raises_a_top_that_is_too_low) {
  qk_rig_t rig;
  int count;
  open_rough(&rig);
  double *want = dense_values(&rig, &count);
  const double share[] = {0.3, 0.7, 0.9, 0.99};
  for (size_t i = 0; i < sizeof share / sizeof *share; i++) {
    qk_lanczos_params_t p = {.n = 8, .tol = 1e-11, .top = share[i] * want[count - 1], .seed = 5};
    expect_lowest(&rig, &p, want);
    p.window = 1.5 * want[7];
    if (p.window < p.top) expect_lowest(&rig, &p, want);
  }
  qk_lanczos_params_t loose = {.n = 6, .tol = 1e-2, .top = 0.7 * want[count - 1], .seed = 6};
  qk_eigen_t *e = NULL;
  qk_err_t err = {0};
  rig_must(qk_lanczos(rig.op, rig.work, &loose, NULL, NULL, &e, &err), "lanczos", &err);
  for (int i = 0; i < e->n; i++)
    cr_expect_lt(fabs(e->value[i] - want[i]), 0.02 * e->top, "value %d: %g", i, e->value[i]);
  qk_eigen_destroy(e);
  free(want);
  rig_close(&rig);
}

Test(lanczos, gives_what_has_converged_in_time) {
  qk_rig_t rig;
  int count;
  open_rough(&rig);
  double *want = dense_values(&rig, &count);
  qk_lanczos_params_t p = {.n = 24, .space = 40, .tol = 1e-11, .restarts = 3, .seed = 1};
  qk_eigen_t *e = NULL;
  qk_err_t err = {0};
  cr_assert_eq(qk_lanczos(rig.op, rig.work, &p, NULL, NULL, &e, &err), QK_NOT_CONVERGED);
  cr_expect(strstr(err.text, "of 24 eigenvectors after 3 restarts") != NULL, "%s", err.text);
  cr_expect_lt(e->n, 24);
  for (int i = 0; i < e->n; i++) cr_expect(e->residual[i] <= p.tol * e->top);
  expect_orthonormal(&rig, e, 1e-13);
  qk_eigen_destroy(e);
  free(want);
  rig_close(&rig);
}

Test(lanczos, refuses_parameters_by_name) {
  static const struct {
    qk_lanczos_params_t p;
    const char *says;
  } bad[] = {
      {{.n = 0}, "eigenvectors = 0"},
      {{.n = 97}, "eigenvectors = 97: must be 1 to 96"},
      {{.n = 8, .space = 30}, "Krylov space = 30"},
      {{.n = 8, .space = 16}, "Krylov space = 16"},
      {{.n = 8, .order = 3}, "order of the polynomial = 3"},
      {{.n = 8, .window = 2, .top = 1}, "window = 2"},
      {{.n = 8, .prec = QK_HALF}, "precision = 2"},
      {{.n = 8, .prec = QK_SINGLE, .tol = 1e-8}, "tolerance"},
      {{.n = 8, .restarts = -1}, "restarts = -1"},
  };
  qk_rig_t rig;
  open_rough(&rig);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    qk_eigen_t *e = NULL;
    cr_expect_eq(qk_lanczos(rig.op, rig.work, &bad[i].p, NULL, NULL, &e, &err), QK_BAD_ARGUMENT);
    cr_expect(strstr(err.text, bad[i].says) != NULL, "\"%s\" in \"%s\"", bad[i].says, err.text);
  }
  rig_close(&rig);
}

/* An operator whose results are NaN from some application on. */
typedef struct broken {
  qk_operator_t op;
  qk_operator_t *whole;
  int left;
} broken_t;

static qk_status_t broken_apply_system(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                       bool dagger, const qk_field_t *x) {
  broken_t *b = (broken_t *)op;
  qk_status_t status = b->whole->ops->apply_system(b->whole, out, in, dagger, x);
  if (status || b->left-- > 0) return status;
  double bad[2] = {NAN, 0};
  return op->dev->ops->copy(op->dev->ctx, out->v.data, bad, sizeof bad, QK_COPY_TO_DEVICE, 0);
}

Test(lanczos, ends_with_breakdown_on_nan) {
  static const qk_operator_ops_t ops = {.apply_system = broken_apply_system};
  qk_rig_t rig;
  open_rough(&rig);
  for (int after = 0; after < 500; after += 71) {
    broken_t b = {.op = {.ops = &ops, .dev = &rig.dev, .work = rig.work}, .whole = rig.op};
    b.left = after;
    qk_lanczos_params_t p = {.n = 8, .tol = 1e-10};
    qk_eigen_t *e = NULL;
    qk_err_t err = {0};
    cr_expect_eq(qk_lanczos(&b.op, rig.work, &p, NULL, NULL, &e, &err), QK_BREAKDOWN, "after %d",
                 after);
    cr_expect_null(e);
  }
  rig_close(&rig);
}

/* ---- deflation ------------------------------------------------------------------------------- */

/* With images: x as apply makes it, and r - Mhat x, both to `rest` of their size. */
static void expect_reduced(qk_rig_t *rig, qk_deflation_t *d, int nrhs, double rest) {
  qk_field_t *f[5];
  double size[QK_MAX_RHS], off[QK_MAX_RHS];
  rig_must(qk_deflation_prepare(d, nrhs), "prepare", NULL);
  for (int i = 0; i < 5; i++)
    rig_must(qk_field_create(&rig->dev, QK_SINGLE, nrhs, QK_EVEN, &f[i]), "field", NULL);
  set_columns(rig, f[1], 5);
  rig_must(qk_deflation_apply(d, f[0], f[1]), "apply", NULL);
  rig_must(rig->op->ops->apply_system(rig->op, f[2], f[0], false, f[1]), "residual", NULL);
  rig_must(qk_deflation_reduce(d, f[3], f[1]), "reduce", NULL);
  for (int k = 0; k < 2; k++) { /* x, then r */
    const qk_field_t *want = f[k ? 2 : 0], *got = f[k ? 1 : 3];
    qk_blas_args_t sub = {.op = QK_BLAS_SUB, .f = {f[4]->v, want->v, got->v}};
    rig_must(rig->dev.ops->blas(rig->dev.ctx, &sub), "sub", NULL);
    column_norms(rig, want, size);
    column_norms(rig, f[4], off);
    for (int i = 0; i < nrhs; i++)
      cr_expect(off[i] < rest * size[i], "%s of column %d of %d: off by %g of %g", k ? "r" : "x", i,
                nrhs, off[i], size[i]);
  }
  cr_expect_eq(qk_deflation_reduce(d, f[1], f[1]), QK_BAD_ARGUMENT);
  for (int i = 0; i < 5; i++) qk_field_destroy(f[i]);
}

Test(deflation, with_images_needs_no_operator) {
  qk_rig_t rig;
  open_rough(&rig);
  const qk_lanczos_params_t p = {.n = 70, .prec = QK_SINGLE, .tol = 1e-5, .seed = 1};
  qk_deflation_t *d;
  qk_field_t *f[2];
  qk_err_t err = {0};
  rig_must(qk_deflation_create(rig.op, rig.work, &p, QK_SINGLE, NULL, NULL, &d, &err), "deflation",
           &err);
  rig_must(qk_deflation_prepare(d, 1), "prepare", NULL);
  for (int i = 0; i < 2; i++)
    rig_must(qk_field_create(&rig.dev, QK_SINGLE, 1, QK_EVEN, &f[i]), "field", NULL);
  cr_expect_eq(qk_deflation_reduce(d, f[0], f[1]), QK_BAD_ARGUMENT); /* no images yet */
  rig_must(qk_deflation_keep_images(d), "images", NULL);
  static const int nrhs[] = {1, 3, 8, 12};
  for (int k = 0; k < 4; k++) expect_reduced(&rig, d, nrhs[k], 1e-4);
  for (int i = 0; i < 2; i++) qk_field_destroy(f[i]);
  qk_deflation_destroy(d);
  rig_close(&rig);
}

Test(deflation, takes_the_low_modes_out) {
  qk_rig_t rig;
  open_rough(&rig);
  for (int half = 0; half < 2; half++) {
    qk_lanczos_params_t p = {.n = 70, .prec = QK_SINGLE, .tol = 1e-5, .seed = 1};
    qk_deflation_t *d;
    qk_err_t err = {0};
    rig_must(
        qk_deflation_create(rig.op, rig.work, &p, half ? QK_HALF : QK_SINGLE, NULL, NULL, &d, &err),
        "deflation", &err);
    cr_expect_eq(qk_deflation_count(d), 70);
    qk_field_t *const *block;
    cr_expect_eq(qk_deflation_blocks(d, &block), 2);
    cr_expect_eq(block[0]->v.nrhs, 64);
    cr_expect_eq(block[1]->v.nrhs, 8);
    static const int nrhs[] = {1, 3, 8, 12};
    for (int k = 0; k < 4; k++) expect_deflated(&rig, d, QK_SINGLE, nrhs[k], half ? 1e-2 : 1e-4);
    expect_deflated(&rig, d, QK_DOUBLE, 3, half ? 1e-2 : 1e-4);
    qk_field_t *r;
    rig_must(qk_field_create(&rig.dev, QK_SINGLE, 20, QK_EVEN, &r), "field", NULL);
    cr_expect_eq(qk_deflation_apply(d, r, r), QK_BAD_ARGUMENT); /* more than prepared */
    qk_field_destroy(r);
    qk_deflation_destroy(d);
  }
  rig_close(&rig);
}

/* An operator that sees its vectors in 16 bits. */
static qk_status_t coarse_grained(qk_operator_t *op, qk_field_t *out, const qk_field_t *in,
                                  bool dagger, const qk_field_t *x) {
  broken_t *b = (broken_t *)op;
  qk_field_t *half, *rounded = NULL;
  qk_status_t status = qk_work_reserve(op->work, QK_HALF, in->v.nrhs, QK_EVEN, &half);
  if (status) return status;
  status = qk_work_reserve(op->work, in->v.prec, in->v.nrhs, QK_EVEN, &rounded);
  qk_blas_args_t down = {.op = QK_BLAS_COPY, .f = {half->v, in->v}};
  if (!status) status = op->dev->ops->blas(op->dev->ctx, &down);
  if (!status) {
    qk_blas_args_t up = {.op = QK_BLAS_COPY, .f = {rounded->v, half->v}};
    status = op->dev->ops->blas(op->dev->ctx, &up);
  }
  if (!status) status = b->whole->ops->apply_system(b->whole, out, rounded, dagger, x);
  qk_work_release(op->work, rounded);
  qk_work_release(op->work, half);
  return status;
}

Test(deflation, is_found_for_operators_that_round) {
  static const qk_operator_ops_t ops = {.apply_system = coarse_grained};
  qk_rig_t rig;
  open_rough(&rig);
  broken_t b = {.op = {.ops = &ops, .dev = &rig.dev, .work = rig.work}, .whole = rig.op};
  qk_lanczos_params_t p = {.n = 20, .prec = QK_SINGLE};
  qk_deflation_t *d;
  qk_err_t err = {0};
  rig_must(qk_deflation_create(&b.op, rig.work, &p, QK_SINGLE, NULL, NULL, &d, &err), "deflation",
           &err);
  cr_expect_eq(qk_deflation_count(d), 20);
  expect_deflated(&rig, d, QK_SINGLE, 8, 0.02);
  qk_deflation_destroy(d);
  rig_close(&rig);
}

/* Iterations of two slots to 1e-10, with or without. */
static int64_t iterations(qk_rig_t *rig, const char *method, qk_prec_t inner, qk_deflation_t *d) {
  const qk_solver_params_t p = {.method = method, .inner = inner, .nslot = 2, .deflation = d};
  qk_solver_t *solver;
  qk_err_t err = {0};
  int64_t sum = 0;
  rig_must(qk_solver_create(rig->op, rig->work, &p, &solver, &err), "solver", &err);
  for (int slot = 0; slot < 2; slot++) {
    double *b = rig_vector(rig), *x = rig_vector(rig), *mx = rig_vector(rig);
    rig_random(rig, (uint64_t)slot + 7, b);
    rig_import(rig, qk_solver_rhs(solver, slot), 0, b);
    rig_must(qk_solver_fill(solver, slot, 1e-10, 5000), "fill", NULL);
    rig_run(solver);
    cr_expect_eq(qk_solver_slot(solver, slot)->status, QK_OK);
    rig_export(rig, qk_solver_solution(solver, slot), 0, x);
    rig_apply(rig, x, false, mx);
    cr_expect_lt(rig_distance(rig, mx, b), 1.01e-10, "%s, slot %d", method, slot);
    sum += qk_solver_slot(solver, slot)->iterations;
    qk_free(mx);
    qk_free(x);
    qk_free(b);
  }
  qk_solver_destroy(solver);
  return sum;
}

Test(deflation, spares_plain_solvers_iterations) {
  static const struct {
    const char *method;
    qk_prec_t inner;
  } cases[] = {{"cg", QK_SINGLE}, {"cg", QK_HALF}, {"cg", QK_DOUBLE}, {"gcr", QK_SINGLE}};
  qk_rig_t rig;
  qk_deflation_t *d;
  qk_err_t err = {0};
  rig_open(&rig, NULL, "builtin:weak:4x4x4x8:3", NULL);
  rig_operator(&rig, -0.3, 0, -1);
  const qk_lanczos_params_t p = {.n = 24, .prec = QK_SINGLE, .seed = 1};
  rig_must(qk_deflation_create(rig.op, rig.work, &p, QK_SINGLE, NULL, NULL, &d, &err), "deflation",
           &err);
  for (int i = 0; i < 4; i++) {
    const int64_t plain = iterations(&rig, cases[i].method, cases[i].inner, NULL),
                  deflated = iterations(&rig, cases[i].method, cases[i].inner, d);
    cr_expect(deflated < 0.85 * (double)plain, "%s: %d iterations, %d with deflation",
              cases[i].method, (int)plain, (int)deflated);
  }
  const int64_t least = iterations(&rig, "bicgstab", QK_SINGLE, d); /* the solution is right */
  cr_expect_gt(least, 0);
  qk_deflation_destroy(d);
  rig_close(&rig);
}

/* A NaN beside it changes no bit of a deflated solution. */
Test(deflation, keeps_slots_apart) {
  qk_rig_t rig;
  qk_deflation_t *d;
  qk_err_t err = {0};
  open_rough(&rig);
  const qk_lanczos_params_t p = {.n = 8, .prec = QK_SINGLE, .seed = 1};
  rig_must(qk_deflation_create(rig.op, rig.work, &p, QK_SINGLE, NULL, NULL, &d, &err), "deflation",
           &err);
  double *b = rig_vector(&rig), *x[2];
  for (int bad = 0; bad < 2; bad++) {
    const qk_solver_params_t q = {.method = "cg", .inner = QK_SINGLE, .nslot = 3, .deflation = d};
    qk_solver_t *solver;
    rig_must(qk_solver_create(rig.op, rig.work, &q, &solver, &err), "solver", &err);
    for (int slot = 0; slot < 3; slot++) {
      rig_random(&rig, (uint64_t)slot + 3, b);
      if (bad && slot == 1) b[5] = NAN;
      rig_import(&rig, qk_solver_rhs(solver, slot), 0, b);
      rig_must(qk_solver_fill(solver, slot, 1e-8, 2000), "fill", NULL);
    }
    rig_run(solver);
    cr_expect_eq(qk_solver_slot(solver, 1)->status, bad ? QK_NAN_INPUT : QK_OK);
    x[bad] = rig_vector(&rig);
    rig_export(&rig, qk_solver_solution(solver, 2), 0, x[bad]);
    qk_solver_destroy(solver);
  }
  cr_expect_eq(memcmp(x[0], x[1], rig_reals(&rig) * sizeof *b), 0);
  qk_free(x[1]);
  qk_free(x[0]);
  qk_free(b);
  qk_deflation_destroy(d);
  rig_close(&rig);
}

Test(deflation, memory_is_what_is_planned) {
  qk_rig_t rig;
  open_rough(&rig);
  const int64_t eight = qk_deflation_bytes(&rig.geom, QK_EVEN, QK_SINGLE, 8);
  cr_expect_eq(eight, (int64_t)rig.geom.volume / 2 * 12 * 8 * 8);
  cr_expect_eq(qk_deflation_bytes(&rig.geom, QK_EVEN, QK_SINGLE, 70), 9 * eight);
  cr_expect_eq(qk_deflation_fit(&rig.geom, QK_EVEN, QK_SINGLE, 9 * eight + 1), 72);
  cr_expect_eq(qk_deflation_fit(&rig.geom, QK_EVEN, QK_SINGLE, eight - 1), 0);
  cr_expect_eq(qk_deflation_fit(&rig.geom, QK_EVEN, QK_SINGLE, INT64_MAX), QK_EIGEN_MAX);
  rig_close(&rig);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static qk_status_t life(qk_rig_t *rig) {
  qk_lanczos_params_t p = {.n = 4, .space = 24, .order = 4, .restarts = 2, .prec = QK_SINGLE};
  qk_deflation_t *d = NULL;
  qk_work_t *work = NULL;
  p.tol = 0.5;
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_deflation_create(rig->op, work, &p, QK_HALF, NULL, NULL, &d, NULL);
  if (!status) status = qk_deflation_prepare(d, 3);
  qk_deflation_destroy(d);
  qk_work_trim(rig->work);
  qk_work_destroy(work);
  return status;
}

static void fail_everywhere(const char *point, int step, qk_status_t expected) {
  char faults[64];
  qk_status_t status = QK_INTERNAL;
  int n = 1;
  for (; status && n < 4000; n += step) {
    qk_rig_t rig;
    qk_field_t *work;
    open_rough(&rig);
    cr_assert_eq(qk_work_reserve(rig.work, QK_SINGLE, 1, QK_EVEN, &work), QK_OK);
    qk_work_release(rig.work, work); /* the stack itself stays */
    qk_work_trim(rig.work);
    int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
    snprintf(faults, sizeof faults, "%s:%d", point, n);
    cr_assert(qk_fault_set(faults) == 0);
    status = life(&rig);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(!status || status == expected, "%s: %s", faults, qk_status_name(status));
    cr_assert(rig.dev.ops->allocated(rig.dev.ctx) == device, "%s: device memory stays", faults);
    cr_assert(qk_mem_bytes() <= host, "%s: host memory stays", faults);
    rig_close(&rig);
  }
  cr_expect(!status && n > 10, "%s: %d places, then %s", point, n, qk_status_name(status));
}

Test(deflation, survives_every_failure) {
  fail_everywhere("device-alloc", 1, QK_DEVICE_MEMORY);
  fail_everywhere("alloc", 1, QK_NO_MEMORY);
  fail_everywhere("device-call", 7, QK_DEVICE_ERROR);
}
