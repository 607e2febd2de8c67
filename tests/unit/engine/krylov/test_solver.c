#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/dense.h"
#include "tests/support/rig.h"

static const char *const methods[] = {"bicgstab", "cg", "gcr"};
static const char *smooth = "builtin:weak:4x4x4x4:3";

static void open_smooth(qk_rig_t *rig) {
  rig_open(rig, NULL, smooth, NULL);
  rig_operator(rig, 0.1, 1.2, -1);
}

static void source(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed,
                   double factor) {
  double *v = rig_vector(rig);
  rig_random(rig, seed, v);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] *= factor;
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
}

static double *solution(const qk_rig_t *rig, qk_solver_t *solver, int slot) {
  double *v = rig_vector(rig);
  rig_export(rig, qk_solver_solution(solver, slot), 0, v);
  return v;
}

static void fill(qk_solver_t *solver, int slot, double tol, int64_t max_iter) {
  cr_assert(qk_solver_fill(solver, slot, tol, max_iter) == QK_OK);
}

/* The residual as somebody outside would compute it. */
static double residual_of(qk_rig_t *rig, const double *x, uint64_t seed, double factor) {
  double *b = rig_vector(rig), *mx = rig_vector(rig);
  rig_random(rig, seed, b);
  for (size_t i = 0; i < rig_reals(rig); i++) b[i] *= factor;
  rig_apply(rig, x, false, mx);
  double d = rig_distance(rig, mx, b);
  qk_free(mx);
  qk_free(b);
  return d;
}

static void expect_solved(qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed,
                          double factor, const char *what) {
  const qk_slot_t *s = qk_solver_slot(solver, slot);
  double *x = solution(rig, solver, slot);
  double d = residual_of(rig, x, seed, factor);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_OK, "%s: slot %d: %s", what, slot,
            qk_status_name(s->status));
  cr_expect(s->residual <= s->tol && fabs(d - s->residual) < 1e-3 * d + 1e-15,
            "%s: slot %d: residual %g, said to be %g, wanted %g", what, slot, d, s->residual,
            s->tol);
  cr_expect(s->iterations > 0 && s->applications > s->iterations && s->nhistory > 0);
  cr_expect(s->seconds >= 0);
  qk_free(x);
}

/* ---- solutions ------------------------------------------------------------------------------- */

