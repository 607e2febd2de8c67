#include "daemon/front/job/due.h"

#include <math.h>

static int order(const qk_node_t *x, const qk_node_t *y) {
  const qk_job_t *a = QK_HOLDER(x, qk_job_t, due), *b = QK_HOLDER(y, qk_job_t, due);
  if (a->due_at != b->due_at) return a->due_at < b->due_at ? -1 : 1;
  return (a > b) - (a < b);
}

void qk_due_never(qk_job_t *job) {
  if (job->due.height > 0) qk_tree_remove(&job->jobs->due, &job->due);
  job->due_at = INFINITY;
}

void qk_due_at(qk_job_t *job, double when) {
  if (!job->jobs || !job->session || !(when < job->due_at)) return;
  qk_due_never(job);
  job->due_at = when;
  qk_tree_add(&job->jobs->due, &job->due, order);
}

qk_job_t *qk_due_take(qk_jobs_t *jobs, double now) {
  qk_node_t *first = qk_tree_first(&jobs->due);
  qk_job_t *job = first ? QK_HOLDER(first, qk_job_t, due) : NULL;
  if (!job || job->due_at > now) return NULL;
  qk_due_never(job);
  return job;
}

/* ---- sums ------------------------------------------------------------------------------------ */

void qk_due_count_kept(qk_rhs_t *rhs, int n) {
  qk_job_t *job = rhs->job;
  rhs->kept = n > 0;
  job->kept += (uint32_t)n;
  if (!job->jobs) return;
  job->jobs->kept += n;
  job->jobs->kept_bytes += n * (int64_t)job->field_bytes;
}

void qk_due_count_held(const qk_job_t *job, int64_t n) {
  if (job->session && job->jobs) job->jobs->held += n;
}

void qk_job_join(qk_job_t *job) {
  qk_due_count_held(job, job->ended - job->acked);
  qk_due_at(job, 0);
}

void qk_job_leave(qk_job_t *job) {
  qk_due_count_held(job, -(int64_t)(job->ended - job->acked));
  qk_due_never(job);
}

/* ---- what decides of it -------------------------------------------------------------------- */

bool qk_job_is_open(const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_state_t state = job->rhs[i].state;
    if (state == QK_RHS_QUEUED || state == QK_RHS_RUNNING) return true;
  }
  return false;
}

bool qk_job_detach_over(const qk_job_t *job, double now) {
  if (job->field && job->holds > 0) return false;
  return !qk_job_is_open(job) && now - job->used_at > job->detach;
}
