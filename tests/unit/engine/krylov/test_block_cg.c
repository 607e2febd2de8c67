/* Block CG: what slots of a group gain from each other, and what others do not notice. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/krylov/block_matrix.h"
#include "daemon/engine/lattice/scalars.h"
#include "tests/unit/engine/krylov/solver_kit.h"

enum { N = 12 };

/* Fills slots first .. first+n-1, whose sources are there, as one group. */
static void fill_group(qk_solver_t *solver, int first, int n, uint64_t group, const double *tol) {
  int slot[QK_MAX_RHS];
  double usual[QK_MAX_RHS];
  int64_t limit[QK_MAX_RHS];
  for (int i = 0; i < n; i++) {
    slot[i] = first + i;
    usual[i] = 1e-11;
    limit[i] = 2000;
    cr_assert_eq(qk_solver_set_group(solver, slot[i], group), QK_OK);
  }
  cr_assert_eq(qk_solver_fill_many(solver, slot, n, tol ? tol : usual, limit), QK_OK);
}

static void put_group(const qk_rig_t *rig, qk_solver_t *solver, int first, int n, uint64_t seed) {
  for (int i = 0; i < n; i++) put_source(rig, solver, first + i, seed + (uint64_t)i, 1);
  fill_group(solver, first, n, seed, NULL);
}

static void expect_group(qk_rig_t *rig, qk_solver_t *solver, int first, int n, uint64_t seed,
                         const char *what) {
  for (int i = 0; i < n; i++) expect_solved(rig, solver, first + i, seed + (uint64_t)i, 1, what);
}

/* ---- matrices -------------------------------------------------------------------------------- */

enum { SIZE = 7, KEPT = 5 }; /* rows of v; its columns from KEPT on depend on those before */

/* The products of columns of v: rank KEPT. */
static void make_products(double complex v[SIZE * SIZE], double complex g[SIZE * SIZE]) {
  for (int i = 0; i < SIZE; i++) {
    for (int j = 0; j < KEPT; j++)
      v[i * SIZE + j] = cos(1.3 * i * (j + 1)) + I * sin(i * i * (j + 0.7));
    v[i * SIZE + KEPT] = 2 * v[i * SIZE] - I * v[i * SIZE + 3];
    v[i * SIZE + KEPT + 1] = v[i * SIZE + 1];
  }
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < SIZE; j++) {
      g[i * SIZE + j] = 0;
      for (int l = 0; l < SIZE; l++) g[i * SIZE + j] += conj(v[l * SIZE + i]) * v[l * SIZE + j];
    }
}

Test(block_matrix, cholesky_marks_what_depends_and_makes_the_rest_orthonormal) {
  double complex v[SIZE * SIZE], g[SIZE * SIZE], r[SIZE * SIZE], inverse[SIZE * SIZE],
      q[SIZE * SIZE];
  double least[SIZE];
  uint8_t weak[SIZE] = {0};
  make_products(v, g);
  for (int j = 0; j < SIZE; j++) least[j] = 1e-12 * creal(g[j * SIZE + j]);
  cr_assert(qk_block_cholesky(SIZE, g, least, r, weak));
  qk_block_invert(SIZE, r, inverse);
  qk_block_times(SIZE, v, inverse, false, q);
  for (int j = 0; j < SIZE; j++) {
    cr_expect_eq(weak[j], j >= KEPT);
    for (int k = 0; k <= j; k++) {
      double complex sum = 0;
      for (int l = 0; l < SIZE; l++) sum += conj(q[l * SIZE + k]) * q[l * SIZE + j];
      cr_expect(cabs(sum - (j == k && j < KEPT)) < 1e-11, "columns %d and %d: %g", k, j, cabs(sum));
    }
  }
}

Test(block_matrix, inverse_is_that_of_the_columns_that_are_kept) {
  double complex v[SIZE * SIZE], g[SIZE * SIZE], inverse[SIZE * SIZE], one[SIZE * SIZE],
      work[2 * SIZE * SIZE];
  double least[SIZE];
  make_products(v, g);
  for (int j = 0; j < SIZE; j++) least[j] = 1e-12 * creal(g[j * SIZE + j]);
  cr_assert(qk_block_inverse(SIZE, g, least, inverse, work));
  qk_block_times(SIZE, inverse, g, false, one);
  for (int i = 0; i < SIZE; i++)
    for (int j = 0; j < KEPT; j++)
      cr_expect(cabs(one[i * SIZE + j] - (i == j)) < 1e-10, "%d, %d: %g", i, j,
                cabs(one[i * SIZE + j]));
  for (int i = 0; i < SIZE; i++) cr_expect(cabs(inverse[i * SIZE + KEPT]) == 0);
  g[2 * SIZE + 2] = NAN;
  cr_expect(!qk_block_inverse(SIZE, g, least, inverse, work));
}