static void every_precision_and_batch(const char *method) {
  const int batch[] = {1, 5, 8, 12};
  qk_rig_t rig;
  open_smooth(&rig);
  for (int p = 0; p < 3; p++)
    for (int k = 0; k < 4; k++) {
      qk_solver_t *solver = rig_solver(&rig, method, (qk_prec_t)p, batch[k]);
      for (int i = 0; i < batch[k]; i++) source(&rig, solver, i, 100 + i, 1);
      for (int i = 0; i < batch[k]; i++) fill(solver, i, 1e-11, 1000);
      rig_run(solver);
      for (int i = 0; i < batch[k]; i++) expect_solved(&rig, solver, i, 100 + i, 1, method);
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

Test(solver, bicgstab_solves_in_every_precision_and_batch) {
  every_precision_and_batch("bicgstab");
}
Test(solver, cg_solves_in_every_precision_and_batch) {
  every_precision_and_batch("cg");
}
Test(solver, gcr_solves_in_every_precision_and_batch) {
  every_precision_and_batch("gcr");
}

Test(solver, agrees_with_elimination_on_2x2x2x2) {
  const int dims[4] = {2, 2, 2, 2};
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:2x2x2x2:5", NULL);
  rig_operator(&rig, 0.4, 0, -1);
  double *exact = rig_vector(&rig);
  double complex *m = dense_wilson(dims, rig.links, 0.4, -1);
  rig_random(&rig, 100, exact);
  dense_solve(192, m, (double complex *)exact);
  free(m);
  for (int k = 0; k < 3; k++)
    for (int p = 0; p < 3; p++) {
      qk_solver_t *solver = rig_solver(&rig, methods[k], (qk_prec_t)p, 3);
      source(&rig, solver, 1, 100, 1);
      fill(solver, 1, 1e-12, 1000);
      rig_run(solver);
      double *x = solution(&rig, solver, 1);
      double d = rig_distance(&rig, x, exact);
      cr_expect(d < 1e-11, "%s, precision %d: off by %g", methods[k], p, d);
      qk_free(x);
      qk_solver_destroy(solver);
    }
  qk_free(exact);
  rig_close(&rig);
}

Test(solver, takes_sources_of_any_size) {
  const double factor[] = {1e-130, 1e-30, 1, 1e30, 1e130};
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < 3; k++) {
    qk_solver_t *solver = rig_solver(&rig, methods[k], QK_HALF, 5);
    for (int i = 0; i < 5; i++) source(&rig, solver, i, 7, factor[i]);
    for (int i = 0; i < 5; i++) fill(solver, i, 1e-10, 1000);
    rig_run(solver);
    double *one = solution(&rig, solver, 2);
    for (int i = 0; i < 5; i++) {
      const qk_slot_t *s = qk_solver_slot(solver, i);
      double *x = solution(&rig, solver, i);
      cr_expect(s->status == QK_OK && s->residual <= 1e-10, "%g: %s, %g", factor[i],
                qk_status_name(s->status), s->residual);
      for (size_t c = 0; c < rig_reals(&rig); c++) x[c] /= factor[i];
      double d = rig_distance(&rig, x, one);
      cr_expect(d < 1e-8, "%g: off by %g", factor[i], d);
      qk_free(x);
    }
    qk_free(one);
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

/* ---- one slot does not touch the others ------------------------------------------------------ */

/* Fills slots 0..2 with good sources, `extra` into slot 3, and keeps the first three solutions. */
typedef void extra_fn(qk_rig_t *rig, qk_solver_t *solver);

static void run_with(qk_rig_t *rig, const char *method, qk_prec_t inner, extra_fn *extra,
                     double *x[3], int64_t iterations[3]) {
  qk_solver_t *solver = rig_solver(rig, method, inner, 5);
  for (int i = 0; i < 3; i++) source(rig, solver, i, 40 + i, 1);
  if (extra) extra(rig, solver);
  for (int i = 0; i < 3; i++) fill(solver, i, 1e-10, 1000);
  rig_run(solver);
  for (int i = 0; i < 3; i++) {
    x[i] = solution(rig, solver, i);
    iterations[i] = qk_solver_slot(solver, i)->iterations;
    cr_expect(qk_solver_slot(solver, i)->status == QK_OK);
  }
  qk_solver_destroy(solver);
}

static void expect_untouched(qk_rig_t *rig, extra_fn *extra) {
  for (int k = 0; k < 3; k++)
    for (int p = 0; p < 3; p++) {
      double *alone[3], *beside[3];
      int64_t n[3], m[3];
      run_with(rig, methods[k], (qk_prec_t)p, NULL, alone, n);
      run_with(rig, methods[k], (qk_prec_t)p, extra, beside, m);
      for (int i = 0; i < 3; i++) {
        cr_expect(n[i] == m[i] && !memcmp(alone[i], beside[i], rig_reals(rig) * sizeof(double)),
                  "%s, precision %d, slot %d has other bits", methods[k], p, i);
        qk_free(beside[i]);
        qk_free(alone[i]);
      }
    }
}

static void poison(qk_rig_t *rig, qk_solver_t *solver, double value) {
  double *v = rig_vector(rig);
  rig_random(rig, 3, v);
  v[17] = value;
  rig_import(rig, qk_solver_rhs(solver, 3), 0, v);
  qk_free(v);
  fill(solver, 3, 1e-10, 1000);
  const qk_slot_t *s = qk_solver_slot(solver, 3);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_NAN_INPUT && s->iterations == 0);
}

static void with_nan(qk_rig_t *rig, qk_solver_t *solver) {
  poison(rig, solver, NAN);
}
static void with_inf(qk_rig_t *rig, qk_solver_t *solver) {
  poison(rig, solver, -INFINITY);
}

static void with_other_tolerance(qk_rig_t *rig, qk_solver_t *solver) {
  source(rig, solver, 3, 99, 1);
  fill(solver, 3, 1e-4, 1000);
}

static void with_limit(qk_rig_t *rig, qk_solver_t *solver) {
  source(rig, solver, 3, 99, 1e40);
  fill(solver, 3, 1e-12, 4);
}

/* NaN that is not in the source but comes up in the recursion: the worst that a slot can do. */
static void with_nan_residual(qk_rig_t *rig, qk_solver_t *solver) {
  double *v = rig_vector(rig);
  source(rig, solver, 3, 99, 1);
  fill(solver, 3, 1e-10, 1000);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = NAN;
  rig_import(rig, qk_solver_rhs(solver, 3), 0,
             v); /* behind its back: every true residual is NaN now */
  qk_free(v);
}

Test(solver, nan_source_leaves_the_others_bit_identical) {
  qk_rig_t rig;
  open_smooth(&rig);
  expect_untouched(&rig, with_nan);
  expect_untouched(&rig, with_inf);
  rig_close(&rig);
}

Test(solver, other_tolerances_and_limits_leave_the_others_bit_identical) {
  qk_rig_t rig;
  open_smooth(&rig);
  expect_untouched(&rig, with_other_tolerance);
  expect_untouched(&rig, with_limit);
  rig_close(&rig);
}

Test(solver, nan_in_the_recursion_leaves_the_others_bit_identical) {
  qk_rig_t rig;
  open_smooth(&rig);
  expect_untouched(&rig, with_nan_residual);
  rig_close(&rig);
}

/* Unit links, no mass, periodic: constant spinors are zero modes, M x =
 * constant has no solution. */
static void with_zero_mode(qk_rig_t *rig, qk_solver_t *solver) {
  double *v = rig_vector(rig);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = 1;
  rig_import(rig, qk_solver_rhs(solver, 3), 0, v);
  qk_free(v);
  fill(solver, 3, 1e-10, 1000);
}

/* A source without constant part: waves on the same links can be solved for. */
static void wave(qk_rig_t *rig, qk_solver_t *solver, int slot, int direction) {
  double *v = rig_vector(rig);
  const int32_t *l = rig->geom.lat.l;
  const int stride[4] = {1, l[0], l[0] * l[1], l[0] * l[1] * l[2]};
  for (size_t i = 0; i < rig_reals(rig); i++) {
    int x = (int)(i / 24) / stride[direction] % l[direction];
    v[i] = cos(M_PI / 2 * x + 0.3 * (double)(i % 24));
  }
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
}

Test(solver, breakdown_ends_one_slot_and_leaves_the_others_bit_identical) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:4x4x4x4", NULL);
  rig_operator(&rig, 0, 0, 1);
  for (int k = 0; k < 3; k++)
    for (int p = 0; p < 3; p++) {
      double *x[2][3];
      for (int beside = 0; beside < 2; beside++) {
        qk_solver_t *solver = rig_solver(&rig, methods[k], (qk_prec_t)p, 4);
        for (int i = 0; i < 3; i++) wave(&rig, solver, i, i);
        if (beside) with_zero_mode(&rig, solver);
        for (int i = 0; i < 3; i++) fill(solver, i, 1e-9, 1000);
        rig_run(solver);
        for (int i = 0; i < 3; i++) {
          const qk_slot_t *s = qk_solver_slot(solver, i);
          cr_expect(s->status == QK_OK, "%s, precision %d, slot %d: %s, %g", methods[k], p, i,
                    qk_status_name(s->status), s->residual);
          x[beside][i] = solution(&rig, solver, i);
        }
        if (beside) {
          const qk_slot_t *s = qk_solver_slot(solver, 3);
          cr_expect(s->status == QK_BREAKDOWN || s->status == QK_NOT_CONVERGED);
          cr_expect(s->iterations < 200, "%s gave up only after %ld", methods[k],
                    (long)s->iterations);
          cr_expect(isfinite(s->residual) && s->residual > 0.1);
        }
        qk_solver_destroy(solver);
      }
      for (int i = 0; i < 3; i++) {
        cr_expect(!memcmp(x[0][i], x[1][i], rig_reals(&rig) * sizeof(double)),
                  "%s, precision %d, slot %d has other bits", methods[k], p, i);
        qk_free(x[1][i]);
        qk_free(x[0][i]);
      }
    }
  rig_close(&rig);
}

Test(solver, slot_filled_later_or_elsewhere_has_the_same_bits) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < 3; k++)
    for (int p = 0; p < 3; p++) {
      double *x[3];
      qk_solver_t *solver = rig_solver(&rig, methods[k], (qk_prec_t)p, 10);
      source(&rig, solver, 2, 11, 1);
      fill(solver, 2, 1e-10, 1000);
      rig_run(solver);
      x[0] = solution(&rig, solver, 2);
      qk_solver_destroy(solver);

      solver = rig_solver(&rig, methods[k], (qk_prec_t)p, 10);
      for (int i = 0; i < 9; i++) source(&rig, solver, i, 60 + i, 1);
      for (int i = 0; i < 9; i++) fill(solver, i, 1e-10, 1000);
      for (int i = 0; i < 3; i++) rig_must(qk_solver_step(solver), "step", NULL);
      source(&rig, solver, 9, 11, 1);
      fill(solver, 9, 1e-10, 1000);
      while (qk_solver_slot(solver, 2)->state == QK_SLOT_RUNNING)
        rig_must(qk_solver_step(solver), "step", NULL);
      qk_solver_clear(solver, 2);
      source(&rig, solver, 2, 11, 1);
      fill(solver, 2, 1e-10, 1000);
      rig_run(solver);
      x[1] = solution(&rig, solver, 9);
      x[2] = solution(&rig, solver, 2);
      for (int i = 1; i < 3; i++)
        cr_expect(!memcmp(x[0], x[i], rig_reals(&rig) * sizeof(double)), "%s, precision %d: %s",
                  methods[k], p, i == 1 ? "filled later, elsewhere" : "filled again");
      for (int i = 0; i < 9; i++)
        if (i != 2) expect_solved(&rig, solver, i, 60 + i, 1, methods[k]);
      for (int i = 0; i < 3; i++) qk_free(x[i]);
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

/* ---- how slots end --------------------------------------------------------------------------- */

Test(solver, zero_source_has_the_zero_solution_at_once) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, 3);
  source(&rig, solver, 0, 8, 1);
  fill(solver, 0, 1e-10, 1000);
  fill(solver, 1, 1e-10, 1000);
  const qk_slot_t *s = qk_solver_slot(solver, 1);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_OK && s->iterations == 0 &&
            s->residual == 0);
  rig_run(solver);
  double *x = solution(&rig, solver, 1);
  cr_expect(rig_norm2(&rig, x) == 0);
  qk_free(x);
  expect_solved(&rig, solver, 0, 8, 1, "beside a zero source");
  qk_solver_destroy(solver);
  rig_close(&rig);
}

