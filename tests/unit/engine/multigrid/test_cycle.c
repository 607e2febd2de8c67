#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/multigrid/cycle_impl.h"
#include "daemon/engine/multigrid/mg_vectors.h"
#include "proto/action/operator_text.h"
#include "tests/support/mg_rig.h"

/* ---- lattices and sources -------------------------------------------------------------------- */

static const double kappa = 0.1366, csw = 1.769,
                    tol = 1e-10; /* near critical on the thermalised lattice */

static void open_thermal(qk_rig_t *rig) {
  const char *path = getenv("QK_THERMAL");
  if (!path) cr_skip_test("QK_THERMAL names no lattice");
  rig_open(rig, NULL, path, NULL);
  rig_operator(rig, qk_mass_of_kappa(kappa), csw, -1);
}

static void open_small(qk_rig_t *rig) {
  rig_open(rig, NULL, "builtin:weak:4x4x8x8:3", NULL);
  rig_operator(rig, -0.1, 1.2, -1);
}

static void fill_slot(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed) {
  double *v = rig_vector(rig);
  rig_random(rig, seed, v);
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
  rig_must(qk_solver_fill(solver, slot, tol, 10000), "fill", NULL);
}

/* Solves for seeds 100, 101, ... in all slots. */
static void solve(const qk_rig_t *rig, qk_solver_t *solver, int n) {
  for (int i = 0; i < n; i++) fill_slot(rig, solver, i, 100 + (uint64_t)i);
  rig_run(solver);
  for (int i = 0; i < n; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_assert(s->status == QK_OK && s->residual <= tol, "slot %d of %d: %s, %g", i, n,
              qk_status_name(s->status), s->residual);
  }
}

static double *solution(const qk_rig_t *rig, qk_solver_t *solver, int slot) {
  double *v = rig_vector(rig);
  rig_export(rig, qk_solver_solution(solver, slot), 0, v);
  return v;
}

/* ---- convergence ----------------------------------------------------------------------------- */

/* The solution of column 0, in slot 0, is found by BiCGStab with four times the work. */
static void expect_better_than_bicgstab(qk_rig_t *rig, mg_rig_t *m) {
  qk_solver_t *plain = rig_solver(rig, "bicgstab", QK_SINGLE, 1);
  solve(rig, plain, 1);
  const qk_slot_t *a = qk_solver_slot(m->solver, 0), *b = qk_solver_slot(plain, 0);
  cr_expect(a->iterations <= 25, "%ld iterations", (long)a->iterations);
  cr_expect(4 * a->applications <= b->applications, "%ld applications, bicgstab %ld",
            (long)a->applications, (long)b->applications);
  double *x = solution(rig, m->solver, 0), *y = solution(rig, plain, 0);
  cr_expect(rig_distance(rig, x, y) < 1e-7, "off by %g", rig_distance(rig, x, y));
  qk_free(y);
  qk_free(x);
  qk_solver_destroy(plain);
}

Test(cycle, near_criticality_columns_go_as_alone_and_better_than_by_bicgstab) {
  enum { N = 9 };
  qk_rig_t rig;
  mg_rig_t m;
  open_thermal(&rig);
  const qk_mg_params_t params = {.nlevel = 2};
  double *x[N];
  int64_t iterations[N];
  mg_rig_open(&rig, &params, QK_SINGLE, N, &m);
  solve(&rig, m.solver, N);
  for (int i = 0; i < N; i++) {
    x[i] = solution(&rig, m.solver, i);
    iterations[i] = qk_solver_slot(m.solver, i)->iterations;
  }
  mg_rig_slots(&rig, &m, QK_SINGLE, 1, 0);
  for (int i = 0; i < N; i += 4) { /* in two tiles */
    fill_slot(&rig, m.solver, 0, 100 + (uint64_t)i);
    rig_run(m.solver);
    const qk_slot_t *s = qk_solver_slot(m.solver, 0);
    double *y = solution(&rig, m.solver, 0);
    cr_expect(llabs(s->iterations - iterations[i]) <= 1, "column %d: %ld iterations, alone %ld", i,
              (long)iterations[i], (long)s->iterations);
    cr_expect(rig_distance(&rig, x[i], y) < 1e-7, "column %d: off by %g", i,
              rig_distance(&rig, x[i], y));
    qk_free(y);
    if (i == 0) expect_better_than_bicgstab(&rig, &m);
    qk_solver_clear(m.solver, 0);
  }
  for (int i = 0; i < N; i++) qk_free(x[i]);
  mg_rig_close(&m);
  rig_close(&rig);
}

