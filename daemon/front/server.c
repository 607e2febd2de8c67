#include "daemon/front/server.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/engines/checkpoint_path.h"
#include "daemon/front/host/runtime.h"
#include "daemon/front/net/net.h"
#include "daemon/front/restore/restore.h"
#include "daemon/front/service/dispatch.h"
#include "daemon/front/service/engine_events.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/state/spill.h"
#include "daemon/front/view/pages.h"
#include "daemon/front/view/watch.h"

enum { TICK_MS = 100 };
static const double TOGETHER = 2;  /* seconds in which SIGTERMs are one */
static const double PATIENCE = 10; /* seconds */
enum { EXIT_UNAVAILABLE = 69, EXIT_TRY_AGAIN = 75, EXIT_CONFIG = 78 };

static void drain(qk_server_t *server);

/* ---- ticks --------------------------------------------------------------------------------- */

static void tell_systemd(qk_server_t *server, double now) {
  const qk_engine_info_t *e = qk_setup_info(server->service.primary);
  const qk_supervisor_state_t state = qk_setup_state(server->service.primary);
  char status[128];
  if (server->service.draining || server->service.stopping)
    snprintf(status, sizeof status, "draining");
  else if (qk_upload_trouble(&server->service))
    snprintf(status, sizeof status, "%.127s", qk_upload_trouble(&server->service));
  else if (state == QK_SUPERVISOR_READY)
    snprintf(status, sizeof status, "serving %ux%ux%ux%u with %s, %u slots", e->shape.dims[0],
             e->shape.dims[1], e->shape.dims[2], e->shape.dims[3], e->solver,
             (unsigned)qk_setup_slots(server->service.primary));
  else if (state == QK_SUPERVISOR_LOADING && e->total > 0)
    snprintf(status, sizeof status, "%s: %llu of %llu", e->phase, (unsigned long long)e->done,
             (unsigned long long)e->total);
  else
    snprintf(status, sizeof status, "starting an engine");
  qk_notify_tick(&server->notify,
                 server->service.draining || server->service.stopping ? QK_NOTIFY_STOPPING
                 : state == QK_SUPERVISOR_READY                       ? QK_NOTIFY_SERVING
                                                                      : QK_NOTIFY_STARTING,
                 status, now);
}

/* A batch system that had suspended its job may say a little later how long it lasts now. */
static void drain_in_time(qk_server_t *server, double now) {
  qk_err_t err = {0};
  const double before = qk_service_left(&server->service),
               limit = server->service.settings->drain_timeout;
  if (before > limit ||
      (server->service.settings->walltime_file && now < server->service.resumed + PATIENCE))
    return;
  if (qk_limits_walltime(&server->service, &err) != QK_OK) qk_warn("server", "%s", err.text);
  const double left = qk_service_left(&server->service);
  if (left > limit) {
    qk_info("server", "the walltime ends in %.0f s instead of %.0f s", left, before);
    return;
  }
  qk_info("server", "%.0f s of the walltime are left", left);
  drain(server);
}

