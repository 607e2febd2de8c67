/*
 * joined.h: jobs of who has joined a request whose fields go in parts (bricks.h): they take a part,
 * and lose it. One without its whole is about to end, with `verdict`.
 */
#ifndef QK_FRONT_JOINED_H
#define QK_FRONT_JOINED_H

#include "daemon/front/job/bricks.h"

/* Whether another one can have the part now, and who has it must go. QK_BUSY: pieces of that one
 * are still on their way. */
qk_status_t qk_joined_check(const qk_job_t *whole, uint32_t part, qk_err_t *err);
/* The job (qk_job_create_part), whose part nobody has, has it from now on; what has ended has ended
 * for it. Only where qk_joined_check says so. */
void qk_joined_begin(qk_job_t *job, qk_job_t *whole, double now);
/* It has the part no more, and is to end with that; why is static. No effect without a whole. */
void qk_joined_leave(qk_job_t *job, qk_status_t verdict, const char *why);
/* All who have joined leave. */
void qk_joined_leave_all(qk_job_t *whole, qk_status_t verdict, const char *why);
/* A right-hand side of the whole has ended: so has that of this part. */
void qk_joined_mirror(qk_rhs_t *rhs, const qk_rhs_t *whole, double now);

/* The stream of a job that has just joined, or has come back, goes on at `next`; behind what is
 * lost of the whole. */
void qk_joined_resume(qk_job_t *job, uint64_t next);

#endif