/* What of a cycle differs from the defaults of three levels of the small lattice. */
typedef struct cycle_case {
  const char *what;
  qk_smoother_kind_t kind;
  int pre, post, iterations[2];
  double tol;
  qk_prec_t low; /* smoother, matrices, prolongator */
  qk_prec_t outer;
} cycle_case_t;

static void expect_solves(const cycle_case_t *t, int nlevel) {
  qk_rig_t rig;
  mg_rig_t m;
  open_small(&rig);
  qk_mg_params_t p = mg_rig_small_params(nlevel);
  for (int l = 0; l < nlevel; l++) {
    qk_mg_level_params_t *v = &p.level[l];
    v->smoother.kind = t->kind;
    v->pre = t->pre;
    v->post = t->post;
    v->tol = t->tol;
    v->store = v->prolongator = t->low;
    v->smoother_prec = l == 0 ? t->low : QK_SINGLE;
    if (l > 0) v->iterations = t->iterations[l == nlevel - 1];
  }
  mg_rig_open(&rig, &p, t->outer, 3, &m);
  solve(&rig, m.solver, 3);
  for (int i = 0; i < 3; i++)
    cr_expect(qk_solver_slot(m.solver, i)->iterations <= 60, "%s, %d levels: %ld iterations",
              t->what, nlevel, (long)qk_solver_slot(m.solver, i)->iterations);
  mg_rig_close(&m);
  rig_close(&rig);
}

Test(cycle, every_kind_converges) {
  const cycle_case_t cases[] = {
      {"K", QK_SMOOTHER_MR, 2, 2, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"V", QK_SMOOTHER_MR, 2, 2, {1, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"post alone", QK_SMOOTHER_MR, -1, 4, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"pre alone", QK_SMOOTHER_MR, 4, -1, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"tolerances", QK_SMOOTHER_MR, 2, 2, {20, 30}, 0.1, QK_SINGLE, QK_SINGLE},
      {"ca-gcr", QK_SMOOTHER_CAGCR, 2, 2, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"chebyshev", QK_SMOOTHER_CHEBYSHEV, 2, 2, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"schwarz", QK_SMOOTHER_SCHWARZ, 3, 3, {4, 8}, -1, QK_SINGLE, QK_SINGLE},
      {"low precision", QK_SMOOTHER_MR, 2, 2, {4, 8}, -1, QK_HALF, QK_SINGLE},
      {"outer double", QK_SMOOTHER_MR, 2, 2, {4, 8}, -1, QK_SINGLE, QK_DOUBLE},
      {"outer half", QK_SMOOTHER_MR, 2, 2, {4, 8}, -1, QK_HALF, QK_HALF},
  };
  expect_solves(&cases[0], 2);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_solves(&cases[i], 3);
}

Test(cycle, several_serve_one_hierarchy) {
  const int batch[] = {8, 1, 12, 3};
  qk_rig_t rig;
  mg_rig_t m;
  open_small(&rig);
  const qk_mg_params_t params = mg_rig_small_params(2);
  mg_rig_open(&rig, &params, QK_SINGLE, 2, &m);
  qk_cycle_t *other[4];
  for (int i = 0; i < 4; i++)
    rig_must(qk_cycle_create(m.mg, QK_SINGLE, batch[i], &other[i], NULL), "cycle", NULL);
  for (int i = 0; i < 4; i++) {
    const qk_solver_params_t p = {.method = "gcr",
                                  .inner = QK_SINGLE,
                                  .nslot = batch[i],
                                  .precond = qk_cycle_precond(other[i])};
    qk_solver_t *solver;
    rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, NULL), "solver", NULL);
    solve(&rig, solver, batch[i]);
    solve(&rig, m.solver, 2);
    for (int k = 0; k < 2; k++) qk_solver_clear(m.solver, k);
    qk_solver_destroy(solver);
  }
  for (int i = 0; i < 4; i++) qk_cycle_destroy(other[i]);
  mg_rig_close(&m);
  rig_close(&rig);
}