Test(solver, cancelled_slot_stops_and_keeps_its_best_solution) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < 3; k++) {
    qk_solver_t *solver = rig_solver(&rig, methods[k], QK_HALF, 2);
    for (int i = 0; i < 2; i++) source(&rig, solver, i, 20 + i, 1);
    for (int i = 0; i < 2; i++) fill(solver, i, 1e-11, 1000);
    for (int i = 0; i < 3; i++) rig_must(qk_solver_step(solver), "step", NULL);
    cr_assert(qk_solver_running(solver) == 2);
    qk_solver_cancel(solver, 0);
    const qk_slot_t *s = qk_solver_slot(solver, 0);
    cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_CANCELLED);
    int64_t iterations = s->iterations;
    rig_run(solver);
    cr_expect(s->iterations == iterations);
    double *x = solution(&rig, solver, 0);
    double d = residual_of(&rig, x, 20, 1);
    cr_expect(fabs(d - s->residual) < 1e-10 && d < 1.5);
    qk_free(x);
    expect_solved(&rig, solver, 1, 21, 1, "beside a cancelled slot");
    qk_solver_cancel(solver, 1);
    cr_expect(qk_solver_slot(solver, 1)->status == QK_OK, "an ended slot stays as it is");
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

Test(solver, limit_and_impossible_tolerance_end_as_not_converged) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < 3; k++)
    for (int p = 0; p < 3; p++) {
      qk_solver_t *solver = rig_solver(&rig, methods[k], (qk_prec_t)p, 2);
      for (int i = 0; i < 2; i++) source(&rig, solver, i, 20 + i, 1);
      fill(solver, 0, 1e-12, 5);
      fill(solver, 1, 1e-19, 100000);
      rig_run(solver);
      for (int i = 0; i < 2; i++) {
        const qk_slot_t *s = qk_solver_slot(solver, i);
        double *x = solution(&rig, solver, i);
        double d = residual_of(&rig, x, 20 + i, 1);
        cr_expect(s->status == QK_NOT_CONVERGED, "%s", qk_status_name(s->status));
        cr_expect(fabs(d - s->residual) < 1e-3 * d + 1e-15, "%g, said to be %g", d, s->residual);
        cr_expect(i ? d < 1e-14 && s->iterations < 2000 : s->iterations == 8 && d < 0.9,
                  "%s, precision %d, slot %d: %g after %ld", methods[k], p, i, d,
                  (long)s->iterations);
        qk_free(x);
      }
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

Test(solver, history_is_thinned_and_falls) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_err_t err = {0};
  qk_solver_t *solver;
  qk_solver_params_t p = {.method = "cg", .inner = QK_DOUBLE, .nslot = 1, .check = 1};
  rig_operator(&rig, -0.05, 1.0, -1);
  rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, &err), "solver", &err);
  source(&rig, solver, 0, 5, 1);
  fill(solver, 0, 1e-300, 600);
  rig_run(solver);
  const qk_slot_t *s = qk_solver_slot(solver, 0);
  cr_expect(s->nhistory > 16 && s->nhistory <= 256, "%d", s->nhistory);
  cr_expect(s->history[s->nhistory - 1] < 1e-6 * s->history[0]);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

