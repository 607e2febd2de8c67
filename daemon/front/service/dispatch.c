#include "daemon/front/service/dispatch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/front/net/data.h"
#include "daemon/front/net/reply.h"
#include "daemon/front/service/cost.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/leave.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/restore.h"
#include "daemon/front/service/setups.h"

enum { FIXED = 1 }; /* --batching */

/* ---- open work ----------------------------------------------------------------------------- */

void qk_dispatch_open(qk_job_t *job) {
  *qk_sched_user_open(job->user) += job->nrhs - job->ended;
  job->mount->open += job->nrhs - job->ended;
  job->mount->open_digits += (job->nrhs - job->ended) * qk_cost_digits(job);
  qk_restore_promise(job);
}

double qk_dispatch_expect(const qk_job_t *job) {
  const qk_mount_t *mount = job->mount;
  const double asked = mount->open_digits + job->nrhs * qk_cost_digits(job);
  return qk_pace_expect(&mount->pace, asked * mount->cost_per_digit, qk_cost_expected(job),
                        (int)qk_worker_info(mount->worker)->slots);
}

/* ---- ends ---------------------------------------------------------------------------------- */

void qk_dispatch_ended(qk_server_t *server, qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_session_t *session = rhs->job->session;
  --*qk_sched_user_open(rhs->job->user);
  rhs->job->mount->open--;
  rhs->job->mount->used_at = qk_server_now(server);
  rhs->job->mount->open_digits -= qk_cost_digits(rhs->job);
  qk_restore_promise(rhs->job);
  server->count.iterations += o->iterations;
  server->count.applications += o->applications;
  if (o->status == QK_OK && rhs->job->contraction)
    server->count.contracted++;
  else if (o->status == QK_OK)
    server->count.converged++;
  else if (o->status == QK_CANCELLED)
    server->count.cancelled++;
  else
    server->count.failed++;
  if (o->status == QK_ENGINE_LOST) server->count.lost++;
  qk_log(QK_LOG_DEBUG, "dispatch", rhs->job->name, "rhs %u: %s, residual %.3g, %llu iterations",
         rhs->index, qk_status_name(o->status), o->true_residual,
         (unsigned long long)o->iterations);
  qk_digest_begin(&server->loop.uv, rhs);
  if (session && qk_filing_told(rhs->job)) qk_reply_result(server, session, rhs);
  qk_filing_ended(rhs->job);
  qk_data_offer(server, rhs);
}

static void end(qk_server_t *server, qk_rhs_t *rhs, qk_status_t status, const char *text) {
  qk_outcome_t outcome = {.status = status, .iterations = rhs->iterations};
  snprintf(outcome.text, sizeof outcome.text, "%.*s", (int)sizeof outcome.text - 1, text);
  qk_rhs_end(rhs, &outcome, qk_server_now(server));
  qk_dispatch_ended(server, rhs);
}

/* ---- who goes next -------------------------------------------------------------------------- */

/* What rhs took, instead of what was expected when it went; nothing where the engine was lost. */
static void settle(const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  if (!rhs->job->contraction && o->status == QK_OK && o->applications > 0) qk_cost_learn(rhs);
  if (rhs->job->contraction && o->status == QK_OK) return;
  qk_sched_settle(rhs->job->user, &rhs->queue, (double)o->applications);
}

void qk_dispatch_queue(qk_server_t *server, qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_QUEUED);
  if (rhs->queue.since == 0) {
    rhs->queue.since = qk_server_now(server);
    if (rhs->source)
      qk_metrics_phase(&server->metrics, QK_PHASE_UPLOAD, rhs->queue.since - rhs->job->accepted_at);
  }
  rhs->queue.lane =
      rhs->job->contraction ? qk_mount_contract_lane(rhs->job->mount) : rhs->job->mount->lane;
  rhs->queue.priority = rhs->job->priority;
  rhs->queue.deadline = rhs->job->deadline;
  rhs->queue.came = rhs->job->accepted_at;
  rhs->queue.cost = qk_cost_expected(rhs->job);
  if (rhs->losses > 0) {
    qk_list_append(&rhs->job->mount->suspects, &rhs->queue.link);
    return;
  }
  qk_sched_push(&server->sched, rhs->job->user, &rhs->queue);
}

