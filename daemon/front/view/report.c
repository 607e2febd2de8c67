#include "daemon/front/view/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "daemon/base/utf8.h"
#include "daemon/base/version.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/settings/operator.h"
#include "proto/counters.h"
#include "proto/eigen_check.h"

static Quark__ServerState state_of(const qk_setup_t *setup) {
  const qk_service_t *service = setup->service;
  const bool ends = service->draining || service->stopping;
  if (setup->successor && !ends) return QUARK__SERVER_STATE__STATE_LOADING;
  if (setup->failed != QK_OK) return QUARK__SERVER_STATE__STATE_FAILED;
  if (ends || !qk_setup_serves(setup)) return QUARK__SERVER_STATE__STATE_DRAINING;
  switch (qk_setup_state(setup)) {
  case QK_SUPERVISOR_READY:
    return QUARK__SERVER_STATE__STATE_READY;
  case QK_SUPERVISOR_LOADING:
    if (!qk_setup_info(setup)->loaded) return QUARK__SERVER_STATE__STATE_LOADING;
    break;
  default:
    break;
  }
  return qk_setup_restarts(setup) > 0 || qk_setup_info(setup)->loaded
             ? QUARK__SERVER_STATE__STATE_RESTARTING
             : QUARK__SERVER_STATE__STATE_STARTING;
}

static void fill_clocks(const qk_start_clocks_t *start, qk_report_t *r) {
  r->setup.n_clock = (size_t)start->n;
  r->setup.clock = r->clock_list;
  for (int i = 0; i < start->n; i++) {
    r->clock[i] = (Quark__StartClock)QUARK__START_CLOCK__INIT;
    r->clock[i].phase = (char *)start->clock[i].phase;
    r->clock[i].seconds = start->clock[i].seconds;
    r->clock[i].has_beside = true;
    r->clock[i].beside = start->clock[i].beside;
    r->clock_list[i] = &r->clock[i];
  }
}

static void fill_block(const qk_setup_t *setup, const Quark__EigenProblem *problem,
                       qk_report_t *report, Quark__EigenReport *r) {
  uint32_t *to = report->eigen_block[report->setup.n_eigen];
  int block[4];
  qk_eigen_block(problem, setup->shape.dims, block);
  for (int mu = 0; mu < 4; mu++) to[mu] = (uint32_t)block[mu];
  r->n_block = 4;
  r->block = to;
}

static void fill_eigen(const qk_setup_t *setup, qk_report_t *report) {
  const qk_link_t *sets = &setup->eigen;
  report->setup.eigen = report->eigen_list;
  for (const qk_link_t *l = sets->next; l != sets; l = l->next) {
    const qk_eigen_set_t *set = QK_HOLDER(l, const qk_eigen_set_t, link);
    if (report->setup.n_eigen == QK_EIGEN_NAMES_MAX) return;
    Quark__EigenReport *r = &report->eigen[report->setup.n_eigen];
    *r = (Quark__EigenReport)QUARK__EIGEN_REPORT__INIT;
    r->name = set->problem->name;
    r->state = set->state;
    r->kind = set->problem->kind;
    r->count = set->problem->count;
    r->tol = set->problem->tol;
    r->user = (char *)set->user_shown;
    r->has_lowest = r->has_highest = r->has_residual = r->has_seconds = set->measured;
    r->has_device_bytes = r->has_host_bytes = set->measured;
    r->lowest = set->lowest;
    r->highest = set->highest;
    r->residual = set->residual;
    r->seconds = set->seconds;
    r->device_bytes = set->device_bytes;
    r->host_bytes = set->host_bytes;
    r->has_zero_plus = set->measured && set->zero_plus >= 0;
    r->has_zero_minus = set->measured && set->zero_minus >= 0;
    r->zero_plus = (uint32_t)set->zero_plus;
    r->zero_minus = (uint32_t)set->zero_minus;
    r->field = set->problem->field;
    r->links = set->problem->links;
    r->unwritten = set->unwritten[0] ? (char *)set->unwritten : NULL;
    r->has_basis = set->problem->basis > 0;
    r->basis = set->problem->basis;
    if (r->has_basis) fill_block(setup, set->problem, report, r);
    report->eigen_list[report->setup.n_eigen++] = r;
  }
}

