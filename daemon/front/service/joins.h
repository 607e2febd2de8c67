/*
 * joins.h: what follows where fields go in parts (job/bricks.h): parts that arrive, right-hand
 * sides that end for all, clients that join, give up a part or lose it.
 */
#ifndef QK_FRONT_JOINS_H
#define QK_FRONT_JOINS_H

#include "daemon/front/service/service.h"

/* A part of the right-hand side, of a whole, has arrived, or it has come back: where all are here
 * its checksum is made, by another thread and only for the journal, and it is complete
 * (qk_job_hooks_t). */
void qk_joins_check(qk_service_t *service, qk_rhs_t *whole);
/* Its checksum is not wanted any more. */
void qk_joins_abandon(qk_rhs_t *rhs);
/* A right-hand side has ended: so it has for all who have joined. */
void qk_joins_ended(qk_rhs_t *rhs);
/* The job leaves its session: those who have joined it are about to end, or its part is free. */
void qk_joins_leaves(qk_job_t *job);
/* Whoever has the part loses it. */
void qk_joins_expire(qk_job_t *whole, uint32_t part);
/* Ends a job that has lost its part or its whole, and forgets a whole that nobody needs any more.
 * True: the job may have gone. */
bool qk_joins_tick(qk_service_t *service, qk_job_t *job);

#endif
