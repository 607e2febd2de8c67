#include "tests/fuzz/session/session_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/service/dispatch.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/state/spill.h"

enum { TOLD = 1 << 14, LIVES = 256, MOUNTS = 512 };

/* A session, which may go on in the next front under another token. */
typedef struct life {
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
  uint32_t peers;      /* bits: who has spoken for it at the end of some turn */
  uint64_t connection; /* that it had then; 0: none yet */
} life_t;

/* A RESULT that was sent, or was not expected to be. */
typedef struct told {
  int life;
  uint64_t request;
  uint32_t rhs, status;
  bool used;
  bool unheard; /* nobody was there: it may yet come, if it waits for the journal */
} told_t;

static life_t life[LIVES];
static int nlives;
static told_t told[TOLD];
static int ntold, mark[TOLD];
static uint64_t accepted;
static bool lossy;
static bool crowded; /* what had been released is there again, besides what came into its place */

/* What the jobs for a setup add up to. */
typedef struct load {
  const qk_setup_t *setup;
  int64_t jobs, open, quarantined, waiting;
  int64_t evolving; /* setups that wait for its null vectors */
  bool succeeds;    /* another one, in time */
} load_t;

/* What all jobs add up to. */
typedef struct sums {
  int64_t budget, fields, coming, open, queued, running, sending, holds, uses, plain_queued,
      promised, unsaved, held, kept, kept_bytes;
  bool spools;
  load_t load[MOUNTS];
  int loads;
} sums_t;

void check_begin(void) {
  for (int i = 0; i < ntold; i++) told[mark[i]].used = false;
  ntold = nlives = 0;
  lossy = false;
}

void check_front(bool stale) {
  accepted = 0;
  crowded = stale;
}

void check_accepted(uint32_t nrhs) {
  accepted += nrhs;
}

void check_lossy(void) {
  lossy = true;
}

/* ---- results --------------------------------------------------------------------------------- */

/* -1: there are too many. */
static int life_of(const qk_session_t *session) {
  int i = nlives - 1;
  while (i >= 0 && memcmp(life[i].token, session->token, QK_CLIENT_ID) != 0) i--;
  if (i >= 0 || nlives == LIVES) return i;
  life[nlives].peers = 0;
  life[nlives].connection = 0;
  memcpy(life[nlives].client_id, session->client_id, QK_CLIENT_ID);
  memcpy(life[nlives].token, session->token, QK_CLIENT_ID);
  return nlives++;
}

int check_life(const qk_session_t *session) {
  return life_of(session);
}

void check_goes_on(int i, const qk_session_t *session) {
  if (i >= 0) memcpy(life[i].token, session->token, QK_CLIENT_ID);
}

void check_untold(void) {
  for (int i = 0; i < ntold; i++) {
    told[mark[i]].status = UINT32_MAX;
    told[mark[i]].unheard = false;
  }
}

/* Its place in the table, new where it is not there; NULL: the table is full. */
static told_t *find(const qk_session_t *session, uint64_t request, uint32_t rhs) {
  const int of = life_of(session);
  const uint64_t key = ((uint64_t)of * 65537 + request * 1031 + rhs) * 0x9e3779b97f4a7c15u;
  for (size_t i = key >> 50; of >= 0; i = (i + 1) % TOLD) {
    told_t *t = &told[i];
    if (!t->used && ntold == TOLD / 2) return NULL;
    if (!t->used) {
      *t = (told_t){.life = of, .request = request, .rhs = rhs, .status = UINT32_MAX, .used = true};
      mark[ntold++] = (int)i;
      return t;
    }
    if (t->life == of && t->request == request && t->rhs == rhs) return t;
  }
  return NULL;
}

static const qk_rhs_t *ended_rhs(const qk_session_t *session, const Quark__Result *r) {
  const qk_job_t *job = qk_session_job(session, r->request);
  if (!job || r->rhs >= job->nrhs || job->rhs[r->rhs].state < QK_RHS_ENDED) return NULL;
  return &job->rhs[r->rhs];
}

static int peer_of(const qk_session_t *session) {
  return session->control.bytes > 0 ? session->control.id[session->control.bytes - 1] : -1;
}

/* A RESULT that waited for the journal, to a peer that somebody else speaks for by now: what it
 * missed a client asks for. */
