#include "daemon/front/service/dispatch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/front/engines/eigen_path.h"
#include "daemon/front/job/due.h"
#include "daemon/front/job/masses.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"

enum { FIXED = 1 }; /* --batching */

static const double ASIDE = 0.25; /* seconds */

/* Where a right-hand side goes. */
typedef struct place {
  qk_replica_t *replica;
  int k; /* entry of its engine */
} place_t;

/* ---- who goes next -------------------------------------------------------------------------- */

/* Whether the user has another right-hand side in an engine of the setup. */
static bool user_is_served(const qk_rhs_t *rhs) {
  QK_EACH_REPLICA(r, rhs->job->setup)
  for (int k = 0; k < QK_INFLIGHT_MAX; k++) {
    const qk_rhs_t *other = r->inflight[k].rhs;
    if (other && other != rhs && other->job->user == rhs->job->user) return true;
  }
  return false;
}

/* How many right-hand sides the engine may have in flight. */
static int entries_of(const qk_replica_t *r) {
  const qk_engine_info_t *e = qk_supervisor_info(r->supervisor);
  return (int)(r->setup->settings.batching == FIXED ? e->slots : e->inflight);
}

/* A fixed batch takes no more once it has begun. */
static bool is_open(const qk_replica_t *r) {
  return qk_replica_is_ready(r) && !(r->batch_begun && r->setup->settings.batching == FIXED);
}

static qk_replica_room_t room_of(const qk_replica_t *r) {
  return (qk_replica_room_t){.takes = is_open(r),
                             .slots = (int)qk_supervisor_info(r->supervisor)->slots,
                             .entries = entries_of(r),
                             .there = qk_replica_inflight(r)};
}

/* ---- where ---------------------------------------------------------------------------------- */

/* A right-hand side that was in flight when an engine was lost is not tried there again while there
 * is another one: a replica that is lost again and again is not held against its right-hand
 * sides, and one that ends engines is found out after two. */
static bool is_elsewhere(const qk_replica_t *r, const qk_rhs_t *rhs) {
  if (rhs->losses == 0 || rhs->replica != r->number) return false;
  QK_EACH_REPLICA(other, r->setup) if (other != r && qk_replica_is_ready(other)) return true;
  return false;
}

/* The entry beside right-hand sides that rhs can take. An engine has one contraction at a time, and
 * eigenvectors of one request. */
static bool find_beside(const qk_setup_t *setup, const qk_rhs_t *rhs, place_t *place) {
  const int k = rhs->job->contraction ? QK_CONTRACT_ENTRY : QK_EIGEN_ENTRY;
  qk_replica_t *best = NULL;
  QK_EACH_REPLICA(r, setup) {
    if (!is_open(r) || r->inflight[k].rhs || is_elsewhere(r, rhs)) continue;
    if (k == QK_EIGEN_ENTRY && (r->returning || !qk_eigen_may_go(r, rhs))) continue;
    if (!best || qk_replica_inflight(r) < qk_replica_inflight(best)) best = r;
  }
  *place = (place_t){best, k};
  return best != NULL;
}

/* The last entry of an engine is reserved for users with nothing in flight. */
static bool is_reserved(const qk_replica_room_t *room, bool served) {
  return served && room->entries - room->there == 1 && room->entries > room->slots;
}

/* The replica and entry that rhs can take; false: none now. */
static bool find_place(const qk_rhs_t *rhs, place_t *place) {
  qk_replica_room_t room[QK_REPLICAS_MAX];
  const qk_setup_t *setup = rhs->job->setup;
  if (rhs->job->contraction || rhs->job->problem) return find_beside(setup, rhs, place);
  const bool served = user_is_served(rhs);
  QK_EACH_REPLICA(r, setup) {
    qk_replica_room_t *of = &room[r->number];
    *of = room_of(r);
    of->takes &= !is_reserved(of, served) && !is_elsewhere(r, rhs) && qk_eigen_may_go(r, rhs);
  }
  const int with = qk_rhs_block_replica(rhs);
  const bool joins = with >= 0 && room[with].takes && room[with].there < room[with].entries;
  const int best = joins ? with : qk_replica_choose(room, setup->replicas);
  if (best < 0) return false;
  place->replica = &setup->replica[best];
  for (place->k = 0; place->replica->inflight[place->k].rhs;) place->k++;
  return true;
}

/* ---- what ----------------------------------------------------------------------------------- */