static void on_tick(uv_timer_t *timer) {
  qk_server_t *server = timer->data;
  double now = qk_service_now(&server->service);
  qk_loop_share(&server->loop);
  qk_setups_tick(&server->service, now);
  tell_systemd(server, now);
  if (server->http) qk_watch_tick(&server->view, now);
  qk_net_tick(&server->net, now);
  if (server->service.stopping) return;
  server->ticked = true;
  qk_upload_tick(&server->service, now);
  qk_spill_tick(server->service.spill);
  qk_journal_tick(server->service.journal, now);
  qk_shm_tick(&server->service.space);
  if (!server->service.draining) drain_in_time(server, now);
  if (!server->service.draining) return;
  const bool finished = qk_sessions_idle(&server->service);
  if (finished && !qk_setups_saving(&server->service)) {
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
  server->ticked =
      server->ticked && !server->service.stopping && qk_sessions_tick(&server->service);
  qk_sessions_sweep(&server->service);
  const bool leaving = qk_queue_end_some(&server->service);
  qk_setups_collect(&server->service);
  if (!server->service.stopping) qk_upload_write(&server->service);
  for (int m = 0; m < QK_SETUPS_MAX && !server->service.stopping; m++)
    if (server->service.setup[m]) qk_dispatch_feed(server->service.setup[m]);
  const bool more = qk_net_turn(&server->net, server->service.stopping);
  return qk_upload_release(&server->service) || more || leaving || server->ticked;
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Refuse new work, finish, leave. Called twice, the second means at once. */
static void drain(qk_server_t *server) {
  if (server->service.draining) {
    qk_server_stop(server, qk_sessions_idle(&server->service) ? 0 : EXIT_TRY_AGAIN);
    return;
  }
  qk_info("server", "draining: no new work is accepted");
  server->service.draining = true;
  server->drain_until =
      qk_service_now(&server->service) +
      fmin(server->service.settings->drain_timeout, qk_service_left(&server->service));
}

/* Leaves because of an error: clients are told this. */
static void fail(qk_server_t *server, int exit_code, qk_status_t status, const char *text) {
  if (server->service.stopping) return;
  server->service.stopping = true;
  server->exit_code = exit_code;
  for (int i = 0; i < server->service.sessions.count; i++) {
    const qk_session_t *session = server->service.sessions.at[i];
    if (server->service.journal && !qk_link_alone(&session->jobs))
      continue; /* the next front goes on */
    server->net.events.error(&server->net, session, status, text, true, 0);
  }
  qk_setups_stop(&server->service);
}

void qk_server_stop(qk_server_t *server, int exit_code) {
  fail(server, exit_code, QK_SHUTTING_DOWN, "the daemon is leaving");
}

static void on_failure(void *arg, int exit_code, qk_status_t status, const char *text) {
  fail(arg, exit_code, status, text);
}

static void on_engines_stopped(void *arg) {
  qk_server_t *server = arg;
  qk_loop_stop(&server->loop);
}

static void on_shutdown(void *arg, bool now) {
  qk_server_t *server = arg;
  if (now)
    qk_server_stop(server, 0);
  else if (!server->service.draining)
    drain(server);
}

static const int SIGNALS[] = {SIGTERM, SIGINT, SIGUSR1, SIGHUP, 0};

/* A batch system signals every process of a job, and the job's script hands on what it got: one
 * order, heard twice. What comes from a terminal is meant each time. */
static bool is_echo(qk_server_t *server, int sig) {
  const double now = qk_service_now(&server->service);
  if (sig == SIGTERM && server->told > 0 && now - server->told < TOGETHER) {
    qk_info("server", "it came within %g s of the last signal: both count as one", TOGETHER);
    return true;
  }
  if (sig == SIGTERM || sig == SIGINT) server->told = now;
  return false;
}

/* A batch system sends SIGUSR1 before the end, perhaps more than once: it never stops a drain. */
static void on_signal(void *arg, int sig) {
  qk_server_t *server = arg;
  qk_info("server", "%s", strsignal(sig));
  if (sig == SIGHUP)
    qk_limits_reread(&server->service);
  else if (!is_echo(server, sig) && (sig != SIGUSR1 || !server->service.draining))
    drain(server);
}

/* ---- the beginning ------------------------------------------------------------------------- */

/* Others find the daemon by these files. */
static qk_status_t announce(qk_server_t *server, qk_err_t *err) {
  const qk_settings_t *s = server->service.settings;
  qk_status_t status = QK_OK;
  qk_runtime_this_host(server->net.endpoint);
  server->announced = true;
  if (s->pidfile) {
    char pid[24];
    snprintf(pid, sizeof pid, "%ld", (long)getpid());
    status = qk_runtime_write_line(s->pidfile, pid, err);
  }
  if (status == QK_OK && s->endpoint_file)
    status = qk_runtime_announce(s->endpoint_file, server->net.endpoint, &server->endpoint_fd, err);
  return status;
}

static qk_status_t open_http(qk_server_t *server, qk_err_t *err) {
  const char *endpoint = server->service.settings->http;
  if (!endpoint) return QK_OK;
  qk_status_t status = qk_http_open(&server->loop, endpoint, server->service.settings->http_names,
                                    qk_pages_show, &server->view, &server->http, err);
  if (status == QK_OK)
    qk_info("server", "metrics over HTTP on %.*s:%d", (int)(strrchr(endpoint, ':') - endpoint),
            endpoint, qk_http_port(server->http));
  return status;
}

static qk_status_t open_loop(qk_server_t *server, qk_err_t *err) {
  qk_status_t s = qk_loop_init(&server->loop, on_turn, server, err);
  if (s != QK_OK) return s;
  server->service.loop = &server->loop;
  uv_timer_init(&server->loop.uv, &server->tick);
  server->tick.data = server;
  uv_timer_start(&server->tick, on_tick, 0, TICK_MS);
  server->service.started = qk_service_now(&server->service);
  server->service.resumed = -PATIENCE;
  s = qk_limits_walltime(&server->service, err);
  if (s != QK_OK) return s;
  return qk_loop_signals(&server->loop, SIGNALS, on_signal, err);
}

static qk_status_t open_all(qk_server_t *server, qk_err_t *err) {
  server->service.budget.what = "max-memory";
  qk_limits_memory(&server->service);
  qk_limits_eigen(&server->service);
  qk_status_t s = qk_runtime_engine_path(server->service.settings->engine, server->program,
                                         sizeof server->program, err);
  if (s == QK_OK) s = open_loop(server, err);
  if (s == QK_OK)
    s = qk_checkpoint_claim(server->service.settings, server->multigrid, &server->multigrid_lock,
                            err);
  if (s == QK_OK) s = qk_setups_open(&server->service, err);
  if (s == QK_OK)
    s = qk_file_io_open(&server->loop, server->service.settings->file_roots, &server->service.files,
                        err);
  if (s == QK_OK) s = qk_restore_open(&server->service, err);
  if (s != QK_OK) return s;
  server->service.space.loop = &server->loop.uv;
  server->zmq = zmq_ctx_new();
  if (!server->zmq) return qk_fail(err, QK_NO_MEMORY, "zmq_ctx_new: %s", zmq_strerror(zmq_errno()));
  if (server->service.settings->data_threads > 0)
    zmq_ctx_set(server->zmq, ZMQ_IO_THREADS, 1 + (int)server->service.settings->data_threads);
  s = qk_adopt_dir(server->service.journal, server->dir, sizeof server->dir, err);
  server->net.zmq = server->zmq;
  server->net.dir = server->dir;
  if (s == QK_OK) s = qk_net_open(&server->net, err);
  if (s == QK_OK) s = announce(server, err);
  if (s == QK_OK) s = open_http(server, err);
  server->service.site = (qk_supervisor_site_t){.loop = &server->loop,
                                                .zmq = server->zmq,
                                                .program = server->program,
                                                .dir = server->dir,
                                                .journal = server->service.journal,
                                                .memory = &server->service.budget};
  if (s == QK_OK) s = qk_journal_start(server->service.journal, &server->loop, err);
  /* last: who cannot serve leaves engines that wait for a front alone */
  return s == QK_OK ? qk_setups_start(&server->service, err) : s;
}

static void close_all(qk_server_t *server) {
  qk_journal_stop(server->service.journal);
  const bool leave =
      server->service.journal && (server->exit_code != 0 || qk_restore_needed(&server->service));
  if (leave)
    qk_info("server", "requests are kept in %s for the next start",
            server->service.settings->state);
  const bool in_order =
      server->service.stopping && (server->exit_code == 0 || server->exit_code == EXIT_TRY_AGAIN);
  if (server->service.journal) qk_restore_seal(&server->service, leave, in_order);
  for (int i = server->service.sessions.count - 1; i >= 0; i--)
    qk_sessions_drop(&server->service, server->service.sessions.at[i]);
  while (qk_queue_end_some(&server->service)) continue;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->service.setup[m]) qk_engine_events_abandon(server->service.setup[m]);
  if (server->service.journal) qk_restore_seal(&server->service, false, true);
  qk_setups_close(&server->service);
  qk_http_close(server->http);
  qk_watch_fini(&server->view);
  qk_net_close(&server->net);
  qk_shm_space_close(&server->service.space);
  qk_spool_stop(server->service.spool);
  qk_spill_stop(server->service.spill);
  if (server->service.loop) qk_loop_fini(&server->loop);
  qk_restore_close(&server->service);
  qk_file_io_close(server->service.files);
  /* who sees the port closed finds all the rest free */
  qk_net_fini(&server->net);
  if (server->zmq) zmq_ctx_term(server->zmq);
  if (server->dir[0]) rmdir(server->dir);
  if (server->multigrid_lock >= 0) close(server->multigrid_lock);
  if (server->service.settings->endpoint_file)
    qk_runtime_withdraw(server->service.settings->endpoint_file, server->endpoint_fd);
  if (server->announced && server->service.settings->pidfile)
    unlink(server->service.settings->pidfile);
}

int qk_server_run(qk_server_t *server, qk_settings_t *settings) {
  qk_err_t err = {0};
  *server = (qk_server_t){.service = {.settings = settings, .lock = -1, .journal_lock = -1},
                          .endpoint_fd = -1,
                          .multigrid_lock = -1};
  server->life = (qk_life_t){server, on_failure, on_engines_stopped};
  server->service.life = &server->life;
  server->view.service = &server->service;
  qk_net_init(&server->net, &server->service);
  server->net.shutdown = on_shutdown;
  server->net.shutdown_arg = server;
  server->service.engine_events = &QK_ENGINE_EVENTS;
  qk_link_init(&server->service.orphans);
  qk_link_init(&server->service.leaving);
  qk_upload_init(&server->service);
  qk_sched_init(&server->service.sched);
  qk_notify_init(&server->notify);
  qk_shm_space_init(&server->service.space, NULL);
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
