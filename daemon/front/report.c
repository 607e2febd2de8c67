#include <unistd.h>

#include "daemon/base/version.h"
#include "daemon/front/server.h"

static Quark__ServerState state_of(const qk_server_t *server) {
  if (server->draining || server->stopping) return QUARK__SERVER_STATE__STATE_DRAINING;
  switch (qk_worker_state(server->worker)) {
  case QK_WORKER_READY:
    return QUARK__SERVER_STATE__STATE_READY;
  case QK_WORKER_LOADING:
    if (!qk_worker_info(server->worker)->loaded) return QUARK__SERVER_STATE__STATE_LOADING;
    break;
  default:
    break;
  }
  return qk_worker_restarts(server->worker) > 0 || qk_worker_info(server->worker)->loaded
             ? QUARK__SERVER_STATE__STATE_RESTARTING
             : QUARK__SERVER_STATE__STATE_STARTING;
}

static void fill_setup(const qk_server_t *server, Quark__SetupReport *r) {
  const qk_settings_t *s = server->settings;
  const qk_engine_info_t *e = qk_worker_info(server->worker);
  r->name = "default";
  r->gauge = (char *)s->gauge;
  r->mass = s->mass;
  r->kappa = s->kappa;
  r->csw = s->csw;
  r->n_boundary = 8;
  r->boundary = (double *)s->boundary;
  r->solver = (char *)(e->loaded ? e->solver : qk_settings_solver(s));
  r->precision = (char *)qk_settings_precision(s);
  r->link_reals = e->loaded ? e->link_reals : (uint32_t)s->link_reals;
  if (!e->loaded) return;
  r->n_dims = 4;
  r->dims = (uint32_t *)e->dims;
  r->format = (char *)e->format;
  r->has_plaquette = r->has_digest = r->has_unitarity = r->has_load_seconds = true;
  r->plaquette = e->plaquette;
  r->digest = e->digest;
  r->unitarity = e->unitarity;
  r->load_seconds = e->load_seconds;
  r->multigrid = e->multigrid;
}

static void fill_engine(const qk_server_t *server, Quark__EngineReport *r) {
  const qk_engine_info_t *e = qk_worker_info(server->worker);
  qk_worker_state_t state = qk_worker_state(server->worker);
  const char *last = qk_worker_last_error(server->worker);
  bool alive = state == QK_WORKER_LOADING || state == QK_WORKER_READY;
  r->restarts = (uint32_t)qk_worker_restarts(server->worker);
  r->last_error = last[0] ? (char *)last : NULL;
  r->has_pid = r->has_ranks = alive;
  r->pid = e->pid;
  r->ranks = e->ranks;
  for (int k = 0; k < QK_SLOTS_MAX; k++) r->slots_busy += server->slot[k].rhs != NULL;
  if (state != QK_WORKER_READY) return;
  r->backend = (char *)e->backend;
  r->device = (char *)e->device;
  r->n_grid = 4;
  r->grid = (uint32_t *)e->grid;
  r->has_slots = r->has_device_bytes = r->has_host_bytes = true;
  r->slots = e->slots;
  r->device_bytes = e->device_bytes;
  r->host_bytes = e->host_bytes;
  r->memory = e->memory;
}

static void count_kept(const qk_job_t *job, Quark__CounterReport *r) {
  const uint64_t n = qk_keep_count(job);
  r->kept += n;
  r->kept_bytes += n * job->field_bytes;
}

void qk_report_counters(const qk_server_t *server, Quark__CounterReport *r) {
  const qk_counters_t *c = &server->count;
  r->sessions = (uint64_t)server->sessions.count;
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_session_t *session = server->sessions.at[i];
    r->requests += (uint64_t)session->njobs;
    for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      r->held += job->ended - job->acked;
      count_kept(job, r);
    }
  }
  for (qk_link_t *l = server->orphans.next; l != &server->orphans; l = l->next)
    count_kept(QK_HOLDER(l, qk_job_t, link), r);
  r->has_kept = r->has_kept_bytes = r->has_contracted = true;
  r->queued = (uint64_t)server->sched.length;
  for (qk_link_t *l = server->suspects.next; l != &server->suspects; l = l->next) r->queued++;
  r->running = (uint64_t)qk_dispatch_running(server);
  r->accepted = c->accepted;
  r->rejected = c->rejected;
  r->converged = c->converged;
  r->failed = c->failed;
  r->cancelled = c->cancelled;
  r->lost = c->lost;
  r->contracted = c->contracted;
  r->iterations = c->iterations;
  r->applications = c->applications;
  r->bytes_in = c->bytes_in;
  r->bytes_out = c->bytes_out;
  r->dropped = c->dropped;
}

void qk_report_send(qk_server_t *server, const qk_peer_t *peer) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__StatusReport report = QUARK__STATUS_REPORT__INIT;
  Quark__SetupReport setup = QUARK__SETUP_REPORT__INIT;
  Quark__EngineReport engine = QUARK__ENGINE_REPORT__INIT;
  Quark__CounterReport counters = QUARK__COUNTER_REPORT__INIT;
  fill_setup(server, &setup);
  fill_engine(server, &engine);
  qk_report_counters(server, &counters);
  report.state = state_of(server);
  report.version = (char *)qk_version();
  report.pid = (uint64_t)getpid();
  report.uptime = qk_server_now(server) - server->started;
  if (qk_worker_state(server->worker) == QK_WORKER_LOADING) {
    const qk_engine_info_t *e = qk_worker_info(server->worker);
    report.phase = (char *)e->phase;
    report.has_done = report.has_total = true;
    report.done = e->done;
    report.total = e->total;
  }
  report.setup = &setup;
  report.engine = &engine;
  report.counters = &counters;
  report.memory_used = (uint64_t)server->budget.used;
  report.memory_limit = (uint64_t)server->budget.limit;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_STATUS;
  m.status = &report;
  qk_reply_send(server, peer, &m);
}