/* Whether the user has another right-hand side in the engine. */
static bool is_seated(const qk_rhs_t *rhs) {
  const qk_slot_use_t *slot = rhs->job->mount->slot;
  for (int k = 0; k < QK_SEATS_MAX; k++)
    if (slot[k].rhs && slot[k].rhs != rhs && slot[k].rhs->job->user == rhs->job->user) return true;
  return false;
}

/* Where rhs can go; -1: nowhere now. An engine has one contraction at a time. The last seat behind the slots is for who
 * has none. */
static int place_for(const qk_rhs_t *rhs) {
  const qk_mount_t *mount = rhs->job->mount;
  if (rhs->job->contraction) return mount->slot[QK_CONTRACT_PLACE].rhs ? -1 : QK_CONTRACT_PLACE;
  const qk_engine_info_t *e = qk_worker_info(mount->worker);
  const int n = (int)(mount->settings.batching == FIXED ? e->slots : e->seats);
  int place = -1, nfree = 0;
  for (int k = n - 1; k >= 0; k--) {
    if (mount->slot[k].rhs) continue;
    place = k;
    nfree++;
  }
  return nfree == 1 && n > (int)e->slots && is_seated(rhs) ? -1 : place;
}

static bool suspect_runs(const qk_mount_t *mount) {
  for (int k = 0; k < QK_PLACES; k++)
    if (mount->slot[k].rhs && mount->slot[k].rhs->losses > 0) return true;
  return false;
}

/* The first of a lane, where there is a place for it; else NULL. */
static qk_rhs_t *first_of(const qk_mount_t *mount, int lane, int *place) {
  qk_sched_item_t *first =
      qk_sched_first(&mount->server->sched, lane, qk_server_now(mount->server));
  if (!first) return NULL;
  qk_rhs_t *rhs = QK_HOLDER(first, qk_rhs_t, queue);
  *place = place_for(rhs);
  return *place < 0 ? NULL : rhs;
}

/* Who goes next, and where; NULL: nobody now. Contractions go behind what finds a slot. Of those that were in slots of a lost
 * engine one at a time: if the next engine is lost, too, it is clear over whom. */
static qk_rhs_t *next(const qk_mount_t *mount, int *place) {
  if (!qk_link_alone(&mount->suspects) && !suspect_runs(mount)) {
    qk_rhs_t *suspect = QK_HOLDER(mount->suspects.next, qk_rhs_t, queue.link);
    *place = place_for(suspect);
    if (*place >= 0) return suspect;
  }
  qk_rhs_t *rhs = first_of(mount, mount->lane, place);
  return rhs ? rhs : first_of(mount, qk_mount_contract_lane(mount), place);
}

static bool hand_over(const qk_mount_t *mount, int k, uint64_t ticket, const qk_rhs_t *rhs) {
  int place;
  if (rhs->job->contraction) return qk_worker_contract(mount->worker, ticket, rhs);
  const qk_rhs_t *after = next(mount, &place);
  const bool more = after && place != QK_CONTRACT_PLACE;
  const bool refills = mount->settings.batching != FIXED;
  return qk_worker_fill(mount->worker, (uint32_t)k, ticket, rhs, more, !is_seated(rhs),
                        refills ? (uint32_t)mount->server->sched.lane[mount->lane].length : 0);
}

/* Out of the queue it is in. */
static void unqueue(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses > 0 || rhs->wait_until > 0)
    qk_link_remove(&rhs->queue.link);
  else
    qk_sched_remove(&server->sched, &rhs->queue);
}

