#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/front/restore.h"

enum { FIXED = 1 }; /* --batching */

/* ---- what work costs ----------------------------------------------------------------------- */

/* Digits asked for, at least one; a contraction is taken for a solve to six. */
static double digits(const qk_job_t *job) {
  return job->contraction ? 6 : fmax(1, -log10(job->tol));
}

/* Applications that a right-hand side of the job is expected to take. */
static double expected_cost(const qk_server_t *server, const qk_job_t *job) {
  return digits(job) * (server->cost_per_digit > 0 ? server->cost_per_digit : 1);
}

static void learn_cost(qk_server_t *server, const qk_rhs_t *rhs) {
  const double lately = (double)rhs->outcome.applications / digits(rhs->job);
  const double weight = server->cost_per_digit > 0 ? 0.1 : 1;
  server->cost_per_digit += weight * (lately - server->cost_per_digit);
}

void qk_dispatch_open(qk_server_t *server, const qk_job_t *job) {
  *qk_sched_user_open(job->user) += job->nrhs - job->ended;
  server->open_digits += (job->nrhs - job->ended) * digits(job);
}

double qk_dispatch_expect(const qk_server_t *server, const qk_job_t *job) {
  const double asked = server->open_digits + job->nrhs * digits(job);
  return qk_pace_expect(&server->pace, asked * server->cost_per_digit, expected_cost(server, job),
                        (int)qk_worker_info(server->worker)->slots);
}

/* ---- ends ---------------------------------------------------------------------------------- */

void qk_dispatch_ended(qk_server_t *server, qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_session_t *session = rhs->job->session;
  --*qk_sched_user_open(rhs->job->user);
  server->open_digits -= digits(rhs->job);
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
  if (session) qk_reply_result(server, session, rhs);
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
static void settle(qk_server_t *server, const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  if (!rhs->job->contraction && o->status == QK_OK && o->applications > 0) learn_cost(server, rhs);
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
  rhs->queue.priority = rhs->job->priority;
  rhs->queue.deadline = rhs->job->deadline;
  rhs->queue.cost = expected_cost(server, rhs->job);
  if (rhs->losses > 0) {
    qk_list_append(&server->suspects, &rhs->queue.link);
    return;
  }
  qk_sched_push(&server->sched, rhs->job->user, &rhs->queue);
}

/* Where rhs can go; -1: nowhere now. The engine answers a contraction before it looks at what comes
 * later, so nothing is sent behind one. */
static int place_for(const qk_server_t *server, const qk_rhs_t *rhs) {
  if (server->slot[QK_CONTRACT_PLACE].rhs) return -1;
  if (rhs->job->contraction) return QK_CONTRACT_PLACE;
  const qk_engine_info_t *e = qk_worker_info(server->worker);
  const int n = (int)(server->settings->batching == FIXED ? e->slots : e->seats);
  for (int k = 0; k < n; k++)
    if (!server->slot[k].rhs) return k;
  return -1;
}

static bool suspect_runs(const qk_server_t *server) {
  for (int k = 0; k < QK_PLACES; k++)
    if (server->slot[k].rhs && server->slot[k].rhs->losses > 0) return true;
  return false;
}

/* Who goes next, and where; NULL: nobody now. Of those that were in slots of a lost engine one at a time: if the next engine
 * is lost, too, it is clear over whom. */
static qk_rhs_t *next(qk_server_t *server, int *place) {
  if (!qk_link_alone(&server->suspects) && !suspect_runs(server)) {
    qk_rhs_t *suspect = QK_HOLDER(server->suspects.next, qk_rhs_t, queue.link);
    *place = place_for(server, suspect);
    if (*place >= 0) return suspect;
  }
  qk_sched_item_t *first = qk_sched_first(&server->sched, qk_server_now(server));
  if (!first) return NULL;
  qk_rhs_t *rhs = QK_HOLDER(first, qk_rhs_t, queue);
  *place = place_for(server, rhs);
  return *place < 0 ? NULL : rhs;
}

static bool hand_over(qk_server_t *server, int k, uint64_t ticket, const qk_rhs_t *rhs) {
  int place;
  if (rhs->job->contraction) return qk_worker_contract(server->worker, ticket, rhs);
  const qk_rhs_t *after = next(server, &place);
  const bool more = after && place != QK_CONTRACT_PLACE;
  const bool refills = server->settings->batching != FIXED;
  return qk_worker_fill(server->worker, (uint32_t)k, ticket, rhs, more,
                        refills ? (uint32_t)server->sched.length : 0);
}

/* Out of the queue it is in. */
static void unqueue(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses > 0)
    qk_link_remove(&rhs->queue.link);
  else
    qk_sched_remove(&server->sched, &rhs->queue);
}