static void fill_setup(const qk_setup_t *setup, qk_report_t *report) {
  Quark__SetupReport *r = &report->setup;
  const qk_settings_t *s = &setup->settings;
  const qk_engine_info_t *e = qk_setup_info(setup);
  r->name = (char *)setup->name;
  r->gauge = (char *)s->gauge;
  r->mass = qk_operator_mass(&s->op);
  r->kappa = qk_values_kappa(&s->op);
  r->csw = qk_operator_csw(&s->op);
  r->action = (char *)setup->shown.action;
  r->n_parameter = setup->shown.n_parameter;
  r->parameter = (Quark__Setting **)setup->shown.parameter;
  r->n_boundary = 8;
  r->boundary = (double *)s->boundary;
  r->solver = (char *)qk_setup_solver(setup);
  r->precision = (char *)qk_settings_precision(s);
  r->has_checksum_ignored = r->checksum_ignored = s->ignore_checksum;
  fill_eigen(setup, report);
  r->has_deflate = s->deflate > 0;
  r->deflate_from = (char *)s->deflate_from;
  r->deflate = (uint32_t)s->deflate;
  if (setup->fix_gauge[0]) r->fix_gauge = (char *)setup->fix_gauge;
  r->link_reals = e->loaded ? e->link_reals : (uint32_t)qk_settings_link_reals(s);
  if (!e->loaded) return;
  r->n_dims = 4;
  r->dims = (uint32_t *)e->shape.dims;
  r->has_site_reals = r->has_columns = true;
  r->site_reals = e->shape.site_reals;
  r->columns = e->shape.columns;
  r->format = (char *)e->format;
  r->has_plaquette = r->has_digest = r->has_unitarity = r->has_load_seconds = true;
  r->plaquette = e->plaquette;
  r->digest = e->digest;
  r->unitarity = e->unitarity;
  r->load_seconds = e->load_seconds;
  fill_clocks(&e->start, report);
  r->deflation = e->deflation;
  r->sign = e->sign;
  r->multigrid = e->multigrid;
}

static void fill_engine(const qk_setup_t *setup, Quark__EngineReport *r) {
  const qk_engine_info_t *e = qk_setup_info(setup);
  qk_supervisor_state_t state = qk_setup_state(setup);
  const char *last = qk_supervisor_last_error(qk_setup_lead(setup)->supervisor);
  bool alive = state == QK_SUPERVISOR_LOADING || state == QK_SUPERVISOR_READY;
  r->restarts = (uint32_t)qk_setup_restarts(setup);
  r->last_error = last[0] ? (char *)last : NULL;
  r->has_pid = r->has_ranks = alive;
  r->pid = e->pid;
  r->ranks = e->ranks;
  r->slots_busy = (uint32_t)qk_setup_busy(setup);
  if (state != QK_SUPERVISOR_READY) return;
  r->backend = (char *)e->backend;
  r->device = (char *)e->device;
  r->n_grid = 4;
  r->grid = (uint32_t *)e->grid;
  r->grid_why = e->grid_why[0] ? (char *)e->grid_why : NULL;
  r->has_slots = r->has_device_bytes = r->has_host_bytes = true;
  r->slots = (uint32_t)qk_setup_slots(setup);
  r->device_bytes = e->device_bytes;
  r->host_bytes = e->host_bytes;
  r->memory = e->memory;
}

static Quark__ServerState state_of_replica(const qk_replica_t *r) {
  switch (qk_supervisor_state(r->supervisor)) {
  case QK_SUPERVISOR_READY:
    return QUARK__SERVER_STATE__STATE_READY;
  case QK_SUPERVISOR_REFUSED:
    return QUARK__SERVER_STATE__STATE_FAILED;
  case QK_SUPERVISOR_STOPPING:
  case QK_SUPERVISOR_STOPPED:
    return QUARK__SERVER_STATE__STATE_DRAINING;
  case QK_SUPERVISOR_LOADING:
    if (!qk_supervisor_info(r->supervisor)->loaded) return QUARK__SERVER_STATE__STATE_LOADING;
    break;
  default:
    break;
  }
  return qk_supervisor_restarts(r->supervisor) > 0 || qk_supervisor_info(r->supervisor)->loaded
             ? QUARK__SERVER_STATE__STATE_RESTARTING
             : QUARK__SERVER_STATE__STATE_STARTING;
}

static const char *phase_of(const qk_replica_t *r) {
  const qk_supervisor_state_t state = qk_supervisor_state(r->supervisor);
  if (state == QK_SUPERVISOR_LOADING) return qk_supervisor_info(r->supervisor)->phase;
  if (state == QK_SUPERVISOR_READY && r->refreshed < r->setup->refresh.number) return "refresh";
  return state == QK_SUPERVISOR_DOWN && r->waits ? "files of another replica" : NULL;
}