/* ---- the rest -------------------------------------------------------------------------------- */

/* z = r + (1 - Mhat) r: two terms of the series for Mhat^-1. */
static qk_status_t neumann(void *self, qk_field_t *z, const qk_field_t *r, const uint8_t *mask) {
  qk_rig_t *rig = self;
  qk_status_t status = rig->op->ops->apply_eo(rig->op, z, r, false, r);
  qk_blas_args_t add = {.f = {z->v, r->v}, .mask = mask};
  return status ? status : rig->dev.ops->blas(rig->dev.ctx, QK_BLAS_ADD, &add);
}

Test(solver, gcr_takes_a_preconditioner) {
  qk_rig_t rig;
  open_smooth(&rig);
  int64_t iterations[2];
  for (int with = 0; with < 2; with++) {
    qk_err_t err = {0};
    qk_solver_t *solver;
    qk_solver_params_t p = {.method = "gcr", .inner = QK_SINGLE, .nslot = 2, .gcr_keep = 4};
    if (with) p.precond = (qk_precond_t){.apply = neumann, .self = &rig};
    rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, &err), "solver", &err);
    source(&rig, solver, 0, 5, 1);
    fill(solver, 0, 1e-10, 1000);
    rig_run(solver);
    expect_solved(&rig, solver, 0, 5, 1, with ? "with" : "without");
    iterations[with] = qk_solver_slot(solver, 0)->iterations;
    qk_solver_destroy(solver);
  }
  cr_expect(iterations[1] < iterations[0], "%ld with, %ld without", (long)iterations[1],
            (long)iterations[0]);
  rig_close(&rig);
}

