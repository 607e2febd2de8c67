/* The last update is the final check: how many passes in double a solve takes, and that what it
 * says is true of the solution that it hands out. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/lattice/extent.h"
#include "tests/unit/engine/krylov/solver_kit.h"

/* ---- passes ---------------------------------------------------------------------------------- */

/* The table of a backend that counts hops in double: 1 for those from one parity to the other. */
static const qk_ops_t *real;
static qk_ops_t counting;
static int passes, launches; /* launches: of hop_each with so many right-hand sides */
static int together;

static qk_status_t counting_hop(qk_ops_ctx_t *ctx, const qk_hop_args_t *args) {
  if (args->out.prec == QK_DOUBLE && args->c_hop != 0)
    passes += args->out_parity == QK_FULL ? 2 : 1;
  return real->hop(ctx, args);
}

static qk_status_t counting_hop_each(qk_ops_ctx_t *ctx, const qk_hop_each_args_t *args) {
  const qk_hop_args_t *hop = &args->hop;
  if (hop->out.prec == QK_DOUBLE && hop->c_hop != 0) {
    passes += args->n * (hop->out_parity == QK_FULL ? 2 : 1);
    launches += args->n == together;
  }
  return real->hop_each(ctx, args);
}

/* Before the operator: composed ones keep the table. */
static void count_passes(qk_rig_t *rig) {
  real = rig->dev.ops;
  counting = *real;
  counting.hop = counting_hop;
  counting.hop_each = counting_hop_each;
  rig->dev.ops = &counting;
}

static void close_counted(qk_rig_t *rig) {
  rig->dev.ops = real;
  rig_close(rig);
}

/* What the steps of a solve in the only slot have taken. */
typedef struct taken {
  int begin, updates, checks, end; /* passes, steps of two and of three, passes of the last step */
} taken_t;

/* each: launches that a pass over one parity is, one for each vector; other: passes of a check that
 * the slot goes on from, or with sums of what has ended. */
static taken_t run_counted(qk_solver_t *solver, double tol, int each, int other) {
  taken_t t = {0};
  passes = 0;
  fill_slot(solver, 0, tol, 10000);
  t.begin = passes / each;
  while (qk_solver_running(solver)) {
    passes = 0;
    rig_must(qk_solver_step(solver), "step", NULL);
    t.end = passes / each;
    cr_expect(passes % each == 0 && (t.end == 0 || t.end == 2 || t.end == 3 || t.end == other),
              "%d launches in a step", passes);
    t.updates += t.end == 2;
    t.checks += t.end == 3 || t.end == other;
  }
  return t;
}

/* bhat is made in one pass, each update of two, and at the end three make and prove the solution:
 * it would be five if r of the system were looked at first. The axial current of domain wall
 * fermions, which is summed of a solution, is two more. */
static void check_passes(const char *action, const char *method, qk_prec_t prec) {
  qk_rig_t rig;
  rig_open(&rig, NULL, smooth_gauge, NULL);
  count_passes(&rig);
  rig_action(&rig, action, -1);
  qk_solver_t *solver = rig_solver(&rig, method, prec, 1);
  put_source(&rig, solver, 0, 5, 1);
  const int64_t before = rig.op->applications[QK_DOUBLE];
  const int end = rig.op->ops->wall_sums ? 5 : 3;
  const taken_t t = run_counted(solver, 1e-11, 1, end);
  const qk_slot_t *s = qk_solver_slot(solver, 0);
  cr_expect(t.begin == 1 && t.end == end && t.updates > 0 && t.checks <= 2 && s->status == QK_OK,
            "%s, %s, precision %d: %d to begin, %d updates, %d checks, %d at the end", action,
            method, (int)prec, t.begin, t.updates, t.checks, t.end);
  cr_expect_eq(rig.op->applications[QK_DOUBLE] - before, t.updates + t.checks);
  if (!rig.op->outer) expect_solved(&rig, solver, 0, 5, 1, action);
  qk_solver_destroy(solver);
  close_counted(&rig);
}

Test(last_update, is_the_final_check) {
  for (int p = QK_SINGLE; p <= QK_HALF; p++) {
    for (int k = 0; k < SOLVER_METHODS; k++)
      check_passes("wilson-clover;mass=0.1;csw=1.2", solver_methods[k], (qk_prec_t)p);
    check_passes("twisted-clover;mass=0.1;mu=0.2;csw=1", "cg", (qk_prec_t)p);
    check_passes("moebius;mass=0.3;M5=1.4;Ls=4", "cg", (qk_prec_t)p);
  }
}

