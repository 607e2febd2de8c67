#include "daemon/front/service/queue.h"

#include <math.h>
#include <stdio.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/front/engines/cost.h"
#include "daemon/front/job/due.h"
#include "daemon/front/job/joined.h"
#include "daemon/front/job/masses.h"
#include "daemon/front/state/digest.h"

/* ---- open work ------------------------------------------------------------------------------- */

void qk_queue_open(qk_job_t *job) {
  if (job->joined) return; /* it counts with its whole */
  *qk_sched_user_open(job->user) += job->nrhs - job->ended;
  job->setup->open += job->nrhs - job->ended;
  job->setup->open_digits += (job->nrhs - job->ended) * qk_cost_digits(job);
}

double qk_queue_expect(const qk_job_t *job) {
  const qk_setup_t *setup = job->setup;
  const double asked = setup->open_digits + job->nrhs * qk_cost_digits(job);
  return qk_pace_expect(&setup->pace, asked * setup->cost_per_digit, qk_cost_expected(job),
                        qk_setup_slots(setup));
}

int qk_queue_running(const qk_service_t *service) {
  int n = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m]) n += qk_setup_running(service->setup[m]);
  return n;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void count_end(qk_service_t *service, const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  --*qk_sched_user_open(rhs->job->user);
  rhs->job->setup->open--;
  rhs->job->setup->used_at = qk_service_now(service);
  rhs->job->setup->open_digits -= qk_cost_digits(rhs->job);
  service->count.iterations += o->iterations;
  service->count.applications += o->applications;
  if (o->status == QK_OK && qk_job_is_beside(rhs->job))
    service->count.contracted++;
  else if (o->status == QK_OK && rhs->job->field)
    service->count.fields++;
  else if (o->status == QK_OK)
    service->count.converged++;
  else if (o->status == QK_CANCELLED)
    service->count.cancelled++;
  else
    service->count.failed++;
  if (o->status == QK_ENGINE_LOST) service->count.lost++;
  qk_log(QK_LOG_DEBUG, "dispatch", rhs->job->name, "rhs %u: %s, residual %.3g, %llu iterations",
         rhs->index, qk_status_name(o->status), o->true_residual,
         (unsigned long long)o->iterations);
}

void qk_queue_ended(qk_service_t *service, qk_rhs_t *rhs) {
  if (!rhs->job->joined) count_end(service, rhs);
  qk_digest_begin(&service->loop->uv, rhs);
  rhs->job->hooks->ended(rhs);
}

void qk_queue_end(qk_service_t *service, qk_rhs_t *rhs, qk_status_t status, const char *text) {
  qk_outcome_t outcome = {.status = status, .iterations = rhs->iterations};
  snprintf(outcome.text, sizeof outcome.text, "%.*s", (int)sizeof outcome.text - 1, text);
  qk_rhs_end(rhs, &outcome, qk_service_now(service));
  qk_queue_ended(service, rhs);
}

void qk_queue_settle(const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  if (qk_job_solves(rhs->job) && o->status == QK_OK && o->applications > 0) qk_cost_learn(rhs);
  if (rhs->job->contraction && o->status == QK_OK) return;
  qk_sched_settle(rhs->job->user, &rhs->queue, (double)o->applications);
}

/* ---- in and out ------------------------------------------------------------------------------ */

static int queue_of(const qk_job_t *job) {
  return qk_job_is_beside(job) ? qk_setup_contract_queue(job->setup) : job->setup->index;
}

/* Eigenvectors, which take their time, hold nobody up. */
static bool is_quarantined(const qk_rhs_t *rhs) {
  return rhs->losses > 0 && !rhs->job->problem;
}

void qk_queue_push(qk_service_t *service, qk_rhs_t *rhs) {
  QK_ASSERT(rhs->state == QK_RHS_QUEUED);
  if (rhs->queue.since == 0) {
    rhs->queue.since = qk_service_now(service);
    if (rhs->source)
      qk_stats_phase(&service->stats, QK_PHASE_UPLOAD, rhs->queue.since - rhs->job->accepted_at);
  }
  rhs->queue.index = queue_of(rhs->job);
  rhs->queue.priority = rhs->job->priority;
  rhs->queue.deadline = rhs->job->deadline;
  rhs->queue.came = rhs->job->accepted_at;
  rhs->queue.cost = qk_cost_expected(rhs->job);
  if (is_quarantined(rhs)) {
    qk_list_append(&rhs->job->setup->quarantined, &rhs->queue.link);
    return;
  }
  qk_sched_push(&service->sched, rhs->job->user, &rhs->queue);
}

