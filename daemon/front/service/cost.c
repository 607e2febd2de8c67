#include "daemon/front/service/cost.h"

#include <math.h>

#include "daemon/front/engines/mount.h"
#include "daemon/front/service/service.h"

double qk_cost_digits(const qk_job_t *job) {
  return job->contraction ? 6 : fmax(1, -log10(job->tol));
}

double qk_cost_expected(const qk_job_t *job) {
  const double per_digit = job->mount->cost_per_digit;
  return qk_cost_digits(job) * (per_digit > 0 ? per_digit : 1);
}

void qk_cost_learn(const qk_rhs_t *rhs) {
  qk_mount_t *mount = rhs->job->mount;
  const double lately = (double)rhs->outcome.applications / qk_cost_digits(rhs->job);
  const double weight = mount->cost_per_digit > 0 ? 0.1 : 1;
  mount->cost_per_digit += weight * (lately - mount->cost_per_digit);
}

void qk_cost_measure(const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_mount_t *mount = rhs->job->mount;
  qk_stats_t *stats = &mount->service->stats;
  qk_pace_add(&mount->pace, (double)o->applications, rhs->ended_at - rhs->started_at);
  qk_stats_phase(stats, QK_PHASE_SOLVE, rhs->ended_at - rhs->started_at);
  if (!rhs->job->contraction && (o->status == QK_OK || o->status == QK_NOT_CONVERGED))
    qk_stats_solved(stats, o);
}