static void fill_replica(const qk_replica_t *replica, char device[160], Quark__ReplicaReport *r) {
  const qk_engine_info_t *e = qk_supervisor_info(replica->supervisor);
  const char *last = qk_supervisor_last_error(replica->supervisor);
  quark__replica_report__init(r);
  r->replica = (uint32_t)replica->number;
  r->state = state_of_replica(replica);
  r->phase = (char *)phase_of(replica);
  r->slots_busy = (uint32_t)qk_replica_busy(replica);
  r->solved = replica->solved;
  r->restarts = (uint32_t)qk_supervisor_restarts(replica->supervisor);
  r->last_error = last[0] ? (char *)last : NULL;
  r->has_refreshes = replica->refreshed > 0;
  r->refreshes = replica->refreshed;
  if (!qk_replica_is_ready(replica)) return;
  r->has_pid = r->has_slots = true;
  r->pid = e->pid;
  r->slots = e->slots;
  snprintf(device, 160, "%s%s%s", e->device, e->bus[0] ? " at " : "", e->bus);
  r->device = device;
}

static void fill_replicas(const qk_setup_t *setup, qk_report_t *report) {
  if (setup->replicas == 1) return;
  report->engine.replica = report->replica_list;
  QK_EACH_REPLICA(r, setup) {
    fill_replica(r, report->device[r->number], &report->replica[r->number]);
    report->replica_list[report->engine.n_replica++] = &report->replica[r->number];
  }
}

static uint64_t count_list(const qk_link_t *list, const qk_sched_user_t *user) {
  uint64_t n = 0;
  for (const qk_link_t *l = list->next; l != list; l = l->next)
    n += !user || QK_HOLDER(l, const qk_rhs_t, queue.link)->job->user == user;
  return n;
}

/* What waits outside of the scheduler; of all users where `user` is NULL. */
static uint64_t count_others(const qk_setup_t *setup, const qk_sched_user_t *user) {
  return setup ? count_list(&setup->quarantined, user) + count_list(&setup->waiting, user) : 0;
}

uint64_t qk_report_queued(const qk_setup_t *setup) {
  const qk_sched_queue_t *queue = setup->service->sched.queue;
  return (uint64_t)(queue[setup->index].length + queue[qk_setup_contract_queue(setup)].length) +
         count_others(setup, NULL);
}

void qk_report_counters(const qk_service_t *service, Quark__CounterReport *r) {
  const qk_counters_t *c = &service->count;
  r->sessions = (uint64_t)service->sessions.count;
  for (int i = 0; i < service->sessions.count; i++)
    r->requests += (uint64_t)service->sessions.at[i]->njobs;
  r->held = (uint64_t)service->jobs.held;
  r->kept = (uint64_t)service->jobs.kept;
  r->kept_bytes = (uint64_t)service->jobs.kept_bytes;
  r->has_kept = r->has_kept_bytes = r->has_contracted = true;
  r->queued = (uint64_t)service->sched.length;
  for (int m = 0; m < QK_SETUPS_MAX; m++) r->queued += count_others(service->setup[m], NULL);
  r->running = (uint64_t)qk_queue_running(service);
  r->has_bytes_local = r->has_denied = r->has_refused = true;
#define SET(name) r->name = c->name;
  QK_COUNTERS_SINCE(SET)
#undef SET
}

/* ---- setups -------------------------------------------------------------------------------- */

static void fill_progress(const qk_setup_t *setup, Quark__SetupState *r) {
  const qk_engine_info_t *e = qk_setup_info(setup);
  if (setup->successor) r->phase = "earlier requests";
  if (setup->successor || qk_setup_state(setup) != QK_SUPERVISOR_LOADING) return;
  r->phase = (char *)e->phase;
  r->has_done = r->has_total = true;
  r->done = e->done;
  r->total = e->total;
}