static void note_missed(const qk_server_t *server, int peer, const Quark__Result *result) {
  for (int i = 0; i < server->service.sessions.count; i++) {
    const qk_session_t *session = server->service.sessions.at[i];
    const qk_rhs_t *rhs = session->closing ? NULL : ended_rhs(session, result);
    const int of = life_of(session);
    told_t *t = rhs ? find(session, result->request, result->rhs) : NULL;
    if (t && of >= 0 && life[of].peers >> peer & 1 && t->status == UINT32_MAX &&
        result->status == (uint32_t)rhs->outcome.status)
      t->status = result->status;
  }
}

/* By the numbers that are told. */
static bool is_solved(const qk_rhs_t *rhs) {
  const qk_job_t *job = rhs->job;
  const qk_outcome_t *o = &rhs->outcome;
  if (job->tol > 0 && !(o->true_residual <= job->tol)) return false;
  if (job->tol_abs > 0 && !(o->true_residual * o->norm_b <= job->tol_abs)) return false;
  return !(job->tol_hq > 0) || o->hq_residual <= job->tol_hq;
}

/* Sums over time slices are numbers, and as many of each kind, or none. */
static void check_wall(const Quark__WallSums *wall) {
  if (!wall) return;
  const size_t n = wall->n_quark;
  QK_ASSERT(n >= 1 && n <= QK_WALL_TIMES_MAX);
  QK_ASSERT(wall->n_midpoint == n || wall->n_midpoint == 0);
  QK_ASSERT(wall->n_axial == n || wall->n_axial == 0);
  for (size_t t = 0; t < n; t++) QK_ASSERT(isfinite(wall->quark[t]));
}

void check_told(const qk_server_t *server, int peer, const Quark__Result *result, bool repeats) {
  const qk_session_t *session = NULL;
  const qk_rhs_t *rhs = NULL;
  for (int i = 0; i < server->service.sessions.count && !rhs; i++) {
    session = server->service.sessions.at[i];
    if (!session->closing && peer_of(session) == peer) rhs = ended_rhs(session, result);
  }
  if (!rhs && server->service.journal) { /* or it was released meanwhile */
    note_missed(server, peer, result);
    return;
  }
  QK_ASSERT(rhs && result->status == (uint32_t)rhs->outcome.status);
  QK_ASSERT(result->status != QK_OK || qk_job_is_beside(rhs->job) || is_solved(rhs));
  QK_ASSERT(!result->has_hq_residual || rhs->job->tol_hq > 0);
  QK_ASSERT(result->bytes == 0 || result->bytes == rhs->job->part_bytes);
  check_wall(result->wall);
  told_t *t = find(session, result->request, result->rhs);
  if (!t) return;
  if (rhs->job->joined && !rhs->job->whole) t->unheard = repeats = true; /* it ends once more */
  if (rhs->job->joined && !rhs->job->whole) t->status = result->status;
  QK_ASSERT(t->status == UINT32_MAX || ((repeats || t->unheard) && t->status == result->status));
  t->status = result->status;
  t->unheard = false;
}

/* Exactly what has ended was told, except what its client acknowledged before. settled: the journal
 * has everything. */
static void check_results(const qk_session_t *session, const qk_job_t *job, bool settled) {
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    const bool ended = rhs->state >= QK_RHS_ENDED;
    const told_t *t = find(session, job->request, i);
    if (!t) return;
    const bool unasked =
        rhs->state == QK_RHS_ACKED && t->status == UINT32_MAX; /* it did not wait */
    if (ended && settled && !lossy && !unasked)
      QK_ASSERT(t->status == (uint32_t)rhs->outcome.status);
    if (!ended) QK_ASSERT(t->status == UINT32_MAX);
  }
}

static void note_unheard(const qk_session_t *session, const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++) {
    told_t *t = find(session, job->request, i);
    if (!t || job->rhs[i].state < QK_RHS_ENDED) continue;
    t->unheard = t->unheard || t->status == UINT32_MAX;
    t->status = (uint32_t)job->rhs[i].outcome.status;
  }
}

/* What waits for the journal, to be told to a connection that has ended since, is not told to the
 * next one: its client attaches. */
static bool has_moved(const qk_session_t *session) {
  const int of = life_of(session);
  const uint64_t now = session->control.connection;
  if (session->control.bytes == 0) return true;
  if (of < 0) return false;
  const bool moved = life[of].connection != 0 && life[of].connection != now;
  life[of].connection = now;
  return moved;
}