static bool quarantined_runs(const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup)
  for (int k = 0; k < QK_ENTRIES; k++)
    if (k != QK_EIGEN_ENTRY && r->inflight[k].rhs && r->inflight[k].rhs->losses > 0) return true;
  return false;
}

/* Whether there is a place for another right-hand side where rhs may not go. */
static bool is_in_the_way(const qk_rhs_t *rhs) {
  QK_EACH_REPLICA(r, rhs->job->setup) {
    const qk_replica_room_t room = room_of(r);
    if (room.takes && room.there < room.entries && !qk_eigen_may_go(r, rhs)) return true;
  }
  return false;
}

/* The first of a queue, where there is a place for it; else NULL. Eigenvectors that wait for others
 * keep no contraction waiting, nor does what needs those of another replica: they step aside. */
static qk_rhs_t *first_of(const qk_setup_t *setup, int queue, place_t *place) {
  qk_service_t *service = setup->service;
  const double now = qk_service_now(service);
  for (qk_sched_item_t *first; (first = qk_sched_first(&service->sched, queue, now));) {
    qk_rhs_t *rhs = QK_HOLDER(first, qk_rhs_t, queue);
    if (find_place(rhs, place)) return rhs;
    if (!rhs->job->problem && !is_in_the_way(rhs)) return NULL;
    qk_queue_take(service, rhs);
    qk_queue_wait_until(rhs, now + ASIDE);
  }
  return NULL;
}

/* Selects the RHS that goes next and its place; NULL: none now. Contractions go after RHS that
 * find a slot. Quarantined RHS go one at a time: if the next engine is lost, too, the cause is
 * known. */
static qk_rhs_t *next(const qk_setup_t *setup, place_t *place) {
  if (!qk_link_alone(&setup->quarantined) && !quarantined_runs(setup)) {
    qk_rhs_t *quarantined = QK_HOLDER(setup->quarantined.next, qk_rhs_t, queue.link);
    if (find_place(quarantined, place)) return quarantined;
  }
  qk_rhs_t *rhs = first_of(setup, setup->index, place);
  return rhs ? rhs : first_of(setup, qk_setup_contract_queue(setup), place);
}

/* How many right-hand sides follow as soon as there are entries for them. Of a fixed batch those
 * that fill it: the next batch begins when all of this one has ended. */
static uint32_t backlog(const qk_replica_t *replica) {
  qk_replica_room_t room[QK_REPLICAS_MAX];
  const qk_setup_t *setup = replica->setup;
  QK_EACH_REPLICA(r, setup) room[r->number] = room_of(r);
  int64_t n = setup->service->sched.queue[setup->index].length;
  n = qk_replica_share(room, setup->replicas, replica->number, n);
  if (setup->settings.batching == FIXED) {
    const int64_t nfree =
        (int64_t)qk_supervisor_info(replica->supervisor)->slots - qk_replica_inflight(replica);
    if (n > nfree) n = nfree;
  }
  return (uint32_t)n;
}

static bool begin_eigen(const qk_replica_t *replica, uint64_t serial, const qk_rhs_t *rhs) {
  const qk_setup_t *setup = replica->setup;
  const Quark__EigenProblem *problem = rhs->job->problem;
  const qk_rhs_t *field = rhs->uses[0]; /* vectors of its client; NULL: they are computed */
  char path[QK_PATH_MAX + 1];
  size_t bytes;
  qk_err_t err = {0};
  if (qk_eigen_folder_make(&setup->settings, &err) != QK_OK) qk_warn("dispatch", "%s", err.text);
  qk_eigen_path(&setup->settings, setup->site_name, problem->name, path);
  uint8_t *message = qk_engine_encode_eigen(serial, problem, field, rhs->solution->name, path,
                                            rhs->job->recalls, &bytes);
  return qk_supervisor_send(replica->supervisor, message, bytes);
}

static bool hand_over(place_t place, uint64_t serial, const qk_rhs_t *rhs) {
  const qk_replica_t *r = place.replica;
  if (rhs->job->contraction) return qk_supervisor_contract(r->supervisor, serial, rhs);
  if (rhs->job->problem) return begin_eigen(r, serial, rhs);
  const qk_fill_hint_t hint = {.order = user_is_served(rhs) ? QK_ORDER_OTHERS : QK_ORDER_FIRST,
                               .backlog = backlog(r)};
  return qk_supervisor_fill(r->supervisor, (uint32_t)place.k, serial, rhs, hint);
}

/* ---- want of shared memory ----------------------------------------------------------------- */

