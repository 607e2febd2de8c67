/* Solvers with slots: solutions, what slots do to each other, and how they end. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/dense.h"
#include "tests/unit/engine/krylov/solver_kit.h"

/* ---- solutions ------------------------------------------------------------------------------- */

static void every_precision_and_batch(const char *method) {
  const int batch[] = {1, 5, 8, 12};
  qk_rig_t rig;
  open_smooth(&rig);
  for (int p = 0; p < 3; p++)
    for (int k = 0; k < 4; k++) {
      qk_solver_t *solver = rig_solver(&rig, method, (qk_prec_t)p, batch[k]);
      for (int i = 0; i < batch[k]; i++) put_source(&rig, solver, i, 100 + i, 1);
      for (int i = 0; i < batch[k]; i++) fill_slot(solver, i, 1e-11, 1000);
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
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 3);
      put_and_fill(&rig, solver, 1, 100, 1e-12, 1000);
      rig_run(solver);
      double *x = get_solution(&rig, solver, 1);
      double d = rig_distance(&rig, x, exact);
      cr_expect(d < 1e-11, "%s, precision %d: off by %g", solver_methods[k], p, d);
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
  for (int k = 0; k < SOLVER_METHODS; k++) {
    qk_solver_t *solver = rig_solver(&rig, solver_methods[k], QK_HALF, 5);
    for (int i = 0; i < 5; i++) put_source(&rig, solver, i, 7, factor[i]);
    for (int i = 0; i < 5; i++) fill_slot(solver, i, 1e-10, 1000);
    rig_run(solver);
    double *one = get_solution(&rig, solver, 2);
    for (int i = 0; i < 5; i++) {
      const qk_slot_t *s = qk_solver_slot(solver, i);
      double *x = get_solution(&rig, solver, i);
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
  for (int i = 0; i < 3; i++) put_source(rig, solver, i, 40 + i, 1);
  if (extra) extra(rig, solver);
  for (int i = 0; i < 3; i++) fill_slot(solver, i, 1e-10, 1000);
  rig_run(solver);
  for (int i = 0; i < 3; i++) {
    x[i] = get_solution(rig, solver, i);
    iterations[i] = qk_solver_slot(solver, i)->iterations;
    cr_expect(qk_solver_slot(solver, i)->status == QK_OK);
  }
  qk_solver_destroy(solver);
}

static void expect_untouched(qk_rig_t *rig, extra_fn *extra) {
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      double *alone[3], *beside[3];
      int64_t n[3], m[3];
      run_with(rig, solver_methods[k], (qk_prec_t)p, NULL, alone, n);
      run_with(rig, solver_methods[k], (qk_prec_t)p, extra, beside, m);
      for (int i = 0; i < 3; i++) {
        cr_expect(n[i] == m[i] && !memcmp(alone[i], beside[i], rig_reals(rig) * sizeof(double)),
                  "%s, precision %d, slot %d has other bits", solver_methods[k], p, i);
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
  fill_slot(solver, 3, 1e-10, 1000);
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
  put_and_fill(rig, solver, 3, 99, 1e-4, 1000);
}

static void with_limit(qk_rig_t *rig, qk_solver_t *solver) {
  put_source(rig, solver, 3, 99, 1e40);
  fill_slot(solver, 3, 1e-12, 4);
}

/* NaN that is not in the source but comes up in the recursion: the worst that a slot can do. */
static void with_nan_residual(qk_rig_t *rig, qk_solver_t *solver) {
  double *v = rig_vector(rig);
  put_and_fill(rig, solver, 3, 99, 1e-10, 1000);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] = NAN;
  rig_import(rig, qk_solver_rhs(solver, 3), 0,
             v); /* behind its back: every true residual is NaN now */
  qk_free(v);
}

/* Slots that begin, are updated and end at different times. Returns the most memory that is held
 * for it. */
static int64_t run_compact(qk_rig_t *rig, const char *method, qk_prec_t inner, bool compact,
                           double *x[5]) {
  const qk_solver_params_t params = {
      .method = method, .inner = inner, .nslot = 5, .compact = compact};
  qk_solver_t *solver = NULL;
  const int64_t before = rig->dev.ops->allocated(rig->dev.ctx);
  rig_must(qk_solver_create(rig->op, rig->work, &params, &solver, NULL), "solver", NULL);
  for (int i = 0; i < 5; i++) put_source(rig, solver, i, (uint64_t)i + 1, 1);
  for (int i = 0; i < 3; i++) fill_slot(solver, i, i == 1 ? 1e-5 : 1e-11, 1000);
  for (int i = 0; i < 3; i++) rig_must(qk_solver_step(solver), "step", NULL);
  for (int i = 3; i < 5; i++) fill_slot(solver, i, 1e-9, 1000);
  rig_run(solver);
  for (int i = 0; i < 5; i++) {
    x[i] = get_solution(rig, solver, i);
    cr_expect_eq(qk_solver_slot(solver, i)->status, QK_OK);
  }
  const int64_t bytes = rig->dev.ops->allocated(rig->dev.ctx) - before;
  qk_solver_destroy(solver);
  qk_work_trim(rig->work);
  return bytes;
}

Test(solver, a_compact_one_has_the_same_bits) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = QK_SINGLE; p <= QK_HALF; p++) {
      double *wide[5], *compact[5];
      const int64_t kept = run_compact(&rig, solver_methods[k], (qk_prec_t)p, false, wide) -
                           run_compact(&rig, solver_methods[k], (qk_prec_t)p, true, compact);
      const int64_t half = rig.geom.volume / 2 * 24 * 8;
      cr_expect(kept >= 2 * half && kept % half == 0, "%lld: two halves for each slot beside one",
                (long long)kept);
      for (int i = 0; i < 5; i++) {
        cr_expect(!memcmp(wide[i], compact[i], rig_reals(&rig) * sizeof(double)),
                  "%s, precision %d, slot %d", solver_methods[k], p, i);
        qk_free(compact[i]);
        qk_free(wide[i]);
      }
    }
  rig_close(&rig);
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
  fill_slot(solver, 3, 1e-10, 1000);
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
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      double *x[2][3];
      for (int beside = 0; beside < 2; beside++) {
        qk_solver_t *solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 4);
        for (int i = 0; i < 3; i++) wave(&rig, solver, i, i);
        if (beside) with_zero_mode(&rig, solver);
        for (int i = 0; i < 3; i++) fill_slot(solver, i, 1e-9, 1000);
        rig_run(solver);
        for (int i = 0; i < 3; i++) {
          const qk_slot_t *s = qk_solver_slot(solver, i);
          cr_expect(s->status == QK_OK, "%s, precision %d, slot %d: %s, %g", solver_methods[k], p,
                    i, qk_status_name(s->status), s->residual);
          x[beside][i] = get_solution(&rig, solver, i);
        }
        if (beside) {
          const qk_slot_t *s = qk_solver_slot(solver, 3);
          cr_expect(s->status == QK_BREAKDOWN || s->status == QK_NOT_CONVERGED);
          cr_expect(s->iterations < 200, "%s gave up only after %ld", solver_methods[k],
                    (long)s->iterations);
          cr_expect(isfinite(s->residual) && s->residual > 0.1);
        }
        qk_solver_destroy(solver);
      }
      for (int i = 0; i < 3; i++) {
        cr_expect(!memcmp(x[0][i], x[1][i], rig_reals(&rig) * sizeof(double)),
                  "%s, precision %d, slot %d has other bits", solver_methods[k], p, i);
        qk_free(x[1][i]);
        qk_free(x[0][i]);
      }
    }
  rig_close(&rig);
}