void check_unheard(const qk_server_t *server) {
  for (int i = 0; i < server->service.sessions.count; i++) {
    const qk_session_t *session = server->service.sessions.at[i];
    if (!has_moved(session)) continue;
    for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next)
      note_unheard(session, QK_HOLDER(l, const qk_job_t, link));
  }
}

/* ---- right-hand sides, jobs ------------------------------------------------------------------ */

static void check_rhs(const qk_rhs_t *rhs, sums_t *sum) {
  const qk_job_t *job = rhs->job;
  const bool links =
      job->field; /* charged as what is kept, and kept in the place of the solution */
  const bool queued = rhs->state == QK_RHS_QUEUED, running = rhs->state == QK_RHS_RUNNING;
  const qk_rhs_t *whole = qk_rhs_whole(rhs);
  QK_ASSERT(qk_sched_item_waits(&rhs->queue) == (queued && !job->field && !job->joined));
  QK_ASSERT(qk_link_alone(&rhs->send) || (whole && whole->solution));
  if (job->joined) QK_ASSERT(!rhs->source && !rhs->solution && !running && !rhs->spilled);
  QK_ASSERT(!rhs->spilled || rhs->outcome.written);
  if (job->source == QUARK__SOURCE_KIND__SOURCE_UPLOAD && !qk_job_is_beside(job) && !job->joined &&
      (queued || running))
    QK_ASSERT(rhs->source);
  if (rhs->state >= QK_RHS_ENDED) {
    QK_ASSERT((rhs->unsaved || (!rhs->source && !rhs->charged_source)) && !rhs->uses[0] &&
              !rhs->uses[1]);
    QK_ASSERT(!rhs->charged_solution || rhs->outcome.written);
  }
  QK_ASSERT(rhs->kept ==
            (rhs->state >= QK_RHS_ENDED && rhs->solution && job->sink == QUARK__SINK__SINK_KEEP));
  if (rhs->unsaved)
    QK_ASSERT((rhs->source || (links && rhs->solution)) && !rhs->spooled &&
              !qk_link_alone(&rhs->save));
  sum->unsaved += rhs->unsaved;
  if (rhs->state == QK_RHS_ACKED && job->sink != QUARK__SINK__SINK_KEEP)
    QK_ASSERT(!rhs->solution || rhs->others > 0);
  if (rhs->source)
    QK_ASSERT((links ? rhs->charged_solution : rhs->charged_source) &&
              rhs->source->bytes == job->field_bytes);
  if (rhs->solution) QK_ASSERT(rhs->charged_solution && rhs->solution->bytes == job->field_bytes);
  QK_ASSERT(rhs->granted <= job->part_bytes && rhs->sent <= job->part_bytes);
  sum->budget +=
      (int64_t)((uint64_t)(rhs->charged_source + rhs->charged_solution) * job->field_bytes);
  sum->fields += (int64_t)((uint64_t)(!!rhs->source + !!rhs->solution) * job->field_bytes);
  sum->coming += rhs->moving && !rhs->solution ? (int64_t)job->field_bytes : 0;
  sum->queued += queued && !job->joined;
  sum->plain_queued += queued && !links && !job->joined && (rhs->losses == 0 || job->problem) &&
                       rhs->wait_until == 0;
  sum->running += running;
  sum->sending += !qk_link_alone(&rhs->send);
  sum->uses += !!rhs->uses[0] + !!rhs->uses[1];
}

static load_t *load_of(sums_t *sum, const qk_setup_t *setup) {
  int i = 0;
  while (i < sum->loads && sum->load[i].setup != setup) i++;
  QK_ASSERT(i < MOUNTS);
  if (i == sum->loads) sum->load[sum->loads++] = (load_t){.setup = setup};
  return &sum->load[i];
}

/* Who has joined, and whom each right-hand side still waits for. */
static void check_parts(const qk_job_t *job) {
  const qk_bricks_t *b = job->bricks;
  uint32_t joined = 0;
  QK_ASSERT(!job->whole || (job->whole->bricks->part[job->part].job == job && !job->whole->joined));
  for (uint32_t p = 0; b && p < b->count; p++) {
    const qk_job_t *other = b->part[p].job;
    QK_ASSERT(b->part[p].gate->busy == 0 && b->part[p].arrived <= job->nrhs);
    if (!other) continue;
    QK_ASSERT(other->whole == job && other->nrhs == job->nrhs && other->user == job->user);
    joined++;
  }
  QK_ASSERT(!b || joined == b->joined);
  for (uint32_t i = 0; i < job->nrhs; i++) {
    uint32_t others = 0;
    for (uint32_t p = 0; b && p < b->count; p++)
      others += b->part[p].job && b->part[p].job->rhs[i].state < QK_RHS_ACKED;
    QK_ASSERT(job->rhs[i].others == others);
  }
}

