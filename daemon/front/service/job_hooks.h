/*
 * job_hooks.h: what goes with jobs: the hold on their setup, their files, solutions on the disk, and
 * what is done when a right-hand side has ended.
 */
#ifndef QK_FRONT_JOB_HOOKS_H
#define QK_FRONT_JOB_HOOKS_H

#include "daemon/front/job/job.h"

/* Of all jobs. */
extern const qk_job_hooks_t QK_JOB_HOOKS;

#endif
