/* When a slot ends: absolute and heavy-quark residuals, beside slots that do not ask for them. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/unit/engine/krylov/solver_kit.h"

enum { REALS = 24 };

static double site_square(const double *v, int64_t site) {
  double sum = 0;
  for (int c = 0; c < REALS; c++) sum += v[site * REALS + c] * v[site * REALS + c];
  return sum;
}

/* As somebody outside would compute it for the solution factor x. Sites of the outer slices count
 * unless the boundary is open. */
static double heavy_quark(qk_rig_t *rig, const double *x, const double *b, double factor) {
  double *r = rig_vector(rig), sum = 0;
  const int64_t slice = rig->geom.volume / rig->geom.global[3];
  const int64_t first = rig->op->open ? slice : 0;
  const int64_t end = rig->geom.volume - first;
  rig_apply(rig, x, false, r);
  for (size_t i = 0; i < rig_reals(rig); i++) r[i] = b[i] - r[i];
  for (int64_t n = first; n < end; n++) {
    const double x2 = site_square(x, n) * factor * factor;
    sum += x2 == 0 ? 1 : site_square(r, n) / x2;
  }
  qk_free(r);
  return sqrt(sum / (double)(end - first));
}

static double *source(const qk_rig_t *rig, uint64_t seed, double factor) {
  double *b = rig_vector(rig);
  rig_random(rig, seed, b);
  for (size_t i = 0; i < rig_reals(rig); i++) b[i] *= factor;
  return b;
}

static void fill_until(qk_solver_t *solver, int slot, qk_stopping_t stopping) {
  const int64_t most = 100000;
  rig_must(qk_solver_fill_until(solver, &slot, 1, &stopping, &most), "fill", NULL);
}

static void expect_hq(qk_rig_t *rig, qk_solver_t *solver, int slot, const double *b,
                      const char *what) {
  const qk_slot_t *s = qk_solver_slot(solver, slot);
  double *x = get_solution(rig, solver, slot);
  const double factor = s->stopping.factor != 0 ? s->stopping.factor : 1;
  const double found = heavy_quark(rig, x, b, factor);
  cr_expect(s->status == QK_OK && s->hq_residual <= s->stopping.tol_hq,
            "%s: %s, heavy-quark residual %g of %g", what, qk_status_name(s->status),
            s->hq_residual, s->stopping.tol_hq);
  cr_expect(fabs(found - s->hq_residual) < 1e-3 * found + 1e-14, "%s: %g, said to be %g", what,
            found, s->hq_residual);
  qk_free(x);
}

/* ---- heavy-quark residual -------------------------------------------------------------------- */

static void check_method(qk_rig_t *rig, const char *method, qk_prec_t inner) {
  qk_solver_t *solver = rig_solver(rig, method, inner, 5);
  double *point = rig_vector(rig), *noise = source(rig, 41, 1), *own = source(rig, 42, 1);
  char what[64];
  rig_point(rig, 1, 2, point);
  double *const b[] = {point, noise, point, own, own};
  const qk_stopping_t asked[] = {{.tol_hq = 1e-7},
                                 {.tol_hq = 1e-6, .factor = 0.2},
                                 {.tol = 1e-2, .tol_hq = 1e-9, .factor = -4},
                                 {.tol = 1e-10},
                                 {.tol = 1e-5, .tol_abs = 1e-4, .tol_hq = 1e-3}};
  for (int i = 0; i < 5; i++) rig_import(rig, qk_solver_rhs(solver, i), 0, b[i]);
  for (int i = 0; i < 5; i++) fill_until(solver, i, asked[i]);
  rig_run(solver);
  for (int i = 0; i < 5; i++) {
    snprintf(what, sizeof what, "%s, precision %d, slot %d", method, (int)inner, i);
    const qk_slot_t *s = qk_solver_slot(solver, i);
    if (asked[i].tol_hq > 0)
      expect_hq(rig, solver, i, b[i], what);
    else
      cr_expect(s->status == QK_OK && isnan(s->hq_residual), "%s", what);
    cr_expect(asked[i].tol == 0 || s->residual <= asked[i].tol, "%s: %g", what, s->residual);
    cr_expect(asked[i].tol_abs == 0 || s->residual * s->norm_b <= asked[i].tol_abs, "%s", what);
  }
  qk_solver_destroy(solver);
  qk_free(own);
  qk_free(noise);
  qk_free(point);
}

Test(stopping, heavy_quark_residual_is_that_of_the_formula_by_every_method) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < QK_PRECS; p++) check_method(&rig, solver_methods[k], (qk_prec_t)p);
  rig_close(&rig);
}

Test(stopping, outer_slices_of_an_open_boundary_do_not_count) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:4x4x4x8:3", NULL);
  rig_action(&rig, "wilson-clover;mass=0.1;csw=1.2;open=1", 1);
  const int64_t slice = rig.geom.volume / 8 * REALS;
  double *b = source(&rig, 7, 1);
  memset(b, 0, (size_t)slice * sizeof *b);
  memset(b + 7 * slice, 0, (size_t)slice * sizeof *b);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 1);
  rig_import(&rig, qk_solver_rhs(solver, 0), 0, b);
  fill_until(solver, 0, (qk_stopping_t){.tol_hq = 1e-8});
  rig_run(solver);
  expect_hq(&rig, solver, 0, b, "open");
  qk_solver_destroy(solver);
  qk_free(b);
  rig_close(&rig);
}

static void with_stopping(qk_rig_t *rig, qk_solver_t *solver, int slot) {
  if (slot < 0) return;
  put_source(rig, solver, slot, 99, 1);
  fill_until(solver, slot, (qk_stopping_t){.tol_abs = 1e-3, .tol_hq = 1e-30});
}

