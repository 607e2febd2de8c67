/*
 * masses.h: requests for several masses: right-hand side i is that of mass i / n and source i % n.
 *
 * Each is one by itself, with its own end, solution and place in the journal. Those that have the
 * same source are a family, which the engine solves from one Krylov space as far as they are with
 * it together; a few families are a block. Pure.
 */
#ifndef QK_FRONT_MASSES_H
#define QK_FRONT_MASSES_H

#include "daemon/front/job/job.h"

/* What a SUBMIT may say of masses, without the setup; whether its action has them. */
qk_status_t qk_masses_check(const Quark__Submit *submit, qk_err_t *err);
qk_status_t qk_masses_check_each(const Quark__Submit *submit, const qk_action_row_t *action,
                                 qk_err_t *err);
/* How many sources a SUBMIT that has passed the check has. */
uint32_t qk_masses_sources(const Quark__Submit *submit);

/* Number of its source. */
static inline uint32_t qk_rhs_source(const qk_rhs_t *rhs) {
  return rhs->index % rhs->job->nsource;
}
static inline double qk_rhs_mass(const qk_rhs_t *rhs) {
  return rhs->job->mass[rhs->index / rhs->job->nsource];
}

/* The right-hand side number k of a job in the order in which they are to be queued: those of a
 * family one after the other. */
qk_rhs_t *qk_masses_nth(qk_job_t *job, uint32_t k);

/* Numbers for the engine: within those of the job, which is `number`. Uploads whose fields are not
 * the same are families of their own. */
uint64_t qk_rhs_family(const qk_rhs_t *rhs, uint64_t number);
uint64_t qk_rhs_block(const qk_rhs_t *rhs, uint64_t number);
/* How many of its block are about to follow it. */
uint32_t qk_rhs_block_left(const qk_rhs_t *rhs);
/* Whether it waits for the uploads of others of its block. */
bool qk_rhs_waits_for_block(const qk_rhs_t *rhs);
/* The replica that another one of its block is with; -1: none is. */
int qk_rhs_block_replica(const qk_rhs_t *rhs);

#endif