/* The one that is next leaves the queue; suspects have had their turn and paid for it. */
static void take(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses > 0)
    unqueue(server, rhs);
  else
    qk_sched_pop(&server->sched, rhs->queue.lane, qk_server_now(server));
}

/* Into the queue again. */
static void put_back(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses == 0) qk_sched_settle(rhs->job->user, &rhs->queue, 0);
  qk_dispatch_queue(server, rhs);
}

int qk_dispatch_running(const qk_server_t *server) {
  int n = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m]) n += qk_mount_running(server->mount[m]);
  return n;
}

/* ---- want of shared memory ----------------------------------------------------------------- */

enum { TRIES = 12 }; /* that one solution is given */

static const double WAIT_FIRST = 0.25,
                    WAIT_MOST = 10; /* seconds between them, where no room is seen */

/* There was no memory for the solution of rhs, which is in no queue; room: that is what it needs;
 * work: applications that were in vain. False: for the last time. */
static bool wait_for_memory(qk_rhs_t *rhs, const char *why, bool room, uint64_t work) {
  qk_mount_t *mount = rhs->job->mount;
  if (++rhs->shortages >= TRIES) return false;
  rhs->needs_room = room;
  const double pause = fmin(WAIT_MOST, WAIT_FIRST * pow(2, rhs->shortages - 1));
  qk_log(QK_LOG_WARN, "dispatch", rhs->job->name,
         "rhs %u is tried again, in %.3g s at the latest: %s", rhs->index, pause, why);
  rhs->wait_until = qk_server_now(mount->server) + pause;
  if (rhs->losses == 0) qk_sched_settle(rhs->job->user, &rhs->queue, (double)work);
  qk_list_append(&mount->waiting, &rhs->queue.link);
  return true;
}

/* Bytes of solutions that engines will still write. */
static int64_t unwritten(const qk_server_t *server) {
  int64_t bytes = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    for (int k = 0; k < QK_PLACES && server->mount[m]; k++) {
      const qk_rhs_t *rhs = server->mount[m]->slot[k].rhs;
      if (rhs && rhs->solution) bytes += (int64_t)rhs->job->field_bytes;
    }
  return bytes;
}