/* ---- one application ------------------------------------------------------------------------- */

/* Even columns 0 .. n-1 from full vectors of the seeds; 0: NaN. */
static qk_field_t *even_field(const qk_rig_t *rig, int n, const uint64_t *seed) {
  qk_field_t *full, *even;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, n, QK_FULL, &full), "field", NULL);
  rig_must(qk_field_create(&rig->dev, QK_SINGLE, n, QK_EVEN, &even), "field", NULL);
  for (int i = 0; i < n; i++) {
    rig_random(rig, seed[i], v);
    for (size_t k = 0; seed[i] == 0 && k < rig_reals(rig); k++) v[k] = NAN;
    rig_import(rig, full, i, v);
  }
  qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {even->v, qk_field_parity(full, QK_EVEN)}};
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &copy), "copy", NULL);
  rig_must(rig->dev.ops->queue_sync(rig->dev.ctx, 0), "copy", NULL);
  qk_field_destroy(full);
  qk_free(v);
  return even;
}

static double *even_column(const qk_rig_t *rig, const qk_field_t *even, int i) {
  qk_field_t *full;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, even->v.nrhs, QK_FULL, &full), "field", NULL);
  qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {qk_field_parity(full, QK_EVEN), even->v}};
  rig_must(rig->dev.ops->blas(rig->dev.ctx, &copy), "copy", NULL);
  rig_export(rig, full, i, v);
  qk_field_destroy(full);
  return v;
}

static void expect_independence(double level_tol, qk_smoother_kind_t kind) {
  enum { N = 10 };
  const uint64_t good[N] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const uint64_t bad[N] = {21, 2, 0, 4, 25, 6, 0, 8, 0, 10};
  qk_rig_t rig;
  mg_rig_t m;
  open_small(&rig);
  qk_mg_params_t p = mg_rig_small_params(3);
  for (int l = 0; l < 3; l++) {
    p.level[l].smoother.kind = kind;
    p.level[l].tol = level_tol;
  }
  mg_rig_open(&rig, &p, QK_SINGLE, N, &m);
  qk_field_t *z[2];
  for (int k = 0; k < 2; k++) {
    qk_field_t *r = even_field(&rig, N, k ? bad : good);
    z[k] = even_field(&rig, N, good);
    rig_must(qk_cycle_apply(m.cycle, z[k], r, NULL, NULL), "apply", NULL);
    qk_field_destroy(r);
  }
  for (int i = 0; i < N; i++) {
    if (good[i] != bad[i]) continue;
    double *a = even_column(&rig, z[0], i), *b = even_column(&rig, z[1], i);
    cr_expect(memcmp(a, b, rig_reals(&rig) * sizeof *a) == 0, "%s, tol %g: column %d",
              qk_smoother_name(kind), level_tol, i);
    cr_expect(isfinite(a[0]));
    qk_free(b);
    qk_free(a);
  }
  for (int k = 0; k < 2; k++) qk_field_destroy(z[k]);
  mg_rig_close(&m);
  rig_close(&rig);
}

