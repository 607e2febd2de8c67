/*
 * leave.h: what many right-hand sides end with at once goes in parts, so that nobody's message waits
 * for it.
 */
#ifndef QK_FRONT_LEAVE_H
#define QK_FRONT_LEAVE_H

#include "daemon/front/service/service.h"

/* Ends all that is open of the job with that verdict, before long. why is static. */
void qk_leave_job(qk_service_t *service, qk_job_t *job, qk_status_t verdict, const char *why);
/* Takes the job from its session at once, and forgets it before long. */
void qk_leave_behind(qk_service_t *service, qk_job_t *job);
/* The same of all that is open for the setup. */
void qk_leave_setup(qk_mount_t *mount, const char *why);
/* As much of that as there is time for, and at least a little; true while something is left. */
bool qk_leave_some(qk_service_t *service);

#endif