/* Slots that do the same at the same time: four of them in each launch. M is one launch. */
static void check_together(const char *action, qk_prec_t prec) {
  enum { ALL = 8 };
  qk_rig_t rig;
  int slot[ALL];
  double tol[ALL];
  int64_t most[ALL];
  rig_open(&rig, NULL, smooth_gauge, NULL);
  count_passes(&rig);
  rig_action(&rig, action, -1);
  qk_solver_t *solver = rig_solver(&rig, "gcr", prec, ALL);
  for (int i = 0; i < ALL; i++) {
    put_source(&rig, solver, i, 5, 1);
    slot[i] = i;
    tol[i] = 1e-11;
    most[i] = 10000;
  }
  const int64_t before = rig.op->applications[QK_DOUBLE];
  passes = launches = 0;
  together = 4;
  cr_assert(qk_solver_fill_many(solver, slot, ALL, tol, most) == QK_OK);
  rig_run(solver);
  const int updates = (int)(rig.op->applications[QK_DOUBLE] - before) / ALL;
  cr_expect(updates > 1 && passes == ALL * (2 * updates + 2) && launches == 2 * (2 * updates + 1),
            "%s, precision %d: %d updates, %d passes, %d launches", action, (int)prec, updates,
            passes, launches);
  double *x = get_solution(&rig, solver, 0);
  for (int i = 0; i < ALL; i++) {
    double *y = get_solution(&rig, solver, i);
    expect_solved(&rig, solver, i, 5, 1, action);
    cr_expect_arr_eq(x, y, rig_reals(&rig) * sizeof *x, "slot %d", i);
    qk_free(y);
  }
  qk_free(x);
  qk_solver_destroy(solver);
  close_counted(&rig);
}

Test(last_update, of_several_slots_shares_its_passes) {
  for (int p = QK_SINGLE; p <= QK_HALF; p++) {
    check_together("wilson-clover;mass=0.1;csw=1.2", (qk_prec_t)p);
    check_together("twisted-clover;mass=0.1;mu=0.2;csw=1", (qk_prec_t)p);
  }
}

/* ---- what is said ---------------------------------------------------------------------------- */

/* |b - M x| / |b| of the solution in a slot, for b as it was. */
static double residual_of_slot(qk_rig_t *rig, qk_solver_t *solver, int slot, const qk_field_t *b,
                               const uint8_t *minus) {
  double r2, b2;
  qk_field_t *r = NULL;
  rig_must(qk_field_create(rig->op->dev, QK_DOUBLE, 1, QK_FULL, &r), "field", NULL);
  qk_flavours_set(rig->op, minus);
  rig_must(rig->op->ops->apply(rig->op, r, qk_solver_solution(solver, slot), false, b, -1), "M",
           NULL);
  qk_flavours_set(rig->op, NULL);
  rig_must(qk_norm2_find(r, &r2), "norm", NULL);
  rig_must(qk_norm2_find(b, &b2), "norm", NULL);
  qk_field_destroy(r);
  return sqrt(r2 / b2);
}

/* The source of a slot, and a copy of it. */
static qk_field_t *put_noise(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed) {
  qk_field_t *b = NULL;
  const qk_source_args_t noise = {.lat = rig->geom.lat,
                                  .kind = QK_SOURCE_Z4,
                                  .site = {-1, -1, -1, -1},
                                  .spin = -1,
                                  .colour = -1,
                                  .seed = seed};
  rig_source(rig, &noise, qk_solver_rhs(solver, slot));
  rig_must(qk_field_create(rig->op->dev, QK_DOUBLE, 1, QK_FULL, &b), "field", NULL);
  qk_dev_blas(rig->op->dev, QK_BLAS_COPY,
              (qk_blas_args_t){.f = {b->v, qk_solver_rhs(solver, slot)->v}});
  rig_must(qk_dev_status(rig->op->dev), "copy", NULL);
  return b;
}

static void expect_true(qk_rig_t *rig, qk_solver_t *solver, int slot, const qk_field_t *b,
                        const uint8_t *minus, const char *method) {
  const qk_slot_t *s = qk_solver_slot(solver, slot);
  const double found = residual_of_slot(rig, solver, slot, b, minus);
  cr_expect(s->status == QK_OK && found <= 1.0001 * s->stopping.tol &&
                fabs(found - s->residual) < 1e-3 * found,
            "%s, %s, slot %d: %s, residual %g, said to be %g, wanted %g", rig->op->action, method,
            slot, qk_status_name(s->status), found, s->residual, s->stopping.tol);
}

static const char *const actions[] = {"wilson;mass=0.1",
                                      "wilson-clover;mass=0.1;csw=1.2",
                                      "exp-clover;mass=0.1;csw=1",
                                      "anisotropic-clover;mass=0.1;xi0=2;nu=0.9;c-r=1;c-t=0.8",
                                      "twisted-clover;mass=0.1;mu=0.2;csw=1",
                                      "twisted-clover;mass=0.1;mu=0.2",
                                      "doublet;mass=0.1;mu=0.2;epsilon=0.1",
                                      "doublet;mass=0.1;mu=0.2;epsilon=0.1;csw=1"};