/* |a - b| / |b| of a column. */
static double off_column(const qk_rig_t *rig, const qk_field_t *a, const qk_field_t *b, int i) {
  double *x = even_column(rig, a, i), *y = even_column(rig, b, i), off = 0, size = 0;
  for (size_t k = 0; k < rig_reals(rig); k++) {
    off += pow(x[k] - y[k], 2);
    size += y[k] * y[k];
  }
  qk_free(y);
  qk_free(x);
  return sqrt(off / size);
}

static void in_single(qk_rig_t *rig, qk_smoother_kind_t kind, bool rounded) {
  enum { N = 3 };
  const uint64_t seed[N] = {1, 2, 3};
  mg_rig_t m;
  qk_mg_params_t p = mg_rig_small_params(2);
  p.level[0].smoother.kind = kind;
  p.level[0].smoother_prec = p.level[0].prolongator = p.level[1].store = QK_HALF;
  p.level[0].post = 5;
  mg_rig_open(rig, &p, QK_SINGLE, N, &m);
  qk_field_t *r = even_field(rig, N, seed), *z = even_field(rig, N, seed), *half, *in_half;
  rig_must(qk_field_create(&rig->dev, QK_HALF, N, QK_EVEN, &half), "field", NULL);
  rig_must(qk_field_create(&rig->dev, QK_HALF, N, QK_EVEN, &in_half), "field", NULL);
  rig_must(qk_cycle_apply(m.cycle, z, r, NULL, NULL), "apply", NULL);
  rig_must(qk_cycle_apply(m.cycle, half, r, NULL, NULL), "apply", NULL);
  qk_dev_blas(&rig->dev, QK_BLAS_COPY, (qk_blas_args_t){.f = {in_half->v, z->v}});
  for (int i = 0; i < N; i++) {
    const double off = off_column(rig, half, z, i), fraction = off_column(rig, in_half, z, i);
    cr_expect(off < 1e-3, "%s, column %d: off by %g", qk_smoother_name(kind), i, off);
    cr_expect(rounded ? fraction == 0 : fraction > 1e-5, "%s, column %d: %g below half",
              qk_smoother_name(kind), i, fraction);
  }
  qk_field_destroy(in_half);
  qk_field_destroy(half);
  qk_field_destroy(z);
  qk_field_destroy(r);
  mg_rig_close(&m);
}

/* A polynomial ends in single; what others have made is copied. */
Test(cycle, in_half_leaves_its_result_in_single) {
  qk_rig_t rig;
  open_small(&rig);
  in_single(&rig, QK_SMOOTHER_POLYNOMIAL, false);
  in_single(&rig, QK_SMOOTHER_CAGCR, true);
  rig_close(&rig);
}

Test(cycle, nan_in_a_column_changes_no_bit_of_others) {
  expect_independence(-1, QK_SMOOTHER_MR);
  expect_independence(-1, QK_SMOOTHER_CAGCR);
  expect_independence(0.2, QK_SMOOTHER_MR);
}

/* |b - M e| / |b| of column 0 on level 1 after S_1. */
static double left_by_solve(qk_rig_t *rig, int iterations, double level_tol) {
  mg_rig_t m;
  qk_mg_params_t p = mg_rig_small_params(3);
  p.level[1].iterations = iterations;
  p.level[1].tol = level_tol;
  mg_rig_open(rig, &p, QK_SINGLE, 1, &m);
  qk_mg_level_t *v = &m.mg->level[1];
  qk_field_t *b, *e, *r;
  qk_field_t **field[] = {&b, &e, &r};
  for (int i = 0; i < 3; i++)
    rig_must(qk_field_create(&v->dev, QK_SINGLE, 1, QK_FULL, field[i]), "field", NULL);
  const qk_ops_t *ops = v->dev.ops;
  qk_noise_args_t noise = {.lat = v->geom.lat, .field = b->v, .rhs = -1, .seed = 5};
  rig_must(ops->noise(v->dev.ctx, &noise), "noise", NULL);
  qk_cycle_solve_level(m.cycle, 1, e, b);
  rig_must(qk_dev_status(&v->dev), "solve", NULL);
  rig_must(v->op->ops->apply(v->op, r, e, false, b, -1), "residual", NULL);
  void *red = NULL;
  double host[4];
  rig_must(ops->alloc(v->dev.ctx, sizeof host, &red), "red", NULL);
  qk_blas_args_t nr = {.op = QK_BLAS_NORM2, .f = {r->v}, .red = red},
                 nb = {.op = QK_BLAS_NORM2, .f = {b->v}, .red = (double *)red + 2};
  rig_must(ops->blas(v->dev.ctx, &nr), "norm", NULL);
  rig_must(ops->blas(v->dev.ctx, &nb), "norm", NULL);
  rig_must(ops->copy(v->dev.ctx, host, red, sizeof host, QK_COPY_TO_HOST, 0), "norm", NULL);
  rig_must(ops->queue_sync(v->dev.ctx, 0), "norm", NULL);
  ops->free(v->dev.ctx, red);
  for (int i = 2; i >= 0; i--) qk_field_destroy(*field[i]);
  mg_rig_close(&m);
  return sqrt(host[0] / host[2]);
}

