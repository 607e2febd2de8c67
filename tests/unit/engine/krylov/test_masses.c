/* Several masses from one Krylov space, by operators of one mass each: M of each, solves with each,
 * and what the space saves. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/masses/masses.h"
#include "tests/support/staggered/colours.h"

enum { MASSES = 4, COLUMNS = 3 };
static const double mass[MASSES] = {0.2, 0.05, 0.8, 0.1};
static const char gauge[] = "builtin:weak:4x6x4x8:3";
static const char *const action[] = {"staggered;mass=%g", "asqtad;mass=%g;u0=0.9",
                                     "hisq;mass=%g;epsilon=-0.1"};

typedef struct problem {
  qk_rig_t rig;
  const char *action;
  qk_masses_t *masses;
  qk_field_t *b;
} problem_t;

static void open_rig(qk_rig_t *rig, const char *of, double m) {
  char text[80];
  snprintf(text, sizeof text, of, m);
  colours_open(rig, NULL, gauge, NULL, text, -1);
}

static void open_problem(problem_t *p, const char *of, qk_prec_t inner, int n) {
  qk_masses_params_t params = {.inner = inner, .nrhs = COLUMNS, .n = n};
  qk_err_t err = {0};
  memcpy(params.mass, mass, sizeof mass);
  *p = (problem_t){.action = of};
  open_rig(&p->rig, of, 0.3);
  rig_must(qk_masses_create(p->rig.op, p->rig.work, &params, &p->masses, &err), "masses", &err);
}

static void close_problem(problem_t *p) {
  qk_masses_destroy(p->masses);
  rig_close(&p->rig);
}

/* Column 0 has a point on an even site, 1 one on an odd site, 2 is anything everywhere. */
static double complex *source(const qk_rig_t *rig, int column) {
  double complex *b = colours_vector(rig);
  if (column == 2)
    colours_random(rig, 11, b);
  else
    b[3 * column + 1] = 2;
  return b;
}

static void import(problem_t *p, int column) {
  double complex *b = source(&p->rig, column);
  colours_import(&p->rig, qk_masses_source(p->masses), column, b);
  qk_free(b);
}

static void run(problem_t *p, double tol, int64_t max_iter) {
  rig_must(qk_masses_begin(p->masses, tol, max_iter), "begin", NULL);
  for (int n = 0; !qk_masses_is_over(p->masses); n++) {
    cr_assert_lt(n, 20000);
    rig_must(qk_masses_step(p->masses, 7), "step", NULL);
  }
}

static double complex *solution(problem_t *p, int k, int column) {
  qk_field_t *x;
  double complex *v = colours_vector(&p->rig);
  rig_must(qk_masses_solution(p->masses, k, &x), "solution", NULL);
  colours_export(&p->rig, x, column, v);
  return v;
}

/* |b - M x| / |b| with the operator of that mass. */
static double measure(const qk_rig_t *rig, const double complex *b, const double complex *x) {
  qk_field_t *in, *out;
  double complex *m = colours_vector(rig);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 1, QK_FULL, &in), "field", NULL);
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 1, QK_FULL, &out), "field", NULL);
  colours_import(rig, in, 0, x);
  rig_must(rig->op->ops->apply(rig->op, out, in, false, NULL, 0), "apply", NULL);
  colours_export(rig, out, 0, m);
  const double off = colours_distance(rig, m, b);
  qk_field_destroy(out);
  qk_field_destroy(in);
  qk_free(m);
  return off;
}

static void expect_column(problem_t *p, const qk_rig_t *one, int k, int column, double tol) {
  double complex *b = source(one, column), *x = solution(p, k, column);
  const qk_mass_result_t *r = qk_masses_result(p->masses, k, column);
  const double off = measure(one, b, x);
  cr_expect(r->status == QK_OK && off <= tol && fabs(off - r->residual) < 1e-14,
            "%s, mass %g, column %d: %s, residual %g, said to be %g", p->action, mass[k], column,
            qk_status_name(r->status), off, r->residual);
  cr_expect(r->iterations > 0 && r->applications > 0 && r->applications <= r->iterations + 2);
  qk_free(x);
  qk_free(b);
}

Test(masses, solves_all_of_every_action) {
  for (int a = 0; a < 3; a++)
    for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
      problem_t p;
      open_problem(&p, action[a], (qk_prec_t)inner, MASSES);
      for (int j = 0; j < COLUMNS; j++) import(&p, j);
      run(&p, 1e-11, 4000);
      for (int k = 0; k < MASSES; k++) {
        qk_rig_t one;
        open_rig(&one, action[a], mass[k]);
        for (int j = 0; j < COLUMNS; j++) expect_column(&p, &one, k, j, 1e-11);
        rig_close(&one);
      }
      close_problem(&p);
    }
}