/* Out of the queue it is in. */
static void unqueue(qk_service_t *service, qk_rhs_t *rhs) {
  if (is_quarantined(rhs) || rhs->wait_until > 0)
    qk_link_remove(&rhs->queue.link);
  else
    qk_sched_remove(&service->sched, &rhs->queue);
}

void qk_queue_take(qk_service_t *service, qk_rhs_t *rhs) {
  if (is_quarantined(rhs))
    unqueue(service, rhs);
  else
    qk_sched_pop(&service->sched, rhs->queue.index, qk_service_now(service));
}

void qk_queue_put_back(qk_service_t *service, qk_rhs_t *rhs) {
  if (!is_quarantined(rhs)) qk_sched_settle(rhs->job->user, &rhs->queue, 0);
  qk_queue_push(service, rhs);
}

/* ---- uploads --------------------------------------------------------------------------------- */

bool qk_queue_is_from_disk(const qk_service_t *service) {
  return service->spool && service->settings->spool == QK_SPOOL_ALL;
}

/* One that is in the spool is in a list as long as the journal has not recorded that. */
static bool waits_for_disk(const qk_service_t *service, const qk_rhs_t *rhs) {
  return rhs->spooled ? !qk_link_alone(&rhs->save) : qk_queue_is_from_disk(service);
}

/* It has come, and is neither queued nor anywhere else on its way to the engine. */
static bool is_to_be_queued(const qk_rhs_t *rhs) {
  return rhs->state == QK_RHS_QUEUED && !qk_sched_item_waits(&rhs->queue);
}

/* Of several masses those that are solved together are queued together: by the last that comes, or
 * that the disk has, or by the end of one that they waited for. */
static void push_block(qk_service_t *service, const qk_rhs_t *rhs) {
  qk_job_t *job = rhs->job;
  if (qk_rhs_waits_for_block(rhs)) return;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < job->nrhs; i++) {
      qk_rhs_t *other = qk_masses_nth(job, i);
      if (qk_rhs_block(other, 0) != qk_rhs_block(rhs, 0) || !is_to_be_queued(other)) continue;
      if (pass == 0 && waits_for_disk(service, other)) return;
      if (pass == 1) qk_queue_push(service, other);
    }
}

void qk_queue_push_upload(qk_service_t *service, qk_rhs_t *rhs) {
  if (rhs->job->nmass > 0)
    push_block(service, rhs);
  else if (is_to_be_queued(rhs) && !waits_for_disk(service, rhs))
    qk_queue_push(service, rhs);
}

void qk_queue_left(qk_service_t *service, const qk_rhs_t *rhs) {
  if (rhs->job->nmass > 0 && qk_job_is_upload(rhs->job)) push_block(service, rhs);
}

/* ---- want of shared memory ------------------------------------------------------------------- */

enum { TRIES = 12 }; /* that one solution is given */

static const double WAIT_FIRST = 0.25,
                    WAIT_MOST = 10; /* seconds between them, where no room is seen */

void qk_queue_wait_until(qk_rhs_t *rhs, double when) {
  rhs->wait_until = when;
  if (!is_quarantined(rhs)) qk_sched_settle(rhs->job->user, &rhs->queue, 0);
  qk_list_append(&rhs->job->setup->waiting, &rhs->queue.link);
}

bool qk_queue_wait_for_memory(qk_rhs_t *rhs, const char *why, bool room, uint64_t work) {
  qk_setup_t *setup = rhs->job->setup;
  if (++rhs->shortages >= TRIES) return false;
  rhs->needs_room = room;
  const double pause = fmin(WAIT_MOST, WAIT_FIRST * pow(2, rhs->shortages - 1));
  qk_log(QK_LOG_WARN, "dispatch", rhs->job->name,
         "rhs %u is tried again, in %.3g s at the latest: %s", rhs->index, pause, why);
  rhs->wait_until = qk_service_now(setup->service) + pause;
  if (!is_quarantined(rhs)) qk_sched_settle(rhs->job->user, &rhs->queue, (double)work);
  qk_list_append(&setup->waiting, &rhs->queue.link);
  return true;
}

