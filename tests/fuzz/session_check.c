#include "tests/fuzz/session_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"

enum { TOLD = 1 << 14 };

/* A RESULT that was sent, or was not expected to be. */
typedef struct told {
  uint8_t token[QK_CLIENT_ID];
  uint64_t request;
  uint32_t rhs, status;
  bool used;
} told_t;

static told_t told[TOLD];
static int ntold, mark[TOLD];
static uint64_t accepted;
static bool lossy;

/* What the jobs add up to. */
typedef struct sums {
  int64_t jobs, budget, fields, open, queued, running, sending, holds, uses, plain_queued;
} sums_t;

void check_begin(void) {
  for (int i = 0; i < ntold; i++) told[mark[i]].used = false;
  ntold = 0;
  accepted = 0;
  lossy = false;
}

void check_accepted(uint32_t nrhs) {
  accepted += nrhs;
}

void check_lossy(void) {
  lossy = true;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Its place in the table, new where it is not there; NULL: the table is full. */
static told_t *find(const qk_session_t *session, uint64_t request, uint32_t rhs) {
  uint64_t key;
  memcpy(&key, session->token, sizeof key);
  key = (key + request * 1031 + rhs) * 0x9e3779b97f4a7c15u;
  for (size_t i = key >> 50;; i = (i + 1) % TOLD) {
    told_t *t = &told[i];
    if (!t->used && ntold == TOLD / 2) return NULL;
    if (!t->used) {
      *t = (told_t){.request = request, .rhs = rhs, .status = UINT32_MAX, .used = true};
      memcpy(t->token, session->token, sizeof t->token);
      mark[ntold++] = (int)i;
      return t;
    }
    if (t->request == request && t->rhs == rhs &&
        memcmp(t->token, session->token, sizeof t->token) == 0)
      return t;
  }
}

static const qk_rhs_t *ended_rhs(const qk_session_t *session, const Quark__Result *r) {
  const qk_job_t *job = qk_session_job(session, r->request);
  if (!job || r->rhs >= job->nrhs || job->rhs[r->rhs].state != QK_RHS_ENDED) return NULL;
  return &job->rhs[r->rhs];
}

void check_told(const qk_server_t *server, int peer, const Quark__Result *result, bool repeats) {
  const qk_session_t *session = NULL;
  const qk_rhs_t *rhs = NULL;
  for (int i = 0; i < server->sessions.count && !rhs; i++) {
    session = server->sessions.at[i];
    if (!session->doomed && session->control.bytes > 0 &&
        session->control.id[session->control.bytes - 1] == peer)
      rhs = ended_rhs(session, result);
  }
  QK_ASSERT(rhs && result->status == (uint32_t)rhs->outcome.status);
  QK_ASSERT(result->status != QK_OK || rhs->job->contraction ||
            rhs->outcome.true_residual <= rhs->job->tol);
  QK_ASSERT(result->bytes == 0 || result->bytes == rhs->job->field_bytes);
  told_t *t = find(session, result->request, result->rhs);
  if (!t) return;
  QK_ASSERT(t->status == UINT32_MAX || (repeats && t->status == result->status));
  t->status = result->status;
}

/* Exactly what has ended was told. */
static void check_results(const qk_session_t *session, const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    const bool ended = rhs->state >= QK_RHS_ENDED;
    told_t *t = find(session, job->request, i);
    if (!t) return;
    if (session->away && ended) t->status = (uint32_t)rhs->outcome.status; /* who should hear it? */
    if (ended && !lossy) QK_ASSERT(t->status == (uint32_t)rhs->outcome.status);
    if (!ended) QK_ASSERT(t->status == UINT32_MAX);
  }
}

/* ---- right-hand sides, jobs ------------------------------------------------------------------ */

static void check_rhs(const qk_rhs_t *rhs, sums_t *sum) {
  const qk_job_t *job = rhs->job;
  const bool queued = rhs->state == QK_RHS_QUEUED, running = rhs->state == QK_RHS_RUNNING;
  QK_ASSERT(qk_link_alone(&rhs->queue.link) == !queued);
  QK_ASSERT(qk_link_alone(&rhs->send) || rhs->solution);
  if (job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD && !job->contraction && (queued || running))
    QK_ASSERT(rhs->source);
  if (rhs->state >= QK_RHS_ENDED) {
    QK_ASSERT(!rhs->source && !rhs->charged_source && !rhs->uses[0] && !rhs->uses[1]);
    QK_ASSERT(!rhs->charged_solution || rhs->outcome.written);
  }
  if (rhs->state == QK_RHS_ACKED && job->sink != QUARK__SINK__SINK_KEEP) QK_ASSERT(!rhs->solution);
  if (rhs->source) QK_ASSERT(rhs->charged_source && rhs->source->bytes == job->field_bytes);
  if (rhs->solution) QK_ASSERT(rhs->charged_solution && rhs->solution->bytes == job->field_bytes);
  QK_ASSERT(rhs->granted <= job->field_bytes && rhs->sent <= job->field_bytes);
  sum->budget +=
      (int64_t)((uint64_t)(rhs->charged_source + rhs->charged_solution) * job->field_bytes);
  sum->fields += (int64_t)((uint64_t)(!!rhs->source + !!rhs->solution) * job->field_bytes);
  sum->queued += queued;
  sum->plain_queued += queued && rhs->losses == 0;
  sum->running += running;
  sum->sending += !qk_link_alone(&rhs->send);
  sum->uses += !!rhs->uses[0] + !!rhs->uses[1];
}