enum { ACTIONS = sizeof actions / sizeof actions[0], SLOTS = 3 };

/* Slots of both flavours that begin and end at different times. */
static void check_said(qk_rig_t *rig, const char *method, qk_prec_t prec) {
  static const uint8_t one[] = {1};
  qk_solver_t *solver = rig_solver(rig, method, prec, SLOTS);
  uint8_t *minus = rig_flavours(rig, one, 1);
  qk_field_t *b[SLOTS];
  for (int i = 0; i < SLOTS; i++) {
    const bool other = rig->op->twist != 0 && i == 1;
    b[i] = put_noise(rig, solver, i, 30 + (uint64_t)i);
    rig_must(qk_solver_set_flavour(solver, i, other ? -1 : 1), "flavour", NULL);
    fill_slot(solver, i, i == 2 ? 1e-6 : 1e-11, 10000);
    rig_must(qk_solver_step(solver), "step", NULL);
  }
  rig_run(solver);
  for (int i = 0; i < SLOTS; i++) {
    expect_true(rig, solver, i, b[i], rig->op->twist != 0 && i == 1 ? minus : NULL, method);
    qk_field_destroy(b[i]);
  }
  rig->dev.ops->free(rig->dev.ctx, minus);
  qk_solver_destroy(solver);
}

Test(last_update, says_what_is_true_of_the_solution_of_every_action) {
  for (int a = 0; a < ACTIONS; a++) {
    qk_rig_t rig;
    rig_open(&rig, NULL, smooth_gauge, NULL);
    rig_action(&rig, actions[a], -1);
    check_said(&rig, "cg", QK_SINGLE);
    check_said(&rig, "gcr", QK_HALF);
    rig_close(&rig);
  }
}

/* ---- misses ---------------------------------------------------------------------------------- */

/* A solver that believes in a target that is far too large: its first check fails, and it goes on
 * from the residual that this has found. */
static void expect_second_check(qk_rig_t *rig, const char *method, qk_prec_t prec, int vectors) {
  qk_solver_t *solver = rig_solver(rig, method, prec, 1);
  const double scale = rig->op->diag_scale;
  qk_field_t *b = put_noise(rig, solver, 0, 9);
  rig->op->diag_scale = 1e-4 * scale;
  const taken_t t = run_counted(solver, 1e-10, vectors, vectors > 1 ? 4 : 3);
  rig->op->diag_scale = scale;
  cr_expect(t.checks >= 2 && t.end == 3, "%s, %s, precision %d: %d checks, %d passes at the end",
            rig->op->action, method, (int)prec, t.checks, t.end);
  expect_true(rig, solver, 0, b, NULL, method);
  qk_field_destroy(b);
  qk_solver_destroy(solver);
}

/* Slots that miss together, and go on. */
static void expect_misses(qk_rig_t *rig, qk_prec_t prec) {
  enum { ALL = 6 };
  qk_solver_t *solver = rig_solver(rig, "gcr", prec, ALL);
  const double scale = rig->op->diag_scale;
  qk_field_t *b[ALL];
  for (int i = 0; i < ALL; i++) b[i] = put_noise(rig, solver, i, 60 + (uint64_t)i);
  rig->op->diag_scale = 1e-4 * scale;
  for (int i = 0; i < ALL; i++) fill_slot(solver, i, 1e-10, 10000);
  rig_run(solver);
  rig->op->diag_scale = scale;
  for (int i = 0; i < ALL; i++) {
    expect_true(rig, solver, i, b[i], NULL, "gcr");
    qk_field_destroy(b[i]);
  }
  qk_solver_destroy(solver);
}

Test(last_update, that_misses_goes_on_in_every_slot) {
  for (int a = 0; a < ACTIONS; a++) {
    qk_rig_t rig;
    rig_open(&rig, NULL, smooth_gauge, NULL);
    rig_action(&rig, actions[a], -1);
    expect_misses(&rig, QK_SINGLE);
    expect_misses(&rig, QK_HALF);
    rig_close(&rig);
  }
}

/* prepare is a pass that goes on where there are two vectors. */
Test(last_update, that_misses_goes_on_from_what_it_has_found) {
  for (int a = 0; a < ACTIONS; a++) {
    qk_rig_t rig;
    rig_open(&rig, NULL, smooth_gauge, NULL);
    count_passes(&rig);
    rig_action(&rig, actions[a], -1);
    const int vectors = rig.op->base ? 2 : 1;
    for (int p = QK_SINGLE; p <= QK_HALF; p++) {
      expect_second_check(&rig, "cg", (qk_prec_t)p, vectors);
      expect_second_check(&rig, "gcr", (qk_prec_t)p, vectors);
    }
    close_counted(&rig);
  }
}
