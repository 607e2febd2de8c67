/* What is summed of solutions of domain wall fermions: by the axial Ward identity, which quark,
 * mid-point and current enter, at each time slice. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "tests/unit/engine/krylov/solver_kit.h"

enum { REALS = 24, NT = 8 };

static const char gauge[] = "random:4x2x4x8:19";

/* (a, b) of time slice t: real part. */
static double dot(const qk_rig_t *rig, const double *a, const double *b, int t) {
  const size_t n = (size_t)(rig->geom.volume / NT) * REALS;
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += a[(size_t)t * n + i] * b[(size_t)t * n + i];
  return sum;
}

/* A(t) - A(t-1) = 2 m sum |q|^2 + 2 sum |mid|^2 - 2 Re (b, q) */
static void expect_ward(qk_rig_t *rig, qk_solver_t *solver, int slot, const double *b, double mass,
                        const char *action) {
  const double *sums = qk_solver_wall_sums(solver, slot);
  double *q = get_solution(rig, solver, slot), most = 0;
  cr_assert_not_null(sums);
  const double *quark = sums + QK_WALL_QUARK * NT, *midpoint = sums + QK_WALL_MIDPOINT * NT,
               *axial = sums + QK_WALL_AXIAL * NT;
  for (int t = 0; t < NT; t++) most = fmax(most, fabs(axial[t]));
  for (int t = 0; t < NT; t++) {
    const double square = dot(rig, q, q, t);
    const double want = 2 * mass * square + 2 * midpoint[t] - 2 * dot(rig, b, q, t);
    const double got = axial[t] - axial[(t + NT - 1) % NT];
    cr_expect(fabs(quark[t] - square) < 1e-12 * square, "%s: t = %d: %.15g, |q|^2 = %.15g", action,
              t, quark[t], square);
    cr_expect(fabs(got - want) < 1e-9 * most, "%s: t = %d: %.15g is not %.15g", action, t, got,
              want);
  }
  qk_free(q);
}

/* In two slots at once. */
static void check(const char *action, double mass) {
  qk_rig_t rig;
  rig_open(&rig, NULL, gauge, NULL);
  rig_action(&rig, action, -1);
  qk_solver_t *solver = rig_solver(&rig, "cg", QK_DOUBLE, 2);
  double *b[2] = {rig_vector(&rig), rig_vector(&rig)};
  rig_random(&rig, 5, b[0]);
  rig_point(&rig, 2, 1, b[1]);
  for (int i = 0; i < 2; i++) {
    rig_import(&rig, qk_solver_rhs(solver, i), 0, b[i]);
    rig_must(qk_solver_fill(solver, i, 1e-12, 100000), "fill", NULL);
  }
  rig_run(solver);
  for (int i = 0; i < 2; i++) expect_ward(&rig, solver, i, b[i], mass, action);
  qk_solver_destroy(solver);
  for (int i = 0; i < 2; i++) qk_free(b[i]);
  rig_close(&rig);
}

Test(wall_sums, obey_the_ward_identity_of_shamirs_fermions) {
  check("moebius;mass=0.3;M5=1.4;Ls=4", 0.3);
}

Test(wall_sums, obey_the_ward_identity_of_moebius_fermions) {
  check("moebius;mass=0.3;M5=1.4;Ls=6;b=1.5;c=0.5", 0.3);
}

Test(wall_sums, obey_it_on_more_slices_than_a_propagator_has_columns) {
  check("moebius;mass=0.3;M5=1.4;Ls=14;b=0.7;c=0.2;xi0=1.3;nu=1.1", 0.3);
}

Test(wall_sums, are_none_of_other_actions) {
  qk_rig_t rig;
  rig_open(&rig, NULL, gauge, NULL);
  rig_operator(&rig, 0.2, 1.1, -1);
  qk_solver_t *solver = rig_solver(&rig, "cg", QK_DOUBLE, 2);
  cr_expect_null(qk_solver_wall_sums(solver, 1));
  qk_solver_destroy(solver);
  rig_close(&rig);
}