Test(cycle, coarse_levels_are_solved_as_far_as_asked) {
  qk_rig_t rig;
  open_small(&rig);
  double one = left_by_solve(&rig, 1, -1), eight = left_by_solve(&rig, 8, -1),
         to_tol = left_by_solve(&rig, 30, 1e-3);
  cr_expect(one < 0.8 && eight < 0.1 * one, "one iteration leaves %g, eight leave %g", one, eight);
  cr_expect(to_tol < 5e-3 && to_tol > 1e-5, "tolerance 1e-3 leaves %g", to_tol);
  rig_close(&rig);
}

Test(cycle, says_what_it_takes) {
  qk_rig_t rig;
  mg_rig_t m;
  open_small(&rig);
  qk_mg_params_t p = mg_rig_small_params(3);
  p.level[0].pre = 3;
  p.level[0].post = 5;
  mg_rig_open(&rig, &p, QK_SINGLE, 2, &m);
  double seconds[QK_MG_LEVELS_MAX];
  cr_expect(qk_cycle_precond(m.cycle).applications == 3 + 1 + 4); /* a polynomial of 5 terms */
  cr_expect(qk_cycle_bytes(m.cycle) > 0);
  qk_cycle_time(m.cycle, true, NULL);
  solve(&rig, m.solver, 2);
  qk_cycle_time(m.cycle, false, seconds);
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++)
    cr_expect((seconds[l] > 0) == (l < 3), "level %d: %g s", l, seconds[l]);
  qk_cycle_time(m.cycle, false, seconds);
  cr_expect(seconds[0] == 0 && seconds[1] == 0);
  const qk_slot_t *s = qk_solver_slot(m.solver, 0);
  cr_expect(s->applications >= 9 * s->iterations && s->applications <= 11 * s->iterations + 10);
  mg_rig_close(&m);
  rig_close(&rig);
}

/* ---- what a level tells ---------------------------------------------------------------------- */

/* |w - Mhat z| / |r| on level 1, for w that the preconditioner gives with z. */
static double off_image(qk_rig_t *rig, mg_rig_t *m) {
  qk_cycle_t *c = m->cycle;
  qk_cycle_level_t *v = &c->level[1];
  qk_field_t *f[4];
  double size[QK_MAX_RHS], off[QK_MAX_RHS], most = 0;
  for (int i = 0; i < 4; i++) f[i] = qk_cycle_take(c, 1);
  qk_field_t *full = qk_cycle_take_full(c, 1);
  const qk_noise_args_t noise = {.lat = v->mg->geom.lat, .field = full->v, .rhs = -1, .seed = 77};
  rig_must(rig->dev.ops->noise(rig->dev.ctx, &noise), "noise", NULL);
  qk_cycle_blas(v, QK_BLAS_COPY, (qk_blas_args_t){.f = {f[0]->v, qk_field_parity(full, QK_EVEN)}});
  qk_cycle_precondition(c, 1, f[1], f[0], f[2]);
  qk_cycle_mhat(v, f[3], f[1], f[2]);
  qk_mg_norm2(f[0], size);
  qk_mg_norm2(f[3], off);
  rig_must(qk_dev_status(&v->mg->dev), "image", NULL);
  for (int i = 0; i < c->nrhs; i++) most = fmax(most, sqrt(off[i] / size[i]));
  qk_cycle_give(c, 1, full);
  for (int i = 3; i >= 0; i--) qk_cycle_give(c, 1, f[i]);
  return most;
}

