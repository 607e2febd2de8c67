#include "daemon/front/engines/cost.h"

#include <math.h>

#include "daemon/front/engines/setup.h"

/* Where only tol_abs is given nobody knows |b|: that of a usual tolerance. */
enum { USUAL_DIGITS = 10, MOST_DIGITS = 16 };

static double digits_of(double tol) {
  return tol > 0 ? fmin(MOST_DIGITS, -log10(tol)) : 0;
}

double qk_cost_digits(const qk_job_t *job) {
  if (job->field) return 0;
  if (job->contraction) return 6;
  if (job->problem) return job->recalls ? 1 : 6.0 * job->problem->count;
  if (!qk_job_solves(job)) return 1;
  const double asked = fmax(digits_of(job->tol), digits_of(job->tol_hq));
  return fmax(1, job->tol == 0 && job->tol_hq == 0 ? USUAL_DIGITS : asked);
}

double qk_cost_expected(const qk_job_t *job) {
  const double per_digit = job->setup->cost_per_digit;
  return qk_cost_digits(job) * (per_digit > 0 ? per_digit : 1);
}

void qk_cost_learn(const qk_rhs_t *rhs) {
  qk_setup_t *setup = rhs->job->setup;
  const double lately = (double)rhs->outcome.applications / qk_cost_digits(rhs->job);
  const double weight = setup->cost_per_digit > 0 ? 0.1 : 1;
  setup->cost_per_digit += weight * (lately - setup->cost_per_digit);
}

void qk_cost_measure(const qk_rhs_t *rhs) {
  qk_pace_add(&rhs->job->setup->pace, (double)rhs->outcome.applications,
              rhs->ended_at - rhs->started_at);
}
