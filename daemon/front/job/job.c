#include "daemon/front/job/job.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/job/due.h"
#include "daemon/front/job/job_impl.h"

/* ---- memory -------------------------------------------------------------------------------- */

/* In no list of what is to be saved. */
static void leave_unsaved(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->save);
  if (rhs->unsaved && rhs->job->jobs) rhs->job->jobs->unsaved--;
  rhs->unsaved = false;
}

/* Objects go once the journal says that they are not needed any more. */
static void free_source(qk_rhs_t *rhs) {
  leave_unsaved(rhs);
  qk_marks_release(rhs->job, rhs->source);
  rhs->source = NULL;
  if (rhs->charged_source) qk_budget_refund(rhs->job->budget, (int64_t)rhs->job->field_bytes);
  rhs->charged_source = false;
}

void qk_rhs_unload(qk_rhs_t *rhs) {
  qk_link_remove(&rhs->send);
  if (rhs->kept) qk_due_count_kept(rhs, -1);
  qk_bricks_stop_sending(rhs);
  qk_marks_release(rhs->job, rhs->solution);
  rhs->solution = NULL;
  /* how much of what is on its way still comes nobody will know: it is sent again */
  if (qk_rhs_is_leaving(rhs) && rhs->sent == rhs->span_until) rhs->sent = rhs->span_from;
  qk_transfer_leave(rhs->leaving);
  rhs->leaving = NULL;
  if (rhs->charged_solution) {
    const qk_job_t *job = rhs->job;
    qk_budget_refund(job->budget, (int64_t)job->field_bytes);
    if (job->sink == QUARK__SINK__SINK_KEEP)
      qk_budget_refund(qk_sched_user_kept(job->user), (int64_t)job->field_bytes);
  }
  rhs->charged_solution = false;
  if (rhs->state >= QK_RHS_ENDED) free_source(rhs);
  qk_marks_rhs(rhs);
}

void qk_rhs_unsave(qk_rhs_t *rhs, double now) {
  if (!rhs->unsaved && rhs->job->jobs) rhs->job->jobs->unsaved++;
  rhs->unsaved = true;
  rhs->unsaved_since = now;
}

void qk_rhs_saved(qk_rhs_t *rhs) {
  leave_unsaved(rhs);
  if (rhs->state >= QK_RHS_ENDED) free_source(rhs);
}

void qk_rhs_drop_solution(qk_rhs_t *rhs) {
  if (rhs->job->hooks) rhs->job->hooks->drop_solution(rhs);
  qk_rhs_unload(rhs);
}

void qk_rhs_use(qk_rhs_t *rhs, int i, qk_rhs_t *kept) {
  QK_ASSERT(!rhs->uses[i] && kept->job != rhs->job);
  rhs->uses[i] = kept;
  qk_job_hold(kept->job);
}

void qk_job_hold(qk_job_t *job) {
  job->holds++;
}

void qk_job_let_go(qk_job_t *job, double now) {
  job->holds--;
  if (now > job->used_at) job->used_at = now;
  qk_due_at(job, job->used_at + job->keep);
  qk_job_settle(job);
}

static void let_go(qk_rhs_t *rhs, double now) {
  for (size_t i = 0; i < sizeof rhs->uses / sizeof rhs->uses[0]; i++) {
    if (!rhs->uses[i]) continue;
    qk_job_t *kept = rhs->uses[i]->job;
    rhs->uses[i] = NULL;
    qk_job_let_go(kept, now);
  }
}

void qk_job_settle(qk_job_t *job) {
  if (job->forgotten && !job->session && qk_link_alone(&job->leaving) && job->running == 0 &&
      job->holds == 0)
    qk_job_destroy(job);
}

void qk_job_destroy(qk_job_t *job) {
  if (!job) return;
  QK_ASSERT(job->running == 0 && job->holds == 0 && qk_link_alone(&job->leaving));
  QK_ASSERT(!job->whole);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    QK_ASSERT(!qk_sched_item_waits(&job->rhs[i].queue));
    let_go(&job->rhs[i], 0);
    free_source(&job->rhs[i]);
    qk_rhs_drop_solution(&job->rhs[i]);
    qk_wall_sums_drop(&job->rhs[i].wall);
  }
  qk_due_never(job);
  qk_link_remove(&job->field_link);
  qk_link_remove(&job->link);
  qk_budget_refund(job->budget, job->overhead);
  qk_job_release_memory(job);
}

/* ---- results ------------------------------------------------------------------------------- */

