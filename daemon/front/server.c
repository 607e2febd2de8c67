#include "daemon/front/server.h"
#include "daemon/front/state/spill.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/net/control.h"
#include "daemon/front/net/data.h"
#include "daemon/front/net/local.h"
#include "daemon/front/net/net.h"
#include "daemon/front/net/reply.h"
#include "daemon/front/net/router.h"
#include "daemon/front/service/dispatch.h"
#include "daemon/front/service/engine_events.h"
#include "daemon/front/service/leave.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/restore.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/view/pages.h"
#include "daemon/front/view/watch.h"

enum { TICK_MS = 100 };
static const double TOGETHER = 2;  /* seconds in which SIGTERMs are one */
static const double PATIENCE = 10; /* seconds */
enum { CONTROL_SNDHWM = 16384 };   /* messages of one peer */
enum { EXIT_UNAVAILABLE = 69, EXIT_TRY_AGAIN = 75, EXIT_CONFIG = 78 };

double qk_server_now(const qk_server_t *server) {
  return qk_loop_seconds(&server->loop);
}

double qk_server_awake(qk_server_t *server) {
  return qk_loop_awake(&server->loop);
}

double qk_server_left(const qk_server_t *server) {
  return server->ends - qk_server_now(server);
}

/* ---- ticks --------------------------------------------------------------------------------- */

static void tell_systemd(qk_server_t *server, double now) {
  const qk_engine_info_t *e = qk_worker_info(server->primary->worker);
  const qk_worker_state_t state = qk_worker_state(server->primary->worker);
  char status[128];
  if (server->draining || server->stopping)
    snprintf(status, sizeof status, "draining");
  else if (qk_journal_trouble(server->journal))
    snprintf(status, sizeof status, "%.127s", qk_journal_trouble(server->journal));
  else if (state == QK_WORKER_READY)
    snprintf(status, sizeof status, "serving %ux%ux%ux%u with %s, %u slots", e->dims[0], e->dims[1],
             e->dims[2], e->dims[3], e->solver, e->slots);
  else if (state == QK_WORKER_LOADING && e->total > 0)
    snprintf(status, sizeof status, "%s: %llu of %llu", e->phase, (unsigned long long)e->done,
             (unsigned long long)e->total);
  else
    snprintf(status, sizeof status, "starting an engine");
  qk_notify_tick(&server->notify,
                 server->draining || server->stopping ? QK_NOTIFY_STOPPING
                 : state == QK_WORKER_READY           ? QK_NOTIFY_SERVING
                                                      : QK_NOTIFY_STARTING,
                 status, now);
}

/* A batch system that had suspended its job may say a little later how long it lasts now. */
static void drain_in_time(qk_server_t *server, double now) {
  qk_err_t err = {0};
  const double before = qk_server_left(server), limit = server->settings->drain_timeout;
  if (before > limit || (server->settings->walltime_file && now < server->resumed + PATIENCE))
    return;
  if (qk_limits_walltime(server, &err) != QK_OK) qk_warn("server", "%s", err.text);
  const double left = qk_server_left(server);
  if (left > limit) {
    qk_info("server", "the walltime ends in %.0f s instead of %.0f s", left, before);
    return;
  }
  qk_info("server", "%.0f s are left of the walltime", left);
  qk_server_drain(server);
}