/* Of a solver that knows nothing of other masses. */
Test(masses, agrees_with_a_solve_of_each_mass) {
  problem_t p;
  open_problem(&p, action[2], QK_SINGLE, MASSES);
  for (int j = 0; j < COLUMNS; j++) import(&p, j);
  run(&p, 1e-12, 4000);
  for (int k = 0; k < MASSES; k++) {
    qk_rig_t one;
    open_rig(&one, action[2], mass[k]);
    qk_solver_t *solver = rig_solver(&one, "cg", QK_DOUBLE, 1);
    double complex *b = source(&one, 2), *x = solution(&p, k, 2), *other = colours_vector(&one);
    colours_import(&one, qk_solver_rhs(solver, 0), 0, b);
    rig_must(qk_solver_fill(solver, 0, 1e-12, 4000), "fill", NULL);
    rig_run(solver);
    colours_export(&one, qk_solver_solution(solver, 0), 0, other);
    cr_expect_leq(colours_distance(&one, x, other), 2e-12 / mass[k], "mass %g", mass[k]);
    qk_free(other);
    qk_free(x);
    qk_free(b);
    qk_solver_destroy(solver);
    rig_close(&one);
  }
  close_problem(&p);
}

/* Applications of A to a block, for n masses, or for the lightest alone. */
static int64_t cost(qk_prec_t inner, bool all) {
  qk_masses_params_t params = {.inner = inner, .nrhs = 1, .n = all ? MASSES : 1};
  qk_err_t err = {0};
  problem_t p = {.action = action[0]};
  memcpy(params.mass, all ? mass : mass + 1, sizeof(double) * (size_t)params.n);
  open_rig(&p.rig, action[0], 0.3);
  rig_must(qk_masses_create(p.rig.op, p.rig.work, &params, &p.masses, &err), "masses", &err);
  import(&p, 0);
  run(&p, 1e-10, 4000);
  const int64_t n = qk_masses_iterations(p.masses);
  close_problem(&p);
  return n;
}

/* Links are read as often as for the lightest mass alone, or nearly; a parity without source costs
 * nothing. */
Test(masses, cost_what_the_lightest_costs) {
  for (int inner = QK_DOUBLE; inner <= QK_SINGLE; inner++) {
    const int64_t all = cost((qk_prec_t)inner, true), one = cost((qk_prec_t)inner, false);
    cr_expect_leq(10 * all, 11 * one + 20, "precision %d: %lld and %lld", inner, (long long)all,
                  (long long)one);
  }
}

/* What column 2 holds changes no bit of the others. */
Test(masses, columns_do_not_depend_on_each_other) {
  static const double factor[] = {1, 0, NAN, 1e-60, 1e60};
  double complex *first = NULL;
  for (int i = 0; i < 5; i++) {
    problem_t p;
    open_problem(&p, action[0], QK_SINGLE, MASSES);
    double complex *b = source(&p.rig, 2);
    import(&p, 0);
    import(&p, 1);
    for (size_t n = 0; n < colours_numbers(&p.rig); n++) b[n] *= factor[i];
    colours_import(&p.rig, qk_masses_source(p.masses), 2, b);
    run(&p, 1e-10, 4000);
    double complex *x = solution(&p, 1, 0);
    const qk_mass_result_t *r = qk_masses_result(p.masses, 1, 2);
    cr_expect(i == 0 || !memcmp(x, first, colours_numbers(&p.rig) * sizeof *x), "%g", factor[i]);
    cr_expect_eq(r->status, isnan(factor[i]) ? QK_NAN_INPUT : QK_OK, "%g: %s", factor[i],
                 qk_status_name(r->status));
    if (i == 0)
      first = x;
    else
      qk_free(x);
    qk_free(b);
    close_problem(&p);
  }
  qk_free(first);
}

Test(masses, a_limit_and_what_rounding_does_not_give_end_as_not_converged) {
  problem_t p;
  open_problem(&p, action[0], QK_SINGLE, MASSES);
  for (int j = 0; j < COLUMNS; j++) import(&p, j);
  run(&p, 1e-11, 3);
  cr_expect_eq(qk_masses_result(p.masses, 1, 0)->status, QK_NOT_CONVERGED);
  run(&p, 1e-25, 100000);
  for (int k = 0; k < MASSES; k++) {
    const qk_mass_result_t *r = qk_masses_result(p.masses, k, 2);
    cr_expect(r->status == QK_NOT_CONVERGED && r->residual < 1e-14, "%g", r->residual);
  }
  close_problem(&p);
}