/* Iterations are dear with a preconditioner. */
Test(solver, preconditioned_slots_end_in_the_iteration_that_reaches_the_tolerance) {
  qk_rig_t rig;
  qk_solver_t *solver[2];
  int same = 0;
  open_smooth(&rig);
  for (int k = 0; k < 2; k++) {
    qk_solver_params_t p = {.method = "gcr",
                            .inner = QK_SINGLE,
                            .nslot = k ? 5 : 1,
                            .check = 1,
                            .precond = {.apply = neumann, .self = &rig}};
    rig_must(qk_solver_create(rig.op, rig.work, &p, &solver[k], NULL), "solver", NULL);
  }
  for (int n = 3; n < 11; n++) {
    int64_t iterations[2];
    for (int k = 0; k < 2; k++) {
      source(&rig, solver[k], 0, 5, 1);
      fill(solver[k], 0, pow(10, -n), 1000);
      rig_run(solver[k]);
      iterations[k] = qk_solver_slot(solver[k], 0)->iterations;
      qk_solver_clear(solver[k], 0);
    }
    same += iterations[0] == iterations[1];
  }
  cr_expect(same >= 7, "%d of 8 tolerances take as many iterations in a block as alone", same);
  qk_solver_destroy(solver[1]);
  qk_solver_destroy(solver[0]);
  rig_close(&rig);
}

