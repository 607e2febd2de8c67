#include "daemon/front/job/joined.h"

#include "daemon/base/assert.h"
#include "daemon/front/job/due.h"

/* ---- joining and leaving --------------------------------------------------------------------- */

qk_status_t qk_joined_check(const qk_job_t *whole, uint32_t part, qk_err_t *err) {
  if (whole->bricks->part[part].gate->busy == 0) return QK_OK;
  return qk_fail(err, QK_BUSY, "part %u: what another client has sent is still being written",
                 part);
}

void qk_joined_begin(qk_job_t *job, qk_job_t *whole, double now) {
  struct qk_brick_slot *slot = &whole->bricks->part[job->part];
  QK_ASSERT(job->joined && !job->whole && !slot->job && slot->gate->busy == 0);
  slot->job = job;
  whole->bricks->joined++;
  job->whole = whole;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i], *of = &whole->rhs[i];
    if (rhs->state == QK_RHS_ACKED) continue;
    of->others++;
    if (rhs->state == QK_RHS_UPLOADING && i < slot->arrived) rhs->state = QK_RHS_QUEUED;
    if (of->state >= QK_RHS_ENDED) qk_joined_mirror(rhs, of, now);
  }
}

void qk_joined_leave(qk_job_t *job, qk_status_t verdict, const char *why) {
  qk_job_t *whole = job->whole;
  if (!whole) return;
  whole->bricks->part[job->part].job = NULL;
  whole->bricks->joined--;
  job->whole = NULL;
  job->verdict = verdict;
  job->why = why;
  while (!qk_link_alone(&job->arriving))
    qk_transfer_leave(QK_HOLDER(job->arriving.next, qk_transfer_t, link));
  job->chunks = 0;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_bricks_stop(&job->rhs[i]);
    if (job->rhs[i].state < QK_RHS_ACKED) qk_rhs_let_go_part(&whole->rhs[i]);
  }
  qk_due_at(job, 0);
  qk_due_at(whole, 0);
}

void qk_joined_leave_all(qk_job_t *whole, qk_status_t verdict, const char *why) {
  qk_bricks_t *b = whole->bricks;
  for (uint32_t p = 0; b && p < b->count; p++)
    if (b->part[p].job) qk_joined_leave(b->part[p].job, verdict, why);
}

void qk_joined_mirror(qk_rhs_t *rhs, const qk_rhs_t *whole, double now) {
  if (rhs->state >= QK_RHS_ENDED) return;
  rhs->attempt = whole->attempt;
  rhs->wall = qk_wall_sums_hold(whole->wall);
  qk_rhs_end(rhs, &whole->outcome, now);
}

/* ---- the stream ---------------------------------------------------------------------------- */

/* The first right-hand side that waits for parts and has no memory: what came of it is lost. */
static uint32_t first_lost(const qk_job_t *whole) {
  uint32_t i = 0;
  while (i < whole->nrhs && (whole->rhs[i].state != QK_RHS_UPLOADING || whole->rhs[i].source)) i++;
  return i;
}

void qk_joined_resume(qk_job_t *job, uint64_t next) {
  const qk_job_t *whole = job->joined ? job->whole : job;
  qk_bricks_t *b = whole->bricks;
  const uint32_t lost = first_lost(whole);
  for (uint32_t p = 0; p < b->count; p++)
    if (b->part[p].arrived > lost) b->part[p].arrived = lost;
  if (job->part < 0) return;
  uint32_t *arrived = &b->part[job->part].arrived;
  const uint64_t most = lost < job->nrhs ? lost * job->part_bytes : UINT64_MAX,
                 here = *arrived * job->part_bytes;
  if (next > most) next = most;
  if (next < here) next = here;
  const uint64_t i = next / job->part_bytes;
  /* without memory, or after its end, it begins anew, or with the next one */
  if (i < job->nrhs && !whole->rhs[i].source)
    next = (i + (whole->rhs[i].state != QK_RHS_UPLOADING && next > i * job->part_bytes)) *
           job->part_bytes;
  if (*arrived < next / job->part_bytes) *arrived = (uint32_t)(next / job->part_bytes);
  job->upload_next = job->upload_due = next;
  job->upload_until = 0;
  qk_job_raise_credit(job);
  for (uint32_t k = 0; job->joined && k < job->nrhs && k < *arrived; k++)
    if (job->rhs[k].state == QK_RHS_UPLOADING) job->rhs[k].state = QK_RHS_QUEUED;
}