static void check_job(const qk_job_t *job, sums_t *sum) {
  load_t *load = load_of(sum, job->setup);
  uint32_t running = 0, ended = 0, acked = 0;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    QK_ASSERT(rhs->job == job && rhs->index == i);
    check_rhs(rhs, sum);
    running += rhs->state == QK_RHS_RUNNING;
    ended += rhs->state >= QK_RHS_ENDED;
    acked += rhs->state == QK_RHS_ACKED;
    load->quarantined += !job->problem && rhs->state == QK_RHS_QUEUED && !job->joined &&
                         rhs->losses > 0 && rhs->wait_until == 0;
    load->waiting += rhs->state == QK_RHS_QUEUED && rhs->wait_until > 0;
  }
  QK_ASSERT(job->running == running && job->ended == ended && job->acked == acked);
  if (job->session) sum->held += ended - acked;
  sum->kept += job->kept;
  sum->kept_bytes += (int64_t)(job->kept * job->field_bytes);
  QK_ASSERT(qk_job_is_beside(job) || job->field || job->flavour == 1 ||
            (job->flavour == -1 && qk_values_action(&job->setup->settings.op)->has_flavours));
  QK_ASSERT(job->field ||
            ((job->tol > 0 || job->tol_abs > 0 || job->tol_hq > 0) == qk_job_solves(job)));
  /* The action says it: an engine of this world may tell a shape that its action has not. */
  QK_ASSERT(!qk_job_solves(job) || !job->dagger ||
            qk_action_vectors(qk_values_action(&job->setup->settings.op)) == 1);
  for (uint32_t i = 0; job->column && i < job->nrhs; i++)
    QK_ASSERT(job->column[i].flavour != -1 || qk_shape_vectors(&job->shape) > 1);
  QK_ASSERT(job->upload_next <= job->upload_until || qk_job_is_beside(job));
  QK_ASSERT(job->upload_next == job->upload_due && job->chunks == 0); /* without data threads */
  QK_ASSERT(job->upload_until <= job->nrhs * job->part_bytes);
  check_parts(job);
  load->jobs++;
  load->open += job->joined ? 0 : job->nrhs - ended;
  sum->budget += job->overhead;
  sum->open += job->joined ? 0 : job->nrhs - ended;
  sum->holds += job->holds;
  sum->promised += job->promised;
  if (job->source != QUARK__SOURCE_KIND__SOURCE_UPLOAD || qk_job_is_beside(job) ||
      ended == job->nrhs || job->joined)
    QK_ASSERT(job->promised == 0);
  else if (sum->spools)
    QK_ASSERT(job->promised == (int64_t)((job->nrhs - job->entry.spooled) * job->field_bytes));
}

static void check_session(const qk_session_t *session, bool settled, sums_t *sum) {
  const int of = life_of(session), peer = peer_of(session);
  int n = 0;
  if (of >= 0 && peer >= 0) life[of].peers |= 1u << peer;
  QK_ASSERT(!session->away || session->control.bytes == 0);
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next, n++) {
    const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    QK_ASSERT(job->session == session && !job->forgotten && job->user == session->user);
    QK_ASSERT(job->request > 0 && job->request <= session->newest);
    QK_ASSERT(qk_session_job(session, job->request) == job);
    QK_ASSERT(!session->away || job->detach > 0);
    check_job(job, sum);
    if (!session->closing) check_results(session, job, settled);
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
  const bool spills = qk_spill_bytes(server->service.spill) > 0 ||
                      crowded; /* what comes back does not wait for room */
  int64_t open = 0, queued = 0, memory = 0;
  for (const qk_sched_user_t *u = NULL; (u = qk_sched_user_after(&server->service.sched, u));) {
    qk_sched_user_t *user = (qk_sched_user_t *)u;
    const qk_budget_t *budget = qk_sched_user_memory(user), *kept = qk_sched_user_kept(user);
    QK_ASSERT(*qk_sched_user_open(user) >= 0 && qk_sched_user_queued(user) >= 0);
    QK_ASSERT(budget->used >= 0 && (spills || budget->used <= budget->limit));
    QK_ASSERT(kept->used >= 0 && (crowded || kept->used <= kept->limit));
    open += *qk_sched_user_open(user);
    queued += qk_sched_user_queued(user);
    memory += budget->used;
  }
  QK_ASSERT(open == sum->open && queued == server->service.sched.length);
  QK_ASSERT(memory == server->service.budget.used);
}

