/*
 * mg_file_ranks save|load PATH GAUGE GX GY GZ GT: on that grid of ranks, sets up multigrid of
 * 8x8x8x16 in three levels, with vectors condensed from more test vectors, a polynomial smoother
 * and deflation, and writes its checkpoint, or makes it from the checkpoint. Rank 0 prints, for
 * both, |M v| / |v| of the null vectors of each level, the largest deviations that qk_mg_check
 * finds, the lowest singular value of the coarsest level, the factor of the residual in an outer
 * iteration, and the iterations of a solve.
 */
#include <stdio.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/checkpoint/mg_file.h"
#include "daemon/engine/eigen/deflation.h"
#include "tests/support/mg_rig.h"

static const double mass = -0.295, csw = 1.769; /* near critical on thermalised links */

/* Level 1 is 4x4x4x8, level 2 is 4x4x2x4: eight ranks have two sites of it in each direction. */
static const qk_mg_params_t parameters = {.nlevel = 3,
                                          .deflate = 8,
                                          .level = {{.block = {2, 2, 2, 2},
                                                     .nvec = 8,
                                                     .ntest = 12,
                                                     .setup_iterations = 20,
                                                     .setup_passes = 1,
                                                     .prolongator = QK_HALF},
                                                    {.block = {1, 1, 2, 2},
                                                     .nvec = 8,
                                                     .setup_iterations = 20,
                                                     .setup_passes = -1,
                                                     .iterations = 2},
                                                    {.iterations = 4}}};

static void save(const qk_mg_t *mg, const char *path, const qk_mg_identity_t *id) {
  qk_mg_save_t *s;
  qk_err_t err = {0};
  bool ended = false;
  rig_must(qk_mg_save_begin(mg, path, id, &s, &err), "save", &err);
  while (!ended) rig_must(qk_mg_save_poll(&s, false, &ended, &err), "poll", &err);
}

static int iterations(qk_rig_t *rig, const mg_rig_t *m, uint64_t seed) {
  double *v = rig_vector(rig);
  rig_random(rig, seed, v);
  rig_import(rig, qk_solver_rhs(m->solver, 0), 0, v);
  qk_free(v);
  rig_must(qk_solver_fill(m->solver, 0, 1e-10, 200), "fill", NULL);
  rig_run(m->solver);
  const qk_slot_t *slot = qk_solver_slot(m->solver, 0);
  rig_must(slot->status, "solve", NULL);
  return (int)slot->iterations;
}

static void print(qk_rig_t *rig, const mg_rig_t *m) {
  const qk_mg_level_health_t *a = &m->mg->level[0].health, *b = &m->mg->level[1].health;
  const int n = iterations(rig, m, 7);
  if (qk_comm_rank(rig->comm) != 0) return;
  printf("%.8e %.8e %.2e %.2e %.8e %.8e %d\n", a->null_residual, b->null_residual,
         a->orthonormality + b->orthonormality, a->galerkin + b->galerkin,
         qk_deflation_values(m->mg->deflation)[0], m->mg->convergence, n);
}

int main(int argc, char **argv) {
  qk_err_t err = {0};
  qk_comm_t *comm = rig_ranks(&argc, &argv, 4);
  qk_rig_t rig;
  mg_rig_t m = {0};
  if (!comm || argc != 8) {
    fprintf(stderr, "usage: mg_file_ranks save|load PATH GAUGE GX GY GZ GT\n");
    return 64;
  }
  rig_open(&rig, comm, argv[3], NULL);
  rig_operator(&rig, mass, csw, -1);
  const qk_mg_identity_t id = {.gauge_digest = rig.check.digest,
                               .operator_text = "wilson-clover;mass=-0.295;csw=1.769",
                               .phase = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}}};
  if (strcmp(argv[1], "save") == 0) {
    rig_must(qk_mg_create(rig.op, rig.work, &parameters, NULL, NULL, &m.mg, &err), "multigrid",
             &err);
    save(m.mg, argv[2], &id);
  } else {
    rig_must(qk_mg_load(rig.op, rig.work, argv[2], &id, &parameters, NULL, NULL, &m.mg, &err),
             "load", &err);
    rig_must(qk_mg_check(m.mg, NULL, NULL, &err), "check", &err);
  }
  mg_rig_slots(&rig, &m, QK_SINGLE, 1, 0);
  print(&rig, &m);
  mg_rig_close(&m);
  rig_close(&rig);
  return 0;
}