/* ---- cancelling and forgetting --------------------------------------------------------------- */

static int entry_of(const qk_replica_t *replica, const qk_rhs_t *rhs) {
  for (int k = 0; k < QK_ENTRIES; k++)
    if (replica->inflight[k].rhs == rhs) return k;
  return -1;
}

static void cancel_eigen(const qk_replica_t *replica, uint64_t serial) {
  size_t bytes;
  uint8_t *message = qk_engine_encode_eigen_cancel(serial, &bytes);
  qk_supervisor_send(replica->supervisor, message, bytes);
}

void qk_queue_cancel(qk_service_t *service, qk_rhs_t *rhs, qk_status_t verdict, const char *text) {
  if (rhs->state >= QK_RHS_ENDED) return;
  if (rhs->state != QK_RHS_RUNNING) {
    const bool queued = qk_sched_item_waits(&rhs->queue);
    unqueue(service, rhs);
    qk_queue_end(service, rhs, verdict, text);
    if (!queued) qk_queue_left(service, rhs);
    if (is_quarantined(rhs)) qk_queue_settle(rhs); /* it has paid already */
    return;
  }
  if (rhs->verdict != QK_OK) return;
  const qk_replica_t *replica = &rhs->job->setup->replica[rhs->replica];
  const int k = entry_of(replica, rhs);
  QK_ASSERT(k >= 0);
  rhs->verdict = verdict;
  if (k == QK_CONTRACT_ENTRY || rhs->job->recalls) return; /* its result will be thrown away */
  if (k == QK_EIGEN_ENTRY)
    cancel_eigen(replica, replica->inflight[k].serial);
  else
    qk_supervisor_cancel(replica->supervisor, (uint32_t)k, replica->inflight[k].serial);
}

/* Those who have joined it are about to end, or its part is free. */
static void leave_parts(qk_job_t *job) {
  qk_joined_leave_all(job, QK_CANCELLED,
                      "the request that was joined has ended: its owner has released it or gone");
  qk_joined_leave(job, QK_CANCELLED, "");
}

void qk_queue_orphan(qk_service_t *service, qk_job_t *job) {
  qk_session_t *session = job->session;
  leave_parts(job);
  if (session) session->njobs--;
  qk_job_leave(job);
  job->session = NULL;
  job->forgotten = true;
  qk_list_append(&service->orphans, &job->link);
  qk_marks_job(job);
}

void qk_queue_forget(qk_service_t *service, qk_job_t *job) {
  qk_queue_orphan(service, job);
  for (uint32_t i = 0; i < job->nrhs; i++) qk_queue_cancel(service, &job->rhs[i], QK_CANCELLED, "");
  qk_job_settle(job);
}

void qk_queue_expire(qk_service_t *service, qk_job_t *job) {
  qk_log(QK_LOG_INFO, "job", job->name, "what it kept has expired");
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state >= QK_RHS_ENDED) qk_rhs_drop_solution(&job->rhs[i]);
  if (qk_job_is_over(job)) qk_queue_forget(service, job);
}

/* ---- fields in parts ------------------------------------------------------------------------- */

void qk_queue_end_parts(qk_rhs_t *whole) {
  const qk_bricks_t *b = whole->job->bricks;
  for (uint32_t p = 0; b && b->joined > 0 && p < b->count; p++) {
    qk_rhs_t *rhs = b->part[p].job ? &b->part[p].job->rhs[whole->index] : NULL;
    if (!rhs || rhs->state >= QK_RHS_ENDED) continue;
    qk_joined_mirror(rhs, whole, qk_service_now(whole->job->setup->service));
    rhs->job->hooks->ended(rhs);
  }
}

