/*
 * job_hooks.h: the service's hooks of jobs: they hold the setup, their files and solutions on disk,
 * and send results when right-hand sides end.
 */
#ifndef QK_FRONT_JOB_HOOKS_H
#define QK_FRONT_JOB_HOOKS_H

#include "daemon/front/job/job.h"

/* Of all jobs. */
extern const qk_job_hooks_t QK_JOB_HOOKS;

#endif
