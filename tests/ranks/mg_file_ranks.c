/*
 * mg_file_ranks save|load PATH GX GY GZ GT: on that grid of ranks, sets up multigrid of three
 * levels with deflation and writes its checkpoint, or makes it from the checkpoint. Rank 0 prints,
 * for both, |M v| / |v| of the null vectors of each level, the largest deviations that qk_mg_check
 * finds, and the iterations of a solve.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_file.h"
#include "tests/support/mg_rig.h"

static const char *lattice = "builtin:weak:16x4x4x16:3";

static qk_mg_params_t parameters(void) {
  qk_mg_params_t p = {.nlevel = 3, .deflate = 8};
  for (int l = 0; l < 2; l++) {
    for (int mu = 0; mu < 4; mu++) p.level[l].block[mu] = l == 0 || mu == 0 || mu == 3 ? 2 : 1;
    p.level[l].nvec = l == 0 ? 6 : 8;
    p.level[l].setup_iterations = 20;
    p.level[l].setup_passes = -1;
    p.level[l].prolongator = l == 0 ? QK_HALF : QK_SINGLE;
  }
  return p;
}

static void save(const qk_mg_t *mg, const char *path, const qk_mg_identity_t *id) {
  qk_mg_save_t *s;
  qk_err_t err = {0};
  bool ended = false;
  rig_must(qk_mg_save_begin(mg, path, id, &s, &err), "save", &err);
  while (!ended) rig_must(qk_mg_save_poll(&s, false, &ended, &err), "poll", &err);
}

static int64_t iterations(qk_rig_t *rig, const mg_rig_t *m) {
  double *v = rig_vector(rig);
  rig_random(rig, 7, v);
  rig_import(rig, qk_solver_rhs(m->solver, 0), 0, v);
  qk_free(v);
  rig_must(qk_solver_fill(m->solver, 0, 1e-9, 200), "fill", NULL);
  rig_run(m->solver);
  const qk_slot_t *slot = qk_solver_slot(m->solver, 0);
  rig_must(slot->status, "solve", NULL);
  return slot->iterations;
}

int main(int argc, char **argv) {
  qk_err_t err = {0};
  qk_comm_t *comm = rig_ranks(&argc, &argv, 3);
  qk_rig_t rig;
  mg_rig_t m = {0};
  if (!comm || argc != 7) {
    fprintf(stderr, "usage: mg_file_ranks save|load PATH GX GY GZ GT\n");
    return 64;
  }
  rig_open(&rig, comm, lattice, NULL);
  rig_operator(&rig, 0.05, 1, -1);
  const qk_mg_params_t params = parameters();
  const qk_mg_identity_t id = {.gauge_digest = rig.check.digest,
                               .operator_text = "wilson-clover;mass=0.05;csw=1",
                               .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}}};
  if (strcmp(argv[1], "save") == 0) {
    rig_must(qk_mg_create(rig.op, rig.work, &params, NULL, NULL, &m.mg, &err), "multigrid", &err);
    save(m.mg, argv[2], &id);
  } else {
    rig_must(qk_mg_load(rig.op, rig.work, argv[2], &id, &params, NULL, NULL, &m.mg, &err), "load",
             &err);
    rig_must(qk_mg_check(m.mg, NULL, NULL, &err), "check", &err);
  }
  mg_rig_slots(&rig, &m, QK_SINGLE, 1, 0);
  const int64_t n = iterations(&rig, &m);
  const qk_mg_level_health_t *a = &m.mg->level[0].health, *b = &m.mg->level[1].health;
  if (qk_comm_rank(rig.comm) == 0)
    printf("%.8e %.8e %.2e %.2e %d\n", a->null_residual, b->null_residual,
           a->orthonormality + b->orthonormality, a->galerkin + b->galerkin, (int)n);
  mg_rig_close(&m);
  rig_close(&rig);
  return 0;
}