static void check_job(const qk_job_t *job, sums_t *sum) {
  uint32_t running = 0, ended = 0, acked = 0;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    QK_ASSERT(rhs->job == job && rhs->index == i);
    check_rhs(rhs, sum);
    running += rhs->state == QK_RHS_RUNNING;
    ended += rhs->state >= QK_RHS_ENDED;
    acked += rhs->state == QK_RHS_ACKED;
  }
  QK_ASSERT(job->running == running && job->ended == ended && job->acked == acked);
  QK_ASSERT(job->upload_next <= job->upload_until || job->contraction);
  QK_ASSERT(job->upload_until <= job->nrhs * job->field_bytes);
  sum->jobs++;
  sum->budget += job->overhead;
  sum->open += job->nrhs - ended;
  sum->holds += job->holds;
}

static void check_session(const qk_session_t *session, sums_t *sum) {
  int n = 0;
  QK_ASSERT(!session->away || session->control.bytes == 0);
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next, n++) {
    const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    QK_ASSERT(job->session == session && !job->forgotten && job->user == session->user);
    QK_ASSERT(job->request > 0 && job->request <= session->newest);
    QK_ASSERT(qk_session_job(session, job->request) == job);
    QK_ASSERT(!session->away || job->detach > 0);
    check_job(job, sum);
    if (!session->doomed) check_results(session, job);
  }
  QK_ASSERT(n == session->njobs && n <= QK_CLIENT_REQUESTS_MAX);
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int64_t length(const qk_link_t *list) {
  int64_t n = 0;
  for (const qk_link_t *l = list->next; l != list; l = l->next) {
    QK_ASSERT(l->next->prev == l);
    n++;
  }
  return n;
}

static void check_users(const qk_server_t *server, const sums_t *sum) {
  int64_t open = 0, queued = 0, memory = 0;
  for (const qk_sched_user_t *u = NULL; (u = qk_sched_user_after(&server->sched, u));) {
    qk_sched_user_t *user = (qk_sched_user_t *)u;
    const qk_budget_t *budget = qk_sched_user_memory(user), *kept = qk_sched_user_kept(user);
    QK_ASSERT(*qk_sched_user_open(user) >= 0 && qk_sched_user_queued(user) >= 0);
    QK_ASSERT(budget->used >= 0 && budget->used <= budget->limit);
    QK_ASSERT(kept->used >= 0 && kept->used <= kept->limit);
    open += *qk_sched_user_open(user);
    queued += qk_sched_user_queued(user);
    memory += budget->used;
  }
  QK_ASSERT(open == sum->open && queued == server->sched.length);
  QK_ASSERT(memory == server->budget.used);
}

static void check_slots(const qk_server_t *server) {
  const qk_mount_t *mount = server->primary;
  const qk_engine_info_t *e = qk_worker_info(mount->worker);
  for (int k = 0; k < QK_PLACES; k++) {
    const qk_slot_use_t *slot = &mount->slot[k];
    if (!slot->rhs) continue;
    QK_ASSERT(qk_worker_state(mount->worker) == QK_WORKER_READY || server->stopping);
    QK_ASSERT(k < (int)e->seats || k == QK_CONTRACT_PLACE);
    QK_ASSERT((k == QK_CONTRACT_PLACE) == (slot->rhs->job->contraction != NULL));
    QK_ASSERT(slot->rhs->state == QK_RHS_RUNNING);
    QK_ASSERT(slot->ticket > 0 && slot->ticket <= mount->ticket);
    for (int i = 0; i < k; i++)
      QK_ASSERT(mount->slot[i].rhs != slot->rhs &&
                (!mount->slot[i].rhs || mount->slot[i].ticket != slot->ticket));
  }
}

static uint64_t ended(const qk_server_t *server) {
  const qk_counters_t *c = &server->count;
  return c->converged + c->contracted + c->cancelled + c->failed;
}

void check_state(const qk_server_t *server, int64_t fields) {
  sums_t sum = {0};
  for (int i = 0; i < server->sessions.count; i++) check_session(server->sessions.at[i], &sum);
  for (const qk_link_t *l = server->orphans.next; l != &server->orphans; l = l->next) {
    const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    QK_ASSERT(!job->session && job->forgotten && (job->running > 0 || job->holds > 0));
    check_job(job, &sum);
  }
  QK_ASSERT(server->budget.used == sum.budget && sum.budget <= server->budget.limit);
  QK_ASSERT(fields == sum.fields && fields <= sum.budget);
  QK_ASSERT(server->sched.length == sum.plain_queued);
  QK_ASSERT(length(&server->primary->suspects) == sum.queued - sum.plain_queued);
  QK_ASSERT(length(&server->downloads) == sum.sending);
  QK_ASSERT(qk_dispatch_running(server) == sum.running); /* so each is in one slot */
  QK_ASSERT(sum.holds == sum.uses);
  QK_ASSERT(server->primary->open == sum.open && server->primary->holds == 1 + sum.jobs);
  QK_ASSERT(accepted == ended(server) + (uint64_t)sum.open);
  QK_ASSERT(sum.open > 0 || fabs(server->primary->open_digits) < 1e-6);
  check_users(server, &sum);
  check_slots(server);
}

void check_empty(const qk_server_t *server) {
  QK_ASSERT(server->sessions.count == 0 && qk_link_alone(&server->orphans));
  QK_ASSERT(!qk_sched_user_after(&server->sched, NULL));
  QK_ASSERT(server->budget.used == 0 && server->sched.length == 0);
  QK_ASSERT(accepted == ended(server));
}

void check_over(const qk_server_t *server) {
  check_empty(server);
  QK_ASSERT(qk_link_alone(&server->downloads));
  QK_ASSERT(qk_mem_bytes() == 0);
}