/* In no other entry, of whichever replica. */
static void check_alone(const qk_setup_t *setup, const qk_inflight_entry_t *entry) {
  QK_EACH_REPLICA(r, setup)
  for (int k = 0; k < QK_ENTRIES; k++) {
    const qk_inflight_entry_t *other = &r->inflight[k];
    if (other != entry && other->rhs)
      QK_ASSERT(other->rhs != entry->rhs && other->serial != entry->serial);
  }
}

static void check_replica(const qk_server_t *server, const qk_replica_t *replica) {
  const qk_setup_t *setup = replica->setup;
  const qk_engine_info_t *e = qk_supervisor_info(replica->supervisor);
  for (int k = 0; k < QK_ENTRIES; k++) {
    const qk_inflight_entry_t *entry = &replica->inflight[k];
    if (!entry->rhs) continue;
    QK_ASSERT(qk_replica_is_ready(replica) || server->service.stopping);
    QK_ASSERT(entry->rhs->replica == replica->number);
    QK_ASSERT(k < (int)e->inflight || k >= QK_INFLIGHT_MAX);
    QK_ASSERT((k == QK_CONTRACT_ENTRY) == (entry->rhs->job->contraction != NULL));
    QK_ASSERT((k == QK_EIGEN_ENTRY) == (entry->rhs->job->problem != NULL));
    QK_ASSERT(entry->rhs->state == QK_RHS_RUNNING);
    QK_ASSERT(entry->serial > 0 && entry->serial <= setup->serial);
    check_alone(setup, entry);
  }
}

static void check_slots(const qk_server_t *server, const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup) check_replica(server, r);
}

/* As many as there may be, of different names; what is being made has a request. */
static void check_eigen(const qk_setup_t *setup) {
  int n = 0, reads = 0, returning = 0;
  for (const qk_link_t *l = setup->eigen.next; l != &setup->eigen; l = l->next, n++) {
    const qk_eigen_set_t *set = QK_HOLDER(l, const qk_eigen_set_t, link);
    QK_ASSERT(qk_eigen_find(setup, set->problem->name) == set);
    QK_EACH_REPLICA(r, setup) reads += r->returning == set;
    QK_ASSERT(set->state != QUARK__EIGEN_STATE__EIGEN_KEPT || set->there != 0);
    QK_ASSERT(set->state != QUARK__EIGEN_STATE__EIGEN_MAKING || setup->open > 0);
  }
  QK_EACH_REPLICA(r, setup) {
    returning += r->returning != NULL;
    QK_ASSERT(!r->returning || !r->inflight[QK_EIGEN_ENTRY].rhs);
  }
  QK_ASSERT(n <= QK_EIGEN_NAMES_MAX && reads == returning);
}

/* It is in no table before it takes the place of the other one. */
static void check_successor(const qk_setup_t *setup, sums_t *sum) {
  const qk_setup_t *successor = setup->successor;
  if (!successor) return;
  QK_ASSERT(setup->dropping && setup->owner[0] && strcmp(setup->owner, successor->owner) == 0);
  QK_ASSERT(successor->index < 0 && !successor->dropping && !successor->successor);
  QK_ASSERT(qk_setup_state(successor) == QK_SUPERVISOR_DOWN);
  QK_ASSERT(!setup->service->journal || successor->id > setup->id);
  load_of(sum, successor)->succeeds = true;
}

