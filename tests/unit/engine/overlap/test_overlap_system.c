/* The system that CG solves for overlap fermions, D D^+; errors that an application may have. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/rig.h"

static const char weak[] = "builtin:weak:4x2x6x4:7";
static const char text[] = "overlap;mass=0.2;M=1.3;modes=8;sign-tol=1e-11";
static const double near = 3e-11; /* sign-tol, and rounding */
enum { N = 3 };                   /* right-hand sides of a block */

typedef struct blocks {
  qk_rig_t rig;
  qk_operator_t *square;
  qk_field_t *in, *out, *other;
  double *a, *b;
} blocks_t;

static void begin(blocks_t *t, qk_prec_t prec) {
  rig_open(&t->rig, NULL, weak, NULL);
  rig_action(&t->rig, text, -1);
  t->square = t->rig.op->squared;
  qk_field_t **field[] = {&t->in, &t->out, &t->other};
  for (int i = 0; i < 3; i++)
    rig_must(qk_field_create(&t->rig.dev, prec, N, QK_FULL, field[i]), "field", NULL);
  t->a = rig_vector(&t->rig);
  t->b = rig_vector(&t->rig);
}

static void end(blocks_t *t) {
  qk_free(t->b);
  qk_free(t->a);
  qk_field_destroy(t->other);
  qk_field_destroy(t->out);
  qk_field_destroy(t->in);
  rig_close(&t->rig);
}

/* A random vector, or the part of it of one chirality. */
static void make(const qk_rig_t *rig, uint64_t seed, int chirality, double *v) {
  rig_random(rig, seed, v);
  for (size_t i = 0; i < rig_reals(rig) && chirality != 0; i++)
    if ((i % 24 < 12) != (chirality > 0)) v[i] = 0;
}

static void fill(blocks_t *t, const int chirality[N]) {
  for (int k = 0; k < N; k++) {
    make(&t->rig, 7 + (uint64_t)k, chirality[k], t->a);
    rig_import(&t->rig, t->in, k, t->a);
  }
}

static void apply_square(blocks_t *t, qk_field_t *out, const double *accuracy) {
  qk_accuracy_set(t->square, accuracy);
  rig_must(t->square->ops->apply_system(t->square, out, t->in, false, NULL), "D D^+", NULL);
  qk_accuracy_set(t->square, NULL);
}

static double distance(blocks_t *t, const qk_field_t *x, const qk_field_t *y, int k) {
  rig_export(&t->rig, x, k, t->a);
  rig_export(&t->rig, y, k, t->b);
  return rig_distance(&t->rig, t->a, t->b);
}

/* How often the operator beneath is applied by D D^+ to the block. */
static int64_t cost(blocks_t *t, const double *accuracy) {
  const qk_operator_t *base = t->rig.op->base;
  const int64_t before = base->applications[t->in->v.prec];
  apply_square(t, t->out, accuracy);
  return base->applications[t->in->v.prec] - before;
}

Test(overlap_system, is_the_square_of_the_operator) {
  static const int chirality[][N] = {{0, 0, 0}, {1, -1, 1}, {1, 0, -1}};
  blocks_t t;
  begin(&t, QK_DOUBLE);
  qk_operator_t *op = t.rig.op;
  for (int i = 0; i < 3; i++) {
    fill(&t, chirality[i]);
    apply_square(&t, t.out, NULL);
    qk_field_t *d = qk_work_take(t.rig.work, QK_DOUBLE, N, QK_FULL);
    rig_must(op->ops->apply(op, d, t.in, true, NULL, 0), "D^+", NULL);
    rig_must(op->ops->apply(op, t.other, d, false, NULL, 0), "D", NULL);
    for (int k = 0; k < N; k++) cr_expect_leq(distance(&t, t.out, t.other, k), near);
    /* r = b - D D^+ y, and x = D^+ y */
    rig_must(t.square->ops->residual_system(t.square, t.other, t.in, t.in), "residual", NULL);
    rig_must(t.square->ops->reconstruct(t.square, d, t.in, t.in), "D^+ y", NULL);
    rig_must(op->ops->apply(op, t.out, d, false, t.in, -1), "b - D x", NULL);
    for (int k = 0; k < N; k++) cr_expect_leq(distance(&t, t.other, t.out, k), near);
    qk_work_release(t.rig.work, d);
  }
  end(&t);
}

/* One sign function where all have a chirality, and the same bits whatever the others have. */
Test(overlap_system, keeps_chirality_at_half_the_cost) {
  static const int all[N] = {1, -1, 1}, some[N] = {1, -1, 0};
  blocks_t t;
  begin(&t, QK_SINGLE);
  fill(&t, some);
  const int64_t two = cost(&t, NULL);
  apply_square(&t, t.other, NULL);
  const double alone[N] = {1e-30, 1e-30, INFINITY}; /* nobody looks at the third */
  const int64_t one = cost(&t, alone);
  cr_expect_eq(two, 2 * one, "%ld, %ld", (long)two, (long)one);
  for (int k = 0; k < 2; k++) cr_expect_eq(distance(&t, t.out, t.other, k), 0);
  fill(&t, all);
  cr_expect_eq(cost(&t, NULL), one);
  for (int k = 0; k < 2; k++) {
    cr_expect_eq(distance(&t, t.out, t.other, k), 0);
    for (size_t i = 0; i < rig_reals(&t.rig); i++)
      if ((i % 24 < 12) != (all[k] > 0)) cr_assert_eq(t.a[i], 0);
  }
  end(&t);
}