/* ---- solutions ------------------------------------------------------------------------------- */

static int64_t iterations(qk_rig_t *rig, const char *method, qk_prec_t inner, int n) {
  qk_solver_t *solver = rig_solver(rig, method, inner, n);
  put_group(rig, solver, 0, n, 100);
  rig_run(solver);
  expect_group(rig, solver, 0, n, 100, method);
  int64_t most = 0;
  for (int i = 0; i < n; i++)
    if (qk_solver_slot(solver, i)->iterations > most) most = qk_solver_slot(solver, i)->iterations;
  qk_solver_destroy(solver);
  return most;
}

/* In half the kernels of a GPU and of a CPU round differently: a few iterations more are no
 * failure. */
Test(block_cg, a_group_needs_fewer_iterations_than_cg_and_a_larger_one_no_more) {
  const int size[] = {3, 8, N};
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:4x4x4x8:3", NULL);
  rig_operator(&rig, 0.02, 1.2, -1);
  for (int p = 0; p < QK_PRECS; p++) {
    int64_t before = iterations(&rig, "cg", (qk_prec_t)p, N) - 1;
    for (int k = 0; k < 3; k++) {
      const int64_t now = iterations(&rig, "block-cg", (qk_prec_t)p, size[k]);
      cr_expect_leq(now, before + (p == QK_HALF ? before / 10 : 0),
                    "precision %d, %d columns: %ld iterations, fewer columns %ld", p, size[k],
                    (long)now, (long)before);
      before = now;
    }
  }
  rig_close(&rig);
}

Test(block_cg, one_slot_is_solved_by_cg) {
  qk_rig_t rig;
  open_smooth(&rig);
  double *x[2];
  for (int k = 0; k < 2; k++) {
    qk_solver_t *solver = rig_solver(&rig, k ? "block-cg" : "cg", QK_SINGLE, 1);
    put_and_fill(&rig, solver, 0, 5, 1e-10, 1000);
    rig_run(solver);
    x[k] = get_solution(&rig, solver, 0);
    qk_solver_destroy(solver);
  }
  cr_expect(!memcmp(x[0], x[1], rig_reals(&rig) * sizeof(double)));
  for (int k = 0; k < 2; k++) qk_free(x[k]);
  rig_close(&rig);
}

/* ---- other operators ------------------------------------------------------------------------- */

/* |x - y| / |y| of slot i of two solvers; x is overwritten. */
static double distance(const qk_rig_t *rig, qk_solver_t *with_x, qk_solver_t *with_y, int i) {
  const qk_field_t *x = qk_solver_solution(with_x, i), *y = qk_solver_solution(with_y, i);
  qk_scalars_t s;
  rig_must(qk_scalars_init(&s, x->dev, 2, 1), "scalars", NULL);
  qk_dev_blas(x->dev, QK_BLAS_SUB, (qk_blas_args_t){.f = {x->v, x->v, y->v}});
  qk_scalars_reduce(&s, 0, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {x->v}});
  qk_scalars_reduce(&s, 1, 1, QK_BLAS_NORM2, (qk_blas_args_t){.f = {y->v}});
  qk_scalars_fetch(&s, 0, 2);
  rig_must(qk_dev_status(&rig->dev), "norms", NULL);
  const double d = sqrt(qk_scalars_host(&s, 0, 0)[0] / qk_scalars_host(&s, 1, 0)[0]);
  qk_scalars_fini(&s);
  return d;
}

static qk_solver_t *solve_noise(qk_rig_t *rig, const char *method, qk_prec_t inner,
                                const int *flavour) {
  qk_solver_t *solver = rig_solver(rig, method, inner, 5);
  for (int i = 0; i < 5; i++) {
    const qk_source_args_t source = {.lat = rig->geom.lat,
                                     .kind = QK_SOURCE_Z4,
                                     .site = {0, 0, 0, -1},
                                     .spin = -1,
                                     .colour = -1,
                                     .seed = 70 + (uint64_t)i};
    rig_source(rig, &source, qk_solver_rhs(solver, i));
    if (flavour) cr_assert_eq(qk_solver_set_flavour(solver, i, flavour[i]), QK_OK);
  }
  fill_group(solver, 0, 5, 1, NULL);
  rig_run(solver);
  return solver;
}