/* The one that is next leaves the queue; suspects have had their turn and paid for it. */
static void take(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses > 0)
    unqueue(server, rhs);
  else
    qk_sched_pop(&server->sched, qk_server_now(server));
}

/* Into the queue again. */
static void put_back(qk_server_t *server, qk_rhs_t *rhs) {
  if (rhs->losses == 0) qk_sched_settle(rhs->job->user, &rhs->queue, 0);
  qk_dispatch_queue(server, rhs);
}

int qk_dispatch_running(const qk_server_t *server) {
  int n = 0;
  for (int k = 0; k < QK_PLACES; k++) n += server->slot[k].rhs != NULL;
  return n;
}

/* False where the engine did not take the message: the RHS is back in the queue, at the end. */
static bool start(qk_server_t *server, int k, qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job;
  qk_err_t err = {0};
  if (job->sink != QUARK__SINK__SINK_NONE &&
      qk_shm_create_bare(job->space, job->field_bytes, &rhs->solution, &err) != QK_OK) {
    end(server, rhs, QK_NO_MEMORY, err.text);
    settle(server, rhs);
    return true;
  }
  const uint64_t ticket = server->ticket + 1;
  const bool busy = qk_dispatch_running(server) > 0;
  server->slot[k] = (qk_slot_use_t){.rhs = rhs, .ticket = ticket};
  if (!hand_over(server, k, ticket, rhs)) {
    server->slot[k] = (qk_slot_use_t){0};
    qk_shm_destroy(rhs->solution);
    rhs->solution = NULL;
    put_back(server, rhs);
    return false;
  }
  server->ticket = ticket;
  rhs->state = QK_RHS_RUNNING;
  rhs->started_at = qk_server_now(server);
  server->slot[k].filled = qk_occupancy_mark(&server->occupancy, rhs->started_at);
  if (!busy) server->busy_since = rhs->started_at;
  qk_metrics_phase(&server->metrics, QK_PHASE_QUEUE, rhs->started_at - rhs->queue.since);
  rhs->iterations = 0;
  rhs->residual = 1;
  if (k != QK_CONTRACT_PLACE) {
    qk_curve_clear(&server->curve[k]);
    qk_curve_add(&server->curve[k], 0, 1);
  }
  job->running++;
  job->progress_due = !job->contraction;
  return true;
}

static void fill_slots(qk_server_t *server) {
  int place;
  if (server->settings->batching == FIXED && qk_dispatch_running(server) > 0) return;
  for (qk_rhs_t *rhs; (rhs = next(server, &place));) {
    take(server, rhs);
    if (!start(server, place, rhs)) return;
  }
}

static int seats_taken(const qk_server_t *server) {
  int n = 0;
  for (int k = 0; k < QK_SEATS_MAX; k++) n += server->slot[k].rhs != NULL;
  return n;
}

void qk_dispatch_feed(qk_server_t *server) {
  const bool ready = qk_worker_state(server->worker) == QK_WORKER_READY;
  if (ready) fill_slots(server);
  const bool waits = server->sched.length > 0 || !qk_link_alone(&server->suspects);
  qk_occupancy_set(&server->occupancy, qk_server_now(server), ready && waits,
                   (int)qk_worker_info(server->worker)->slots, seats_taken(server));
}

int qk_dispatch_slots_busy(const qk_server_t *server) {
  const int slots = (int)qk_worker_info(server->worker)->slots, taken = seats_taken(server);
  return taken < slots ? taken : slots;
}

static int slot_of(const qk_server_t *server, const qk_rhs_t *rhs) {
  for (int k = 0; k < QK_PLACES; k++)
    if (server->slot[k].rhs == rhs) return k;
  return -1;
}

void qk_dispatch_cancel(qk_server_t *server, qk_rhs_t *rhs, qk_status_t verdict, const char *text) {
  if (rhs->state >= QK_RHS_ENDED) return;
  if (rhs->state != QK_RHS_RUNNING) {
    unqueue(server, rhs);
    end(server, rhs, verdict, text);
    if (rhs->losses > 0) settle(server, rhs); /* it has paid already */
    return;
  }
  if (rhs->verdict != QK_OK) return;
  int k = slot_of(server, rhs);
  QK_ASSERT(k >= 0);
  rhs->verdict = verdict;
  if (k == QK_CONTRACT_PLACE) return; /* its result will be thrown away */
  qk_worker_cancel(server->worker, (uint32_t)k, server->slot[k].ticket);
}

