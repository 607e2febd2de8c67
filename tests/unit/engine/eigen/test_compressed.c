/* Low modes as coefficients of a basis that is cut into aggregates. What values and residuals
 * are of vectors is compared with dense matrices in
 * tests/integ/engine/test_engine_compressed.py. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/hermitian.h"
#include "daemon/engine/krylov/solver.h"
#include "tests/unit/engine/eigen/compressed_kit.h"
#include "tests/unit/engine/eigen/deflation_kit.h"

enum { B = QK_EIGEN_BLOCK, VECTORS = 24, BASIS = 16 };

static void open_rough(qk_rig_t *rig) {
  rig_open(rig, NULL, "random:4x4x4x4:5", NULL);
  rig_operator(rig, -0.7, 0, -1);
}

/* ---- the basis ------------------------------------------------------------------------------- */

/* Noise, of which columns from `first` of the second block on repeat the first block. */
static qk_coherent_t *a_basis(const qk_rig_t *rig, qk_prec_t prec, int first) {
  const qk_coherent_cut_t cut = {BASIS, {4, 2, 2, 4}};
  qk_coherent_t *h;
  qk_err_t err = {0};
  rig_must(qk_coherent_check(&rig->geom, &cut, &err), "cut", &err);
  rig_must(qk_coherent_create(&rig->dev, QK_EVEN, prec, &cut, &h), "basis", NULL);
  for (int b = 0; b < h->nblock; b++) set_columns(rig, h->v[b], (uint64_t)b + 1);
  for (int i = first; i < B; i++) {
    const qk_rhs_copy_args_t a = {
        .to = h->v[1]->v, .from = h->v[0]->v, .to_rhs = i, .from_rhs = B - 1 - i};
    rig_must(rig->dev.ops->rhs_copy(rig->dev.ctx, &a), "copy", NULL);
  }
  compressed_cut(h);
  return h;
}

/* Products of the basis with its block b, on each aggregate and chirality. */
static void expect_orthonormal(const qk_coherent_t *h, int b, double tol) {
  const size_t numbers = (size_t)h->geom.lat.vcb * B * 2 * 2 * BASIS;
  float *plane[2] = {calloc(numbers, sizeof(float)), calloc(numbers, sizeof(float))};
  qk_field_t *c;
  rig_must(qk_field_create(&h->dev, h->v[0]->v.prec, B, QK_EVEN, &c), "field", NULL);
  qk_coherent_restrict(h, c, h->v[b]);
  for (int k = 0; k < 2; k++) rig_must(qk_coherent_get(c, k, plane[k]), "get", NULL);
  const int planes = c->v.prec == QK_DOUBLE ? 2 : 1;
  for (int X = 0; X < h->aggregates; X++)
    for (int k = 0; k < B * 2 * BASIS; k++) {
      const size_t at = ((size_t)X * B * 2 * BASIS + (size_t)k) * 2;
      const int column = k / (2 * BASIS), i = k % BASIS;
      const double want = i == b * B + column;
      for (int im = 0; im < 2; im++) {
        const double x =
            plane[0][at + (size_t)im] + (planes == 2 ? (double)plane[1][at + (size_t)im] : 0);
        cr_assert(fabs(x - (im ? 0 : want)) < tol, "%d: (%d, %d) is off by %g", X, i, column,
                  x - want);
      }
    }
  qk_field_destroy(c);
  for (int k = 0; k < 2; k++) free(plane[k]);
}

Test(coherent, makes_vectors_orthonormal_on_each_aggregate) {
  qk_rig_t rig;
  open_rough(&rig);
  for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
    qk_coherent_t *h = a_basis(&rig, (qk_prec_t)prec, B);
    for (int b = 0; b < h->nblock; b++) expect_orthonormal(h, b, prec == QK_DOUBLE ? 1e-13 : 2e-6);
    qk_coherent_destroy(h);
  }
  rig_close(&rig);
}

/* Of vectors of its space nothing is lost, also where some depend on others. */
static void expect_kept(const qk_rig_t *rig, const qk_coherent_t *h, double tol) {
  qk_field_t *y, *c, *z;
  double whole[B], rest[B];
  const qk_prec_t prec = h->v[0]->v.prec;
  rig_must(qk_field_create(&rig->dev, prec, B, QK_EVEN, &y), "field", NULL);
  rig_must(qk_field_create(&rig->dev, prec, B, QK_EVEN, &z), "field", NULL);
  rig_must(qk_field_create(&h->dev, prec, B, QK_EVEN, &c), "field", NULL);
  set_columns(rig, y, 1); /* as the first block was */
  qk_coherent_restrict(h, c, y);
  qk_coherent_prolong(h, z, c);
  qk_dev_blas(&rig->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {z->v, y->v, z->v}});
  column_norms(rig, y, whole);
  column_norms(rig, z, rest);
  for (int i = 0; i < B; i++) cr_expect(rest[i] < tol * whole[i], "%g", rest[i] / whole[i]);
  qk_field_destroy(c);
  qk_field_destroy(z);
  qk_field_destroy(y);
}