void qk_rhs_end(qk_rhs_t *rhs, const qk_outcome_t *outcome, double now) {
  QK_ASSERT(rhs->state < QK_RHS_ENDED && !qk_sched_item_waits(&rhs->queue));
  if (rhs->state == QK_RHS_RUNNING) rhs->job->running--;
  rhs->state = QK_RHS_ENDED;
  rhs->outcome = *outcome;
  rhs->ended_at = now;
  rhs->job->ended++;
  rhs->job->used_at = now;
  if (!outcome->written || !rhs->unsaved) free_source(rhs);
  let_go(rhs, now);
  if (!outcome->written) qk_rhs_drop_solution(rhs);
  if (rhs->solution && rhs->job->sink == QUARK__SINK__SINK_KEEP) qk_due_count_kept(rhs, 1);
  qk_due_count_held(rhs->job, 1);
  qk_marks_rhs(rhs);
}

void qk_rhs_keep_field(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->job->field && rhs->state == QK_RHS_QUEUED && rhs->source && !rhs->solution);
  rhs->solution = rhs->source;
  rhs->source = NULL;
}

void qk_rhs_again(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_RUNNING);
  rhs->state = QK_RHS_QUEUED;
  rhs->job->running--;
  rhs->iterations = 0;
  qk_wall_sums_drop(&rhs->wall);
  qk_shm_destroy(rhs->solution); /* its room stays ours */
  rhs->solution = NULL;
}

/* Of an acknowledged one nobody needs the solution, unless it is kept or others fetch parts of
 * it. */
static void drop_acked(qk_rhs_t *rhs) {
  if (rhs->job->sink != QUARK__SINK__SINK_KEEP && rhs->others == 0) qk_rhs_drop_solution(rhs);
}

void qk_rhs_ack(qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_ENDED);
  rhs->state = QK_RHS_ACKED;
  rhs->job->acked++;
  qk_wall_sums_drop(&rhs->wall);
  qk_due_count_held(rhs->job, -1);
  if (!rhs->job->field) free_source(rhs); /* that one still goes to the spool */
  qk_marks_rhs(rhs);
  drop_acked(rhs);
  if (rhs->job->whole) qk_rhs_let_go_part(qk_rhs_whole(rhs));
}

void qk_rhs_let_go_part(qk_rhs_t *whole) {
  whole->others--;
  if (whole->state == QK_RHS_ACKED) drop_acked(whole);
}

uint64_t qk_rhs_bytes(const qk_rhs_t *rhs) {
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  const qk_job_t *job = rhs->job;
  const bool there = rhs->state == QK_RHS_ENDED && rhs->outcome.written && whole &&
                     (whole->solution || whole->spilled);
  const bool fetched = there && job->sink != QUARK__SINK__SINK_FILE && !whole->job->field &&
                       !(job->bricks && job->part < 0);
  return fetched ? job->part_bytes : 0;
}

qk_status_t qk_rhs_grant(qk_rhs_t *rhs, uint64_t until, const uint64_t *from, qk_err_t *err) {
  if (until > rhs->job->part_bytes)
    return qk_fail(err, QK_BAD_ARGUMENT, "until = %llu is beyond the field's %llu bytes",
                   (unsigned long long)until, (unsigned long long)rhs->job->part_bytes);
  if (from && *from > until)
    return qk_fail(err, QK_BAD_ARGUMENT, "from = %llu is over until = %llu",
                   (unsigned long long)*from, (unsigned long long)until);
  rhs->job->granted = true;
  if (rhs->job->whole) qk_rhs_whole(rhs)->asked = true;
  if (from) {
    rhs->sent = *from;
    rhs->granted = until;
  } else if (until > rhs->granted) {
    rhs->granted = until;
  }
  return QK_OK;
}

bool qk_rhs_sendable(const qk_rhs_t *rhs) {
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  return rhs->sent < rhs->granted && whole && whole->solution && qk_rhs_bytes(rhs) > 0;
}

qk_status_t qk_rhs_send(qk_rhs_t *rhs, uint64_t most, bool by_blocks) {
  if (rhs->leaving && rhs->leaving->by_blocks != by_blocks) { /* now another client asks for it */
    qk_transfer_leave(rhs->leaving);
    rhs->leaving = NULL;
  }
  if (!rhs->leaving && !(rhs->leaving = qk_transfer_create(rhs, by_blocks))) return QK_NO_MEMORY;
  qk_transfer_set_part(rhs->leaving, &rhs->job->brick, NULL);
  qk_transfer_start(rhs->leaving, qk_rhs_whole(rhs)->solution);
  const uint64_t left = rhs->granted - rhs->sent;
  rhs->span_from = rhs->sent;
  rhs->span_until = rhs->sent += left < most ? left : most;
  return QK_OK;
}

qk_rhs_t *qk_rhs_sent(qk_transfer_t *transfer, uint64_t reached) {
  if (!qk_transfer_finish(transfer)) return NULL;
  qk_rhs_t *rhs = transfer->owner;
  if (rhs->sent == rhs->span_until) rhs->sent = reached; /* else a GRANT has moved it meanwhile */
  return rhs;
}