static void expect_same_as_cg(const char *text, const int *flavour) {
  qk_rig_t rig;
  rig_open(&rig, NULL, smooth_gauge, NULL);
  rig_action(&rig, text, -1);
  for (int p = 0; p < QK_PRECS; p++) {
    qk_solver_t *block = solve_noise(&rig, "block-cg", (qk_prec_t)p, flavour);
    qk_solver_t *cg = solve_noise(&rig, "cg", QK_DOUBLE, flavour);
    for (int i = 0; i < 5; i++) {
      const qk_slot_t *s = qk_solver_slot(block, i);
      const double d = distance(&rig, block, cg, i);
      cr_expect(s->status == QK_OK && s->residual <= 1e-11 && d < 1e-8,
                "%s, precision %d, slot %d: %s, residual %g, off by %g", text, p, i,
                qk_status_name(s->status), s->residual, d);
    }
    qk_solver_destroy(cg);
    qk_solver_destroy(block);
  }
  rig_close(&rig);
}

Test(block_cg, solves_with_slices) {
  expect_same_as_cg("moebius;mass=0.05;M5=1.4;Ls=6;b=1.5;c=0.5", NULL);
}

Test(block_cg, solves_doublets) {
  expect_same_as_cg("doublet;mass=0.1;mu=0.4;epsilon=0.3;csw=1.2", NULL);
}

/* They are different operators, and share nothing. */
Test(block_cg, flavours_of_one_group_are_kept_apart) {
  const int flavour[] = {1, -1, 1, -1, 1};
  expect_same_as_cg("twisted-clover;mass=0.05;mu=0.2;csw=1.2", flavour);
}

/* ---- columns that depend on each other ------------------------------------------------------- */

/* Column 1 is column 0, 2 is zero, 3 is 2 times 0, 5 is 0 plus 4 plus a little of 6. */
static void put_dependent(const qk_rig_t *rig, qk_solver_t *solver, double little) {
  double *v[N];
  for (int i = 0; i < N; i++) {
    v[i] = rig_vector(rig);
    rig_random(rig, 300 + (uint64_t)i, v[i]);
  }
  for (size_t c = 0; c < rig_reals(rig); c++) {
    v[1][c] = v[0][c];
    v[2][c] = 0;
    v[3][c] = 2 * v[0][c];
    v[5][c] = v[0][c] + v[4][c] + little * v[6][c];
  }
  for (int i = 0; i < N; i++) {
    rig_import(rig, qk_solver_rhs(solver, i), 0, v[i]);
    qk_free(v[i]);
  }
}

