#include "daemon/front/service/engine_events.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/cost.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/* What the metrics have of it. */
static void count(qk_stats_t *stats, const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_stats_phase(stats, QK_PHASE_SOLVE, rhs->ended_at - rhs->started_at);
  if (!rhs->job->contraction && (o->status == QK_OK || o->status == QK_NOT_CONVERGED))
    qk_stats_solved(stats, o);
}

/* The slot is free again; a job that only waited for it goes. */
static void leave_slot(qk_mount_t *mount, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = mount->slot[k].rhs;
  const double now = qk_service_now(mount->service);
  if (k != QK_CONTRACT_PLACE)
    qk_occupancy_leave(&mount->occupancy, now, mount->slot[k].filled, now - rhs->started_at,
                       outcome->seconds);
  mount->slot[k] = (qk_slot_use_t){0};
  qk_rhs_end(rhs, outcome, now);
  qk_cost_measure(rhs);
  count(&mount->service->stats, rhs);
  qk_queue_settle(rhs);
  qk_queue_ended(mount->service, rhs);
  qk_job_settle(rhs->job);
}

/* The engine found no memory for the result in place k: it is made again. False: for the last time,
 * or nobody wants it. */
static bool vacate(qk_mount_t *mount, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = mount->slot[k].rhs;
  const double now = qk_service_now(mount->service);
  if (outcome->status != QK_NO_MEMORY || rhs->verdict != QK_OK) return false;
  if (!qk_queue_wait_for_memory(rhs, outcome->text, true, outcome->applications)) return false;
  if (k != QK_CONTRACT_PLACE)
    qk_occupancy_leave(&mount->occupancy, now, mount->slot[k].filled, now - rhs->started_at,
                       outcome->seconds);
  mount->slot[k] = (qk_slot_use_t){0};
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  return true;
}

void qk_engine_events_abandon(qk_mount_t *mount) {
  const qk_outcome_t outcome = {.status = QK_SHUTTING_DOWN};
  for (int k = 0; k < QK_PLACES; k++)
    if (mount->slot[k].rhs) leave_slot(mount, k, &outcome);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static void fail_lane(qk_service_t *service, int lane, const char *why) {
  const double now = qk_service_now(service);
  for (qk_sched_item_t *item; (item = qk_sched_pop(&service->sched, lane, now));) {
    qk_rhs_t *rhs = QK_HOLDER(item, qk_rhs_t, queue);
    qk_queue_end(service, rhs, QK_ENGINE_LOST, why);
    qk_queue_settle(rhs);
  }
}

static void fail_list(qk_service_t *service, const qk_link_t *list, const char *why) {
  while (!qk_link_alone(list)) {
    qk_rhs_t *rhs = QK_HOLDER(list->next, qk_rhs_t, queue.link);
    qk_link_remove(&rhs->queue.link);
    qk_queue_end(service, rhs, QK_ENGINE_LOST, why);
    if (rhs->losses > 0) qk_queue_settle(rhs); /* it has paid already */
  }
}

static void fail_queued(qk_mount_t *mount, const char *why) {
  qk_service_t *service = mount->service;
  fail_list(service, &mount->suspects, why);
  fail_list(service, &mount->waiting, why);
  fail_lane(service, mount->lane, why);
  fail_lane(service, qk_mount_contract_lane(mount), why);
}

static void fail_uploading(qk_service_t *service, qk_job_t *job, void *why) {
  for (uint32_t k = 0; k < job->nrhs; k++)
    if (job->rhs[k].state == QK_RHS_UPLOADING)
      qk_queue_end(service, &job->rhs[k], QK_ENGINE_LOST, why);
}

/* Ends all that has no slot. */
static void fail_waiting(qk_mount_t *mount, const char *why) {
  fail_queued(mount, why);
  qk_queue_each_job(mount, fail_uploading, (void *)why);
}

/* ---- events ---------------------------------------------------------------------------------- */

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
  qk_setups_note(mount);
  qk_setups_ready(mount);
  if (!changed) return;
  qk_warn("worker", "%s: the gauge configuration is not the one loaded before", mount->name);
  fail_waiting(mount, "the gauge configuration has changed");
  qk_queue_expire_all(mount); /* nothing to go on with on another configuration */
}

static int exit_code_of(qk_status_t status) {
  if (status == QK_UNSUPPORTED || status == QK_BAD_ARGUMENT) return 78;
  if (status < QK_DEVICE_MEMORY) return 65;
  return qk_status_retryable(status) ? 75 : 69;
}

static void fail(const qk_service_t *service, int exit_code, qk_status_t status, const char *text) {
  service->life->fail(service->life->arg, exit_code, status, text);
}

static void on_refused(void *arg, qk_status_t status, const char *text) {
  qk_mount_t *mount = arg;
  if (qk_setups_make_room(mount, status)) return;
  qk_error("worker", "%s: setup refused: %s: %s", mount->name, qk_status_name(status), text);
  if (mount != mount->service->primary) {
    fail_waiting(mount, text);
    qk_setups_fail(mount, status, text);
    return;
  }
  if (!mount->service->journal) fail_waiting(mount, text); /* else the next front goes on */
  fail(mount->service, exit_code_of(status), status, text);
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
  mount->service->count.redone++;
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  qk_queue_put_back(mount->service, rhs);
}

static void on_lost(void *arg, const char *why, int failures) {
  qk_mount_t *mount = arg;
  for (int k = 0; k < QK_PLACES; k++)
    if (mount->slot[k].rhs) survive(mount, k, why);
  const bool never = !qk_worker_info(mount->worker)->loaded,
             other = mount != mount->service->primary;
  /* who loads a setup beside others waits to hear of it */
  if (failures < HOPELESS && !(never && other && qk_worker_late(mount->worker))) return;
  if (never && other) {
    fail_waiting(mount, why);
    qk_setups_fail(mount, QK_ENGINE_LOST, why);
    return;
  }
  if (!never || !mount->service->journal) fail_queued(mount, why);
  if (never) {
    qk_error("worker", "%s: %d engines in a row did not start", mount->name, failures);
    fail(mount->service, 69, QK_ENGINE_LOST, why);
  }
}

static void on_stopped(void *arg) {
  qk_service_t *service = ((qk_mount_t *)arg)->service;
  if (service->stopping && qk_setups_stopped(service))
    service->life->engines_stopped(service->life->arg);
}

const qk_worker_events_t QK_ENGINE_EVENTS = {.ready = on_ready,
                                             .refused = on_refused,
                                             .progress = on_progress,
                                             .done = on_done,
                                             .contracted = on_contracted,
                                             .lost = on_lost,
                                             .stopped = on_stopped};
