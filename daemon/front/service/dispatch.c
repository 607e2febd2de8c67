#include "daemon/front/service/dispatch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/front/engines/eigen_path.h"
#include "daemon/front/job/due.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"

enum { FIXED = 1 }; /* --batching */

static const double ASIDE = 0.25; /* seconds */

/* ---- who goes next -------------------------------------------------------------------------- */

/* Whether the user has another right-hand side in the engine. */
static bool user_is_served(const qk_rhs_t *rhs) {
  const qk_inflight_entry_t *entry = rhs->job->setup->inflight;
  for (int k = 0; k < QK_INFLIGHT_MAX; k++)
    if (entry[k].rhs && entry[k].rhs != rhs && entry[k].rhs->job->user == rhs->job->user)
      return true;
  return false;
}

/* The in-flight entry that rhs can take; -1: none now. An engine has one contraction at a time,
 * and eigenvectors of one request. The last entry is reserved for users with nothing in flight. */
static int place_for(const qk_rhs_t *rhs) {
  const qk_setup_t *setup = rhs->job->setup;
  if (rhs->job->contraction) return setup->inflight[QK_CONTRACT_ENTRY].rhs ? -1 : QK_CONTRACT_ENTRY;
  if (rhs->job->problem)
    return setup->inflight[QK_EIGEN_ENTRY].rhs || setup->returning ? -1 : QK_EIGEN_ENTRY;
  const qk_engine_info_t *e = qk_supervisor_info(setup->supervisor);
  const int n = (int)(setup->settings.batching == FIXED ? e->slots : e->inflight);
  int place = -1, nfree = 0;
  for (int k = n - 1; k >= 0; k--) {
    if (setup->inflight[k].rhs) continue;
    place = k;
    nfree++;
  }
  return nfree == 1 && n > (int)e->slots && user_is_served(rhs) ? -1 : place;
}

static bool quarantined_runs(const qk_setup_t *setup) {
  for (int k = 0; k < QK_ENTRIES; k++)
    if (k != QK_EIGEN_ENTRY && setup->inflight[k].rhs && setup->inflight[k].rhs->losses > 0)
      return true;
  return false;
}

/* The first of a queue, where there is a place for it; else NULL. Eigenvectors that wait for others
 * keep no contraction waiting: they step aside. */
static qk_rhs_t *first_of(const qk_setup_t *setup, int queue, int *place) {
  qk_service_t *service = setup->service;
  const double now = qk_service_now(service);
  for (qk_sched_item_t *first; (first = qk_sched_first(&service->sched, queue, now));) {
    qk_rhs_t *rhs = QK_HOLDER(first, qk_rhs_t, queue);
    *place = place_for(rhs);
    if (*place >= 0) return rhs;
    if (!rhs->job->problem) return NULL;
    qk_queue_take(service, rhs);
    qk_queue_wait_until(rhs, now + ASIDE);
  }
  return NULL;
}

/* Selects the RHS that goes next and its entry; NULL: none now. Contractions go after RHS that
 * find a slot. Quarantined RHS go one at a time: if the next engine is lost, too, the cause is
 * known. */
static qk_rhs_t *next(const qk_setup_t *setup, int *place) {
  if (!qk_link_alone(&setup->quarantined) && !quarantined_runs(setup)) {
    qk_rhs_t *quarantined = QK_HOLDER(setup->quarantined.next, qk_rhs_t, queue.link);
    *place = place_for(quarantined);
    if (*place >= 0) return quarantined;
  }
  qk_rhs_t *rhs = first_of(setup, setup->index, place);
  return rhs ? rhs : first_of(setup, qk_setup_contract_queue(setup), place);
}

/* How many right-hand sides follow as soon as there are entries for them. Of a fixed batch those
 * that fill it: the next batch begins when all of this one has ended. */
static uint32_t backlog(const qk_setup_t *setup) {
  int64_t n = setup->service->sched.queue[setup->index].length;
  if (setup->settings.batching == FIXED) {
    const int64_t nfree =
        (int64_t)qk_supervisor_info(setup->supervisor)->slots - qk_setup_inflight(setup);
    if (n > nfree) n = nfree;
  }
  return (uint32_t)n;
}

static bool begin_eigen(const qk_setup_t *setup, uint64_t serial, const qk_rhs_t *rhs) {
  const Quark__EigenProblem *problem = rhs->job->problem;
  const qk_rhs_t *field = rhs->uses[0]; /* vectors of its client; NULL: they are computed */
  char path[QK_PATH_MAX + 1];
  size_t bytes;
  qk_err_t err = {0};
  if (qk_eigen_folder_make(&setup->settings, &err) != QK_OK) qk_warn("dispatch", "%s", err.text);
  qk_eigen_path(&setup->settings, setup->site_name, problem->name, path);
  uint8_t *message =
      qk_engine_encode_eigen(serial, problem, field, rhs->solution->name, path, false, &bytes);
  return qk_supervisor_send(setup->supervisor, message, bytes);
}