/* Those whose time has come, or for which there is memory now, are queued again. */
static void wake(qk_mount_t *mount) {
  if (qk_link_alone(&mount->waiting)) return;
  const double now = qk_server_now(mount->server);
  const char *by;
  int64_t room = qk_limits_free(mount->server, &by) - unwritten(mount->server);
  for (qk_link_t *l = mount->waiting.next, *next; l != &mount->waiting; l = next) {
    qk_rhs_t *rhs = QK_HOLDER(l, qk_rhs_t, queue.link);
    const int64_t bytes = (int64_t)rhs->job->field_bytes;
    next = l->next;
    if (now < rhs->wait_until && !(rhs->needs_room && room >= bytes)) continue;
    room -= bytes;
    qk_link_remove(&rhs->queue.link);
    rhs->wait_until = 0;
    qk_dispatch_queue(mount->server, rhs);
  }
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* False where the engine did not take the message: the RHS is back in the queue, at the end. So
 * where there was no object for its solution: the others would find none either. */
static bool start(qk_mount_t *mount, int k, qk_rhs_t *rhs) {
  qk_server_t *server = mount->server;
  qk_job_t *job = rhs->job;
  qk_err_t err = {0};
  if (job->sink != QUARK__SINK__SINK_NONE &&
      qk_shm_create_bare(job->space, job->field_bytes, &rhs->solution, &err) != QK_OK) {
    if (wait_for_memory(rhs, err.text, err.code == QK_NO_MEMORY, 0)) return false;
    end(server, rhs, QK_NO_MEMORY, err.text);
    settle(rhs);
    return true;
  }
  const uint64_t ticket = mount->ticket + 1;
  const bool busy = qk_mount_running(mount) > 0;
  mount->slot[k] = (qk_slot_use_t){.rhs = rhs, .ticket = ticket};
  if (!hand_over(mount, k, ticket, rhs)) {
    mount->slot[k] = (qk_slot_use_t){0};
    qk_shm_destroy(rhs->solution);
    rhs->solution = NULL;
    put_back(server, rhs);
    return false;
  }
  mount->ticket = ticket;
  rhs->state = QK_RHS_RUNNING;
  rhs->started_at = qk_server_now(server);
  mount->slot[k].filled = qk_occupancy_mark(&mount->occupancy, rhs->started_at);
  if (!busy) mount->busy_since = rhs->started_at;
  qk_metrics_phase(&server->metrics, QK_PHASE_QUEUE, rhs->started_at - rhs->queue.since);
  rhs->iterations = 0;
  rhs->residual = 1;
  if (k != QK_CONTRACT_PLACE) {
    qk_curve_clear(&mount->curve[k]);
    qk_curve_add(&mount->curve[k], 0, 1);
  }
  job->running++;
  job->progress_due = !job->contraction;
  return true;
}

static void fill_slots(qk_mount_t *mount) {
  int place;
  if (mount->settings.batching == FIXED && qk_mount_running(mount) > 0) return;
  for (qk_rhs_t *rhs; (rhs = next(mount, &place));) {
    if (rhs->job->forgotten) return; /* it is leaving, before long */
    take(mount->server, rhs);
    if (!start(mount, place, rhs)) return;
  }
}

void qk_dispatch_feed(qk_mount_t *mount) {
  const bool ready = qk_worker_state(mount->worker) == QK_WORKER_READY;
  wake(mount);
  if (ready) fill_slots(mount);
  const bool waits =
      mount->server->sched.lane[mount->lane].length > 0 || !qk_link_alone(&mount->suspects);
  qk_occupancy_set(&mount->occupancy, qk_server_now(mount->server), ready && waits,
                   (int)qk_worker_info(mount->worker)->slots, qk_mount_seated(mount));
}

static int slot_of(const qk_rhs_t *rhs) {
  for (int k = 0; k < QK_PLACES; k++)
    if (rhs->job->mount->slot[k].rhs == rhs) return k;
  return -1;
}

void qk_dispatch_cancel(qk_server_t *server, qk_rhs_t *rhs, qk_status_t verdict, const char *text) {
  if (rhs->state >= QK_RHS_ENDED) return;
  if (rhs->state != QK_RHS_RUNNING) {
    unqueue(server, rhs);
    end(server, rhs, verdict, text);
    if (rhs->losses > 0) settle(rhs); /* it has paid already */
    return;
  }
  if (rhs->verdict != QK_OK) return;
  const qk_mount_t *mount = rhs->job->mount;
  const int k = slot_of(rhs);
  QK_ASSERT(k >= 0);
  rhs->verdict = verdict;
  if (k == QK_CONTRACT_PLACE) return; /* its result will be thrown away */
  qk_worker_cancel(mount->worker, (uint32_t)k, mount->slot[k].ticket);
}

void qk_dispatch_orphan(qk_server_t *server, qk_job_t *job) {
  qk_session_t *session = job->session;
  if (session) session->njobs--;
  job->session = NULL;
  job->forgotten = true;
  qk_list_append(&server->orphans, &job->link);
  qk_marks_job(job);
}

void qk_dispatch_forget(qk_server_t *server, qk_job_t *job) {
  qk_dispatch_orphan(server, job);
  for (uint32_t i = 0; i < job->nrhs; i++)
    qk_dispatch_cancel(server, &job->rhs[i], QK_CANCELLED, "");
  qk_job_settle(job);
}

void qk_dispatch_expire(qk_server_t *server, qk_job_t *job) {
  qk_log(QK_LOG_INFO, "job", job->name, "what it kept has expired");
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state >= QK_RHS_ENDED) qk_rhs_drop_solution(&job->rhs[i]);
  if (job->acked == job->nrhs) qk_dispatch_forget(server, job);
}