void qk_queue_expire_part(qk_job_t *whole, uint32_t part) {
  if (whole->bricks->part[part].job)
    qk_joined_leave(whole->bricks->part[part].job, QK_EXPIRED,
                    "another client has joined this part");
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

bool qk_queue_tick_parts(qk_service_t *service, qk_job_t *job) {
  if (job->joined && !job->whole) {
    end_part(service, job);
    return true;
  }
  if (!job->bricks || !qk_job_is_over(job)) return false;
  qk_log(QK_LOG_INFO, "job", job->name, "over");
  qk_queue_forget(service, job);
  return true;
}

/* ---- in parts -------------------------------------------------------------------------------- */

enum { BETWEEN_LOOKS = 16, AT_ONCE = 4096 }; /* RESULTs */

/* Who is told of the end of one of its right-hand sides. */
static uint32_t told(const qk_job_t *job) {
  return 1 + (job->bricks ? job->bricks->joined : 0);
}

void qk_queue_end_job(qk_service_t *service, qk_job_t *job, qk_status_t verdict, const char *why) {
  if (!qk_link_alone(&job->leaving) && !job->picks) return;
  job->picks = false;
  job->leave_next = 0;
  job->verdict = verdict;
  job->why = why;
  qk_list_append(&service->leaving, &job->leaving);
}

void qk_queue_cancel_some(qk_service_t *service, qk_job_t *job, size_t n, const uint32_t *rhs) {
  const size_t count = n > 0 ? n : job->nrhs;
  if (count * told(job) <= AT_ONCE) {
    for (size_t i = 0; i < count; i++)
      qk_queue_cancel(service, &job->rhs[n > 0 ? rhs[i] : i], QK_CANCELLED, "");
    return;
  }
  if (!qk_link_alone(&job->leaving) && !job->picks) return; /* all of it ends */
  for (size_t i = 0; i < count; i++) job->rhs[n > 0 ? rhs[i] : i].picked = true;
  qk_queue_end_job(service, job, QK_CANCELLED, "");
  job->picks = true;
}

void qk_queue_leave(qk_service_t *service, qk_job_t *job) {
  qk_queue_orphan(service, job);
  qk_queue_end_job(service, job, QK_CANCELLED, "");
}

/* Ends the next right-hand sides of the job; true where there are no more. */
static bool end_some(qk_service_t *service, qk_job_t *job) {
  for (uint32_t n = 0; n < BETWEEN_LOOKS && job->leave_next < job->nrhs; n += told(job)) {
    qk_rhs_t *rhs = &job->rhs[job->leave_next++];
    if (!job->picks || rhs->picked) qk_queue_cancel(service, rhs, job->verdict, job->why);
  }
  return job->leave_next == job->nrhs;
}

bool qk_queue_end_some(qk_service_t *service) {
  while (!qk_link_alone(&service->leaving)) {
    qk_job_t *job = QK_HOLDER(service->leaving.next, qk_job_t, leaving);
    if (end_some(service, job)) {
      qk_link_remove(&job->leaving);
      qk_job_settle(job);
    }
    if (qk_loop_time_is_up(service->loop)) break;
  }
  return !qk_link_alone(&service->leaving);
}

/* ---- all of a setup -------------------------------------------------------------------------- */

void qk_queue_each_job(qk_setup_t *setup, qk_queue_job_fn *each, void *arg) {
  qk_service_t *service = setup->service;
  for (int i = 0; i < service->sessions.count; i++) {
    qk_session_t *session = service->sessions.at[i];
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      next = l->next;
      if (job->setup == setup) each(service, job, arg);
    }
  }
}

/* What requests for another setup use goes after them. */
static void expire_kept(qk_service_t *service, qk_job_t *job, void *unused) {
  (void)unused;
  if (qk_kept_count(job) == 0) return;
  job->keep = 0;
  qk_due_at(job, 0);
  if (job->holds == 0) qk_queue_expire(service, job);
}

void qk_queue_expire_all(qk_setup_t *setup) {
  qk_queue_each_job(setup, expire_kept, NULL);
}

static void end_open(qk_service_t *service, qk_job_t *job, void *why) {
  qk_queue_end_job(service, job, QK_CANCELLED, why);
}

void qk_queue_end_setup(qk_setup_t *setup, const char *why) {
  qk_queue_each_job(setup, end_open, (void *)why);
}
