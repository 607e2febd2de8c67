#include "daemon/front/service/leave.h"

#include "daemon/front/service/queue.h"
#include "daemon/front/service/service.h"

enum { BETWEEN_LOOKS = 16 }; /* right-hand sides */

void qk_leave_job(qk_service_t *service, qk_job_t *job, qk_status_t verdict, const char *why) {
  if (!qk_link_alone(&job->leaving)) return;
  job->leave_next = 0;
  job->verdict = verdict;
  job->why = why;
  qk_list_append(&service->leaving, &job->leaving);
}

void qk_leave_behind(qk_service_t *service, qk_job_t *job) {
  qk_queue_orphan(service, job);
  qk_leave_job(service, job, QK_CANCELLED, "");
}

/* Ends the next right-hand sides of the job; true where there are no more. */
static bool end_some(qk_service_t *service, qk_job_t *job) {
  for (int n = 0; n < BETWEEN_LOOKS && job->leave_next < job->nrhs; n++)
    qk_queue_cancel(service, &job->rhs[job->leave_next++], job->verdict, job->why);
  return job->leave_next == job->nrhs;
}

bool qk_leave_some(qk_service_t *service) {
  while (!qk_link_alone(&service->leaving)) {
    qk_job_t *job = QK_HOLDER(service->leaving.next, qk_job_t, leaving);
    if (end_some(service, job)) {
      qk_link_remove(&job->leaving);
      qk_job_settle(job);
    }
    if (qk_loop_time_is_up(service->loop)) break;
  }
  return !qk_link_alone(&service->leaving);
}

static void cancel_open(qk_service_t *service, qk_job_t *job, void *why) {
  qk_leave_job(service, job, QK_CANCELLED, why);
}

void qk_leave_setup(qk_mount_t *mount, const char *why) {
  qk_queue_each_job(mount, cancel_open, (void *)why);
}