/* The slot is free again; a job that only waited for it goes. */
static void leave_slot(qk_mount_t *mount, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = mount->slot[k].rhs;
  const double now = qk_server_now(mount->server);
  if (k != QK_CONTRACT_PLACE)
    qk_occupancy_leave(&mount->occupancy, now, mount->slot[k].filled, now - rhs->started_at,
                       outcome->seconds);
  mount->slot[k] = (qk_slot_use_t){0};
  qk_rhs_end(rhs, outcome, now);
  qk_cost_measure(rhs);
  settle(rhs);
  qk_dispatch_ended(mount->server, rhs);
  qk_job_settle(rhs->job);
}

/* The engine found no memory for the result in place k: it is made again. False: for the last time,
 * or nobody wants it. */
static bool vacate(qk_mount_t *mount, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = mount->slot[k].rhs;
  const double now = qk_server_now(mount->server);
  if (outcome->status != QK_NO_MEMORY || rhs->verdict != QK_OK) return false;
  if (!wait_for_memory(rhs, outcome->text, true, outcome->applications)) return false;
  if (k != QK_CONTRACT_PLACE)
    qk_occupancy_leave(&mount->occupancy, now, mount->slot[k].filled, now - rhs->started_at,
                       outcome->seconds);
  mount->slot[k] = (qk_slot_use_t){0};
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  return true;
}

/* ---- events of the engine ------------------------------------------------------------------ */

static void fail_lane(qk_server_t *server, int lane, const char *why) {
  const double now = qk_server_now(server);
  for (qk_sched_item_t *item; (item = qk_sched_pop(&server->sched, lane, now));) {
    qk_rhs_t *rhs = QK_HOLDER(item, qk_rhs_t, queue);
    end(server, rhs, QK_ENGINE_LOST, why);
    settle(rhs);
  }
}

static void fail_list(qk_server_t *server, const qk_link_t *list, const char *why) {
  while (!qk_link_alone(list)) {
    qk_rhs_t *rhs = QK_HOLDER(list->next, qk_rhs_t, queue.link);
    qk_link_remove(&rhs->queue.link);
    end(server, rhs, QK_ENGINE_LOST, why);
    if (rhs->losses > 0) settle(rhs); /* it has paid already */
  }
}

static void fail_queued(qk_mount_t *mount, const char *why) {
  qk_server_t *server = mount->server;
  fail_list(server, &mount->suspects, why);
  fail_list(server, &mount->waiting, why);
  fail_lane(server, mount->lane, why);
  fail_lane(server, qk_mount_contract_lane(mount), why);
}

/* Calls `each` for the jobs of the setup that belong to sessions; it may forget the job. */
static void each_job(qk_mount_t *mount, void (*each)(qk_server_t *server, qk_job_t *job, void *arg),
                     void *arg) {
  qk_server_t *server = mount->server;
  for (int i = 0; i < server->sessions.count; i++) {
    qk_session_t *session = server->sessions.at[i];
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      next = l->next;
      if (job->mount == mount) each(server, job, arg);
    }
  }
}

static void fail_uploading(qk_server_t *server, qk_job_t *job, void *why) {
  for (uint32_t k = 0; k < job->nrhs; k++)
    if (job->rhs[k].state == QK_RHS_UPLOADING) end(server, &job->rhs[k], QK_ENGINE_LOST, why);
}

/* Ends all that has no slot. */
static void fail_waiting(qk_mount_t *mount, const char *why) {
  fail_queued(mount, why);
  each_job(mount, fail_uploading, (void *)why);
}

static void cancel_open(qk_server_t *server, qk_job_t *job, void *why) {
  qk_leave_job(server, job, QK_CANCELLED, why);
}

void qk_dispatch_cancel_all(qk_mount_t *mount, const char *why) {
  each_job(mount, cancel_open, (void *)why);
}