Test(masses, refuses_what_is_out_of_range) {
  qk_rig_t rig, wilson;
  qk_masses_t *masses = NULL;
  qk_err_t err = {0};
  open_rig(&rig, action[0], 0.3);
  rig_open(&wilson, NULL, gauge, NULL);
  rig_action(&wilson, "wilson;mass=0.1", -1);
  qk_masses_params_t params = {.inner = QK_SINGLE, .nrhs = 1, .n = 1, .mass = {0.1}};
  cr_expect_eq(qk_masses_create(wilson.op, wilson.work, &params, &masses, &err), QK_UNSUPPORTED);
  cr_expect_not_null(strstr(err.text, "wilson"), "%s", err.text);
  err = (qk_err_t){0};
  params.n = QK_MASSES_MAX + 1;
  cr_expect_eq(qk_masses_create(rig.op, rig.work, &params, &masses, &err), QK_BAD_ARGUMENT);
  params.n = 1;
  err = (qk_err_t){0};
  params.mass[0] = 0;
  cr_expect_eq(qk_masses_create(rig.op, rig.work, &params, &masses, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "masses[0] = 0"), "%s", err.text);
  cr_expect_null(masses);
  rig_close(&wilson);
  rig_close(&rig);
}

/* ---- failures -------------------------------------------------------------------------------- */

/* A solve, given up at the first failure. */
static qk_status_t life(problem_t *p) {
  const qk_masses_params_t params = {
      .inner = QK_SINGLE, .nrhs = COLUMNS, .n = 2, .mass = {0.2, 0.05}};
  qk_err_t err = {0};
  qk_status_t status = qk_masses_create(p->rig.op, p->rig.work, &params, &p->masses, &err);
  if (status != QK_OK) return status;
  qk_dev_blas(&p->rig.dev, QK_BLAS_COPY,
              (qk_blas_args_t){.f = {qk_masses_source(p->masses)->v, p->b->v}});
  status = qk_dev_status(&p->rig.dev);
  if (status == QK_OK) status = qk_masses_begin(p->masses, 1e-9, 1000);
  while (status == QK_OK && !qk_masses_is_over(p->masses)) status = qk_masses_step(p->masses, 5);
  qk_masses_destroy(p->masses);
  return status;
}

/* With passage n of the point failing: as it must, and nothing is left behind. */
static qk_status_t live(const char *point, int n, qk_status_t expected) {
  problem_t p = {.action = action[0]};
  char text[64];
  open_rig(&p.rig, action[0], 0.3);
  rig_must(qk_field_create(&p.rig.dev, QK_DOUBLE, COLUMNS, QK_FULL, &p.b), "field", NULL);
  for (int j = 0; j < COLUMNS; j++) {
    double complex *b = source(&p.rig, j);
    colours_import(&p.rig, p.b, j, b);
    qk_free(b);
  }
  qk_work_trim(p.rig.work);
  const int64_t device = p.rig.dev.ops->allocated(p.rig.dev.ctx), host = qk_mem_bytes();
  snprintf(text, sizeof text, "%s:%d", point, n);
  cr_assert_eq(qk_fault_set(text), 0);
  const qk_status_t status = life(&p);
  cr_assert_eq(qk_fault_set(NULL), 0);
  qk_work_trim(p.rig.work);
  cr_expect(status == QK_OK || status == expected, "%s: %s", text, qk_status_name(status));
  cr_expect(qk_dev_ok(&p.rig.dev), "%s: a failure that nobody has asked for", text);
  cr_expect_eq((int64_t)p.rig.dev.ops->allocated(p.rig.dev.ctx), device, "%s: device memory", text);
  cr_expect_leq(qk_mem_bytes(), host + 4096, "%s: host memory", text); /* handles of work fields */
  qk_field_destroy(p.b);
  rig_close(&p.rig);
  return status;
}

static void fail_everywhere(const char *point, qk_status_t expected) {
  qk_status_t status = expected;
  int n = 0, lives = 0;
  for (; status != QK_OK && lives < 1000; lives++) {
    n += 1 + n / 40;
    status = live(point, n, expected);
  }
  cr_expect(status == QK_OK && lives > 10, "%s: %d lives", point, lives);
}

Test(masses, each_failure_comes_back_and_leaves_nothing) {
  if (getenv("QK_BACKEND") && strcmp(getenv("QK_BACKEND"), "cpu") != 0)
    cr_skip_test("a device that failed is lost");
  fail_everywhere("device-call", QK_DEVICE_ERROR);
}