/* Sees one chirality only: what the other one needs is never made. */
static qk_status_t half_blind(void *self, qk_field_t *z, const qk_field_t *r, const uint8_t *mask) {
  const qk_rig_t *rig = self;
  (void)mask;
  qk_chiral_args_t args = {.plus = 1, .minus = 0, .in = r->v, .out = z->v};
  return rig->dev.ops->chiral(rig->dev.ctx, &args);
}

Test(solver, preconditioner_that_brings_nothing_ends_a_slot_long_before_its_limit) {
  qk_rig_t rig;
  qk_solver_t *solver;
  open_smooth(&rig);
  qk_solver_params_t p = {.method = "gcr",
                          .inner = QK_SINGLE,
                          .nslot = 2,
                          .check = 1,
                          .precond = {.apply = half_blind, .self = &rig}};
  rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, NULL), "solver", NULL);
  for (int i = 0; i < 2; i++) {
    source(&rig, solver, i, 5 + (uint64_t)i, 1);
    fill(solver, i, 1e-10, 20000);
  }
  rig_run(solver);
  for (int i = 0; i < 2; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_expect(s->status == QK_NOT_CONVERGED || s->status == QK_BREAKDOWN, "%s",
              qk_status_name(s->status));
    cr_expect(s->iterations < 200, "%lld iterations", (long long)s->iterations);
    cr_expect(s->residual > 1e-3 && s->residual < 1);
  }
  qk_solver_destroy(solver);
  rig_close(&rig);
}

static qk_status_t identity(void *self, qk_field_t *z, const qk_field_t *r, const uint8_t *mask) {
  const qk_rig_t *rig = self;
  return rig->dev.ops->blas(rig->dev.ctx, QK_BLAS_COPY,
                            &(qk_blas_args_t){.f = {z->v, r->v}, .mask = mask});
}

/* As identity; once, the direction before is spoilt behind the solver's back for one column: what
 * it adds to the solution is no gain. */