Test(solver, slot_filled_later_or_elsewhere_has_the_same_bits) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      double *x[3];
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 10);
      put_and_fill(&rig, solver, 2, 11, 1e-10, 1000);
      rig_run(solver);
      x[0] = get_solution(&rig, solver, 2);
      qk_solver_destroy(solver);

      solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 10);
      for (int i = 0; i < 9; i++) put_source(&rig, solver, i, 60 + i, 1);
      for (int i = 0; i < 9; i++) fill_slot(solver, i, 1e-10, 1000);
      for (int i = 0; i < 3; i++) rig_must(qk_solver_step(solver), "step", NULL);
      put_and_fill(&rig, solver, 9, 11, 1e-10, 1000);
      while (qk_solver_slot(solver, 2)->state == QK_SLOT_RUNNING)
        rig_must(qk_solver_step(solver), "step", NULL);
      qk_solver_clear(solver, 2);
      put_and_fill(&rig, solver, 2, 11, 1e-10, 1000);
      rig_run(solver);
      x[1] = get_solution(&rig, solver, 9);
      x[2] = get_solution(&rig, solver, 2);
      for (int i = 1; i < 3; i++)
        cr_expect(!memcmp(x[0], x[i], rig_reals(&rig) * sizeof(double)), "%s, precision %d: %s",
                  solver_methods[k], p, i == 1 ? "filled later, elsewhere" : "filled again");
      for (int i = 0; i < 9; i++)
        if (i != 2) expect_solved(&rig, solver, i, 60 + i, 1, solver_methods[k]);
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
  put_and_fill(&rig, solver, 0, 8, 1e-10, 1000);
  fill_slot(solver, 1, 1e-10, 1000);
  const qk_slot_t *s = qk_solver_slot(solver, 1);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_OK && s->iterations == 0 &&
            s->residual == 0);
  rig_run(solver);
  double *x = get_solution(&rig, solver, 1);
  cr_expect(rig_norm2(&rig, x) == 0);
  qk_free(x);
  expect_solved(&rig, solver, 0, 8, 1, "beside a zero source");
  qk_solver_destroy(solver);
  rig_close(&rig);
}