Test(coherent, keeps_what_is_in_its_space) {
  qk_rig_t rig;
  open_rough(&rig);
  for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
    for (int first = 3; first <= B; first += 5) {
      qk_coherent_t *h = a_basis(&rig, (qk_prec_t)prec, first);
      expect_kept(&rig, h, prec == QK_DOUBLE ? 1e-12 : 3e-6);
      qk_coherent_destroy(h);
    }
  rig_close(&rig);
}

Test(coherent, refuses_what_does_not_fit) {
  static const struct {
    qk_coherent_cut_t cut;
    const char *says;
  } bad[] = {{{0, {2, 2, 2, 2}}, "basis = 0"},
             {{12, {2, 2, 2, 2}}, "basis = 12"},
             {{520, {2, 2, 2, 2}}, "basis = 520"},
             {{8, {1, 2, 2, 2}}, "1 in x"},
             {{8, {2, 2, 3, 2}}, "3 in z"}};
  qk_rig_t rig;
  open_rough(&rig);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    cr_expect_neq(qk_coherent_check(&rig.geom, &bad[i].cut, &err), QK_OK);
    cr_expect(strstr(err.text, bad[i].says) != NULL, "\"%s\" in \"%s\"", bad[i].says, err.text);
  }
  rig_close(&rig);
}

/* ---- the polynomial -------------------------------------------------------------------------- */

Test(chebyshev, is_undone_below_its_window) {
  const qk_chebyshev_params_t p = {12, 0.3, 5};
  for (double x = 0; x < p.window; x += 0.02) {
    const double y = ((p.top + p.window) / 2 - x) / ((p.top - p.window) / 2);
    cr_expect(fabs(qk_chebyshev_inverse(&p, cosh(p.order * acosh(y))) - x) < 1e-13);
  }
  cr_expect(qk_chebyshev_inverse(&p, 0.7) == p.window);
}

/* ---- vectors --------------------------------------------------------------------------------- */

Test(compressed, takes_the_space_of_its_vectors_out) {
  static const qk_coherent_cut_t cut = {BASIS, {2, 2, 2, 2}};
  static const int nrhs[] = {1, 3, 8, 12};
  qk_rig_t rig;
  open_rough(&rig);
  for (int half = 0; half < 2; half++) {
    qk_compressed_t *z = compressed_make(&rig, &cut, VECTORS, QK_SINGLE, 1e-5);
    qk_deflation_t *d = NULL;
    qk_err_t err = {0};
    const double *value = qk_compressed_values(z), *residual = qk_compressed_residuals(z);
    for (int i = 0; i < VECTORS; i++) {
      cr_expect(value[i] > 0 && (i == 0 || value[i] >= value[i - 1]));
      cr_expect(i >= BASIS || residual[i] < 3e-5, "vector %d: %g", i, residual[i]);
    }
    rig_must(
        qk_deflation_create_compressed(rig.op, rig.work, z, half ? QK_HALF : QK_SINGLE, &d, &err),
        "deflation", &err);
    cr_expect_eq(qk_deflation_count(d), VECTORS);
    cr_expect(qk_deflation_is_compressed(d));
    for (int k = 0; k < 4; k++) expect_deflated(&rig, d, QK_SINGLE, nrhs[k], half ? 1e-2 : 1e-4);
    expect_deflated(&rig, d, QK_DOUBLE, 3, half ? 1e-2 : 1e-4);
    qk_deflation_destroy(d);
  }
  rig_close(&rig);
}

/* ---- in a solver ----------------------------------------------------------------------------- */

/* Slot i of flavour 1 or -1, which is without deflation; what it has done. */
typedef struct slots {
  int64_t iterations[2], applications[2];
  double *x[2];
} slots_t;

static slots_t solve_both(qk_rig_t *rig, qk_deflation_t *d) {
  const qk_solver_params_t p = {.method = "cg", .inner = QK_SINGLE, .nslot = 2, .deflation = d};
  qk_solver_t *solver;
  qk_err_t err = {0};
  slots_t r;
  double *b = rig_vector(rig);
  rig_must(qk_solver_create(rig->op, rig->work, &p, &solver, &err), "solver", &err);
  for (int i = 0; i < 2; i++) {
    rig_random(rig, (uint64_t)i + 3, b);
    rig_import(rig, qk_solver_rhs(solver, i), 0, b);
    rig_must(qk_solver_set_flavour(solver, i, i ? -1 : 1), "flavour", NULL);
    rig_must(qk_solver_fill(solver, i, 1e-10, 4000), "fill", NULL);
  }
  rig_run(solver);
  for (int i = 0; i < 2; i++) {
    const qk_slot_t *slot = qk_solver_slot(solver, i);
    cr_expect_eq(slot->status, QK_OK);
    r.iterations[i] = slot->iterations;
    r.applications[i] = slot->applications;
    r.x[i] = rig_vector(rig);
    rig_export(rig, qk_solver_solution(solver, i), 0, r.x[i]);
  }
  qk_solver_destroy(solver);
  qk_free(b);
  return r;
}

