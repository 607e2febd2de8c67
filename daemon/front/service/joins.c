#include "daemon/front/service/joins.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/service/queue.h"

/* ---- complete ------------------------------------------------------------------------------ */

struct qk_brick_sum {
  uv_work_t work;
  qk_rhs_t *rhs; /* NULL: abandoned */
  void *data;    /* a mapping of its own: the field may go meanwhile */
  size_t bytes;
  uint64_t checksum;
};

static void run(uv_work_t *work) {
  qk_brick_sum_t *s = work->data;
  s->checksum = qk_checksum(s->data, s->bytes);
}

static void complete(qk_rhs_t *rhs, uint64_t checksum) {
  qk_rhs_complete(rhs, checksum);
  rhs->job->hooks->complete(rhs);
}

static void after(uv_work_t *work, int cancelled) {
  qk_brick_sum_t *s = work->data;
  (void)cancelled;
  munmap(s->data, s->bytes);
  if (s->rhs) {
    s->rhs->summing = NULL;
    complete(s->rhs, s->checksum);
  }
  qk_free(s);
}

static bool map(qk_brick_sum_t *s, const qk_shm_t *field) {
  const int fd = qk_shm_open(field, O_RDONLY);
  s->bytes = field->bytes;
  s->data = fd < 0 ? MAP_FAILED : mmap(NULL, s->bytes, PROT_READ, MAP_SHARED, fd, 0);
  if (fd >= 0) close(fd);
  return s->data != MAP_FAILED;
}

void qk_joins_check(qk_service_t *service, qk_rhs_t *rhs) {
  if (!rhs || rhs->state != QK_RHS_UPLOADING || rhs->summing || qk_bricks_missing(rhs) > 0) return;
  if (!rhs->job->entry.marks) {
    complete(rhs, 0);
    return;
  }
  qk_brick_sum_t *s = qk_calloc(1, sizeof *s);
  if (!s || !map(s, rhs->source)) {
    qk_free(s);
    qk_queue_end(service, rhs, QK_NO_MEMORY, "no memory for the checksum of its parts");
    return;
  }
  s->rhs = rhs;
  s->work.data = s;
  rhs->summing = s;
  uv_queue_work(&service->loop->uv, &s->work, run, after);
}

void qk_joins_abandon(qk_rhs_t *rhs) {
  if (rhs->summing) rhs->summing->rhs = NULL;
  rhs->summing = NULL;
}

/* ---- ends ---------------------------------------------------------------------------------- */

void qk_joins_ended(qk_rhs_t *whole) {
  const qk_bricks_t *b = whole->job->bricks;
  qk_joins_abandon(whole);
  for (uint32_t p = 0; b && b->joined > 0 && p < b->count; p++) {
    qk_rhs_t *rhs = b->part[p].job ? &b->part[p].job->rhs[whole->index] : NULL;
    if (!rhs || rhs->state >= QK_RHS_ENDED) continue;
    qk_bricks_mirror(rhs, whole, qk_service_now(whole->job->setup->service));
    rhs->job->hooks->ended(rhs);
  }
}

void qk_joins_leaves(qk_job_t *job) {
  qk_bricks_leave_all(job, QK_CANCELLED,
                      "the request that was joined has ended: its owner has released it or gone");
  qk_bricks_leave(job, QK_CANCELLED, "");
}

void qk_joins_expire(qk_job_t *whole, uint32_t part) {
  if (whole->bricks->part[part].job)
    qk_bricks_leave(whole->bricks->part[part].job, QK_EXPIRED, "another client has joined this part");
}

/* What it has not acknowledged ends, also what had a solution. */
static void end_part(qk_service_t *service, qk_job_t *job) {
  qk_session_t *session = job->session;
  const qk_job_events_t *events = service->events;
  qk_outcome_t outcome = {.status = job->verdict};
  snprintf(outcome.text, sizeof outcome.text, "%s", job->why);
  qk_log(QK_LOG_INFO, "job", job->name, "part %d: %s", job->part, job->why);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if (rhs->state == QK_RHS_ACKED) continue;
    if (rhs->state < QK_RHS_ENDED) qk_rhs_end(rhs, &outcome, qk_service_now(service));
    rhs->outcome = outcome;
    if (session && !session->away) events->result(events->arg, session, rhs);
  }
  if (session && !session->away)
    events->error(events->arg, session, job->verdict, job->why, false, job->request);
  qk_queue_forget(service, job);
}

bool qk_joins_tick(qk_service_t *service, qk_job_t *job) {
  if (job->joined && !job->whole) {
    end_part(service, job);
    return true;
  }
  if (!job->bricks || !qk_job_is_over(job)) return false;
  qk_log(QK_LOG_INFO, "job", job->name, "over");
  qk_queue_forget(service, job);
  return true;
}
