#include "tests/fuzz/session/session_promise.h"

#include <string.h>

#include "daemon/base/assert.h"
#include "tests/fuzz/session/session_check.h"

enum { JOBS = 1024, ENDS = 1 << 16, OPEN = UINT32_MAX };

/* An accepted request that is not over. */
typedef struct promise {
  uint8_t client_id[QK_CLIENT_ID];
  int life;
  uint64_t request, digest;
  int64_t setup;
  uint32_t nrhs;
  bool acked;          /* it was there for what it keeps */
  const uint32_t *end; /* [nrhs] status, or OPEN */
  /* [nrhs] of solutions; 0: there is none in memory, as it is on the disk, or expired so late that
   * the journal may not say so: the next front may have it. */
  const uint64_t *stamp;
} promise_t;

static promise_t promises[JOBS];
static uint32_t ends[ENDS];
static uint64_t stamps[ENDS];
static int count, nends;

void promise_nothing(void) {
  count = nends = 0;
}

/* What an engine has written first of all (world_stamp). */
static uint64_t stamp_of(const qk_rhs_t *rhs) {
  uint64_t stamp = 0;
  if (rhs->job->field) return rhs->state >= QK_RHS_ENDED && rhs->solution ? rhs->digest : 0;
  if (rhs->state >= QK_RHS_ENDED && rhs->solution)
    memcpy(&stamp, rhs->solution->data, sizeof stamp);
  return stamp;
}

static void add(const qk_job_t *job, int life) {
  if (count == JOBS || nends + (int)job->nrhs > ENDS) return;
  promise_t *p = &promises[count++];
  *p = (promise_t){.life = life,
                   .request = job->request,
                   .digest = job->digest,
                   .setup = job->setup->id,
                   .nrhs = job->nrhs,
                   .acked = job->acked == job->nrhs,
                   .end = &ends[nends],
                   .stamp = &stamps[nends]};
  memcpy(p->client_id, job->client_id, QK_CLIENT_ID);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    stamps[nends] = stamp_of(rhs);
    ends[nends++] = rhs->state >= QK_RHS_ENDED ? (uint32_t)rhs->outcome.status : OPEN;
  }
}

void promise_note(const qk_server_t *server) {
  promise_nothing();
  for (int i = 0; i < server->service.sessions.count; i++) {
    const qk_session_t *session = server->service.sessions.at[i];
    if (session->closing) continue;
    const int life = check_life(session);
    for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
      if (job->joined && !job->whole) continue; /* it is about to end */
      if (job->entry.written) add(job, life);   /* else nobody was told that it is accepted */
    }
  }
}

static void check(const promise_t *p, const qk_job_t *job, bool forgetful, bool stale) {
  if (!job && p->acked && forgetful) return;
  QK_ASSERT(job && job->nrhs == p->nrhs && job->digest == p->digest && job->setup->id == p->setup);
  for (uint32_t i = 0; i < p->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    const bool ended = rhs->state >= QK_RHS_ENDED;
    if (p->end[i] == OPEN) {
      QK_ASSERT(!ended || rhs->outcome.status != QK_OK || stale);
      continue;
    }
    QK_ASSERT(!ended || !rhs->solution || p->stamp[i] == 0 || stamp_of(rhs) == p->stamp[i]);
    if (forgetful) continue;
    QK_ASSERT(ended && (uint32_t)rhs->outcome.status == p->end[i]);
  }
}

void promise_check(const qk_server_t *server, bool forgetful, bool stale) {
  if (forgetful) check_untold();
  for (int i = 0; i < count; i++) {
    const promise_t *p = &promises[i];
    const qk_session_t *session = qk_session_by_id(&server->service.sessions, p->client_id);
    QK_ASSERT(session);
    check_goes_on(p->life, session);
    check(p, qk_session_job(session, p->request), forgetful, stale);
  }
  promise_nothing();
}