/* Each right-hand side has the error that it may have, and costs what it takes. */
Test(overlap_system, is_as_accurate_as_asked_for) {
  static const int chirality[N] = {0, 0, 0};
  static const double asked[][N] = {{1e-8, 1e-5, 1e-2}, {1e-5, 1e-5, 1e-5}, {1e-2, 1e-2, 1e-2}};
  int64_t spent[3];
  blocks_t t;
  begin(&t, QK_DOUBLE);
  fill(&t, chirality);
  apply_square(&t, t.other, NULL);
  double *mixed = rig_vector(&t.rig);
  for (int i = 0; i < 3; i++) {
    spent[i] = cost(&t, asked[i]);
    for (int k = 0; k < N; k++) {
      const double off = distance(&t, t.out, t.other, k);
      cr_expect(off <= asked[i][k] && off > 1e-4 * asked[i][k], "%g: %g", asked[i][k], off);
      if (k != 1 || i == 2) continue;
      if (i == 0) memcpy(mixed, t.a, rig_reals(&t.rig) * sizeof *mixed);
      cr_expect_eq(rig_distance(&t.rig, t.a, mixed), 0, "it depends on its neighbours");
    }
  }
  cr_expect(spent[0] > spent[1] && spent[1] > 2 * spent[2], "%ld %ld %ld", (long)spent[0],
            (long)spent[1], (long)spent[2]);
  qk_free(mixed);
  end(&t);
}

/* ---- solves ---------------------------------------------------------------------------------- */

typedef struct solved {
  double residual;
  int64_t iterations, beneath;
} solved_t;

/* Slots with sources of these chiralities; x: of the first. */
static solved_t solve(qk_rig_t *rig, int n, const int *chirality, double *x) {
  qk_solver_t *s = rig_solver(rig, "cg", QK_SINGLE, n);
  const qk_operator_t *base = rig->op->base;
  double *b = rig_vector(rig);
  for (int i = 0; i < n; i++) {
    make(rig, 7 + (uint64_t)i, chirality[i], b);
    rig_import(rig, qk_solver_rhs(s, i), 0, b);
  }
  for (int i = 0; i < n; i++) rig_must(qk_solver_fill(s, i, 1e-9, 400), "fill", NULL);
  const int64_t before = base->applications[QK_SINGLE];
  rig_run(s);
  for (int i = 0; i < n; i++) cr_expect_eq(qk_solver_slot(s, i)->status, QK_OK);
  rig_export(rig, qk_solver_solution(s, 0), 0, x);
  const qk_slot_t *slot = qk_solver_slot(s, 0);
  const solved_t out = {slot->residual, slot->iterations, base->applications[QK_SINGLE] - before};
  qk_solver_destroy(s);
  qk_free(b);
  return out;
}

/* The residual is that of D x = b, whatever the error of D. */
Test(overlap_system, is_solved_below_the_error_of_the_sign_function, .timeout = 60) {
  static const char *const coarse[] = {
      "overlap;mass=0.2;M=1.3;modes=8;sign-tol=1e-05",
      "overlap;mass=0.2;M=1.3;modes=8;sign-tol=1e-05;sign=zolotarev"};
  static const int generic[N] = {0};
  for (int i = 0; i < 2; i++) {
    qk_rig_t rig;
    rig_open(&rig, NULL, weak, NULL);
    rig_action(&rig, coarse[i], -1);
    double *x = rig_vector(&rig);
    cr_expect_leq(solve(&rig, 1, generic, x).residual, 1e-9, "%s", coarse[i]);
    qk_free(x);
    rig_close(&rig);
  }
}

Test(overlap_system, slots_do_not_look_at_each_other) {
  static const int chirality[N] = {1, 0, -1};
  qk_rig_t rig;
  rig_open(&rig, NULL, weak, NULL);
  rig_action(&rig, text, -1);
  double *alone = rig_vector(&rig), *beside = rig_vector(&rig);
  /* a batch of two, one of them free: a batch of one has other kernels */
  static const int pair[2] = {1, 1};
  const solved_t one = solve(&rig, 2, pair, alone), three = solve(&rig, N, chirality, beside);
  cr_expect_eq(one.iterations, three.iterations);
  cr_expect_eq(rig_distance(&rig, alone, beside), 0);
  cr_expect_leq(one.residual, 1e-9);
  cr_expect_gt(three.beneath, 1.8 * (double)one.beneath);
  qk_free(beside);
  qk_free(alone);
  rig_close(&rig);
}