static void on_tick(uv_timer_t *timer) {
  qk_server_t *server = timer->data;
  double now = qk_server_now(server);
  qk_loop_share(&server->loop);
  qk_setups_tick(server, now);
  tell_systemd(server, now);
  if (server->http) qk_watch_tick(server, now);
  qk_peers_tick(server);
  qk_local_tick(server->local, qk_server_awake(server));
  qk_guests_tick(server->guests, now);
  if (server->stopping) return;
  server->ticked = true;
  qk_journal_watch(server->journal, now);
  qk_upload_tick(server, now);
  qk_spill_tick(server->spill);
  qk_journal_tick(server->journal, now);
  qk_shm_tick(&server->space);
  if (!server->draining) drain_in_time(server, now);
  if (!server->draining) return;
  const bool finished = qk_sessions_idle(server);
  if (finished && !qk_setups_saving(server)) {
    qk_info("server", "all work is finished");
    qk_server_stop(server, 0);
  } else if (now >= server->drain_until) {
    qk_warn("server", "%s in time",
            finished ? "the checkpoint of multigrid is not written" : "work is not finished");
    qk_server_stop(server, finished ? 0 : EXIT_TRY_AGAIN);
  }
}

static bool on_turn(void *arg) {
  qk_server_t *server = arg;
  if (server->ticked && !server->stopping) qk_sessions_tick(server);
  server->ticked = false;
  qk_sessions_reap(server);
  const bool leaving = qk_leave_some(server);
  qk_setups_reap(server);
  for (int m = 0; m < QK_SETUPS_MAX && !server->stopping; m++)
    if (server->mount[m]) qk_dispatch_feed(server->mount[m]);
  qk_reply_waiting(server);
  return (!server->stopping && qk_data_send(server)) || leaving;
}

/* ---- the end ------------------------------------------------------------------------------- */

void qk_server_drain(qk_server_t *server) {
  if (server->draining) {
    qk_server_stop(server, qk_sessions_idle(server) ? 0 : EXIT_TRY_AGAIN);
    return;
  }
  qk_info("server", "draining: no new work is taken");
  server->draining = true;
  server->drain_until =
      qk_server_now(server) + fmin(server->settings->drain_timeout, qk_server_left(server));
}

void qk_server_fail(qk_server_t *server, int exit_code, qk_status_t status, const char *text) {
  if (server->stopping) return;
  server->stopping = true;
  server->exit_code = exit_code;
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_session_t *session = server->sessions.at[i];
    if (server->journal && !qk_link_alone(&session->jobs)) continue; /* the next front goes on */
    qk_reply_error(server, &session->control, status, text, true, 0);
  }
  qk_setups_stop(server);
}

void qk_server_stop(qk_server_t *server, int exit_code) {
  qk_server_fail(server, exit_code, QK_SHUTTING_DOWN, "the daemon is leaving");
}

static const int SIGNALS[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, 0};

/* A batch system signals every process of a job, and the job's script hands on what it got: one
 * order, heard twice. What comes from a terminal is meant each time. */
static bool is_echo(qk_server_t *server, int sig) {
  const double now = qk_server_now(server);
  if (sig == SIGTERM && server->told > 0 && now - server->told < TOGETHER) {
    qk_info("server", "it came within %g s of the last one: both are one", TOGETHER);
    return true;
  }
  if (sig == SIGTERM || sig == SIGINT) server->told = now;
  return false;
}

/* A batch system sends SIGUSR1 ahead of the end, maybe more than once: it never stops what is draining. */
static void on_signal(void *arg, int sig) {
  qk_server_t *server = arg;
  qk_info("server", "%s", strsignal(sig));
  if (sig == SIGHUP)
    qk_limits_reread(server);
  else if (!is_echo(server, sig) && (sig != SIGUSR1 || !server->draining))
    qk_server_drain(server);
}

/* ---- the beginning ------------------------------------------------------------------------- */

static void warn_of_strangers(const qk_server_t *server, const char *endpoint) {
  if (qk_zap_curve(server->zap) || qk_runtime_local(endpoint)) return;
  qk_warn(
      "server",
      "%s can be reached from other machines: whoever reaches it can use and stop this daemon and "
      "read results on "
      "their way; set curve-key and curve-clients, or listen on 127.0.0.1 and let ssh forward it",
      endpoint);
}

static bool caught_up(void *arg) {
  return qk_guests_catch_up(((const qk_server_t *)arg)->guests);
}