void qk_report_setup(const qk_setup_t *setup, Quark__SetupState *r) {
  const qk_service_t *service = setup->service;
  const qk_engine_info_t *e = qk_setup_info(setup);
  const qk_setup_t *current = qk_setup_current(setup);
  quark__setup_state__init(r);
  r->name = (char *)current->name;
  r->state = state_of(setup);
  r->is_default = setup == service->primary;
  r->gauge = (char *)current->settings.gauge;
  if (current->owner[0]) r->owner = (char *)current->owner_shown;
  r->kappa = qk_values_kappa(&current->settings.op);
  r->csw = qk_operator_csw(&current->settings.op);
  r->n_boundary = 8;
  r->boundary = (double *)current->settings.boundary;
  r->action = (char *)current->shown.action;
  r->n_parameter = current->shown.n_parameter;
  r->parameter = (Quark__Setting **)current->shown.parameter;
  r->solver = (char *)qk_setup_solver(current);
  r->has_checksum_ignored = r->checksum_ignored = current->settings.ignore_checksum;
  r->slots_busy = (uint32_t)qk_setup_busy(setup);
  r->queued = qk_report_queued(setup);
  r->open = (uint64_t)setup->open;
  r->restarts = (uint32_t)qk_setup_restarts(setup);
  r->idle = setup->open > 0 ? 0 : qk_service_now(service) - setup->used_at;
  r->has_status = current->failed != QK_OK;
  r->status = (uint32_t)current->failed;
  if (current->text[0]) r->text = (char *)current->text;
  fill_progress(setup, r);
  if (setup->successor || !e->loaded) return;
  r->n_dims = 4;
  r->dims = (uint32_t *)e->shape.dims;
  r->has_site_reals = r->has_columns = true;
  r->site_reals = e->shape.site_reals;
  r->columns = e->shape.columns;
  r->has_digest = r->has_plaquette = r->has_slots = true;
  r->digest = e->digest;
  r->plaquette = e->plaquette;
  r->slots = (uint32_t)qk_setup_slots(setup);
  r->has_device_bytes = qk_setup_state(setup) == QK_SUPERVISOR_READY;
  r->device_bytes = e->device_bytes;
  r->deflation = e->deflation;
  if (!e->multigrid) return;
  r->origin = e->multigrid->origin;
  r->origin_trouble = e->multigrid->origin_trouble;
}

static void fill_states(const qk_service_t *service, const qk_viewer_t *viewer, qk_report_t *r) {
  r->status.setups = r->setup_list;
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    if (!setup || (setup->failed != QK_OK && setup->ending)) continue;
    if (!qk_setups_sees(viewer, setup)) continue;
    Quark__SetupState *state = &r->setup_state[r->status.n_setups];
    qk_report_setup(setup, state);
    r->setup_list[r->status.n_setups++] = state;
  }
}

/* ---- what goes on --------------------------------------------------------------------------- */

/* A name that a peer gave, in the report's keeping. */
static char *keep_name(qk_report_t *r, const char *name) {
  char *kept = r->name[r->names++];
  snprintf(kept, sizeof r->name[0], "%s", name);
  qk_utf8_clean(kept);
  return kept;
}

static void add_slot(const qk_replica_t *replica, int k, const qk_viewer_t *viewer,
                     qk_report_t *r) {
  const qk_setup_t *setup = replica->setup;
  const qk_rhs_t *rhs = replica->inflight[k].rhs;
  const size_t n = r->activity.n_slot;
  if (!rhs || n == QK_SLOTS_SHOWN) return;
  Quark__SlotReport *s = &r->slot[n];
  quark__slot_report__init(s);
  s->has_slot = k < QK_INFLIGHT_MAX;
  s->slot = (uint32_t)(s->has_slot ? replica->number * QK_INFLIGHT_MAX + k : k);
  s->job = rhs->job->name;
  s->user = keep_name(r, qk_sched_user_name(rhs->job->user));
  s->rhs = rhs->index;
  s->iterations = rhs->iterations;
  s->residual = rhs->residual;
  if (qk_setups_sees(viewer, setup)) s->setup = (char *)setup->name;
  s->tol = qk_job_solves(rhs->job) ? rhs->job->tol : 0;
  s->seconds = qk_service_now(setup->service) - rhs->started_at;
  s->has_flavour =
      !qk_job_is_beside(rhs->job) && qk_values_action(&setup->settings.op)->has_flavours;
  s->flavour = rhs->job->flavour;
  s->has_work = s->has_slot && !qk_job_solves(rhs->job);
  s->work = rhs->job->work;
  r->curve[n] = s->has_slot ? &replica->curve[k] : NULL;
  r->slot_list[r->activity.n_slot++] = s;
}

static void fill_slots(const qk_service_t *service, const qk_viewer_t *viewer, qk_report_t *r) {
  r->activity.slot = r->slot_list;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m]) QK_EACH_REPLICA(replica, service->setup[m])
  for (int k = 0; k < QK_ENTRIES; k++) add_slot(replica, k, viewer, r);
}

typedef struct user_count {
  const qk_sched_user_t *user;
  int64_t queued;
  uint32_t running;
} user_count_t;

static uint32_t count_running(const qk_replica_t *replica, const qk_sched_user_t *user) {
  uint32_t n = 0;
  for (int k = 0; k < QK_ENTRIES; k++)
    n += replica->inflight[k].rhs && replica->inflight[k].rhs->job->user == user;
  return n;
}

