#include "daemon/front/service/engine_events.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/cost.h"
#include "daemon/front/job/due.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups.h"

/* ---- slots ----------------------------------------------------------------------------------- */

/* What the metrics have of it. */
static void count(qk_stats_t *stats, const qk_rhs_t *rhs) {
  const qk_outcome_t *o = &rhs->outcome;
  qk_stats_phase(stats, QK_PHASE_SOLVE, rhs->ended_at - rhs->started_at);
  if (qk_job_solves(rhs->job) && (o->status == QK_OK || o->status == QK_NOT_CONVERGED))
    qk_stats_solved(stats, o->iterations, o->true_residual);
}

/* The entry is free again; a job that only waited for it goes. */
static void leave_entry(qk_replica_t *r, int k, const qk_outcome_t *outcome) {
  qk_setup_t *setup = r->setup;
  qk_rhs_t *rhs = r->inflight[k].rhs;
  const double now = qk_service_now(setup->service);
  if (k < QK_INFLIGHT_MAX)
    qk_occupancy_leave(&r->occupancy, now, r->inflight[k].filled, now - rhs->started_at,
                       outcome->seconds);
  r->inflight[k] = (qk_inflight_entry_t){0};
  if (k < QK_INFLIGHT_MAX && outcome->status == QK_OK) r->solved++;
  qk_rhs_end(rhs, outcome, now);
  qk_cost_measure(rhs);
  count(&setup->service->stats, rhs);
  qk_queue_settle(rhs);
  qk_queue_ended(setup->service, rhs);
  qk_job_settle(rhs->job);
}

/* The engine found no memory for the result in place k: it is made again. False: for the last time,
 * or nobody wants it. */
static bool vacate(qk_replica_t *r, int k, const qk_outcome_t *outcome) {
  qk_rhs_t *rhs = r->inflight[k].rhs;
  const double now = qk_service_now(r->setup->service);
  if (outcome->status != QK_NO_MEMORY || rhs->verdict != QK_OK) return false;
  if (!qk_queue_wait_for_memory(rhs, outcome->text, true, outcome->applications)) return false;
  if (k < QK_INFLIGHT_MAX)
    qk_occupancy_leave(&r->occupancy, now, r->inflight[k].filled, now - rhs->started_at,
                       outcome->seconds);
  r->inflight[k] = (qk_inflight_entry_t){0};
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  return true;
}

void qk_engine_events_abandon(qk_setup_t *setup) {
  const qk_outcome_t outcome = {.status = QK_SHUTTING_DOWN};
  QK_EACH_REPLICA(r, setup)
  for (int k = 0; k < QK_ENTRIES; k++)
    if (r->inflight[k].rhs) leave_entry(r, k, &outcome);
}

/* ---- what waits ------------------------------------------------------------------------------ */