/* What requests for another setup use goes after them. */
static void expire_kept(qk_server_t *server, qk_job_t *job, void *unused) {
  (void)unused;
  if (qk_keep_count(job) == 0) return;
  job->keep = 0;
  if (job->holds == 0) qk_dispatch_expire(server, job);
}

void qk_dispatch_expire_all(qk_mount_t *mount) {
  each_job(mount, expire_kept, NULL);
}

static void on_ready(void *arg) {
  qk_mount_t *mount = arg;
  const qk_engine_info_t *e = qk_worker_info(mount->worker);
  qk_info("worker", "%s ready: %ux%ux%ux%u, plaquette %.12f, %s (%s), %u slots, %.1f s",
          mount->name, e->dims[0], e->dims[1], e->dims[2], e->dims[3], e->plaquette, e->backend,
          e->device, e->slots, e->load_seconds);
  const bool changed = mount->dims[0] > 0 && (memcmp(mount->dims, e->dims, sizeof e->dims) != 0 ||
                                              mount->digest != e->digest);
  memcpy(mount->dims, e->dims, sizeof mount->dims);
  mount->digest = e->digest;
  qk_restore_note_setup(mount);
  qk_setups_ready(mount);
  if (!changed) return;
  qk_warn("worker", "%s: the gauge configuration is not the one loaded before", mount->name);
  fail_waiting(mount, "the gauge configuration has changed");
  qk_dispatch_expire_all(mount); /* nothing to go on with on another configuration */
}

static int exit_code_of(qk_status_t status) {
  if (status == QK_UNSUPPORTED || status == QK_BAD_ARGUMENT) return 78;
  if (status < QK_DEVICE_MEMORY) return 65;
  return qk_status_retryable(status) ? 75 : 69;
}

static void on_refused(void *arg, qk_status_t status, const char *text) {
  qk_mount_t *mount = arg;
  if (qk_setups_make_room(mount, status)) return;
  qk_error("worker", "%s: setup refused: %s: %s", mount->name, qk_status_name(status), text);
  if (mount != mount->server->primary) {
    fail_waiting(mount, text);
    qk_setups_fail(mount, status, text);
    return;
  }
  if (!mount->server->journal) fail_waiting(mount, text); /* else the next front goes on */
  qk_server_fail(mount->server, exit_code_of(status), status, text);
}

static void on_progress(void *arg, const Quark__Engine__SlotProgress *p) {
  qk_mount_t *mount = arg;
  qk_slot_use_t *slot = &mount->slot[p->slot];
  if (!slot->rhs || slot->ticket != p->ticket) return;
  slot->rhs->iterations = p->iterations;
  slot->rhs->residual = p->residual;
  qk_curve_add(&mount->curve[p->slot], p->iterations, p->residual);
  slot->rhs->job->progress_due = true;
}

/* As an engine says it, within what the journal can hold. */
static uint64_t count_of(uint64_t said) {
  return said < QK_JOURNAL_COUNT_MAX ? said : QK_JOURNAL_COUNT_MAX;
}

static void on_done(void *arg, const Quark__Engine__SlotDone *d) {
  qk_mount_t *mount = arg;
  qk_slot_use_t *slot = &mount->slot[d->slot];
  if (!slot->rhs || slot->ticket != d->ticket) return;
  qk_rhs_t *rhs = slot->rhs;
  qk_outcome_t o = {.status = (qk_status_t)d->status,
                    .true_residual = d->true_residual,
                    .iterations = count_of(d->iterations),
                    .applications = count_of(d->applications),
                    .seconds = d->seconds,
                    .norm_b = d->norm_b,
                    .norm_x = d->norm_x};
  snprintf(o.text, sizeof o.text, "%s", d->text ? d->text : "");
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0) o.status = QK_INTERNAL;
  if (o.status == QK_OK && !(o.true_residual <= rhs->job->tol)) o.status = QK_NOT_CONVERGED;
  if (o.status == QK_CANCELLED && rhs->verdict != QK_OK) o.status = rhs->verdict;
  o.written = d->written && rhs->solution &&
              (o.status == QK_OK || o.status == QK_NOT_CONVERGED || o.status == QK_BREAKDOWN);
  if (!vacate(mount, (int)d->slot, &o)) leave_slot(mount, (int)d->slot, &o);
}