/* Beside a slot that begins a new space at its updates, one of the other flavour goes on with its
 * own: the same iterations and bits as without any deflation. */
Test(compressed, leave_slots_without_deflation_as_they_are) {
  static const qk_coherent_cut_t cut = {BASIS, {2, 2, 2, 2}};
  qk_rig_t rig;
  qk_deflation_t *d = NULL;
  qk_err_t err = {0};
  rig_open(&rig, NULL, "random:4x4x4x4:5", NULL);
  rig_action(&rig, "twisted-clover;mass=-0.75;mu=0.01", -1);
  qk_compressed_t *z = compressed_make(&rig, &cut, VECTORS, QK_SINGLE, 1e-5);
  rig_must(qk_deflation_create_compressed(rig.op, rig.work, z, QK_SINGLE, &d, &err), "deflation",
           &err);
  rig_must(qk_deflation_prepare(d, 2), "prepare", NULL);
  const slots_t alone = solve_both(&rig, NULL), beside = solve_both(&rig, d);
  cr_expect(beside.iterations[0] < alone.iterations[0], "%lld iterations, %lld without",
            (long long)beside.iterations[0], (long long)alone.iterations[0]);
  cr_expect_eq(beside.iterations[1], alone.iterations[1]);
  cr_expect_eq(beside.applications[1], alone.applications[1]);
  cr_expect_eq(memcmp(beside.x[1], alone.x[1], rig_reals(&rig) * sizeof(double)), 0);
  for (int i = 0; i < 2; i++) {
    qk_free(alone.x[i]);
    qk_free(beside.x[i]);
  }
  qk_deflation_destroy(d);
  rig_close(&rig);
}

/* ---- many of them ---------------------------------------------------------------------------- */

/* The first `columns` columns of noise, the others are 0. */
static void fill_coefficients(qk_field_t *c, int b, int columns) {
  const int64_t one = 2 * (int64_t)c->v.ncomp, numbers = c->v.nsites * B * one;
  float *plain = calloc((size_t)numbers, sizeof *plain), *plane[2] = {plain, NULL};
  uint64_t seed = 88172645463325252u + (uint64_t)b;
  for (int64_t i = 0; i < numbers; i++) {
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    if (i / one % B < columns) plain[i] = (float)((double)(seed >> 11) * 0x1p-52 - 1);
  }
  rig_must(qk_coherent_set(c, 1, plane), "coefficients", NULL);
  free(plain);
}

/* Noise as coefficients, of more vectors than a dense problem is solved for at once: with steps in
 * between, they become Ritz vectors of the space of T V c as few ones do. */
Test(compressed, gives_way_while_many_are_made) {
  enum { MANY = QK_HERMITIAN_LARGE + 5, WIDE = 72 };
  static const qk_coherent_cut_t cut = {WIDE, {2, 2, 2, 2}};
  qk_rig_t rig;
  qk_coherent_t *h;
  qk_compressed_t *z;
  qk_deflation_t *d = NULL;
  qk_err_t err = {0};
  int steps = 0;
  open_rough(&rig);
  rig_must(qk_coherent_create(&rig.dev, QK_EVEN, QK_SINGLE, &cut, &h), "basis", NULL);
  for (int b = 0; b < h->nblock; b++) set_columns(&rig, h->v[b], (uint64_t)b + 1);
  compressed_cut(h);
  const qk_chebyshev_params_t smooth = qk_compressed_polynomial(50);
  rig_must(qk_compressed_create(rig.op, rig.work, h, &smooth, MANY, &z, &err), "set", &err);
  for (int b = 0; b < (MANY + B - 1) / B; b++)
    fill_coefficients(qk_compressed_block(z, b), b, MANY - b * B);
  for (bool over = false; !over; steps++)
    rig_must(qk_compressed_step(z, &over, &err), "step", &err);
  cr_expect(steps > 2 * MANY / B + 3, "%d steps", steps);
  const double *value = qk_compressed_values(z);
  for (int i = 1; i < MANY; i++) cr_assert(value[i] >= value[i - 1]);
  rig_must(qk_deflation_create_compressed(rig.op, rig.work, z, QK_SINGLE, &d, &err), "deflation",
           &err);
  expect_deflated(&rig, d, QK_SINGLE, 3, 1e-3);
  qk_deflation_destroy(d);
  rig_close(&rig);
}
