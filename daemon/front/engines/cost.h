/*
 * cost.h: the cost of right-hand sides in applications of the operator: expected, from recently
 * ended ones of the same setup, and measured at the end. One thread.
 */
#ifndef QK_FRONT_COST_H
#define QK_FRONT_COST_H

#include "daemon/front/job/job.h"

/* Digits requested, at least one; a contraction counts as a solve to six digits, and
 * so does each eigenvector. */
double qk_cost_digits(const qk_job_t *job);

/* Expected applications of a right-hand side of the job; its digits if nothing has been
 * measured. */
double qk_cost_expected(const qk_job_t *job);

/* Learns from a solved one how many applications each digit took. */
void qk_cost_learn(const qk_rhs_t *rhs);
/* Measures the speed of one that has left its slot, for the pace of its setup. */
void qk_cost_measure(const qk_rhs_t *rhs);

#endif