static int64_t unwritten_of(const qk_replica_t *replica) {
  int64_t bytes = 0;
  for (int k = 0; k < QK_ENTRIES; k++) {
    const qk_rhs_t *rhs = replica->inflight[k].rhs;
    if (rhs && rhs->solution) bytes += (int64_t)rhs->job->field_bytes;
  }
  return bytes;
}

/* Bytes of solutions that engines will still write. */
static int64_t unwritten(const qk_service_t *service) {
  int64_t bytes = 0;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m]) QK_EACH_REPLICA(r, service->setup[m]) bytes += unwritten_of(r);
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

/* The RHS is in the engine now. */
static void begin(place_t place, qk_rhs_t *rhs, bool busy) {
  qk_replica_t *r = place.replica;
  qk_service_t *service = r->setup->service;
  qk_job_t *job = rhs->job;
  rhs->state = QK_RHS_RUNNING;
  rhs->replica = r->number;
  rhs->started_at = qk_service_now(service);
  r->inflight[place.k].filled = qk_occupancy_mark(&r->occupancy, rhs->started_at);
  if (!busy) r->busy_since = rhs->started_at;
  qk_stats_phase(&service->stats, QK_PHASE_QUEUE, rhs->started_at - rhs->queue.since);
  rhs->iterations = 0;
  rhs->residual = 1;
  if (place.k == QK_EIGEN_ENTRY) r->eigen_now = (Quark__EigenProgress)QUARK__EIGEN_PROGRESS__INIT;
  if (place.k < QK_INFLIGHT_MAX) {
    qk_curve_clear(&r->curve[place.k]);
    qk_curve_add(&r->curve[place.k], 0, 1);
  }
  job->running++;
  job->progress_due = !job->contraction;
  qk_due_at(job, job->progress_at);
}

/* False where the engine did not take the message: the RHS is back in the queue, at the end. So
 * where there was no object for its solution: the others would find none either. */
static bool start(place_t place, qk_rhs_t *rhs) {
  qk_replica_t *r = place.replica;
  qk_service_t *service = r->setup->service;
  qk_job_t *job = rhs->job;
  qk_err_t err = {0};
  if (job->sink != QUARK__SINK__SINK_NONE &&
      qk_shm_create_bare(job->space, job->field_bytes, &rhs->solution, &err) != QK_OK) {
    if (qk_queue_wait_for_memory(rhs, err.text, err.code == QK_NO_MEMORY, 0)) return false;
    qk_queue_end(service, rhs, QK_NO_MEMORY, err.text);
    qk_queue_settle(rhs);
    return true;
  }
  const uint64_t serial = r->setup->serial + 1;
  if (job->number == 0) job->number = serial;
  const bool busy = qk_replica_running(r) > 0;
  r->inflight[place.k] = (qk_inflight_entry_t){.rhs = rhs, .serial = serial};
  if (!hand_over(place, serial, rhs)) {
    r->inflight[place.k] = (qk_inflight_entry_t){0};
    qk_shm_destroy(rhs->solution);
    rhs->solution = NULL;
    qk_queue_put_back(service, rhs);
    return false;
  }
  r->setup->serial = serial;
  begin(place, rhs, busy);
  return true;
}

static void fill_slots(qk_setup_t *setup) {
  place_t place;
  bool open = false;
  QK_EACH_REPLICA(r, setup) {
    r->batch_begun = qk_replica_inflight(r) > 0;
    open |= is_open(r);
  }
  if (!open) return;
  for (qk_rhs_t *rhs; (rhs = next(setup, &place));) {
    if (rhs->job->forgotten) return; /* it is leaving, before long */
    qk_queue_take(setup->service, rhs);
    if (!qk_eigen_is_there(setup->service, rhs)) continue;
    if (!start(place, rhs)) return;
  }
}

void qk_dispatch_feed(qk_setup_t *setup) {
  wake(setup);
  QK_EACH_REPLICA(r, setup) if (qk_replica_is_ready(r)) qk_eigen_feed(r);
  if (qk_setup_state(setup) == QK_SUPERVISOR_READY) fill_slots(setup);
  const bool waits =
      setup->service->sched.queue[setup->index].length > 0 || !qk_link_alone(&setup->quarantined);
  const double now = qk_service_now(setup->service);
  QK_EACH_REPLICA(r, setup)
  qk_occupancy_set(&r->occupancy, now, qk_replica_is_ready(r) && waits,
                   (int)qk_supervisor_info(r->supervisor)->slots, qk_replica_inflight(r));
}