Test(block_cg, columns_that_depend_on_others_are_solved_too) {
  const double little[] = {0, 1e-15, 1e-9, 1e-4};
  qk_rig_t rig;
  open_smooth(&rig);
  for (int p = 0; p < QK_PRECS; p++)
    for (int k = 0; k < 4; k++) {
      qk_solver_t *solver = rig_solver(&rig, "block-cg", (qk_prec_t)p, N);
      put_dependent(&rig, solver, little[k]);
      fill_group(solver, 0, N, 9, NULL);
      cr_expect_eq(qk_solver_slot(solver, 2)->state, QK_SLOT_ENDED, "a zero source ends at once");
      rig_run(solver);
      double *x0 = get_solution(&rig, solver, 0), *x1 = get_solution(&rig, solver, 1);
      for (int i = 0; i < N; i++) {
        const qk_slot_t *s = qk_solver_slot(solver, i);
        cr_expect(s->status == QK_OK && s->residual <= 1e-11 && s->iterations < 300,
                  "precision %d, %g, slot %d: %s, %g after %ld", p, little[k], i,
                  qk_status_name(s->status), s->residual, (long)s->iterations);
      }
      cr_expect(rig_distance(&rig, x1, x0) < 1e-9, "equal sources have equal solutions");
      qk_free(x1);
      qk_free(x0);
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

/* ---- the life of a group --------------------------------------------------------------------- */

Test(block_cg, columns_end_one_by_one_and_the_others_go_on) {
  double tol[N];
  qk_rig_t rig;
  open_smooth(&rig);
  for (int i = 0; i < N; i++) tol[i] = pow(10, -1 - i);
  for (int p = 0; p < QK_PRECS; p++) {
    qk_solver_t *solver = rig_solver(&rig, "block-cg", (qk_prec_t)p, N);
    for (int i = 0; i < N; i++) put_source(&rig, solver, i, 500 + (uint64_t)i, 1);
    fill_group(solver, 0, N, 500, tol);
    rig_run(solver);
    expect_group(&rig, solver, 0, N, 500, "other tolerances");
    cr_expect_lt(qk_solver_slot(solver, 0)->iterations, qk_solver_slot(solver, N - 1)->iterations);
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

Test(block_cg, a_group_goes_on_without_a_cancelled_column_whose_slot_serves_another) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int p = 0; p < QK_PRECS; p++) {
    qk_solver_t *solver = rig_solver(&rig, "block-cg", (qk_prec_t)p, N);
    put_group(&rig, solver, 0, N - 1, 600);
    for (int i = 0; i < 2; i++) rig_must(qk_solver_step(solver), "step", NULL);
    cr_assert_eq(qk_solver_running(solver), N - 1);
    qk_solver_cancel(solver, 4);
    cr_expect_eq(qk_solver_slot(solver, 4)->status, QK_CANCELLED);
    qk_solver_clear(solver, 4);
    put_source(&rig, solver, 4, 700, 1);
    put_source(&rig, solver, N - 1, 701, 1);
    cr_assert_eq(qk_solver_set_group(solver, 4, 700), QK_OK);
    fill_slot(solver, 4, 1e-11, 1000);
    fill_slot(solver, N - 1, 1e-11, 1000);
    rig_run(solver);
    for (int i = 0; i < N - 1; i++)
      expect_solved(&rig, solver, i, i == 4 ? 700 : 600 + (uint64_t)i, 1, "beside a cancelled one");
    expect_solved(&rig, solver, N - 1, 701, 1, "alone");
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

/* ---- groups and others ----------------------------------------------------------------------- */

/* Four columns from `first` on, beside whatever else; their solutions. */
static void run_beside(qk_rig_t *rig, qk_prec_t inner, int first, int other, bool nan,
                       double *x[4]) {
  qk_solver_t *solver = rig_solver(rig, "block-cg", inner, 20);
  for (int i = 0; i < 4; i++) put_source(rig, solver, first + i, 800 + (uint64_t)i, 1);
  if (other >= 0) {
    put_group(rig, solver, other, 5, 900);
    put_and_fill(rig, solver, 19, 950, 1e-9, 1000);
    for (int i = 0; i < 2; i++) rig_must(qk_solver_step(solver), "step", NULL);
  }
  if (nan) { /* behind its back: every true residual is NaN now */
    double *v = rig_vector(rig);
    for (size_t i = 0; i < rig_reals(rig); i++) v[i] = NAN;
    rig_import(rig, qk_solver_rhs(solver, other + 1), 0, v);
    qk_free(v);
  }
  fill_group(solver, first, 4, 900, NULL);
  rig_run(solver);
  for (int i = 0; i < 4; i++) {
    cr_expect_eq(qk_solver_slot(solver, first + i)->status, QK_OK);
    x[i] = get_solution(rig, solver, first + i);
  }
  if (other >= 0 && !nan) expect_group(rig, solver, other, 5, 900, "beside a group");
  qk_solver_destroy(solver);
}

Test(block_cg, a_group_has_the_same_bits_elsewhere_and_beside_others) {
  const struct {
    int first, other;
    bool nan;
  } at[] = {{0, -1, false}, {6, -1, false}, {6, 0, false}, {1, 11, false}, {5, 10, true}};
  qk_rig_t rig;
  open_smooth(&rig);
  for (int p = 0; p < QK_PRECS; p++) {
    double *x[5][4];
    for (int k = 0; k < 5; k++)
      run_beside(&rig, (qk_prec_t)p, at[k].first, at[k].other, at[k].nan, x[k]);
    for (int k = 4; k >= 0; k--)
      for (int i = 0; i < 4; i++) {
        cr_expect(!memcmp(x[0][i], x[k][i], rig_reals(&rig) * sizeof(double)),
                  "precision %d, case %d, column %d has other bits", p, k, i);
        qk_free(x[k][i]);
      }
  }
  rig_close(&rig);
}

Test(block_cg, a_group_is_given_to_free_slots_only) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "block-cg", QK_DOUBLE, 3);
  cr_expect_eq(qk_solver_set_group(solver, -1, 1), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_solver_set_group(solver, 3, 1), QK_BAD_ARGUMENT);
  put_and_fill(&rig, solver, 1, 1, 1e-8, 1000);
  cr_expect_eq(qk_solver_set_group(solver, 1, 1), QK_BAD_ARGUMENT);
  qk_solver_destroy(solver);
  rig_close(&rig);
}
