#include "daemon/front/service/job_hooks.h"

#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/digest.h"
#include "daemon/front/state/spill.h"

static void begin(qk_job_t *job) {
  qk_setup_hold(job->setup);
}

static void end(qk_job_t *job) {
  qk_filing_destroy(job->filing);
  qk_setup_release(job->setup);
}

static void drop_solution(qk_rhs_t *rhs) {
  qk_digest_abandon(rhs);
  qk_fields_abandon(rhs->job);
  qk_upload_abandon(rhs);
  qk_spill_forget(rhs);
}

/* Its client is told at once, unless it must wait for a file. */
static void ended(qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job;
  const qk_job_events_t *events = job->setup->service->events;
  qk_session_t *session = job->session;
  qk_upload_promise(job);
  qk_eigen_ended(rhs);
  qk_sessions_due(job);
  if (session && qk_filing_told(job)) events->result(events->arg, session, rhs);
  qk_filing_ended(job);
  events->sendable(events->arg, rhs);
  qk_queue_end_parts(rhs);
}

const qk_job_hooks_t QK_JOB_HOOKS = {
    .begin = begin, .end = end, .drop_solution = drop_solution, .ended = ended};
