#include "tests/support/mg_rig.h"

#include <string.h>

qk_mg_params_t mg_rig_small_params(int nlevel) {
  qk_mg_params_t p = {.nlevel = nlevel, .seed = 7};
  for (int l = 0; l + 1 < nlevel; l++) {
    const int block[2][4] = {{2, 2, 2, 2}, {1, 1, 2, 2}};
    memcpy(p.level[l].block, block[l], sizeof block[l]);
    p.level[l].nvec = 6 - 2 * l;
    p.level[l].setup_iterations = 20;
    p.level[l].setup_passes = -1;
  }
  return p;
}

void mg_rig_slots(qk_rig_t *rig, mg_rig_t *m, qk_prec_t outer, int nslot, int keep) {
  qk_err_t err = {0};
  qk_solver_destroy(m->solver);
  qk_cycle_vectors_destroy(m->vectors);
  qk_cycle_destroy(m->cycle);
  rig_must(qk_cycle_create(m->mg, outer, nslot, &m->cycle, &err), "cycle", &err);
  rig_must(qk_cycle_vectors_create(m->cycle, rig->op, &m->vectors), "cycle", NULL);
  qk_solver_params_t p = {.method = "gcr",
                          .inner = outer,
                          .nslot = nslot,
                          .check = 1,
                          .gcr_keep = keep,
                          .precond = qk_cycle_vectors_precond(m->cycle, m->vectors)};
  rig_must(qk_solver_create(rig->op, rig->op->work, &p, &m->solver, &err), "solver", &err);
}

void mg_rig_open(qk_rig_t *rig, const qk_mg_params_t *params, qk_prec_t outer, int nslot,
                 mg_rig_t *m) {
  static const qk_mg_params_t defaults;
  qk_err_t err = {0};
  *m = (mg_rig_t){0};
  rig_must(qk_mg_create(qk_operator_base(rig->op), rig->work, params ? params : &defaults, NULL,
                        NULL, &m->mg, &err),
           "multigrid", &err);
  mg_rig_slots(rig, m, outer, nslot, 0);
}

void mg_rig_close(mg_rig_t *m) {
  qk_solver_destroy(m->solver);
  qk_cycle_vectors_destroy(m->vectors);
  qk_cycle_destroy(m->cycle);
  qk_mg_destroy(m->mg);
}