Test(solver, cancelled_slot_stops_and_keeps_its_best_solution) {
  qk_rig_t rig;
  open_smooth(&rig);
  for (int k = 0; k < SOLVER_METHODS; k++) {
    qk_solver_t *solver = rig_solver(&rig, solver_methods[k], QK_HALF, 2);
    for (int i = 0; i < 2; i++) put_source(&rig, solver, i, 20 + i, 1);
    for (int i = 0; i < 2; i++) fill_slot(solver, i, 1e-11, 1000);
    for (int i = 0; i < 3; i++) rig_must(qk_solver_step(solver), "step", NULL);
    cr_assert(qk_solver_running(solver) == 2);
    qk_solver_cancel(solver, 0);
    const qk_slot_t *s = qk_solver_slot(solver, 0);
    cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_CANCELLED);
    int64_t iterations = s->iterations;
    rig_run(solver);
    cr_expect(s->iterations == iterations);
    double *x = get_solution(&rig, solver, 0);
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
  for (int k = 0; k < SOLVER_METHODS; k++)
    for (int p = 0; p < 3; p++) {
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], (qk_prec_t)p, 2);
      for (int i = 0; i < 2; i++) put_source(&rig, solver, i, 20 + i, 1);
      fill_slot(solver, 0, 1e-12, 5);
      fill_slot(solver, 1, 1e-19, 100000);
      rig_run(solver);
      for (int i = 0; i < 2; i++) {
        const qk_slot_t *s = qk_solver_slot(solver, i);
        double *x = get_solution(&rig, solver, i);
        double d = residual_of(&rig, x, 20 + i, 1);
        cr_expect(s->status == QK_NOT_CONVERGED, "%s", qk_status_name(s->status));
        cr_expect(fabs(d - s->residual) < 1e-3 * d + 1e-15, "%g, said to be %g", d, s->residual);
        cr_expect(i ? d < 1e-14 && s->iterations < 2000 : s->iterations == 8 && d < 0.9,
                  "%s, precision %d, slot %d: %g after %ld", solver_methods[k], p, i, d,
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
  put_and_fill(&rig, solver, 0, 5, 1e-300, 600);
  rig_run(solver);
  const qk_slot_t *s = qk_solver_slot(solver, 0);
  cr_expect(s->nhistory > 16 && s->nhistory <= 256, "%d", s->nhistory);
  cr_expect(s->history[s->nhistory - 1] < 1e-6 * s->history[0]);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

/* ---- the rest -------------------------------------------------------------------------------- */

Test(solver, thousand_solves_leave_memory_where_it_was) {
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:weak:2x2x2x4:3", NULL);
  rig_operator(&rig, 0.5, 1, -1);
  for (int k = 0; k < SOLVER_METHODS; k++) {
    int64_t host = 0, device = 0;
    for (int round = 0; round < 44; round++) {
      qk_solver_t *solver = rig_solver(&rig, solver_methods[k], round % 2 ? QK_HALF : QK_SINGLE, 8);
      for (int i = 0; i < 8; i++) put_source(&rig, solver, i, (uint64_t)(8 * round + i), 1);
      for (int i = 0; i < 8; i++) fill_slot(solver, i, 1e-8, 1000);
      rig_run(solver);
      for (int i = 0; i < 8; i++) cr_assert(qk_solver_slot(solver, i)->status == QK_OK);
      qk_solver_destroy(solver);
      if (round == 1) { /* both kinds have been seen: the work stack is as large as it gets */
        host = qk_mem_bytes();
        device = rig.dev.ops->allocated(rig.dev.ctx);
      }
    }
    cr_expect(qk_mem_bytes() == host, "%s: %ld bytes of host memory more", solver_methods[k],
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
  put_source(&rig, solver, 0, 1, 1);
  cr_expect(qk_solver_fill(solver, -1, 1e-8, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 3, 1e-8, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, 0, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, NAN, 10) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 0) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_fill_many(solver, (int[]){0, 0}, 2, (double[]){1e-8, 1e-8},
                                (int64_t[]){9, 9}) == QK_BAD_ARGUMENT);
  cr_expect(qk_solver_slot(solver, 0)->state == QK_SLOT_FREE);
  fill_slot(solver, 0, 1e-8, 1000);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 10) == QK_BAD_ARGUMENT, "it is running");
  qk_solver_clear(solver, 0);
  cr_expect(qk_solver_slot(solver, 0)->state == QK_SLOT_RUNNING, "a running slot is not cleared");
  rig_run(solver);
  cr_expect(qk_solver_fill(solver, 0, 1e-8, 10) == QK_BAD_ARGUMENT, "it holds a result");
  qk_solver_clear(solver, 0);
  put_and_fill(&rig, solver, 0, 2, 1e-8, 1000);
  rig_run(solver);
  expect_solved(&rig, solver, 0, 2, 1, "after clear");
  qk_solver_destroy(solver);
  rig_close(&rig);
}