void qk_dispatch_forget(qk_server_t *server, qk_job_t *job) {
  qk_session_t *session = job->session;
  if (session) session->njobs--;
  job->session = NULL;
  for (uint32_t i = 0; i < job->nrhs; i++)
    qk_dispatch_cancel(server, &job->rhs[i], QK_CANCELLED, "");
  qk_list_append(&server->orphans, &job->link);
  job->forgotten = true;
  qk_journal_mark_job(job);
  qk_job_settle(job);
}

void qk_dispatch_expire(qk_server_t *server, qk_job_t *job) {
  qk_log(QK_LOG_INFO, "job", job->name, "what it kept has expired");
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state >= QK_RHS_ENDED) qk_rhs_drop_solution(&job->rhs[i]);
  if (job->acked == job->nrhs) qk_dispatch_forget(server, job);
}

static void measure(qk_server_t *server, const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_pace_add(&server->pace, (double)o->applications, rhs->ended_at - rhs->started_at);
  qk_metrics_phase(&server->metrics, QK_PHASE_SOLVE, rhs->ended_at - rhs->started_at);
  if (!rhs->job->contraction && (o->status == QK_OK || o->status == QK_NOT_CONVERGED))
    qk_metrics_solved(&server->metrics, o);
}

/* The slot is free again; a job that only waited for it goes. */
static void leave_slot(qk_server_t *server, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = server->slot[k].rhs;
  const double now = qk_server_now(server);
  if (k != QK_CONTRACT_PLACE)
    qk_occupancy_leave(&server->occupancy, now, server->slot[k].filled, now - rhs->started_at,
                       outcome->seconds);
  server->slot[k] = (qk_slot_use_t){0};
  qk_rhs_end(rhs, outcome, now);
  measure(server, rhs);
  settle(server, rhs);
  qk_dispatch_ended(server, rhs);
  qk_job_settle(rhs->job);
}

/* ---- events of the engine ------------------------------------------------------------------ */

static void fail_queued(qk_server_t *server, const char *why) {
  const double now = qk_server_now(server);
  while (!qk_link_alone(&server->suspects)) {
    qk_rhs_t *rhs = QK_HOLDER(server->suspects.next, qk_rhs_t, queue.link);
    unqueue(server, rhs);
    end(server, rhs, QK_ENGINE_LOST, why);
    settle(server, rhs);
  }
  for (qk_sched_item_t *item; (item = qk_sched_pop(&server->sched, now));) {
    qk_rhs_t *rhs = QK_HOLDER(item, qk_rhs_t, queue);
    end(server, rhs, QK_ENGINE_LOST, why);
    settle(server, rhs);
  }
}

static void fail_uploading(qk_server_t *server, const char *why) {
  for (int i = 0; i < server->sessions.count; i++) {
    qk_session_t *session = server->sessions.at[i];
    for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      for (uint32_t k = 0; k < job->nrhs; k++)
        if (job->rhs[k].state == QK_RHS_UPLOADING) end(server, &job->rhs[k], QK_ENGINE_LOST, why);
    }
  }
}

/* Solutions on one configuration are nothing to go on with on another. */
static void expire_kept(qk_server_t *server) {
  for (int i = 0; i < server->sessions.count; i++) {
    qk_session_t *session = server->sessions.at[i];
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      next = l->next;
      if (qk_keep_count(job) > 0) qk_dispatch_expire(server, job);
    }
  }
}

static void on_ready(void *arg, bool changed) {
  qk_server_t *server = arg;
  const qk_engine_info_t *e = qk_worker_info(server->worker);
  qk_info("worker", "ready: %ux%ux%ux%u, plaquette %.12f, %s (%s), %u slots, %.1f s", e->dims[0],
          e->dims[1], e->dims[2], e->dims[3], e->plaquette, e->backend, e->device, e->slots,
          e->load_seconds);
  changed = changed || qk_restore_changed(server);
  qk_restore_note_setup(server);
  if (!changed) return;
  qk_warn("worker", "the gauge configuration is not the one loaded before");
  fail_queued(server, "the gauge configuration has changed");
  fail_uploading(server, "the gauge configuration has changed");
  expire_kept(server);
}

static int exit_code_of(qk_status_t status) {
  if (status == QK_UNSUPPORTED || status == QK_BAD_ARGUMENT) return 78;
  if (status < QK_DEVICE_MEMORY) return 65;
  return qk_status_retryable(status) ? 75 : 69;
}

static void on_refused(void *arg, qk_status_t status, const char *text) {
  qk_server_t *server = arg;
  qk_error("worker", "setup refused: %s: %s", qk_status_name(status), text);
  if (!server->journal) { /* else the next front goes on */
    fail_queued(server, text);
    fail_uploading(server, text);
  }
  qk_server_fail(server, exit_code_of(status), status, text);
}

