/*
 * cost.h: what right-hand sides cost in applications of the operator: as expected from those that
 * have ended lately in the same setup, and as measured when one ends. One thread.
 */
#ifndef QK_FRONT_COST_H
#define QK_FRONT_COST_H

#include "daemon/front/job/job.h"

/* Digits asked for, at least one; a contraction is taken for a solve to six. */
double qk_cost_digits(const qk_job_t *job);

/* Applications that a right-hand side of the job is expected to take; its digits where nothing is
 * known yet. */
double qk_cost_expected(const qk_job_t *job);

/* Of one that was solved: how many applications each digit took. */
void qk_cost_learn(const qk_rhs_t *rhs);
/* Of one that has left its slot: how fast it was, for the pace of its setup. */
void qk_cost_measure(const qk_rhs_t *rhs);

#endif