static void fail_queue(qk_service_t *service, int queue, const char *why) {
  const double now = qk_service_now(service);
  for (qk_sched_item_t *item; (item = qk_sched_pop(&service->sched, queue, now));) {
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

/* With --spool all: complete uploads that are in no queue yet, because they are not on the disk. */
static void fail_unspooled(qk_service_t *service, qk_job_t *job, void *why) {
  for (uint32_t k = 0; k < job->nrhs; k++)
    if (job->rhs[k].state == QK_RHS_QUEUED && !qk_sched_item_waits(&job->rhs[k].queue))
      qk_queue_end(service, &job->rhs[k], QK_ENGINE_LOST, why);
}

static void fail_queued(qk_setup_t *setup, const char *why) {
  qk_service_t *service = setup->service;
  fail_list(service, &setup->quarantined, why);
  fail_list(service, &setup->waiting, why);
  fail_queue(service, setup->index, why);
  fail_queue(service, qk_setup_contract_queue(setup), why);
  qk_queue_each_job(setup, fail_unspooled, (void *)why);
}

static void fail_uploading(qk_service_t *service, qk_job_t *job, void *why) {
  for (uint32_t k = 0; k < job->nrhs; k++)
    if (job->rhs[k].state == QK_RHS_UPLOADING)
      qk_queue_end(service, &job->rhs[k], QK_ENGINE_LOST, why);
}

/* Ends all that has no slot. */
static void fail_waiting(qk_setup_t *setup, const char *why) {
  fail_queued(setup, why);
  qk_queue_each_job(setup, fail_uploading, (void *)why);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A private setup whose file holds other links than were asked for: it is over. */
static void fail_other_links(qk_setup_t *setup, uint64_t found) {
  char text[128];
  snprintf(text, sizeof text, "its links have the digest %016llx, not %016llx as was asked for",
           (unsigned long long)found, (unsigned long long)setup->wanted);
  qk_error("worker", "%s: setup rejected: %s", setup->site_name, text);
  fail_waiting(setup, text);
  qk_setups_fail(setup, QK_BAD_CHECKSUM, text);
}

/* Whether others serve the setup with links or a shape that are not those of this engine. */
static bool differs_from_others(const qk_replica_t *replica) {
  const qk_engine_info_t *e = qk_supervisor_info(replica->supervisor);
  QK_EACH_REPLICA(r, replica->setup) {
    const qk_engine_info_t *o = qk_supervisor_info(r->supervisor);
    if (r != replica && qk_replica_is_ready(r) &&
        (o->digest != e->digest || !qk_shape_same(&o->shape, &e->shape)))
      return true;
  }
  return false;
}

static const double AGAIN = 30; /* seconds */

/* A replica that cannot serve beside those that do: they go on without it, for a while. */
static void do_without(qk_replica_t *replica, const char *why) {
  qk_error("worker", "%s: replica %d does not serve: %s; it is tried again in %g s",
           replica->setup->site_name, replica->number, why, AGAIN);
  replica->again_at = qk_service_now(replica->setup->service) + AGAIN;
}

static void on_ready(void *arg) {
  qk_replica_t *replica = arg;
  qk_setup_t *setup = replica->setup;
  const qk_engine_info_t *e = qk_supervisor_info(replica->supervisor);
  if (differs_from_others(replica)) {
    qk_supervisor_refuse(replica->supervisor, "its links are not those of the other replicas");
    do_without(replica, "its links are not those of the others: the gauge file has changed");
    return;
  }
  if (setup->has_wanted && setup->wanted != e->digest) {
    fail_other_links(setup, e->digest);
    return;
  }
  const uint32_t *dims = e->shape.dims;
  char number[24] = "";
  if (setup->replicas > 1) snprintf(number, sizeof number, " replica %d", replica->number);
  qk_info("worker", "%s%s ready: %ux%ux%ux%u, plaquette %.12f, %s (%s), %u slots, %.1f s",
          setup->name, number, dims[0], dims[1], dims[2], dims[3], e->plaquette, e->backend,
          e->device, e->slots, e->load_seconds);
  const bool changed = setup->shape.dims[0] > 0 &&
                       (!qk_shape_same(&setup->shape, &e->shape) || setup->digest != e->digest);
  setup->shape = e->shape;
  setup->digest = e->digest;
  qk_setups_refresh_ready(replica);
  qk_eigen_return(replica);
  qk_setups_note(setup);
  qk_setups_ready(setup);
  if (!changed) return;
  qk_warn("worker", "%s: the gauge configuration is not the one loaded before", setup->name);
  fail_waiting(setup, "the gauge configuration has changed");
  qk_queue_expire_all(setup); /* nothing to go on with on another configuration */
}

static int exit_code_of(qk_status_t status) {
  if (status == QK_UNSUPPORTED || status == QK_BAD_ARGUMENT) return 78;
  if (status < QK_DEVICE_MEMORY) return 65;
  return qk_status_retryable(status) ? 75 : 69;
}

static void fail(const qk_service_t *service, int exit_code, qk_status_t status, const char *text) {
  service->life->fail(service->life->arg, exit_code, status, text);
}

/* Of one that has served others say that it is not the setup that is wrong. */
static bool others_serve(const qk_replica_t *replica) {
  if (!qk_supervisor_info(replica->supervisor)->loaded) return false;
  QK_EACH_REPLICA(r, replica->setup) if (r != replica && qk_replica_is_ready(r)) return true;
  return false;
}

static void on_refused(void *arg, qk_status_t status, const char *text) {
  qk_replica_t *replica = arg;
  qk_setup_t *setup = replica->setup;
  if (others_serve(replica)) {
    do_without(replica, text);
    return;
  }
  if (setup->successor) { /* which has another LOAD for this engine */
    qk_info("worker", "%s: not loaded: %s: %s", setup->name, qk_status_name(status), text);
    fail_waiting(setup, text);
    return;
  }
  if (qk_setups_make_room(setup, status)) return;
  qk_error("worker", "%s: setup rejected: %s: %s", setup->name, qk_status_name(status), text);
  if (setup != setup->service->primary) {
    fail_waiting(setup, text);
    qk_setups_fail(setup, status, text);
    return;
  }
  if (!setup->service->journal) fail_waiting(setup, text); /* else the next front goes on */
  fail(setup->service, exit_code_of(status), status, text);
}

static void on_progress(void *arg, const Quark__Engine__FillProgress *p) {
  qk_replica_t *replica = arg;
  qk_inflight_entry_t *entry = &replica->inflight[p->entry];
  if (!entry->rhs || entry->serial != p->serial) return;
  entry->rhs->iterations = p->iterations;
  entry->rhs->residual = p->residual;
  qk_curve_add(&replica->curve[p->entry], p->iterations, p->residual);
  entry->rhs->job->progress_due = true;
  qk_due_at(entry->rhs->job, entry->rhs->job->progress_at);
}

/* As an engine says it, within what the journal can hold. */
static uint64_t count_of(uint64_t said) {
  return said < QK_JOURNAL_COUNT_MAX ? said : QK_JOURNAL_COUNT_MAX;
}

/* Whether the numbers of an engine are those that were asked for. */
static bool is_solved(const qk_job_t *job, const qk_outcome_t *o) {
  if (job->tol > 0 && !(o->true_residual <= job->tol)) return false;
  if (job->tol_abs > 0 && !(o->true_residual * o->norm_b <= job->tol_abs)) return false;
  return !(job->tol_hq > 0) || o->hq_residual <= job->tol_hq;
}

static bool has_solution(qk_status_t status) {
  return status == QK_OK || status == QK_NOT_CONVERGED || status == QK_BREAKDOWN;
}

static void on_done(void *arg, const Quark__Engine__FillDone *d) {
  qk_replica_t *replica = arg;
  qk_inflight_entry_t *entry = &replica->inflight[d->entry];
  if (!entry->rhs || entry->serial != d->serial) return;
  qk_rhs_t *rhs = entry->rhs;
  qk_outcome_t o = {.status = (qk_status_t)d->status,
                    .true_residual = d->true_residual,
                    .iterations = count_of(d->iterations),
                    .applications = count_of(d->applications),
                    .seconds = d->seconds,
                    .norm_b = d->norm_b,
                    .norm_x = d->norm_x,
                    .hq_residual = d->has_hq_residual ? d->hq_residual : NAN};
  if (!(rhs->job->tol_hq > 0)) o.hq_residual = 0;
  snprintf(o.text, sizeof o.text, "%s", d->text ? d->text : "");
  if (strcmp(qk_status_name(o.status), "UNKNOWN") == 0) o.status = QK_INTERNAL;
  if (o.status == QK_OK && !is_solved(rhs->job, &o)) o.status = QK_NOT_CONVERGED;
  if (o.status == QK_CANCELLED && rhs->verdict != QK_OK) o.status = rhs->verdict;
  o.written = d->written && rhs->solution && has_solution(o.status);
  qk_wall_sums_drop(&rhs->wall);
  if (has_solution(o.status)) rhs->wall = qk_wall_sums_pack(d->wall);
  if (!vacate(replica, (int)d->entry, &o)) leave_entry(replica, (int)d->entry, &o);
}

/* Of what is made beside right-hand sides. */
static void end_beside(const qk_rhs_t *rhs, uint32_t status, const char *text, qk_outcome_t *o) {
  o->status = (qk_status_t)status;
  snprintf(o->text, sizeof o->text, "%s", text ? text : "");
  if (strcmp(qk_status_name(o->status), "UNKNOWN") == 0) o->status = QK_INTERNAL;
  if (rhs->verdict != QK_OK) o->status = rhs->verdict;
  o->written = o->status == QK_OK;
}

static void on_multigrid(void *arg, const Quark__Engine__MultigridNews *news) {
  qk_setups_refresh_news(arg, news);
}

static void on_contracted(void *arg, const Quark__Engine__Contracted *c) {
  qk_replica_t *replica = arg;
  const qk_inflight_entry_t *place = &replica->inflight[QK_CONTRACT_ENTRY];
  if (!place->rhs || place->serial != c->serial) return;
  qk_outcome_t o = {.seconds = c->seconds};
  end_beside(place->rhs, c->status, c->text, &o);
  if (!vacate(replica, QK_CONTRACT_ENTRY, &o)) leave_entry(replica, QK_CONTRACT_ENTRY, &o);
}

/* An EIGEN that gets further than with the engines before is no cause of their loss. */
static void on_eigen_progress(void *arg, const Quark__Engine__EigenProgress *p) {
  qk_replica_t *replica = arg;
  const qk_inflight_entry_t *entry = &replica->inflight[QK_EIGEN_ENTRY];
  if (!entry->rhs || entry->serial != p->serial) return;
  qk_eigen_set_t *set = qk_eigen_find(replica->setup, entry->rhs->job->problem->name);
  if (set && p->restart > set->furthest) {
    set->furthest = p->restart;
    entry->rhs->losses = 0;
  }
  replica->eigen_now.restart = p->restart;
  replica->eigen_now.converged = p->converged;
  replica->eigen_now.seconds = p->seconds;
  entry->rhs->iterations = p->restart;
  entry->rhs->job->progress_due = true;
  qk_due_at(entry->rhs->job, entry->rhs->job->progress_at);
}

static void on_eigen_done(void *arg, const Quark__Engine__EigenDone *d) {
  qk_replica_t *replica = arg;
  const qk_inflight_entry_t *entry = &replica->inflight[QK_EIGEN_ENTRY];
  if (replica->returning && replica->returning_serial == d->serial) {
    qk_eigen_returned(replica, d);
    return;
  }
  if (!entry->rhs || entry->serial != d->serial) return;
  qk_outcome_t o = {.true_residual = d->residual,
                    .iterations = count_of(d->restarts),
                    .applications = count_of(d->applications),
                    .seconds = d->seconds};
  end_beside(entry->rhs, d->status, d->text, &o);
  const qk_job_t *job = entry->rhs->job;
  qk_eigen_set_t *set = job->recalls ? NULL : qk_eigen_find(replica->setup, job->problem->name);
  if (job->recalls) o.applications = 0; /* those of long ago, which say nothing of its time */
  if (set && o.written) qk_eigen_measure(set, d);
  leave_entry(replica, QK_EIGEN_ENTRY, &o);
}

enum {
  HOPELESS = 3,  /* engines in a row that did not become ready */
  LOSSES_MAX = 2 /* engines that one right-hand side may see lost */
};

/* An RHS that was in flight when the engine was lost waits for the next one. If it was the only
 * quarantined one in flight at a second loss, it is the cause. */
static void survive(qk_replica_t *r, int k, const char *why) {
  qk_rhs_t *rhs = r->inflight[k].rhs;
  qk_outcome_t o = {.status = rhs->verdict, .iterations = rhs->iterations};
  if (o.status == QK_OK && ++rhs->losses >= LOSSES_MAX) {
    o.status = QK_ENGINE_LOST;
    snprintf(o.text, sizeof o.text, "%d engines were lost while solving it: %s", LOSSES_MAX, why);
    qk_log(QK_LOG_WARN, "dispatch", rhs->job->name, "rhs %u: not tried again", rhs->index);
  }
  if (o.status != QK_OK) {
    leave_entry(r, k, &o);
    return;
  }
  r->inflight[k] = (qk_inflight_entry_t){0};
  r->setup->service->count.redone++;
  qk_rhs_again(rhs);
  qk_marks_rhs(rhs);
  qk_queue_put_back(r->setup->service, rhs);
}

/* Whether another replica serves, or may come to. One that has not begun waits for others. */
static bool others_hope(const qk_replica_t *replica) {
  QK_EACH_REPLICA(r, replica->setup)
  if (r != replica && r->begun && qk_supervisor_failures(r->supervisor) < HOPELESS &&
      qk_supervisor_state(r->supervisor) != QK_SUPERVISOR_REFUSED)
    return true;
  return false;
}

static bool never_loaded(const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup) if (qk_supervisor_info(r->supervisor)->loaded) return false;
  return true;
}

static void on_lost(void *arg, const char *why, int failures) {
  qk_replica_t *replica = arg;
  qk_setup_t *setup = replica->setup;
  qk_eigen_lost(replica);
  for (int k = 0; k < QK_ENTRIES; k++)
    if (replica->inflight[k].rhs) survive(replica, k, why);
  const bool never = never_loaded(setup), other = setup != setup->service->primary;
  /* who loads a setup beside others waits for the news */
  if (failures < HOPELESS && !(never && other && qk_supervisor_late(replica->supervisor))) return;
  if (others_hope(replica)) return;
  if (never && other) {
    fail_waiting(setup, why);
    qk_setups_fail(setup, QK_ENGINE_LOST, why);
    return;
  }
  if (!never || !setup->service->journal) fail_queued(setup, why);
  if (never) {
    qk_error("worker", "%s: %d engines in a row did not start", setup->name, failures);
    fail(setup->service, 69, QK_ENGINE_LOST, why);
  }
}

static void on_stopped(void *arg) {
  qk_service_t *service = ((qk_replica_t *)arg)->setup->service;
  if (service->stopping && qk_setups_stopped(service))
    service->life->engines_stopped(service->life->arg);
}

const qk_supervisor_events_t QK_ENGINE_EVENTS = {.ready = on_ready,
                                                 .refused = on_refused,
                                                 .progress = on_progress,
                                                 .done = on_done,
                                                 .multigrid = on_multigrid,
                                                 .contracted = on_contracted,
                                                 .eigen_progress = on_eigen_progress,
                                                 .eigen_done = on_eigen_done,
                                                 .lost = on_lost,
                                                 .stopped = on_stopped};
