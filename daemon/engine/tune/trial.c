#include "daemon/engine/tune/trial.h"

#include <math.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/multigrid/cycle_vectors.h"
#include "daemon/engine/multigrid/mg_polynomial.h"
#include "daemon/engine/tune/judge.h"

/* A solve that needs more outer iterations than this is not worth waiting for. */
enum { MOST_ITERATIONS = 150 };

static qk_comm_t *comm_of(const qk_trial_t *t) {
  return t->op->dev->geom->comm;
}

/* The parameters that a hierarchy is made of: those of the cycle alone are cleared. */
static qk_mg_params_t of_setup(const qk_mg_params_t *params) {
  qk_mg_params_t p = *params;
  p.no_graphs = false;
  for (int l = 0; l < QK_MG_LEVELS_MAX; l++) {
    qk_mg_level_params_t *level = &p.level[l];
    level->pre = level->post = level->iterations = 0;
    level->tol = 0;
    level->smoother = (qk_smoother_params_t){0};
    level->smoother_prec = level->smoother_sums = QK_DOUBLE;
  }
  return p;
}

/* The same vectors under another cycle, which teaches a polynomial smoother anew. */
static qk_status_t change_cycle(qk_trial_t *t, const qk_mg_params_t *params, qk_err_t *err) {
  const bool same = memcmp(&t->mg->params, params, sizeof *params) == 0;
  double rate;
  t->mg->params = *params;
  return same ? QK_OK : qk_mg_learn_polynomial(t->mg, &rate, NULL, NULL, err);
}

static qk_status_t make_hierarchy(qk_trial_t *t, const qk_mg_params_t *params, bool anew,
                                  double *seconds, qk_err_t *err) {
  const qk_mg_params_t want = of_setup(params);
  qk_mg_params_t have = {0};
  qk_status_t status;
  if (t->mg) have = of_setup(&t->mg->params);
  if (t->mg && !anew && memcmp(&have, &want, sizeof have) == 0) {
    status = change_cycle(t, params, err);
  } else {
    qk_mg_destroy(t->mg);
    t->mg = NULL;
    qk_work_trim(t->work);
    status = qk_mg_create(qk_operator_base(t->op), t->work, params, NULL, NULL, &t->mg, err);
  }
  if (status) return status;
  *seconds = t->mg->setup_seconds;
  return qk_comm_bcast(comm_of(t), seconds, sizeof *seconds, 0);
}

static qk_status_t import_noise(const qk_trial_t *t, qk_solver_t *solver, int n) {
  const qk_device_t *dev = t->op->dev;
  for (int i = 0; i < n; i++) {
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
    status = qk_solver_set_flavour(solver, i, 2 * i < n ? 1 : -1); /* both in the batch */
    if (status) return status;
  }
  return QK_OK;
}

/* ---- solves ---------------------------------------------------------------------------------- */

/* A solver of n right-hand sides under way. limit: seconds that a solve may take. */
typedef struct run {
  const qk_trial_t *t;
  qk_solver_t *solver;
  int n;
  double limit;
} run_t;

static qk_status_t fill(const run_t *r, double tol) {
  int slot[QK_MAX_RHS];
  double tols[QK_MAX_RHS];
  int64_t most[QK_MAX_RHS];
  for (int i = 0; i < r->n; i++) {
    slot[i] = i;
    tols[i] = tol;
    most[i] = MOST_ITERATIONS;
  }
  return qk_solver_fill_many(r->solver, slot, r->n, tols, most);
}

/* One solve of all to tol: the seconds of it. *late: it took longer than it may, and was ended. */
static qk_status_t solve(const run_t *r, double tol, double *seconds, bool *late) {
  const qk_device_t *dev = r->t->op->dev;
  for (int i = 0; i < r->n; i++) qk_solver_clear(r->solver, i);
  qk_status_t status = import_noise(r->t, r->solver, r->n);
  if (status) return status;
  status = dev->ops->queue_sync(dev->ctx, 0);
  if (status) return status;
  const double start = qk_clock_now();
  int32_t stop = 0;
  status = fill(r, tol);
  while (status == QK_OK && !stop && qk_solver_running(r->solver) > 0) {
    status = qk_solver_step(r->solver);
    stop = qk_clock_now() - start > r->limit;
    if (status == QK_OK && isfinite(r->limit))
      status = qk_comm_bcast(comm_of(r->t), &stop, sizeof stop, 0);
  }
  *seconds = qk_clock_now() - start;
  *late = stop;
  for (int i = 0; i < r->n; i++) qk_solver_cancel(r->solver, i);
  return status ? status : qk_comm_bcast(comm_of(r->t), seconds, sizeof *seconds, 0);
}

/* Of the solve that has ended. */
static void read_slots(const run_t *r, qk_trial_result_t *result) {
  result->iterations = result->residual = 0;
  for (int i = 0; i < r->n; i++) {
    const qk_slot_t *s = qk_solver_slot(r->solver, i);
    result->iterations += (double)s->iterations / r->n;
    result->residual = fmax(result->residual, s->residual);
    if (s->status != QK_OK) result->status = s->status;
  }
}

/* Median and spread of n times of a solve of `rhs` right-hand sides. Of five and more the least and
 * the most are left out of the spread: a hiccup of the machine is not its noise. */
static void summarize(const double *seconds, int n, int rhs, qk_trial_result_t *result) {
  double sorted[QK_TRIAL_REPEATS];
  const int left_out = n >= 5 ? 1 : 0;
  const double median = qk_tune_median(seconds, n);
  qk_tune_sort(seconds, n, sorted);
  result->seconds = median / rhs;
  result->spread = n > 1 ? (sorted[n - 1 - left_out] - sorted[left_out]) / median : -1;
}