static void on_contracted(void *arg, const Quark__Engine__Contracted *c) {
  qk_mount_t *mount = arg;
  const qk_slot_use_t *place = &mount->slot[QK_CONTRACT_PLACE];
  if (!place->rhs || place->ticket != c->ticket) return;
  qk_outcome_t o = {.status = (qk_status_t)c->status, .seconds = c->seconds};
  snprintf(o.text, sizeof o.text, "%s", c->text ? c->text : "");
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0) o.status = QK_INTERNAL;
  if (place->rhs->verdict != QK_OK) o.status = place->rhs->verdict;
  o.written = o.status == QK_OK;
  if (!vacate(mount, QK_CONTRACT_PLACE, &o)) leave_slot(mount, QK_CONTRACT_PLACE, &o);
}

void qk_dispatch_abandon(qk_mount_t *mount) {
  const qk_outcome_t outcome = {.status = QK_SHUTTING_DOWN};
  for (int k = 0; k < QK_PLACES; k++)
    if (mount->slot[k].rhs) leave_slot(mount, k, &outcome);
}

enum {
  HOPELESS = 3,  /* engines in a row that did not become ready */
  LOSSES_MAX = 2 /* engines that one right-hand side may see lost */
};

/* What was in a slot when the engine was lost waits for the next one; a second loss, which met no other suspect, is its
 * doing. */
static void survive(qk_mount_t *mount, int k, const char *why) {
  qk_rhs_t *rhs = mount->slot[k].rhs;
  qk_outcome_t o = {.status = rhs->verdict, .iterations = rhs->iterations};
  if (o.status == QK_OK && ++rhs->losses >= LOSSES_MAX) {
    o.status = QK_ENGINE_LOST;
    snprintf(o.text, sizeof o.text, "%d engines were lost over it: %s", LOSSES_MAX, why);
    qk_log(QK_LOG_WARN, "dispatch", rhs->job->name, "rhs %u: not tried again", rhs->index);
  }
  if (o.status != QK_OK) {
    leave_slot(mount, k, &o);
    return;
  }
  mount->slot[k] = (qk_slot_use_t){0};
  mount->server->count.redone++;
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  put_back(mount->server, rhs);
}

static void on_lost(void *arg, const char *why, int failures) {
  qk_mount_t *mount = arg;
  for (int k = 0; k < QK_PLACES; k++)
    if (mount->slot[k].rhs) survive(mount, k, why);
  const bool never = !qk_worker_info(mount->worker)->loaded,
             other = mount != mount->server->primary;
  /* who loads a setup beside others waits to hear of it */
  if (failures < HOPELESS && !(never && other && qk_worker_late(mount->worker))) return;
  if (never && other) {
    fail_waiting(mount, why);
    qk_setups_fail(mount, QK_ENGINE_LOST, why);
    return;
  }
  if (!never || !mount->server->journal) fail_queued(mount, why);
  if (never) {
    qk_error("worker", "%s: %d engines in a row did not start", mount->name, failures);
    qk_server_fail(mount->server, 69, QK_ENGINE_LOST, why);
  }
}

static void on_stopped(void *arg) {
  qk_server_t *server = ((qk_mount_t *)arg)->server;
  if (server->stopping && qk_setups_stopped(server)) qk_loop_stop(&server->loop);
}

const qk_worker_events_t QK_SERVER_WORKER_EVENTS = {.ready = on_ready,
                                                    .refused = on_refused,
                                                    .progress = on_progress,
                                                    .done = on_done,
                                                    .contracted = on_contracted,
                                                    .lost = on_lost,
                                                    .stopped = on_stopped};
