/*
 * The price of mixed precision on thermalised fields: operator applications until 1e-12 in double,
 * all precisions counted alike, against those of the pure double solver.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "proto/action/operator_text.h"
#include "tests/support/rig.h"

enum { COLUMNS = 8 }; /* one tile */

typedef struct price {
  int64_t columns; /* applications charged to the columns */
  int64_t blocks;  /* applications to the whole block */
} price_t;

static price_t solve_columns(qk_rig_t *rig, const char *method, qk_prec_t inner) {
  price_t price = {0};
  double *v = rig_vector(rig);
  qk_solver_t *solver = rig_solver(rig, method, inner, COLUMNS);
  int64_t *count = rig->op->applications;
  count[0] = count[1] = count[2] = 0;
  for (int i = 0; i < COLUMNS; i++) {
    rig_point(rig, i / 3, i % 3, v);
    rig_import(rig, qk_solver_rhs(solver, i), 0, v);
  }
  for (int i = 0; i < COLUMNS; i++) rig_must(qk_solver_fill(solver, i, 1e-12, 5000), "fill", NULL);
  rig_run(solver);
  for (int i = 0; i < COLUMNS; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    cr_expect(s->status == QK_OK && s->residual <= 1e-12, "%s: %g", qk_status_name(s->status),
              s->residual);
    price.columns += s->applications;
  }
  price.blocks = count[0] + count[1] + count[2];
  qk_solver_destroy(solver);
  qk_free(v);
  return price;
}

static void compare(const char *file, double mass, double csw, const char *method) {
  const double limit[3] = {1, 1.15, 1.4};
  char path[1024];
  const char *folder = getenv("QK_DATA");
  snprintf(path, sizeof path, "%s/%s", folder ? folder : "../shared/data", file);
  if (access(path, R_OK)) cr_skip_test("no %s in QK_DATA", file);
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  price_t price[3];
  rig_open(&rig, NULL, path, NULL);
  rig_operator(&rig, mass, csw, -1);
  for (int p = 0; p < 3; p++) {
    price[p] = solve_columns(&rig, method, (qk_prec_t)p);
    double columns = (double)price[p].columns / (double)price[0].columns;
    double blocks = (double)price[p].blocks / (double)price[0].blocks;
    fprintf(stderr,
            "%s %s, precision %d: %.1f applications a column (x %.3f), %ld of the block (x %.3f)\n",
            file, method, p, (double)price[p].columns / COLUMNS, columns, (long)price[p].blocks,
            blocks);
    cr_expect(columns <= limit[p], "%s, precision %d: %.3f times the applications", method, p,
              columns);
  }
  rig_close(&rig);
}

Test(mixed, bicgstab_on_quenched_b6) {
  compare("dd_8x8x8x8b6.0000id3n1", -0.3, 1.6, "bicgstab");
}
Test(mixed, bicgstab_on_milc_l8888) {
  compare("milc_lat.sample.l8888", qk_mass_of_kappa(0.13), 1.5, "bicgstab");
}
Test(mixed, bicgstab_without_clover) {
  compare("cl2qcd_conf.00200", qk_mass_of_kappa(0.14), 0, "bicgstab");
}
Test(mixed, cg_on_milc_l4448) {
  compare("milc_lat.sample.l4448", qk_mass_of_kappa(0.13), 1.5, "cg");
}
Test(mixed, gcr_on_milc_l4448) {
  compare("milc_lat.sample.l4448", qk_mass_of_kappa(0.13), 1.5, "gcr");
}
