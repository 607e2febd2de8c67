/*
 * queue.h: right-hand sides from their acceptance to their end, but for what they are in a slot
 * (dispatch.h, engine_events.h): counted as open, in the scheduler's queue or in one of those of
 * their setup, ended or cancelled; and jobs, which are forgotten or have what they keep expire.
 */
#ifndef QK_FRONT_QUEUE_H
#define QK_FRONT_QUEUE_H

#include "daemon/front/service/service.h"

/* ---- open work ---- */
/* Counts the right-hand sides of a job that is new, or back, which have not ended. */
void qk_queue_open(qk_job_t *job);
/* Seconds until all that is open for its setup, and this job, will be done; 0 where nothing has
 * been measured. */
double qk_queue_expect(const qk_job_t *job);
/* Right-hand sides in slots of all engines, and contractions. */
int qk_queue_running(const qk_service_t *service);

/* ---- in and out ---- */
void qk_queue_push(qk_service_t *service, qk_rhs_t *rhs);
/* Whether uploads are solved once they are on the disk (--spool all). */
bool qk_queue_is_from_disk(const qk_service_t *service);
/* An upload is complete, or its record is on the disk: it is queued where nothing keeps it, with
 * all that it is to be solved with; no effect on one that is queued already. */
void qk_queue_push_upload(qk_service_t *service, qk_rhs_t *rhs);
/* rhs has ended without ever being queued: what is to be solved with it waits for it no more. */
void qk_queue_left(qk_service_t *service, const qk_rhs_t *rhs);
/* The one that is next leaves the queue; quarantined have had their turn and paid for it. */
void qk_queue_take(qk_service_t *service, qk_rhs_t *rhs);
/* Into the queue again. */
void qk_queue_put_back(qk_service_t *service, qk_rhs_t *rhs);
/* There was no memory for the solution of rhs, which is in no queue; room: that is what it needs;
 * work: applications that were in vain. False: for the last time. */
bool qk_queue_wait_for_memory(qk_rhs_t *rhs, const char *why, bool room, uint64_t work);

/* It has been taken, and waits for something else until then (seconds). */
void qk_queue_wait_until(qk_rhs_t *rhs, double when);

/* ---- ends ---- */
/* Ends rhs, which is in no queue and no slot. */
void qk_queue_end(qk_service_t *service, qk_rhs_t *rhs, qk_status_t status, const char *text);
/* Counts and logs an RHS that has ended, and tells who follows it (qk_job_hooks_t). */
void qk_queue_ended(qk_service_t *service, qk_rhs_t *rhs);
/* What rhs took, instead of what was expected when it went; nothing where the engine was lost. */
void qk_queue_settle(const qk_rhs_t *rhs);
/* Ends rhs with that status: at once, or at the engine's next check point where it is in a
 * slot. */
void qk_queue_cancel(qk_service_t *service, qk_rhs_t *rhs, qk_status_t verdict, const char *text);

/* ---- jobs ---- */
/* Takes a job from its session, to be freed when all has ended. */
void qk_queue_orphan(qk_service_t *service, qk_job_t *job);
/* Forgets a job: frees it now, or as an orphan when its slots have ended and nobody holds it. */
void qk_queue_forget(qk_service_t *service, qk_job_t *job);
/* Frees the solutions of a kept job that nobody holds; forgets it where its client is done with
 * it. */
void qk_queue_expire(qk_service_t *service, qk_job_t *job);

/* ---- fields in parts (job/bricks.h) ---- */
/* A right-hand side has ended: so it has for all who have joined. */
void qk_queue_end_parts(qk_rhs_t *whole);
/* Whoever has the part loses it. */
void qk_queue_expire_part(qk_job_t *whole, uint32_t part);
/* Ends a job that has lost its part or its whole, and forgets a whole that nobody needs any more.
 * True: the job may have gone. */
bool qk_queue_tick_parts(qk_service_t *service, qk_job_t *job);

/* ---- in parts ---- */
/* What many right-hand sides end with at once is done bit by bit, so that nobody's message waits
 * for it. Ends all that is open of the job with that verdict, before long. why is static. */
void qk_queue_end_job(qk_service_t *service, qk_job_t *job, qk_status_t verdict, const char *why);
/* Cancels these n right-hand sides, or all (n = 0): at once where few RESULTs follow. */
void qk_queue_cancel_some(qk_service_t *service, qk_job_t *job, size_t n, const uint32_t *rhs);
/* Takes the job from its session at once, and forgets it before long. */
void qk_queue_leave(qk_service_t *service, qk_job_t *job);
/* As much of that as there is time for, and at least a little; true while something is left. */
bool qk_queue_end_some(qk_service_t *service);

/* ---- all of a setup ---- */
typedef void qk_queue_job_fn(qk_service_t *service, qk_job_t *job, void *arg);
/* Calls `each` for the jobs of the setup that belong to sessions; it may forget the job. */
void qk_queue_each_job(qk_setup_t *setup, qk_queue_job_fn *each, void *arg);
/* What is kept of it expires; what requests for another setup use goes after them. */
void qk_queue_expire_all(qk_setup_t *setup);
/* Ends all that is open for it, before long. why is static. */
void qk_queue_end_setup(qk_setup_t *setup, const char *why);

#endif