typedef struct spoiler {
  qk_rig_t *rig;
  qk_field_t *before;
  const double *factor; /* device: of each column */
  int calls, at;
} spoiler_t;

static qk_status_t spoil(void *self, qk_field_t *z, const qk_field_t *r, const uint8_t *mask) {
  spoiler_t *s = self;
  const qk_device_t *dev = &s->rig->dev;
  if (++s->calls == s->at) {
    const qk_blas_args_t scale = {.f = {s->before->v}, .c = {s->factor}};
    rig_must(dev->ops->blas(dev->ctx, QK_BLAS_SCALE, &scale), "scale", NULL);
  }
  s->before = z;
  return identity(s->rig, z, r, mask);
}

/* Iterations of three slots; at 0: nothing is spoilt. */
static void run_spoilt(qk_rig_t *rig, const double *factor, int at, int64_t iterations[3]) {
  spoiler_t spoiler = {.rig = rig, .factor = factor, .at = at};
  qk_solver_t *solver;
  qk_solver_params_t p = {.method = "gcr",
                          .inner = QK_SINGLE,
                          .nslot = 3,
                          .check = 1,
                          .gcr_keep = 6,
                          .precond = {.apply = spoil, .self = &spoiler}};
  rig_must(qk_solver_create(rig->op, rig->work, &p, &solver, NULL), "solver", NULL);
  for (int i = 0; i < 3; i++) {
    source(rig, solver, i, 5 + (uint64_t)i, 1);
    fill(solver, i, 1e-10, 1000);
  }
  rig_run(solver);
  for (int i = 0; i < 3; i++) {
    expect_solved(rig, solver, i, 5 + (uint64_t)i, 1, "spoilt");
    iterations[i] = qk_solver_slot(solver, i)->iterations;
  }
  qk_solver_destroy(solver);
}

Test(solver, correction_that_is_no_gain_is_taken_back) {
  const double factors[3][2] = {{1, 0}, {1e6, 0}, {1, 0}};
  int64_t clean[3], spoilt[3];
  void *factor = NULL;
  qk_rig_t rig;
  open_smooth(&rig);
  const qk_device_t *dev = &rig.dev;
  rig_must(dev->ops->alloc(dev->ctx, sizeof factors, &factor), "factors", NULL);
  rig_must(dev->ops->copy(dev->ctx, factor, factors, sizeof factors, QK_COPY_TO_DEVICE, 0),
           "factors", NULL);
  rig_must(dev->ops->queue_sync(dev->ctx, 0), "factors", NULL);
  run_spoilt(&rig, factor, 0, clean);
  run_spoilt(&rig, factor, 4, spoilt);
  cr_expect(spoilt[0] == clean[0] && spoilt[2] == clean[2]);
  cr_expect(spoilt[1] > clean[1] && spoilt[1] <= clean[1] + 6, "%d instead of %d iterations",
            (int)spoilt[1], (int)clean[1]);
  dev->ops->free(dev->ctx, factor);
  rig_close(&rig);
}

/* Runs of one direction, most of which leave more than half of the residual. */
Test(solver, slow_but_steady_runs_go_on_to_the_end) {
  qk_rig_t rig;
  qk_solver_t *solver;
  rig_open(&rig, NULL, smooth, NULL);
  rig_operator(&rig, -0.05, 1.2, -1);
  qk_solver_params_t p = {.method = "gcr",
                          .inner = QK_SINGLE,
                          .nslot = 1,
                          .gcr_keep = 1,
                          .precond = {.apply = identity, .self = &rig}};
  rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, NULL), "solver", NULL);
  source(&rig, solver, 0, 5, 1);
  fill(solver, 0, 1e-10, 1000);
  rig_run(solver);
  expect_solved(&rig, solver, 0, 5, 1, "slowly");
  cr_expect(qk_solver_slot(solver, 0)->iterations > 2 * 33, "%lld runs",
            (long long)qk_solver_slot(solver, 0)->iterations);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