static qk_status_t open_endpoints(qk_server_t *server, qk_err_t *err) {
  const qk_settings_t *s = server->settings;
  char control[QK_ENDPOINT_MAX], data[QK_ENDPOINT_MAX], real[QK_ENDPOINT_MAX];
  qk_status_t status = qk_runtime_endpoints(s->listen, s->listen_data, control, data, err);
  if (status == QK_OK)
    status =
        qk_zap_open(&server->loop, server->zmq, s->curve_key, s->curve_clients, &server->zap, err);
  if (status == QK_OK)
    status = qk_router_open(server, QK_CONTROL_MAX, QK_CONTROL_RCVHWM, CONTROL_SNDHWM,
                            &server->control, err);
  if (status == QK_OK)
    status = qk_router_open(server, QK_FRAME_MAX, QK_DATA_HWM, QK_DATA_HWM, &server->data, err);
  if (status == QK_OK) {
    qk_guests_open(server, &server->guests);
    qk_zap_wait_for(server->zap, caught_up, server);
  }
  if (status == QK_OK) status = qk_router_bind(server->control, control, real, sizeof real, err);
  if (status == QK_OK)
    status = qk_router_bind(server->data, data, server->data_endpoint, sizeof server->data_endpoint,
                            err);
  if (status == QK_OK)
    status = qk_loop_attach(&server->loop, &server->control_sock, server->control,
                            qk_control_readable, server, err);
  if (status == QK_OK)
    status = qk_loop_attach(&server->loop, &server->data_sock, server->data, qk_data_readable,
                            server, err);
  if (status != QK_OK) return status;
  warn_of_strangers(server, real);
  warn_of_strangers(server, server->data_endpoint);
  qk_runtime_any_host(server->data_endpoint);
  qk_info("server", "listening on %s, data on %s", real, server->data_endpoint);
  qk_runtime_this_host(real);
  server->announced = true;
  if (s->pidfile) {
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    status = qk_runtime_write_line(s->pidfile, pid, err);
  }
  if (status == QK_OK && s->endpoint_file)
    status = qk_runtime_announce(s->endpoint_file, real, &server->endpoint_fd, err);
  return status;
}

static qk_status_t open_http(qk_server_t *server, qk_err_t *err) {
  const char *endpoint = server->settings->http;
  if (!endpoint) return QK_OK;
  qk_status_t status = qk_http_open(&server->loop, endpoint, server->settings->http_names,
                                    qk_pages_show, server, &server->http, err);
  if (status == QK_OK)
    qk_info("server", "metrics over HTTP on %.*s:%d", (int)(strrchr(endpoint, ':') - endpoint),
            endpoint, qk_http_port(server->http));
  return status;
}

static qk_status_t open_loop(qk_server_t *server, qk_err_t *err) {
  qk_status_t s = qk_loop_init(&server->loop, on_turn, server, err);
  if (s != QK_OK) return s;
  server->loop_ready = true;
  uv_timer_init(&server->loop.uv, &server->tick);
  uv_timer_init(&server->loop.uv, &server->retry);
  server->tick.data = server->retry.data = server;
  uv_timer_start(&server->tick, on_tick, 0, TICK_MS);
  server->started = qk_server_now(server);
  server->resumed = -PATIENCE;
  s = qk_limits_walltime(server, err);
  if (s != QK_OK) return s;
  return qk_loop_signals(&server->loop, SIGNALS, on_signal, err);
}

