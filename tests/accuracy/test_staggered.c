/*
 * The condensate of naive staggered fermions that CL2QCD's tests have (AG-Philipsen/cl2qcd at
 * 8657ff5b, physics/observables/staggeredChiralCondensate_test.cpp), to 1e-12: on its configuration
 * in QK_DATA and on unit links, 4^4, periodic, mass 0.1: 1/2 <1| (m + D/2)^-1 |1> / V, |1> being 1
 * in all components.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "tests/support/staggered/colours.h"

static double complex condensate(const qk_rig_t *rig, qk_solver_t *solver) {
  double complex *ones = colours_vector(rig), *x = colours_vector(rig);
  for (size_t i = 0; i < colours_numbers(rig); i++) ones[i] = 1;
  colours_import(rig, qk_solver_rhs(solver, 0), 0, ones);
  rig_must(qk_solver_fill(solver, 0, 1e-13, 4000), "fill", NULL);
  rig_run(solver);
  cr_expect_leq(qk_solver_slot(solver, 0)->residual, 1e-12);
  colours_export(rig, qk_solver_solution(solver, 0), 0, x);
  const double complex sum = colours_dot(rig, ones, x);
  qk_free(x);
  qk_free(ones);
  return sum / (2 * (double)rig->geom.volume);
}

static void expect_condensate(const char *gauge, double complex wanted) {
  qk_rig_t rig;
  colours_open(&rig, NULL, gauge, NULL, "staggered;mass=0.1", 1);
  for (int p = 0; p < QK_PRECS; p++) {
    qk_solver_t *solver = rig_solver(&rig, "cg", (qk_prec_t)p, 1);
    const double complex got = condensate(&rig, solver);
    cr_expect_leq(cabs(got - wanted), 1e-12 * cabs(wanted), "%s, precision %d: %.16g %+.16g i",
                  gauge, p, creal(got), cimag(got));
    qk_solver_destroy(solver);
  }
  rig_close(&rig);
}

Test(staggered, condensate_of_a_configuration) {
  if (!rig_backend_present()) cr_skip_test("no device");
  const char *folder = getenv("QK_DATA");
  char path[1024];
  snprintf(path, sizeof path, "%s/cl2qcd_conf.00200", folder ? folder : "../shared/data");
  if (access(path, R_OK) != 0) cr_skip_test("no %s", path);
  expect_condensate(path, 0.2034403970729678 - 0.00655061784868673 * I);
}

Test(staggered, condensate_of_unit_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  expect_condensate("builtin:unit:4x4x4x4", 15);
}
