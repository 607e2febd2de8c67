/* GCR with preconditioners: good ones, a useless one, and one that is spoilt without the solver
 * knowing. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/unit/engine/krylov/solver_kit.h"

/* z = r + (1 - Mhat) r: two terms of the series for Mhat^-1. */
static qk_status_t neumann(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                           const uint8_t *mask) {
  (void)room;
  qk_rig_t *rig = self;
  qk_status_t status = rig->op->ops->apply_system(rig->op, z, r, false, r);
  qk_blas_args_t add = {.op = QK_BLAS_ADD, .f = {z->v, r->v}, .mask = mask};
  return status ? status : rig->dev.ops->blas(rig->dev.ctx, &add);
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
    put_and_fill(&rig, solver, 0, 5, 1e-10, 1000);
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
      put_and_fill(&rig, solver[k], 0, 5, pow(10, -n), 1000);
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
static qk_status_t half_blind(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                              const uint8_t *mask) {
  (void)room;
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
    put_and_fill(&rig, solver, i, 5 + (uint64_t)i, 1e-10, 20000);
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

static qk_status_t identity(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                            const uint8_t *mask) {
  (void)room;
  const qk_rig_t *rig = self;
  return rig->dev.ops->blas(rig->dev.ctx,
                            &(qk_blas_args_t){.op = QK_BLAS_COPY, .f = {z->v, r->v}, .mask = mask});
}

/* As identity; once, the direction before is spoilt behind the solver's back for one column: what
 * it adds to the solution is no gain. */
typedef struct spoiler {
  qk_rig_t *rig;
  qk_field_t *before;
  const double *factor; /* device: of each column */
  int calls, at;
} spoiler_t;

static qk_status_t spoil(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                         const uint8_t *mask) {
  spoiler_t *s = self;
  const qk_device_t *dev = &s->rig->dev;
  if (++s->calls == s->at) {
    const qk_blas_args_t scale = {.op = QK_BLAS_SCALE, .f = {s->before->v}, .c = {s->factor}};
    rig_must(dev->ops->blas(dev->ctx, &scale), "scale", NULL);
  }
  s->before = z;
  return identity(s->rig, z, r, room, mask);
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
    put_and_fill(rig, solver, i, 5 + (uint64_t)i, 1e-10, 1000);
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
  rig_open(&rig, NULL, smooth_gauge, NULL);
  rig_operator(&rig, -0.05, 1.2, -1);
  qk_solver_params_t p = {.method = "gcr",
                          .inner = QK_SINGLE,
                          .nslot = 1,
                          .gcr_keep = 1,
                          .precond = {.apply = identity, .self = &rig}};
  rig_must(qk_solver_create(rig.op, rig.work, &p, &solver, NULL), "solver", NULL);
  put_and_fill(&rig, solver, 0, 5, 1e-10, 1000);
  rig_run(solver);
  expect_solved(&rig, solver, 0, 5, 1, "slowly");
  cr_expect(qk_solver_slot(solver, 0)->iterations > 2 * 33, "%lld runs",
            (long long)qk_solver_slot(solver, 0)->iterations);
  qk_solver_destroy(solver);
  rig_close(&rig);
}

/* Rounds to half what it is given in single, or in half already. */
typedef struct rounding {
  qk_rig_t *rig;
  qk_field_t *half;
  int calls, given; /* those with r in half */
} rounding_t;

static qk_status_t rounded(void *self, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                           const uint8_t *mask) {
  rounding_t *k = self;
  k->calls++;
  k->given += qk_prec_scaled(r->v.prec);
  cr_expect_eq(z->v.prec, QK_SINGLE);
  cr_expect_eq(room == NULL, qk_prec_scaled(r->v.prec));
  qk_status_t status = identity(k->rig, k->half, r, room, mask);
  return status ? status : identity(k->rig, z, k->half, room, mask);
}

/* Three right-hand sides; x: their solutions. */
static void solve_rounded(qk_rig_t *rig, bool narrow, double *x[3], int64_t iterations[3]) {
  rounding_t k = {.rig = rig};
  qk_solver_t *solver;
  qk_solver_params_t p = {.method = "gcr",
                          .inner = QK_SINGLE,
                          .nslot = 3,
                          .check = 1,
                          .gcr_keep = 5,
                          .precond = {.apply = rounded, .self = &k, .narrow = narrow}};
  rig_must(qk_field_create(&rig->dev, QK_HALF, 3, QK_EVEN, &k.half), "field", NULL);
  rig_must(qk_solver_create(rig->op, rig->work, &p, &solver, NULL), "solver", NULL);
  for (int i = 0; i < 3; i++) put_and_fill(rig, solver, i, 5 + (uint64_t)i, 1e-10, 1000);
  rig_run(solver);
  for (int i = 0; i < 3; i++) {
    expect_solved(rig, solver, i, 5 + (uint64_t)i, 1, narrow ? "narrow" : "wide");
    x[i] = get_solution(rig, solver, i);
    iterations[i] = qk_solver_slot(solver, i)->iterations;
  }
  if (narrow) /* but of the first of each run, and where the ring is full */
    cr_expect(k.given > k.calls / 2 && k.given < k.calls, "%d of %d", k.given, k.calls);
  else
    cr_expect_eq(k.given, 0);
  qk_solver_destroy(solver);
  qk_field_destroy(k.half);
}

Test(solver, a_preconditioner_is_given_r_in_half_with_the_same_bits) {
  qk_rig_t rig;
  double *wide[3], *narrow[3];
  int64_t iterations[2][3];
  open_smooth(&rig);
  solve_rounded(&rig, false, wide, iterations[0]);
  solve_rounded(&rig, true, narrow, iterations[1]);
  for (int i = 0; i < 3; i++) {
    cr_expect_eq(iterations[0][i], iterations[1][i]);
    cr_expect(memcmp(wide[i], narrow[i], rig_reals(&rig) * sizeof *wide[i]) == 0, "slot %d", i);
    qk_free(narrow[i]);
    qk_free(wide[i]);
  }
  rig_close(&rig);
}
