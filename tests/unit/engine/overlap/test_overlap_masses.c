/* Several masses of overlap fermions from one Krylov space: D of each, solves of each, and what it
 * costs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/masses/masses.h"
#include "tests/support/rig.h"

enum { MASSES = 4, COLUMNS = 2 };
static const double mass[MASSES] = {0.2, 0.05, -0.1, 0.6};
static const char gauge[] = "builtin:weak:4x2x6x4:7";

static void open_rig(qk_rig_t *rig, double m, const char *more) {
  char text[96];
  snprintf(text, sizeof text, "overlap;mass=%.15g;M=1.3;modes=8%s", m, more);
  if (!rig->comm) rig_open(rig, NULL, gauge, NULL);
  rig_action(rig, text, -1);
}

/* Column 0 has a chirality, column 1 has both. */
static void source(const qk_rig_t *rig, int column, double *b) {
  rig_random(rig, 30 + (uint64_t)column, b);
  for (size_t i = 0; i < rig_reals(rig) && column == 0; i++)
    if (i % 24 >= 12) b[i] = 0;
}

static qk_masses_t *solve(qk_rig_t *rig, int columns, int n, double tol) {
  qk_masses_params_t params = {.inner = QK_DOUBLE, .nrhs = columns, .n = n};
  qk_masses_t *masses = NULL;
  qk_err_t err = {0};
  double *b = rig_vector(rig);
  memcpy(params.mass, mass, sizeof mass);
  rig_must(qk_masses_create(rig->op, rig->work, &params, &masses, &err), "masses", &err);
  for (int j = 0; j < columns; j++) {
    source(rig, j, b);
    rig_import(rig, qk_masses_source(masses), j, b);
  }
  rig_must(qk_masses_begin(masses, tol, 400), "begin", NULL);
  while (!qk_masses_is_over(masses)) rig_must(qk_masses_step(masses, 10), "step", NULL);
  qk_free(b);
  return masses;
}

/* D(m) [b + (1 - m) q] = b of operators of one mass each. */
static void expect_propagators(const char *more, double tol) {
  qk_rig_t rig = {0}, one = {0};
  open_rig(&rig, 0.3, more);
  qk_masses_t *masses = solve(&rig, COLUMNS, MASSES, tol);
  double *b = rig_vector(&rig), *x = rig_vector(&rig), *back = rig_vector(&rig);
  for (int k = 0; k < MASSES; k++) {
    qk_field_t *q = NULL;
    rig_must(qk_masses_solution(masses, k, &q), "solution", NULL);
    open_rig(&one, mass[k], more);
    for (int j = 0; j < COLUMNS; j++) {
      const qk_mass_result_t *r = qk_masses_result(masses, k, j);
      source(&rig, j, b);
      rig_export(&rig, q, j, x);
      for (size_t i = 0; i < rig_reals(&rig); i++) x[i] = b[i] + (1 - mass[k]) * x[i];
      rig_apply(&one, x, false, back);
      const double off = rig_distance(&rig, back, b);
      cr_expect_eq(r->status, QK_OK, "%g, %d: %g", mass[k], j, r->residual);
      cr_expect_leq(off, tol * 1.01 + 1e-13, "%g, %d: %g", mass[k], j, off);
      /* what is told is what is there */
      cr_expect_leq(fabs(off - r->residual), 1e-3 * r->residual + 1e-13);
    }
  }
  qk_free(back);
  qk_free(x);
  qk_free(b);
  qk_masses_destroy(masses);
  rig_close(&one);
  rig_close(&rig);
}

Test(overlap_masses, are_all_propagators, .timeout = 200) {
  expect_propagators("", 1e-8);
  expect_propagators("", 1e-11);
  expect_propagators(";sign-tol=1e-06", 1e-9);
  expect_propagators(";sign=zolotarev", 1e-7);
}

static int64_t spent(const qk_rig_t *rig) {
  const int64_t *n = rig->op->base->applications;
  return n[QK_DOUBLE] + n[QK_SINGLE];
}

/* The heavier ones add what the check of each takes, not what a solve does. */
Test(overlap_masses, cost_what_the_lightest_costs, .timeout = 200) {
  qk_rig_t rig = {0};
  open_rig(&rig, 0.3, "");
  int64_t before = spent(&rig);
  qk_masses_destroy(solve(&rig, 1, 2, 1e-8));
  const int64_t two = spent(&rig) - before;
  before = spent(&rig);
  qk_masses_destroy(solve(&rig, 1, MASSES, 1e-8));
  const int64_t four = spent(&rig) - before;
  cr_expect_lt((double)four, 1.5 * (double)two, "%lld, %lld", (long long)four, (long long)two);
  rig_close(&rig);
}

Test(overlap_masses, that_have_no_shift_are_refused) {
  static const double bad[] = {0, 1, -1, 1.5, NAN, 1e-200};
  qk_rig_t rig = {0};
  open_rig(&rig, 0.3, "");
  for (int i = 0; i < 6; i++) {
    qk_masses_params_t params = {.inner = QK_DOUBLE, .nrhs = 1, .n = 1, .mass = {bad[i]}};
    qk_masses_t *masses = NULL;
    qk_err_t err = {0};
    cr_expect_eq(qk_masses_create(rig.op, rig.work, &params, &masses, &err), QK_BAD_ARGUMENT);
    cr_expect(strstr(err.text, "masses[0]"), "%s", err.text);
  }
  rig_close(&rig);
}