static void on_progress(void *arg, const Quark__Engine__SlotProgress *p) {
  qk_server_t *server = arg;
  qk_slot_use_t *slot = &server->slot[p->slot];
  if (!slot->rhs || slot->ticket != p->ticket) return;
  slot->rhs->iterations = p->iterations;
  slot->rhs->residual = p->residual;
  qk_curve_add(&server->curve[p->slot], p->iterations, p->residual);
  slot->rhs->job->progress_due = true;
}

static void on_done(void *arg, const Quark__Engine__SlotDone *d) {
  qk_server_t *server = arg;
  qk_slot_use_t *slot = &server->slot[d->slot];
  if (!slot->rhs || slot->ticket != d->ticket) return;
  qk_rhs_t *rhs = slot->rhs;
  qk_outcome_t o = {.status = (qk_status_t)d->status,
                    .true_residual = d->true_residual,
                    .iterations = d->iterations,
                    .applications = d->applications,
                    .seconds = d->seconds,
                    .norm_b = d->norm_b,
                    .norm_x = d->norm_x};
  snprintf(o.text, sizeof o.text, "%s", d->text ? d->text : "");
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0) o.status = QK_INTERNAL;
  if (o.status == QK_OK && !(o.true_residual <= rhs->job->tol)) o.status = QK_NOT_CONVERGED;
  if (o.status == QK_CANCELLED && rhs->verdict != QK_OK) o.status = rhs->verdict;
  o.written = d->written && rhs->solution &&
              (o.status == QK_OK || o.status == QK_NOT_CONVERGED || o.status == QK_BREAKDOWN);
  leave_slot(server, (int)d->slot, &o);
}

static void on_contracted(void *arg, const Quark__Engine__Contracted *c) {
  qk_server_t *server = arg;
  const qk_slot_use_t *place = &server->slot[QK_CONTRACT_PLACE];
  if (!place->rhs || place->ticket != c->ticket) return;
  qk_outcome_t o = {.status = (qk_status_t)c->status, .seconds = c->seconds};
  snprintf(o.text, sizeof o.text, "%s", c->text ? c->text : "");
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0) o.status = QK_INTERNAL;
  if (place->rhs->verdict != QK_OK) o.status = place->rhs->verdict;
  o.written = o.status == QK_OK;
  leave_slot(server, QK_CONTRACT_PLACE, &o);
}

void qk_dispatch_abandon(qk_server_t *server) {
  const qk_outcome_t outcome = {.status = QK_SHUTTING_DOWN};
  for (int k = 0; k < QK_PLACES; k++)
    if (server->slot[k].rhs) leave_slot(server, k, &outcome);
}

enum {
  HOPELESS = 3,  /* engines in a row that did not become ready */
  LOSSES_MAX = 2 /* engines that one right-hand side may see lost */
};

/* What was in a slot when the engine was lost waits for the next one; a second loss, which met no other suspect, is its
 * doing. */
static void survive(qk_server_t *server, int k, const char *why) {
  qk_rhs_t *rhs = server->slot[k].rhs;
  qk_outcome_t o = {.status = rhs->verdict, .iterations = rhs->iterations};
  if (o.status == QK_OK && ++rhs->losses >= LOSSES_MAX) {
    o.status = QK_ENGINE_LOST;
    snprintf(o.text, sizeof o.text, "%d engines were lost over it: %s", LOSSES_MAX, why);
    qk_log(QK_LOG_WARN, "dispatch", rhs->job->name, "rhs %u: not tried again", rhs->index);
  }
  if (o.status != QK_OK) {
    leave_slot(server, k, &o);
    return;
  }
  server->slot[k] = (qk_slot_use_t){0};
  server->count.redone++;
  qk_rhs_again(rhs);
  qk_journal_mark_rhs(rhs);
  put_back(server, rhs);
}

static void on_lost(void *arg, const char *why, int failures) {
  qk_server_t *server = arg;
  for (int k = 0; k < QK_PLACES; k++)
    if (server->slot[k].rhs) survive(server, k, why);
  if (failures < HOPELESS) return;
  const bool never = !qk_worker_info(server->worker)->loaded;
  if (!never || !server->journal) fail_queued(server, why);
  if (never) {
    qk_error("worker", "%d engines in a row did not start", failures);
    qk_server_fail(server, 69, QK_ENGINE_LOST, why);
  }
}

static void on_stopped(void *arg) {
  qk_server_t *server = arg;
  qk_loop_stop(&server->loop);
}

const qk_worker_events_t QK_SERVER_WORKER_EVENTS = {.ready = on_ready,
                                                    .refused = on_refused,
                                                    .progress = on_progress,
                                                    .done = on_done,
                                                    .contracted = on_contracted,
                                                    .lost = on_lost,
                                                    .stopped = on_stopped};
