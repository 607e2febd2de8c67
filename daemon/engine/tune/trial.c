#include "daemon/engine/tune/trial.h"

#include <math.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/multigrid/cycle_vectors.h"

/* A solve that needs more outer iterations than this is not worth waiting for. */
enum { MOST_ITERATIONS = 150 };

/* The parameters that a hierarchy is made of: those of the cycle alone are cleared. */
static qk_mg_params_t of_setup(const qk_mg_params_t *params) {
  qk_mg_params_t p = *params;
  p.no_graphs = false;
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++) {
    qk_mg_level_params_t *level = &p.level[l];
    level->pre = level->post = level->iterations = 0;
    level->tol = 0;
    level->smoother = (qk_smoother_params_t){0};
    level->smoother_prec = QK_DOUBLE;
  }
  return p;
}

static qk_status_t make_hierarchy(qk_trial_t *t, const qk_mg_params_t *params, double *seconds,
                                  qk_err_t *err) {
  if (t->mg) {
    qk_mg_params_t have = of_setup(&t->mg->params), want = of_setup(params);
    *seconds = t->mg->setup_seconds;
    t->mg->params = *params;
    if (memcmp(&have, &want, sizeof have) == 0) return QK_OK;
    qk_mg_destroy(t->mg);
    t->mg = NULL;
    qk_work_trim(t->work);
  }
  qk_status_t status =
      qk_mg_create(qk_operator_base(t->op), t->work, params, NULL, NULL, &t->mg, err);
  if (status == QK_OK) *seconds = t->mg->setup_seconds;
  return status;
}

static qk_status_t import_noise(const qk_trial_t *t, qk_solver_t *solver) {
  const qk_device_t *dev = t->op->dev;
  for (int i = 0; i < t->nrhs; i++) {
    const qk_field_t *b = qk_solver_rhs(solver, i);
    qk_source_args_t a = {.lat = dev->geom->lat,
                          .kind = QK_SOURCE_Z4,
                          .site = {0, 0, 0, -1},
                          .spin = -1,
                          .colour = -1};
    qk_status_t status = QK_OK;
    for (int k = 0; k < qk_field_vectors(b) && status == QK_OK; k++) {
      a.field = qk_field_vector(b, k).v;
      a.seed = (uint64_t)i + (uint64_t)k * (uint64_t)t->nrhs;
      status = dev->ops->source(dev->ctx, &a);
    }
    if (status) return status;
    if (t->op->twist == 0) continue;
    status = qk_solver_set_flavour(solver, i, 2 * i < t->nrhs ? 1 : -1); /* both in the batch */
    if (status) return status;
  }
  return QK_OK;
}

/* One block to tol; seconds a RHS, mean iterations, and the worst status of a RHS in result. */
static qk_status_t solve(const qk_trial_t *t, qk_solver_t *solver, double tol,
                         qk_trial_result_t *result) {
  int slot[QK_MAX_RHS];
  double tols[QK_MAX_RHS];
  int64_t most[QK_MAX_RHS];
  for (int i = 0; i < t->nrhs; i++) {
    qk_solver_clear(solver, i);
    slot[i] = i;
    tols[i] = tol;
    most[i] = MOST_ITERATIONS;
  }
  qk_status_t status = import_noise(t, solver);
  if (status) return status;
  status = t->op->dev->ops->queue_sync(t->op->dev->ctx, 0);
  if (status) return status;
  double start = qk_clock_now();
  status = qk_solver_fill_many(solver, slot, t->nrhs, tols, most);
  while (status == QK_OK && qk_solver_running(solver) > 0) status = qk_solver_step(solver);
  if (status) return status;
  result->seconds = (qk_clock_now() - start) / t->nrhs;
  result->iterations = 0;
  result->status = QK_OK;
  for (int i = 0; i < t->nrhs; i++) {
    const qk_slot_t *s = qk_solver_slot(solver, i);
    result->iterations += (double)s->iterations / t->nrhs;
    if (s->status != QK_OK) result->status = s->status;
  }
  return QK_OK;
}

static qk_status_t measure_solver(const qk_trial_t *t, qk_precond_t precond,
                                  qk_trial_result_t *result, qk_err_t *err) {
  const qk_device_t *dev = t->op->dev;
  const qk_solver_params_t p = {
      .method = "gcr", .inner = QK_SINGLE, .nslot = t->nrhs, .check = 1, .precond = precond};
  qk_solver_t *solver;
  qk_status_t status = qk_solver_create(t->op, t->op->work, &p, &solver, err);
  if (status) return status;
  status = solve(t, solver, 0.1, result); /* allocates, records graphs */
  if (status == QK_OK) status = solve(t, solver, t->tol, result);
  if (status == QK_OK) result->bytes = dev->ops->allocated(dev->ctx);
  qk_solver_destroy(solver);
  return status;
}

static qk_status_t measure(const qk_trial_t *t, qk_trial_result_t *result, qk_err_t *err) {
  qk_cycle_t *cycle;
  qk_cycle_vectors_t *vectors = NULL;
  qk_status_t status = qk_cycle_create(t->mg, QK_SINGLE, t->nrhs, &cycle, err);
  if (status) return status;
  status = qk_cycle_vectors_create(cycle, t->op, &vectors);
  status = qk_comm_agree(t->op->dev->geom->comm, status, err);
  if (status == QK_OK)
    status = measure_solver(t, qk_cycle_vectors_precond(cycle, vectors), result, err);
  qk_cycle_vectors_destroy(vectors);
  qk_cycle_destroy(cycle);
  return status;
}

static qk_status_t make_and_measure(qk_trial_t *t, qk_trial_result_t *result, qk_err_t *err) {
  const qk_device_t *dev = t->op->dev;
  qk_status_t status = qk_mg_params_for(qk_operator_base(t->op), &result->params, err);
  if (status == QK_OK)
    status = qk_mg_params_complete(dev->geom, dev->ops->tuning, &result->params, err);
  if (status) return status;
  status = make_hierarchy(t, &result->params, &result->setup_seconds, err);
  return status ? status : measure(t, result, err);
}

qk_status_t qk_trial_run(qk_trial_t *trial, const qk_mg_params_t *params, qk_trial_result_t *result,
                         qk_err_t *err) {
  *result = (qk_trial_result_t){.seconds = INFINITY, .params = *params};
  *err = (qk_err_t){0};
  qk_status_t status = make_and_measure(trial, result, err);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) return status;
  if (status != QK_OK) result->status = status;
  if (result->status != QK_OK) {
    result->seconds = INFINITY;
    if (err->text[0] == '\0') qk_fail(err, result->status, "%s", qk_status_text(result->status));
  }
  return QK_OK;
}

void qk_trial_fini(qk_trial_t *trial) {
  qk_mg_destroy(trial->mg);
  trial->mg = NULL;
}
