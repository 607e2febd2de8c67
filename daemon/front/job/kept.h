/*
 * kept.h: solutions that stay with the daemon (SINK_KEEP), as later requests of the same client
 * find them: by request and right-hand side. Pure bookkeeping.
 */
#ifndef QK_FRONT_KEPT_H
#define QK_FRONT_KEPT_H

#include "daemon/front/job/session.h"

/* Binds the right-hand sides of a new job to the kept solutions that its columns or its
 * contraction name: held until each has ended. Errors name the reference: QK_NOT_FOUND (not kept,
 * not any more), QK_BAD_ARGUMENT (no such right-hand side, not ended or not OK, another basis);
 * some may be held then: destroy the job. */
qk_status_t qk_kept_bind(const qk_session_t *session, qk_job_t *job, qk_err_t *err);

/* Whether all of a kept job has ended, nobody holds it and its time since the last use is over. */
bool qk_kept_expired(const qk_job_t *job, double now);
/* Solutions of a job that are kept now. */
uint64_t qk_kept_count(const qk_job_t *job);

#endif
