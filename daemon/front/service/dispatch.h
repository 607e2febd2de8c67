/*
 * dispatch.h: right-hand sides from the queue into slots and back.
 */
#ifndef QK_FRONT_DISPATCH_H
#define QK_FRONT_DISPATCH_H

#include "daemon/front/server.h"

extern const qk_worker_events_t QK_SERVER_WORKER_EVENTS;
/* Counts the right-hand sides of a job that is new, or back, which have not ended. */
void qk_dispatch_open(qk_job_t *job);
/* Seconds until all that is open for its setup, and this job, will be done; 0 where nothing has been measured. */
double qk_dispatch_expect(const qk_job_t *job);
void qk_dispatch_queue(qk_server_t *server, qk_rhs_t *rhs);
/* Right-hand sides in slots of all engines, and contractions. */
int qk_dispatch_running(const qk_server_t *server);
/* Fills free slots of the setup's engine, and notes how many are left empty while something waits. */
void qk_dispatch_feed(qk_mount_t *mount);
/* Ends rhs with that status: at once, or at the engine's next check point where it is in a
 * slot. */
void qk_dispatch_cancel(qk_server_t *server, qk_rhs_t *rhs, qk_status_t verdict, const char *text);
/* Counts, logs and reports an RHS that has ended. */
void qk_dispatch_ended(qk_server_t *server, qk_rhs_t *rhs);
/* Takes a job from its session, to be freed when all has ended. */
void qk_dispatch_orphan(qk_server_t *server, qk_job_t *job);
/* Forgets a job: frees it now, or as an orphan when its slots have ended and nobody holds it. */
void qk_dispatch_forget(qk_server_t *server, qk_job_t *job);
/* Frees the solutions of a kept job that nobody holds; forgets it where its client is done with it. */
void qk_dispatch_expire(qk_server_t *server, qk_job_t *job);

/* Cancels all that is open for the setup; expires all that is kept of it. */
void qk_dispatch_cancel_all(qk_mount_t *mount, const char *why);
void qk_dispatch_expire_all(qk_mount_t *mount);

/* Ends whatever is in slots; nobody is told. For the end of the server, when the engine is
 * gone. */
void qk_dispatch_abandon(qk_mount_t *mount);

#endif
