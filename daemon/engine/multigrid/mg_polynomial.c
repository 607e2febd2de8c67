#include "daemon/engine/multigrid/mg_polynomial.h"

#include <math.h>
#include <stdio.h>

#include "daemon/base/log.h"
#include "daemon/engine/multigrid/cycle.h"

enum { ROUNDS = 2, OUTER = 8 };

static qk_status_t set_source(const qk_mg_t *mg, qk_solver_t *solver, int round) {
  const qk_device_t *dev = &mg->level[0].dev;
  const qk_noise_args_t noise = {.lat = dev->geom->lat,
                                 .field = qk_solver_rhs(solver, 0)->v,
                                 .rhs = -1,
                                 .seed = mg->params.seed + 15485863 + (uint64_t)round};
  return dev->ops->noise(dev->ctx, &noise);
}

/* *rate: log of what an iteration leaves of the residual; NaN where it is not finite. */
static qk_status_t solve(qk_solver_t *solver, double *rate) {
  const qk_slot_t *slot = qk_solver_slot(solver, 0);
  qk_status_t status = qk_solver_fill(solver, 0, 1e-9, OUTER);
  while (!status && qk_solver_running(solver)) status = qk_solver_step(solver);
  *rate = log(slot->residual) / (double)(slot->iterations > 0 ? slot->iterations : 1);
  return status;
}

/* Solves a random source, whose residuals after the coarse correction teach. */
static qk_status_t learn_with(qk_mg_t *mg, qk_cycle_t *cycle, int round, qk_learning_t *to,
                              double *rate, qk_err_t *err) {
  qk_mg_level_t *finest = &mg->level[0];
  qk_solver_t *solver = NULL;
  const qk_solver_params_t params = {.method = "gcr",
                                     .inner = QK_SINGLE,
                                     .nslot = 1,
                                     .check = 1,
                                     .precond = qk_cycle_precond(cycle)};
  qk_status_t status = qk_solver_create(finest->op, finest->work, &params, &solver, err);
  if (status) return status;
  status = qk_cycle_learn(cycle, to);
  status = qk_comm_agree(finest->geom.comm, status ? status : set_source(mg, solver, round), err);
  status = status ? status : qk_comm_agree(finest->geom.comm, solve(solver, rate), err);
  qk_cycle_learn(cycle, NULL);
  qk_solver_destroy(solver);
  return status;
}

/* With the polynomial as it is: ca-gcr at first. */
static qk_status_t learn(qk_mg_t *mg, int round, qk_learning_t *to, double *rate, qk_err_t *err) {
  qk_mg_t without_graphs = *mg;
  qk_cycle_t *cycle = NULL;
  without_graphs.params.no_graphs = true;
  qk_status_t status = qk_cycle_create(&without_graphs, QK_SINGLE, 1, &cycle, err);
  if (status) return status;
  status = learn_with(mg, cycle, round, to, rate, err);
  qk_cycle_destroy(cycle);
  for (int l = 0; l < mg->nlevel; l++) qk_work_trim(mg->level[l].work);
  return status;
}

static void say(const qk_mg_t *mg) {
  const qk_polynomial_t *p = &mg->level[0].polynomial;
  char text[QK_POLYNOMIAL_MAX * 16] = "";
  size_t n = 0;
  for (int i = 0; i < p->n; i++) n += (size_t)snprintf(text + n, sizeof text - n, " %.4f", p->c[i]);
  if (qk_comm_rank(mg->level[0].geom.comm) == 0)
    qk_debug("multigrid", "level 0: coefficients of the polynomial:%s", text);
}

static bool is_polynomial(const qk_mg_t *mg) {
  const qk_operator_t *op = mg->level[0].op;
  const qk_mg_level_params_t *p = &mg->params.level[0];
  return p->smoother.kind == QK_SMOOTHER_POLYNOMIAL && op->ops->neumann && !op->schur.is &&
         p->post >= 2 && p->post <= QK_POLYNOMIAL_MAX;
}

qk_status_t qk_mg_learn_polynomial(qk_mg_t *mg, double *rate, qk_progress_fn *progress, void *arg,
                                   qk_err_t *err) {
  qk_polynomial_t *polynomial = &mg->level[0].polynomial;
  double rates[ROUNDS] = {0};
  polynomial->n = 0;
  if (!is_polynomial(mg)) return QK_OK;
  for (int round = 0; round < ROUNDS; round++) {
    qk_learning_t learning = {{{0}}};
    if (progress) progress(arg, "polynomial", round, ROUNDS);
    const qk_status_t status = learn(mg, round, &learning, &rates[round], err);
    if (status) return status;
    if (!qk_polynomial_fit(&learning, mg->params.level[0].post, polynomial)) polynomial->n = 0;
    if (polynomial->n == 0) return QK_OK;
    say(mg);
  }
  *rate = rates[0];
  return QK_OK;
}
