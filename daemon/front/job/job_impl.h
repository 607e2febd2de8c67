/*
 * job_impl.h: what the files behind job.h share.
 */
#ifndef QK_FRONT_JOB_IMPL_H
#define QK_FRONT_JOB_IMPL_H

#include "daemon/front/job/job.h"

/* The memory of a job alone: nothing of it is charged. */
void qk_job_release_memory(qk_job_t *job);

#endif