/* As often as planned, once where it is not worth more; a late or bad solve is the last one. */
static qk_status_t solve_again(const run_t *r, const qk_trial_plan_t *plan,
                               qk_trial_result_t *result) {
  double seconds[QK_TRIAL_REPEATS];
  bool late = false;
  qk_status_t status = solve(r, 0.1, &seconds[0], &late); /* allocates, records graphs */
  if (status) return status;
  if (late) seconds[0] = r->limit;
  int n = late ? 1 : 0;
  const double setup = result->setup_seconds / r->t->solves;
  while (n < plan->repeats && !late && result->status == QK_OK) {
    if (n == 1 && seconds[0] / r->n + setup > plan->keen) break;
    status = solve(r, r->t->tol, &seconds[n++], &late);
    if (status) return status;
    if (!late) read_slots(r, result);
  }
  result->stopped = late;
  summarize(late ? &seconds[n - 1] : seconds, late ? 1 : n, r->n, result);
  return QK_OK;
}

static qk_status_t with_solver(const qk_trial_t *t, int nrhs, qk_precond_t precond,
                               const qk_trial_plan_t *plan, qk_trial_result_t *result,
                               qk_err_t *err) {
  const qk_device_t *dev = t->op->dev;
  const qk_solver_params_t p = {
      .method = "gcr", .inner = QK_SINGLE, .nslot = nrhs, .check = 1, .precond = precond};
  const double left = plan->stop - result->setup_seconds / t->solves;
  run_t r = {.t = t, .n = nrhs, .limit = left * nrhs};
  qk_status_t status = qk_solver_create(t->op, t->op->work, &p, &r.solver, err);
  if (status) return status;
  status = solve_again(&r, plan, result);
  if (status == QK_OK) result->bytes = dev->ops->allocated(dev->ctx);
  qk_solver_destroy(r.solver);
  return status;
}

static qk_status_t measure(const qk_trial_t *t, int nrhs, const qk_trial_plan_t *plan,
                           qk_trial_result_t *result, qk_err_t *err) {
  qk_cycle_t *cycle;
  qk_cycle_vectors_t *vectors = NULL;
  qk_status_t status = qk_cycle_create(t->mg, QK_SINGLE, nrhs, &cycle, err);
  if (status) return status;
  status = qk_cycle_vectors_create(cycle, t->op, &vectors);
  status = qk_comm_agree(comm_of(t), status, err);
  if (status == QK_OK)
    status = with_solver(t, nrhs, qk_cycle_vectors_precond(cycle, vectors), plan, result, err);
  qk_cycle_vectors_destroy(vectors);
  qk_cycle_destroy(cycle);
  return status;
}

/* ---- a trial --------------------------------------------------------------------------------- */

static qk_status_t measure_alone(const qk_trial_t *t, const qk_trial_plan_t *plan,
                                 qk_trial_result_t *result, qk_err_t *err) {
  const qk_trial_plan_t free = {.repeats = plan->repeats, .keen = INFINITY, .stop = INFINITY};
  qk_trial_result_t one = {.setup_seconds = result->setup_seconds};
  if (t->nrhs == 1) {
    result->alone = result->seconds;
    return QK_OK;
  }
  qk_status_t status = measure(t, 1, &free, &one, err);
  if (status != QK_OK) return status;
  result->status = one.status;
  result->alone = one.seconds;
  return QK_OK;
}

qk_status_t qk_trial_complete(const qk_trial_t *trial, qk_mg_params_t *params, qk_err_t *err) {
  const qk_device_t *dev = trial->op->dev;
  qk_mg_params_t p = *params;
  qk_status_t status = qk_mg_params_for(qk_operator_base(trial->op), &p, err);
  if (status) return status;
  status = qk_mg_params_complete(dev->geom, dev->ops->tuning, &p, err);
  if (status == QK_OK) *params = p;
  return status;
}

static qk_status_t make_and_measure(qk_trial_t *t, const qk_trial_plan_t *plan,
                                    qk_trial_result_t *result, qk_err_t *err) {
  qk_status_t status = qk_trial_complete(t, &result->params, err);
  if (status) return status;
  status = make_hierarchy(t, &result->params, plan->anew, &result->setup_seconds, err);
  if (status) return status;
  if (result->setup_seconds / t->solves > plan->stop) {
    result->stopped = true;
    result->seconds = 0;
    return QK_OK;
  }
  status = measure(t, t->nrhs, plan, result, err);
  const bool worth = status == QK_OK && result->status == QK_OK && !result->stopped &&
                     qk_trial_cost(t, result) <= plan->keen;
  return worth ? measure_alone(t, plan, result, err) : status;
}

qk_status_t qk_trial_run(qk_trial_t *trial, const qk_mg_params_t *params,
                         const qk_trial_plan_t *plan, qk_trial_result_t *result, qk_err_t *err) {
  *result = (qk_trial_result_t){.seconds = INFINITY, .spread = -1, .alone = -1, .params = *params};
  *err = (qk_err_t){0};
  qk_status_t status = make_and_measure(trial, plan, result, err);
  if (status == QK_DEVICE_ERROR || status == QK_COMM_ERROR) return status;
  if (status != QK_OK) result->status = status;
  if (result->status != QK_OK) {
    result->seconds = INFINITY;
    result->stopped = false;
    if (err->text[0] == '\0') qk_fail(err, result->status, "%s", qk_status_text(result->status));
  }
  return QK_OK;
}

void qk_trial_fini(qk_trial_t *trial) {
  qk_mg_destroy(trial->mg);
  trial->mg = NULL;
}