static qk_status_t open_all(qk_server_t *server, qk_err_t *err) {
  server->budget.what = "max-memory";
  qk_limits_memory(server);
  qk_status_t s = qk_runtime_engine_path(server->settings->engine, server->program,
                                         sizeof server->program, err);
  if (s == QK_OK) s = open_loop(server, err);
  if (s == QK_OK) s = qk_setups_open(server, err);
  if (s == QK_OK)
    s = qk_files_open(&server->loop, server->settings->file_roots, &server->files, err);
  if (s == QK_OK) s = qk_restore_open(server, err);
  if (s != QK_OK) return s;
  server->space.loop = &server->loop.uv;
  server->zmq = zmq_ctx_new();
  if (!server->zmq) return qk_fail(err, QK_NO_MEMORY, "zmq_ctx_new: %s", zmq_strerror(zmq_errno()));
  s = qk_legacy_dir(server->journal, server->dir, sizeof server->dir, err);
  if (s == QK_OK) s = open_endpoints(server, err);
  if (s == QK_OK && server->settings->local == 0) s = qk_local_open(server, &server->local, err);
  if (s == QK_OK) s = open_http(server, err);
  /* last: who cannot serve leaves engines that wait for a front alone */
  return s == QK_OK ? qk_setups_start(server, err) : s;
}

static void close_all(qk_server_t *server) {
  const bool leave = server->journal && (server->exit_code != 0 || qk_restore_needed(server));
  if (leave) qk_info("server", "requests stay in %s for the next start", server->settings->state);
  const bool in_order =
      server->stopping && (server->exit_code == 0 || server->exit_code == EXIT_TRY_AGAIN);
  if (server->journal) qk_restore_seal(server, leave, in_order);
  for (int i = server->sessions.count - 1; i >= 0; i--)
    qk_sessions_drop(server, server->sessions.at[i]);
  while (qk_leave_some(server)) continue;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m]) qk_engine_events_abandon(server->mount[m]);
  if (server->journal) qk_restore_seal(server, false, true);
  qk_outbox_flush(&server->outbox, QK_LETTERS_ALL, NULL, NULL);
  qk_backlog_fini(&server->backlog);
  qk_setups_close(server);
  qk_http_close(server->http);
  qk_watch_fini(server);
  qk_local_close(server->local);
  qk_guests_close(server->guests);
  server->guests = NULL;
  qk_peers_close(server);
  if (server->loop_ready) {
    qk_loop_detach(&server->control_sock, NULL);
    qk_loop_detach(&server->data_sock, NULL);
  }
  qk_zap_close(server->zap);
  qk_shm_space_close(&server->space);
  if (server->loop_ready) qk_loop_fini(&server->loop);
  qk_restore_close(server);
  qk_files_close(server->files);
  /* who sees the port closed finds all the rest free */
  if (server->control) zmq_close(server->control);
  if (server->data) zmq_close(server->data);
  if (server->zmq) zmq_ctx_term(server->zmq);
  if (server->dir[0]) rmdir(server->dir);
  if (server->settings->endpoint_file)
    qk_runtime_withdraw(server->settings->endpoint_file, server->endpoint_fd);
  if (server->announced && server->settings->pidfile) unlink(server->settings->pidfile);
}

int qk_server_run(qk_server_t *server, qk_settings_t *settings) {
  qk_err_t err = {0};
  *server = (qk_server_t){.settings = settings, .lock = -1, .endpoint_fd = -1};
  qk_outbox_init(&server->outbox);
  server->events = qk_net_events(server);
  server->engine_events = &QK_ENGINE_EVENTS;
  qk_link_init(&server->orphans);
  qk_link_init(&server->leaving);
  qk_link_init(&server->downloads);
  qk_sched_init(&server->sched);
  qk_notify_init(&server->notify);
  qk_shm_space_init(&server->space, NULL);
  if (open_all(server, &err) == QK_OK) {
    qk_loop_run(&server->loop);
  } else {
    qk_error("server", "%s", err.text);
    server->exit_code = err.code == QK_BAD_ARGUMENT || err.code == QK_UNSUPPORTED ? EXIT_CONFIG
                        : err.code == QK_NO_MEMORY                                ? EXIT_TRY_AGAIN
                                                   : EXIT_UNAVAILABLE;
  }
  close_all(server);
  return server->exit_code;
}