Test(cycle, a_coarse_level_knows_the_image_of_its_correction) {
  static const struct {
    qk_smoother_kind_t kind;
    int pre, post;
  } cases[] = {{QK_SMOOTHER_CAGCR, -1, 2},     {QK_SMOOTHER_CAGCR, 2, 5},
               {QK_SMOOTHER_MR, -1, 3},        {QK_SMOOTHER_SCHWARZ, 1, 3},
               {QK_SMOOTHER_CHEBYSHEV, -1, 3}, {QK_SMOOTHER_CAGCR, 3, -1}};
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
    qk_rig_t rig;
    mg_rig_t m;
    open_small(&rig);
    qk_mg_params_t p = mg_rig_small_params(3);
    p.level[1].smoother.kind = cases[k].kind;
    p.level[1].pre = cases[k].pre;
    p.level[1].post = cases[k].post;
    mg_rig_open(&rig, &p, QK_SINGLE, 3, &m);
    const double off = off_image(&rig, &m);
    cr_expect(off < 2e-5, "%s, %d and %d steps: off by %g", qk_smoother_name(cases[k].kind),
              cases[k].pre, cases[k].post, off);
    mg_rig_close(&m);
    rig_close(&rig);
  }
}

/* The polynomial takes no more iterations than ca-gcr of as many steps, and one application less in
 * each. */
Test(cycle, a_polynomial_smooths_as_ca_gcr_does) {
  int64_t iterations[2];
  for (int k = 0; k < 2; k++) {
    qk_rig_t rig;
    mg_rig_t m;
    open_thermal(&rig);
    qk_mg_params_t p = {.nlevel = 2};
    p.level[0].smoother.kind = k ? QK_SMOOTHER_POLYNOMIAL : QK_SMOOTHER_CAGCR;
    mg_rig_open(&rig, &p, QK_SINGLE, 1, &m);
    cr_expect_eq(m.mg->level[0].polynomial.n, k ? 8 : 0);
    cr_expect_eq(qk_cycle_precond(m.cycle).applications, 1 + (k ? 7 : 8));
    solve(&rig, m.solver, 1);
    iterations[k] = qk_solver_slot(m.solver, 0)->iterations;
    mg_rig_close(&m);
    rig_close(&rig);
  }
  cr_expect(iterations[1] <= iterations[0] + 1, "%ld iterations, ca-gcr %ld", (long)iterations[1],
            (long)iterations[0]);
}

/* ---- what fails ------------------------------------------------------------------------------ */

Test(cycle, refuses_what_makes_no_sense) {
  qk_rig_t rig;
  mg_rig_t m;
  open_small(&rig);
  const qk_mg_params_t params = mg_rig_small_params(2);
  mg_rig_open(&rig, &params, QK_SINGLE, 2, &m);
  const int batch[] = {0, QK_MAX_RHS + 1};
  for (int i = 0; i < 2; i++) {
    qk_cycle_t *c = NULL;
    qk_err_t err = {0};
    cr_expect(qk_cycle_create(m.mg, QK_SINGLE, batch[i], &c, &err) == QK_BAD_ARGUMENT && !c);
    cr_expect(strstr(err.text, "right-hand sides: 1 .. 64"), "%s", err.text);
  }
  mg_rig_close(&m);
  rig_close(&rig);
}