static void check_setups(const qk_server_t *server, sums_t *sum) {
  int serving = 0;
  QK_ASSERT(server->service.primary == server->service.setup[server->service.primary->index]);
  QK_ASSERT(qk_setup_serves(server->service.primary) || server->service.stopping);
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = server->service.setup[m];
    if (!setup) continue;
    QK_ASSERT(setup->index == m);
    load_of(sum, setup);
    check_successor(setup, sum);
    check_slots(server, setup);
    check_eigen(setup);
    serving += setup->failed == QK_OK && !setup->ending;
  }
  QK_ASSERT(serving <= server->service.settings->max_setups || server->service.journal);
  for (int i = 0; i < sum->loads; i++)
    if (sum->load[i].setup->source) load_of(sum, sum->load[i].setup->source)->evolving++;
  for (int i = 0; i < sum->loads; i++) {
    const load_t *load = &sum->load[i];
    const qk_setup_t *setup = load->setup;
    QK_ASSERT(setup->open == load->open && length(&setup->quarantined) == load->quarantined);
    QK_ASSERT(length(&setup->waiting) == load->waiting);
    const bool stays = setup->index >= 0 || setup == server->service.depot || load->succeeds;
    QK_ASSERT(setup->holds == load->jobs + load->evolving + stays);
    QK_ASSERT(stays || load->open == 0);
    QK_ASSERT(load->open > 0 || fabs(setup->open_digits) < 1e-6);
  }
}

static uint64_t ended(const qk_server_t *server) {
  const qk_counters_t *c = &server->service.count;
  return c->converged + c->contracted + c->fields + c->cancelled + c->failed;
}

void check_state(const qk_server_t *server, int64_t fields, bool moving) {
  static sums_t sum;
  const bool settled = qk_journal_clean(server->service.journal);
  sum = (sums_t){.spools = server->service.spool};
  check_unheard(server);
  for (int i = 0; i < server->service.sessions.count; i++)
    check_session(server->service.sessions.at[i], settled, &sum);
  for (const qk_link_t *l = server->service.orphans.next; l != &server->service.orphans;
       l = l->next) {
    const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    QK_ASSERT(!job->session && job->forgotten &&
              (job->running > 0 || job->holds > 0 || !qk_link_alone(&job->leaving)));
    check_job(job, &sum);
  }
  QK_ASSERT(server->service.budget.used == sum.budget);
  QK_ASSERT(sum.budget <= server->service.budget.limit ||
            qk_spill_bytes(server->service.spill) > 0 || crowded);
  QK_ASSERT(fields == sum.fields + sum.coming || (moving && fields > sum.fields));
  QK_ASSERT(sum.fields <= sum.budget);
  QK_ASSERT(server->service.sched.length == sum.plain_queued);
  QK_ASSERT(length(&server->net.downloads) + length(&server->net.paused) == sum.sending);
  QK_ASSERT(qk_queue_running(&server->service) == sum.running); /* so each is in one slot */
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = server->service.setup[m];
    sum.uses += setup && setup->links;
    sum.uses += setup && setup->successor && setup->successor->links;
  }
  QK_ASSERT(sum.holds == sum.uses);
  QK_ASSERT(sum.promised == server->service.promised);
  QK_ASSERT(sum.unsaved == server->service.jobs.unsaved);
  QK_ASSERT(sum.held == server->service.jobs.held && sum.kept == server->service.jobs.kept);
  QK_ASSERT(sum.kept_bytes == server->service.jobs.kept_bytes);
  QK_ASSERT(accepted == ended(server) + (uint64_t)sum.open);
  check_setups(server, &sum);
  check_users(server, &sum);
}

/* Nobody has any work there. Fields stay as long as setups are made of them. */
static int64_t held_by_setups(const qk_link_t *jobs) {
  int64_t bytes = 0;
  for (const qk_link_t *l = jobs->next; l != jobs; l = l->next) {
    const qk_job_t *job = QK_HOLDER(l, const qk_job_t, link);
    QK_ASSERT(job->field && job->holds > 0);
    bytes += job->overhead + (int64_t)job->field_bytes;
  }
  return bytes;
}

void check_empty(const qk_server_t *server) {
  int64_t held = held_by_setups(&server->service.orphans);
  for (int i = 0; i < server->service.sessions.count; i++) {
    const qk_session_t *session = server->service.sessions.at[i];
    QK_ASSERT(session->njobs > 0);
    held += held_by_setups(&session->jobs);
  }
  QK_ASSERT(held > 0 || !qk_sched_user_after(&server->service.sched, NULL));
  QK_ASSERT(server->service.budget.used == held && server->service.sched.length == 0);
  QK_ASSERT(accepted == ended(server));
}

void check_over(const qk_server_t *server) {
  check_empty(server);
  QK_ASSERT(qk_link_alone(&server->net.downloads));
  QK_ASSERT(qk_mem_bytes() == 0);
}
