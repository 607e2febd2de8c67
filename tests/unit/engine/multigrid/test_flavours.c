/* Both flavours of twisted mass in one block: each solver, and multigrid. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/support/mg_rig.h"

enum { N = 9 };
static const double tol = 1e-10;

static bool mixed(int i) {
  return i % 3 == 1;
}
static bool none(int i) {
  return i < 0;
}
static bool all(int i) {
  return i >= 0;
}
typedef bool flavour_fn(int i);

/* Sources 100, 101, ... of these flavours in the slots; solutions to x. */
static void solve(const qk_rig_t *rig, qk_solver_t *solver, flavour_fn *is_minus, double *x[N]) {
  for (int i = 0; i < N; i++) {
    rig_random(rig, 100 + (uint64_t)i, x[i]);
    rig_import(rig, qk_solver_rhs(solver, i), 0, x[i]);
    rig_must(qk_solver_set_flavour(solver, i, is_minus(i) ? -1 : 1), "flavour", NULL);
    rig_must(qk_solver_fill(solver, i, tol, 10000), "fill", NULL);
  }
  rig_run(solver);
  for (int i = 0; i < N; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_assert(s->status == QK_OK && s->residual <= tol, "slot %d: %s, %g", i,
              qk_status_name(s->status), s->residual);
    rig_export(rig, qk_solver_solution(solver, i), 0, x[i]);
    qk_solver_clear(solver, i);
  }
}

/* |b - M x| / |b| with M of the flavour. */
static double residual(qk_rig_t *rig, int i, bool is_minus, const double *x) {
  const uint8_t one = is_minus;
  uint8_t *flavour = rig_flavours(rig, &one, 1);
  double *b = rig_vector(rig), *mx = rig_vector(rig);
  rig_random(rig, 100 + (uint64_t)i, b);
  qk_flavours_set(rig->op, flavour);
  rig_apply(rig, x, false, mx);
  qk_flavours_set(rig->op, NULL);
  const double off = rig_distance(rig, mx, b);
  qk_free(mx);
  qk_free(b);
  rig->dev.ops->free(rig->dev.ctx, flavour);
  return off;
}

/* Each solves the equation of its flavour, with the bits that it has among its own. */
static void expect_flavours(qk_rig_t *rig, qk_solver_t *solver, const char *what) {
  const size_t bytes = rig_reals(rig) * sizeof(double);
  double *x[N], *alone[N];
  for (int i = 0; i < N; i++) {
    x[i] = rig_vector(rig);
    alone[i] = rig_vector(rig);
  }
  solve(rig, solver, mixed, x);
  for (int i = 0; i < N; i++) {
    const double off = residual(rig, i, mixed(i), x[i]);
    cr_expect(off <= 1.01 * tol, "%s, slot %d: residual %g", what, i, off);
  }
  for (int sign = 0; sign < 2; sign++) {
    solve(rig, solver, sign ? all : none, alone);
    for (int i = 0; i < N; i++)
      cr_expect_eq(memcmp(x[i], alone[i], bytes) == 0, mixed(i) == sign,
                   "%s, slot %d among those of %s", what, i, sign ? "-1" : "+1");
  }
  for (int i = 0; i < N; i++) {
    qk_free(alone[i]);
    qk_free(x[i]);
  }
}

static const char small[] = "builtin:weak:4x4x8x8:3";
static const char twisted[] = "twisted-clover;mass=-0.1;mu=0.2;csw=1.2";

Test(flavours, of_every_solver, .timeout = 120) {
  static const char *const method[] = {"bicgstab", "cg", "gcr"};
  static const char *const action[] = {twisted, "twisted-clover;mass=0.1;mu=-0.3"};
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, small, NULL);
  for (int a = 0; a < 2; a++)
    for (int k = 0; k < 3; k++) {
      rig_action(&rig, action[a], -1);
      qk_solver_t *solver = rig_solver(&rig, method[k], QK_SINGLE, N);
      expect_flavours(&rig, solver, method[k]);
      qk_solver_destroy(solver);
    }
  rig_close(&rig);
}

Test(flavours, of_multigrid, .timeout = 120) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  mg_rig_t m;
  rig_open(&rig, NULL, small, NULL);
  rig_action(&rig, twisted, -1);
  for (int k = 0; k < 2; k++) {
    qk_mg_params_t params = mg_rig_small_params(3);
    params.deflate = k == 0 ? 8 : -1;
    params.level[0].setup_passes = params.level[1].setup_passes = 1;
    params.level[2].twist = k == 0 ? 1 : 5;
    mg_rig_open(&rig, &params, QK_SINGLE, N, &m);
    expect_flavours(&rig, m.solver, k == 0 ? "deflated" : "with a factor");
    mg_rig_close(&m);
  }
  rig_close(&rig);
}

Test(flavours, are_one_or_minus_one_and_set_while_a_slot_is_free) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, small, NULL);
  rig_action(&rig, twisted, -1);
  qk_solver_t *solver = rig_solver(&rig, "bicgstab", QK_SINGLE, N);
  cr_expect_eq(qk_solver_set_flavour(solver, 0, 0), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_solver_set_flavour(solver, 0, 2), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_solver_set_flavour(solver, N, 1), QK_BAD_ARGUMENT);
  double *v = rig_vector(&rig);
  rig_random(&rig, 100, v);
  rig_import(&rig, qk_solver_rhs(solver, 0), 0, v);
  rig_must(qk_solver_fill(solver, 0, tol, 10), "fill", NULL);
  cr_expect_eq(qk_solver_set_flavour(solver, 0, -1), QK_BAD_ARGUMENT);
  qk_free(v);
  qk_solver_destroy(solver);
  rig_close(&rig);
}