Test(stopping, who_asks_for_more_changes_no_bit_of_the_others) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++) {
    double *x[2][2];
    for (int beside = 0; beside < 2; beside++) {
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], QK_SINGLE, 3);
      for (int i = 0; i < 2; i++) put_and_fill(&rig, solver, 2 * i, 40 + (uint64_t)i, 1e-10, 1000);
      with_stopping(&rig, solver, beside ? 1 : -1);
      rig_run(solver);
      for (int i = 0; i < 2; i++) x[beside][i] = get_solution(&rig, solver, 2 * i);
      qk_solver_destroy(solver);
    }
    for (int i = 0; i < 2; i++) {
      cr_expect(!memcmp(x[0][i], x[1][i], rig_reals(&rig) * sizeof(double)), "%s, slot %d",
                solver_methods[k], i);
      qk_free(x[0][i]);
      qk_free(x[1][i]);
    }
  }
  rig_close(&rig);
}

/* Iterations of a solve to 1e-10. */
static int64_t usual_iterations(qk_rig_t *rig, const char *method, qk_prec_t inner) {
  qk_solver_t *solver = rig_solver(rig, method, inner, 1);
  put_and_fill(rig, solver, 0, 8, 1e-10, 10000);
  rig_run(solver);
  const int64_t n = qk_solver_slot(solver, 0)->iterations;
  qk_solver_destroy(solver);
  return n;
}

Test(stopping, below_rounding_it_ends_soon_as_not_converged_with_both_numbers) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < QK_PRECS; p++) {
      const int64_t usual = usual_iterations(&rig, solver_methods[k], (qk_prec_t)p);
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 2);
      for (int i = 0; i < 2; i++) put_source(&rig, solver, i, 8, 1);
      fill_until(solver, 0, (qk_stopping_t){.tol = 1e-6, .tol_hq = 1e-25});
      fill_until(solver, 1, (qk_stopping_t){.tol_abs = 1e-25});
      rig_run(solver);
      for (int i = 0; i < 2; i++) {
        const qk_slot_t *s = qk_solver_slot(solver, i);
        /* One recursion may be without a new low, looked at after 400 iterations: in double where r
         * becomes a few times larger, and directions are kept. */
        cr_expect(s->status == QK_NOT_CONVERGED && s->iterations < 6 * usual + 500,
                  "%s, precision %d, slot %d: %s after %ld, usually %ld", solver_methods[k], p, i,
                  qk_status_name(s->status), (long)s->iterations, (long)usual);
        cr_expect(s->residual > 0 && s->residual < 1e-14 && (i || s->hq_residual < 1e-13),
                  "%s, precision %d, slot %d: %g, %g", solver_methods[k], p, i, s->residual,
                  s->hq_residual);
      }
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

/* ---- the absolute residual ------------------------------------------------------------------- */

Test(stopping, tolerance_of_the_absolute_residual_is_in_units_of_the_source) {
  static const struct {
    double size, tol;
  } rhs[] = {{1e-8, 1e-14}, {1e-8, 1}, {1, 1e-6}, {1e8, 1e2}, {1e8, 1e-3}};
  enum { N = sizeof rhs / sizeof *rhs };
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++) {
    qk_solver_t *solver = rig_solver(&rig, solver_methods[k], QK_SINGLE, N);
    for (int i = 0; i < N; i++) put_source(&rig, solver, i, 8, rhs[i].size);
    for (int i = 0; i < N; i++) fill_until(solver, i, (qk_stopping_t){.tol_abs = rhs[i].tol});
    rig_run(solver);
    for (int i = 0; i < N; i++) {
      const qk_slot_t *s = qk_solver_slot(solver, i);
      double *x = get_solution(&rig, solver, i);
      const double d = residual_of(&rig, x, 8, rhs[i].size) * s->norm_b;
      cr_expect(s->status == QK_OK && d <= rhs[i].tol && (i == 1 || d > 1e-4 * rhs[i].tol),
                "%s, |b| = %g: |b - M x| = %g of %g", solver_methods[k], s->norm_b, d, rhs[i].tol);
      qk_free(x);
    }
    cr_expect_lt(qk_solver_slot(solver, 3)->iterations, qk_solver_slot(solver, 4)->iterations);
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

Test(stopping, zero_and_tiny_sources_end_well_and_what_asks_for_nothing_is_refused) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 1);
  const int slot = 0;
  const int64_t most = 10;
  const qk_stopping_t bad[] = {{0},
                               {.tol_hq = NAN},
                               {.tol_abs = -1, .tol = 1e-5},
                               {.tol_abs = INFINITY},
                               {.tol = 1e-5, .factor = NAN}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_expect_eq(qk_solver_fill_until(solver, &slot, 1, &bad[i], &most), QK_BAD_ARGUMENT, "%zu", i);
  put_source(&rig, solver, 0, 8, 0);
  fill_until(solver, 0, (qk_stopping_t){.tol_abs = 1e-3, .tol_hq = 1e-3});
  const qk_slot_t *s = qk_solver_slot(solver, 0);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_OK && s->hq_residual == 0);
  qk_solver_clear(solver, 0);
  put_source(&rig, solver, 0, 8, 1e-309); /* over which 1 is no number */
  fill_until(solver, 0, (qk_stopping_t){.tol_abs = 1});
  rig_run(solver);
  cr_expect_eq(s->status, QK_OK, "%s", s->why.text);
  qk_solver_destroy(solver);
  rig_close(&rig);
}
