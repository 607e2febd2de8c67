#include "tests/unit/engine/krylov/solver_kit.h"

#include <criterion/criterion.h>
#include <math.h>

#include "daemon/base/mem.h"

const char *const solver_methods[SOLVER_METHODS] = {"bicgstab", "cg", "block-cg", "gcr"};
const char smooth_gauge[] = "builtin:weak:4x4x4x4:3";

void open_smooth(qk_rig_t *rig) {
  rig_open(rig, NULL, smooth_gauge, NULL);
  rig_operator(rig, 0.1, 1.2, -1);
}

void put_source(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double factor) {
  double *v = rig_vector(rig);
  rig_random(rig, seed, v);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] *= factor;
  rig_import(rig, qk_solver_rhs(solver, slot), 0, v);
  qk_free(v);
}

double *get_solution(const qk_rig_t *rig, qk_solver_t *solver, int slot) {
  double *v = rig_vector(rig);
  rig_export(rig, qk_solver_solution(solver, slot), 0, v);
  return v;
}

void fill_slot(qk_solver_t *solver, int slot, double tol, int64_t max_iter) {
  cr_assert(qk_solver_fill(solver, slot, tol, max_iter) == QK_OK);
}

void put_and_fill(const qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double tol,
                  int64_t max_iter) {
  put_source(rig, solver, slot, seed, 1);
  fill_slot(solver, slot, tol, max_iter);
}

double residual_of(qk_rig_t *rig, const double *x, uint64_t seed, double factor) {
  double *b = rig_vector(rig), *mx = rig_vector(rig);
  rig_random(rig, seed, b);
  for (size_t i = 0; i < rig_reals(rig); i++) b[i] *= factor;
  rig_apply(rig, x, false, mx);
  double d = rig_distance(rig, mx, b);
  qk_free(mx);
  qk_free(b);
  return d;
}

void expect_solved(qk_rig_t *rig, qk_solver_t *solver, int slot, uint64_t seed, double factor,
                   const char *what) {
  const qk_slot_t *s = qk_solver_slot(solver, slot);
  double *x = get_solution(rig, solver, slot);
  double d = residual_of(rig, x, seed, factor);
  cr_expect(s->state == QK_SLOT_ENDED && s->status == QK_OK, "%s: slot %d: %s", what, slot,
            qk_status_name(s->status));
  cr_expect(s->residual <= s->stopping.tol && fabs(d - s->residual) < 1e-3 * d + 1e-15,
            "%s: slot %d: residual %g, said to be %g, wanted %g", what, slot, d, s->residual,
            s->stopping.tol);
  cr_expect(s->iterations > 0 && s->applications > s->iterations && s->nhistory > 0);
  cr_expect(s->seconds >= 0);
  qk_free(x);
}
