#include "tests/support/mg_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/setup/mg_grid.h"

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

static void lay_out(qk_comm_t *comm, const char *gauge, int grid[4]) {
  static const qk_mg_params_t defaults;
  const char *backend = getenv("QK_BACKEND");
  const bool gpu = backend != NULL && strcmp(backend, "cuda") == 0;
  qk_gauge_info_t file;
  qk_err_t err = {0};
  memset(grid, 0, 4 * sizeof *grid);
  rig_must(qk_gauge_probe(gauge, NULL, &file, &err), gauge, &err);
  rig_must(qk_mg_choose_grid(qk_comm_size(comm), file.dims, &defaults,
                             gpu ? &qk_tuning_gpu : &qk_tuning_cpu, grid, NULL, NULL, &err),
           "grid", &err);
  rig_must(qk_comm_set_grid(comm, grid, &err), "grid", &err);
}

qk_comm_t *mg_rig_ranks(int *argc, char ***argv, const char *gauge) {
  qk_err_t err = {0};
  qk_comm_t *comm;
  int grid[4];
  if (!getenv("OMPI_COMM_WORLD_SIZE")) return NULL;
  rig_must(qk_comm_mpi_create(argc, argv, &comm, &err), "mpi", &err);
  lay_out(comm, gauge, grid);
  if (qk_comm_rank(comm) != 0 && !freopen("/dev/null", "w", stdout)) abort();
  printf("%d ranks: %dx%dx%dx%d\n", qk_comm_size(comm), grid[0], grid[1], grid[2], grid[3]);
  return comm;
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

/* ---- passes in double ------------------------------------------------------------------------ */

typedef struct path {
  qk_rig_t *rig;
  double iterated; /* when the last step had done its iterations */
  double begin, update, end, nothing;
  int updates, ends, nothings;
} path_t;

static void wait_for(const qk_rig_t *rig) {
  rig_must(rig->dev.ops->queue_sync(rig->dev.ctx, 0), "queue", NULL);
}

/* The device has been given the iterations of a step: what follows them is the check point. */
static qk_status_t stamp(void *self) {
  path_t *p = self;
  wait_for(p->rig);
  p->iterated = qk_clock_now();
  return QK_OK;
}

static void fill(path_t *p, qk_solver_t *solver, int n, double tol) {
  int slot[QK_MAX_RHS];
  double tols[QK_MAX_RHS];
  int64_t most[QK_MAX_RHS];
  for (int i = 0; i < n; i++) {
    slot[i] = i;
    tols[i] = tol;
    most[i] = 20000;
    qk_solver_clear(solver, i);
  }
  wait_for(p->rig);
  const double start = qk_clock_now();
  rig_must(qk_solver_fill_many(solver, slot, n, tols, most), "fill", NULL);
  wait_for(p->rig);
  p->begin = qk_clock_now() - start;
}

static void step(path_t *p, qk_solver_t *solver) {
  const int64_t before = p->rig->op->applications[QK_DOUBLE];
  const int running = qk_solver_running(solver);
  rig_must(qk_solver_step(solver), "step", NULL);
  wait_for(p->rig);
  const double seconds = qk_clock_now() - p->iterated;
  const bool updated = p->rig->op->applications[QK_DOUBLE] != before;
  const bool ended = qk_solver_running(solver) != running;
  *(ended ? &p->end : updated ? &p->update : &p->nothing) += seconds;
  *(ended ? &p->ends : updated ? &p->updates : &p->nothings) += 1;
}

void mg_rig_show_double(qk_rig_t *rig, qk_solver_t *solver, int n, double tol) {
  path_t p = {.rig = rig};
  const int64_t before = rig->op->applications[QK_DOUBLE];
  fill(&p, solver, n, tol);
  qk_solver_set_beside(solver, (qk_beside_t){.begin = stamp, .self = &p});
  while (qk_solver_running(solver)) step(&p, solver);
  qk_solver_set_beside(solver, (qk_beside_t){0});
  const double ms = 1e3 / n;
  printf("%16s double path, ms per RHS: begin %.2f, %d steps with updates %.2f, %d with ends %.2f, "
         "sum %.2f; %d without %.2f; %.2f applications in double\n",
         "", ms * p.begin, p.updates, ms * p.update, p.ends, ms * p.end,
         ms * (p.begin + p.update + p.end), p.nothings, ms * p.nothing,
         (double)(rig->op->applications[QK_DOUBLE] - before) / n);
}