static user_count_t count_user(const qk_service_t *service, const qk_sched_user_t *user) {
  user_count_t c = {.user = user, .queued = qk_sched_user_queued(user)};
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    const qk_setup_t *setup = service->setup[m];
    c.queued += (int64_t)count_others(setup, user);
    if (setup) QK_EACH_REPLICA(r, setup) c.running += count_running(r, user);
  }
  return c;
}

static int busier_first(const void *a, const void *b) {
  const user_count_t *x = a, *y = b;
  const double more = qk_sched_user_given(y->user) - qk_sched_user_given(x->user);
  if (x->running != y->running) return x->running < y->running ? 1 : -1;
  if (x->queued != y->queued) return x->queued < y->queued ? 1 : -1;
  return (more > 0) - (more < 0);
}

static void fill_users(const qk_service_t *service, qk_report_t *r) {
  size_t n = 0, i = 0;
  r->activity.user = r->user_list;
  for (const qk_sched_user_t *u = NULL; (u = qk_sched_user_after(&service->sched, u));) n++;
  user_count_t *count = qk_calloc(n ? n : 1, sizeof *count);
  r->activity.users_left_out = (uint32_t)n;
  r->activity.has_users_left_out = true;
  if (!count) return;
  for (const qk_sched_user_t *u = NULL; (u = qk_sched_user_after(&service->sched, u));)
    count[i++] = count_user(service, u);
  qsort(count, n, sizeof *count, busier_first);
  for (i = 0; i < n && i < QK_USERS_SHOWN; i++) {
    Quark__UserReport *u = &r->user[i];
    quark__user_report__init(u);
    u->name = keep_name(r, qk_sched_user_name(count[i].user));
    u->queued = (uint64_t)count[i].queued;
    u->running = count[i].running;
    u->work = qk_sched_user_given(count[i].user);
    u->memory = (uint64_t)qk_sched_user_memory((qk_sched_user_t *)count[i].user)->used;
    r->user_list[r->activity.n_user++] = u;
    r->activity.users_left_out--;
  }
  qk_free(count);
}

/* ---- the whole ------------------------------------------------------------------------------ */

void qk_report_make(const qk_setup_t *setup, const qk_viewer_t *viewer, bool activity,
                    qk_report_t *r) {
  const qk_service_t *service = setup->service;
  Quark__StatusReport *status = &r->status;
  quark__status_report__init(status);
  quark__setup_report__init(&r->setup);
  quark__engine_report__init(&r->engine);
  quark__counter_report__init(&r->counters);
  quark__activity_report__init(&r->activity);
  quark__occupancy_report__init(&r->occupancy);
  r->names = 0;
  fill_setup(setup, r);
  fill_engine(setup, &r->engine);
  fill_replicas(setup, r);
  qk_report_counters(service, &r->counters);
  status->state = state_of(setup);
  status->version = (char *)qk_version();
  status->pid = (uint64_t)getpid();
  status->uptime = qk_service_now(service) - service->started;
  status->has_walltime_left = isfinite(qk_service_left(service));
  status->walltime_left = fmax(0, qk_service_left(service));
  if (qk_setup_state(setup) == QK_SUPERVISOR_LOADING) {
    const qk_engine_info_t *e = qk_setup_info(setup);
    status->phase = (char *)e->phase;
    status->has_done = status->has_total = true;
    status->done = e->done;
    status->total = e->total;
  }
  status->setup = &r->setup;
  status->engine = &r->engine;
  status->counters = &r->counters;
  status->memory_used = (uint64_t)service->budget.used;
  status->memory_limit = (uint64_t)service->budget.limit;
  status->memory_by = (char *)service->memory_by;
  status->has_eigen_used = status->has_eigen_limit = true;
  status->eigen_used = (uint64_t)qk_eigen_memory(service);
  status->eigen_limit = (uint64_t)service->eigen_limit;
  const qk_occupancy_t sum = qk_setup_occupancy(setup), *o = &sum;
  r->occupancy.saturated = o->saturated;
  r->occupancy.solving = o->solving;
  r->occupancy.moving = o->moving;
  r->occupancy.idle = o->idle;
  status->occupancy = &r->occupancy;
  status->set_aside = (char *)qk_aside_text((qk_aside_t *)&service->aside);
  status->trouble = (char *)qk_upload_trouble(service);
  fill_states(service, viewer, r);
  if (!activity) return;
  fill_slots(service, viewer, r);
  fill_users(service, r);
  status->activity = &r->activity;
}