Test(solver, thousand_solves_leave_memory_where_it_was) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:2x2x2x4:3", NULL);
  rig_operator(&rig, 0.5, 1, -1);
  for (int k = 0; k < 3; k++) {
    int64_t host = 0, device = 0;
    for (int round = 0; round < 44; round++) {
      qk_solver_t *solver = rig_solver(&rig, methods[k], round % 2 ? QK_HALF : QK_SINGLE, 8);
      for (int i = 0; i < 8; i++) source(&rig, solver, i, (uint64_t)(8 * round + i), 1);
      for (int i = 0; i < 8; i++) fill(solver, i, 1e-8, 1000);
      rig_run(solver);
      for (int i = 0; i < 8; i++) cr_assert(qk_solver_slot(solver, i)->status == QK_OK);
      qk_solver_destroy(solver);
      if (round == 1) { /* both kinds have been seen: the work stack is as large as it gets */
        host = qk_mem_bytes();
        device = rig.dev.ops->allocated(rig.dev.ctx);
      }
    }
    cr_expect(qk_mem_bytes() == host, "%s: %ld bytes of host memory more", methods[k],
              (long)(qk_mem_bytes() - host));
    cr_expect(rig.dev.ops->allocated(rig.dev.ctx) == device);
  }
  rig_close(&rig);
}

Test(solver, refuses_bad_parameters) {
  const struct {
    qk_solver_params_t p;
    const char *says;
  } bad[] = {{{.method = "sor", .nslot = 1}, "\"sor\""},
             {{.method = NULL, .nslot = 1}, "bicgstab"},
             {{.method = "cg", .nslot = 0}, "slots = 0"},
             {{.method = "cg", .nslot = 65}, "slots = 65"},
             {{.method = "cg", .nslot = 1, .reliable = 1}, "reliable = 1"},
             {{.method = "cg", .nslot = 1, .reliable = NAN}, "reliable = nan"},
             {{.method = "cg", .nslot = 1, .check = -1}, "check = -1"},
             {{.method = "gcr", .nslot = 1, .gcr_keep = 31}, "gcr_keep = 31"}};
  qk_rig_t rig;
  open_smooth(&rig);
  int64_t host = qk_mem_bytes();
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    qk_solver_t *solver = NULL;
    cr_expect(qk_solver_create(rig.op, rig.work, &bad[i].p, &solver, &err) == QK_BAD_ARGUMENT);
    cr_expect(solver == NULL && strstr(err.text, bad[i].says), "\"%s\" does not say %s", err.text,
              bad[i].says);
  }
  cr_expect(qk_mem_bytes() == host);
  rig_close(&rig);
}

Test(solver, refuses_to_fill_what_cannot_be_filled) {
  qk_rig_t rig;
  open_smooth(&rig);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_DOUBLE, 3);
  source(&rig, solver, 0, 1, 1);
  cr_expect(qk_solver_fill(solver, -1, 1e-8, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 3, 1e-8, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, 0, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, NAN, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 0) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill_many(solver, (int[]){0, 0}, 2, (double[]){1e-8, 1e-8},
                                (int64_t[]){9, 9}) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_slot(solver, 0)->state == QK_SLOT_FREE);
  fill(solver, 0, 1e-8, 1000);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 10) == QK_BAD_ARGUMENT, "it is running");
  qk_solver_clear(solver, 0);
  cr_expect(qk_solver_slot(solver, 0)->state == QK_SLOT_RUNNING, "a running slot is not cleared");
  rig_run(solver);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 10) == QK_BAD_ARGUMENT, "it holds a result");
  qk_solver_clear(solver, 0);
  source(&rig, solver, 0, 2, 1);
  fill(solver, 0, 1e-8, 1000);
  rig_run(solver);
  expect_solved(&rig, solver, 0, 2, 1, "after clear");
  qk_solver_destroy(solver);
  rig_close(&rig);
}