static bool hand_over(const qk_setup_t *setup, int k, uint64_t serial, const qk_rhs_t *rhs) {
  if (rhs->job->contraction) return qk_supervisor_contract(setup->supervisor, serial, rhs);
  if (rhs->job->problem) return begin_eigen(setup, serial, rhs);
  const qk_fill_hint_t hint = {.order = user_is_served(rhs) ? QK_ORDER_OTHERS : QK_ORDER_FIRST,
                               .backlog = backlog(setup)};
  return qk_supervisor_fill(setup->supervisor, (uint32_t)k, serial, rhs, hint);
}

/* ---- want of shared memory ----------------------------------------------------------------- */

/* Bytes of solutions that engines will still write. */
static int64_t unwritten(const qk_service_t *service) {
  int64_t bytes = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    for (int k = 0; k < QK_ENTRIES && service->setup[m]; k++) {
      const qk_rhs_t *rhs = service->setup[m]->inflight[k].rhs;
      if (rhs && rhs->solution) bytes += (int64_t)rhs->job->field_bytes;
    }
  return bytes;
}

/* Those whose time has come, or for which there is memory now, are queued again. */
static void wake(qk_setup_t *setup) {
  if (qk_link_alone(&setup->waiting)) return;
  const double now = qk_service_now(setup->service);
  const char *by;
  int64_t room = qk_limits_free(setup->service, &by) - unwritten(setup->service);
  for (qk_link_t *l = setup->waiting.next, *next; l != &setup->waiting; l = next) {
    qk_rhs_t *rhs = QK_HOLDER(l, qk_rhs_t, queue.link);
    const int64_t bytes = (int64_t)rhs->job->field_bytes;
    next = l->next;
    if (now < rhs->wait_until && !(rhs->needs_room && room >= bytes)) continue;
    room -= bytes;
    qk_link_remove(&rhs->queue.link);
    rhs->wait_until = 0;
    qk_queue_push(setup->service, rhs);
  }
}

/* ---- slots ---------------------------------------------------------------------------------- */

/* False where the engine did not take the message: the RHS is back in the queue, at the end. So
 * where there was no object for its solution: the others would find none either. */
static bool start(qk_setup_t *setup, int k, qk_rhs_t *rhs) {
  qk_service_t *service = setup->service;
  qk_job_t *job = rhs->job;
  qk_err_t err = {0};
  if (job->sink != QUARK__SINK__SINK_NONE &&
      qk_shm_create_bare(job->space, job->field_bytes, &rhs->solution, &err) != QK_OK) {
    if (qk_queue_wait_for_memory(rhs, err.text, err.code == QK_NO_MEMORY, 0)) return false;
    qk_queue_end(service, rhs, QK_NO_MEMORY, err.text);
    qk_queue_settle(rhs);
    return true;
  }
  const uint64_t serial = setup->serial + 1;
  const bool busy = qk_setup_running(setup) > 0;
  setup->inflight[k] = (qk_inflight_entry_t){.rhs = rhs, .serial = serial};
  if (!hand_over(setup, k, serial, rhs)) {
    setup->inflight[k] = (qk_inflight_entry_t){0};
    qk_shm_destroy(rhs->solution);
    rhs->solution = NULL;
    qk_queue_put_back(service, rhs);
    return false;
  }
  setup->serial = serial;
  rhs->state = QK_RHS_RUNNING;
  rhs->started_at = qk_service_now(service);
  setup->inflight[k].filled = qk_occupancy_mark(&setup->occupancy, rhs->started_at);
  if (!busy) setup->busy_since = rhs->started_at;
  qk_stats_phase(&service->stats, QK_PHASE_QUEUE, rhs->started_at - rhs->queue.since);
  rhs->iterations = 0;
  rhs->residual = 1;
  if (k == QK_EIGEN_ENTRY) setup->eigen_now = (Quark__EigenProgress)QUARK__EIGEN_PROGRESS__INIT;
  if (k < QK_INFLIGHT_MAX) {
    qk_curve_clear(&setup->curve[k]);
    qk_curve_add(&setup->curve[k], 0, 1);
  }
  job->running++;
  job->progress_due = !job->contraction;
  qk_due_at(job, job->progress_at);
  return true;
}

static void fill_slots(qk_setup_t *setup) {
  int place;
  if (setup->settings.batching == FIXED && qk_setup_inflight(setup) > 0) return;
  for (qk_rhs_t *rhs; (rhs = next(setup, &place));) {
    if (rhs->job->forgotten) return; /* it is leaving, before long */
    qk_queue_take(setup->service, rhs);
    if (!qk_eigen_is_there(setup->service, rhs)) continue;
    if (!start(setup, place, rhs)) return;
  }
}

void qk_dispatch_feed(qk_setup_t *setup) {
  const bool ready = qk_supervisor_state(setup->supervisor) == QK_SUPERVISOR_READY;
  wake(setup);
  if (ready) qk_eigen_feed(setup);
  if (ready) fill_slots(setup);
  const bool waits =
      setup->service->sched.queue[setup->index].length > 0 || !qk_link_alone(&setup->quarantined);
  qk_occupancy_set(&setup->occupancy, qk_service_now(setup->service), ready && waits,
                   (int)qk_supervisor_info(setup->supervisor)->slots, qk_setup_inflight(setup));
}
