/*
 * due.h: which jobs of sessions have something due: a deadline, a solution that nobody fetches, a
 * report of progress, the end of their keeping (service/sessions.c). So a tick looks at those
 * alone, however many there are.
 *
 * Here are the sums over all jobs (qk_jobs_t), too.
 *
 * Who changes something that may fall due says so, with a time that is not too late; a look that
 * comes too early finds nothing and says when to look again. Times: seconds of the loop's clock.
 * O(log n). No effect on a job by itself, and on one that is not in a session.
 */
#ifndef QK_FRONT_DUE_H
#define QK_FRONT_DUE_H

#include "daemon/front/job/job.h"

/* Something may be due then; no effect where the job is looked at before. */
void qk_due_at(qk_job_t *job, double when);
void qk_due_never(qk_job_t *job);
/* Takes out one that is due; NULL: none is. */
qk_job_t *qk_due_take(qk_jobs_t *jobs, double now);

/* The sums: a kept solution has come (1) or goes (-1); so many have ended and are not acknowledged
 * (or are). */
void qk_due_count_kept(qk_rhs_t *rhs, int n);
void qk_due_count_held(const qk_job_t *job, int64_t n);

/* It comes to a session, or leaves it: `session` is set by the caller. */
void qk_job_join(qk_job_t *job);
void qk_job_leave(qk_job_t *job);
/* Whether something of it is queued or runs. */
bool qk_job_is_open(const qk_job_t *job);
/* Whether nothing is, and its time without a client is over. */
bool qk_job_detach_over(const qk_job_t *job, double now);

#endif
