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
#include "daemon/front/net/reply.h"
#include "daemon/front/service/dispatch.h"
#include "daemon/front/service/filing.h"
#include "daemon/front/service/leave.h"
#include "daemon/front/service/limits.h"
#include "daemon/front/service/restore.h"
#include "daemon/front/service/setups.h"
#include "daemon/front/view/pages.h"
#include "daemon/front/view/watch.h"

enum { TICK_MS = 100, RETRY_MS = 5, LINGER_MS = 500 };
static const double TOGETHER = 2;  /* seconds in which SIGTERMs are one */
static const double PATIENCE = 10; /* seconds */
enum { CONTROL_SNDHWM = 16384 };   /* messages of one peer */
enum { PARTS_AT_A_TIME = 4096 };
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

static void skip_some(void *socket, bool *rest) {
  for (int i = 0; i < PARTS_AT_A_TIME && *rest; i++) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    *rest = zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
}

bool qk_server_receive(qk_server_t *server, qk_door_t door, qk_peer_t *peer, zmq_msg_t *msg,
                       bool *whole) {
  void *socket = door == QK_DOOR_CONTROL ? server->control : server->data;
  bool *rest = &server->rest[door];
  while (*rest && !qk_loop_time_is_up(&server->loop)) skip_some(socket, rest);
  if (*rest || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) return false;
  /* ZMTP allows 255 bytes, libzmq any number: such a peer has no id here, and what it says is
   * junk. */
  const size_t id_bytes = zmq_msg_size(msg);
  peer->bytes = id_bytes <= sizeof peer->id ? (uint8_t)id_bytes : 0;
  peer->ended = false;
  memcpy(peer->id, zmq_msg_data(msg), peer->bytes);
  if (!zmq_msg_more(msg) || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) {
    zmq_msg_close(msg);
    return false;
  }
  *rest = zmq_msg_more(msg);
  *whole = !*rest && peer->bytes > 0;
  skip_some(socket, rest);
  return true;
}

/* What serves nobody's work takes no more than this from engines, which may compute on the same
 * processor, and leaves some of it where none does: clients may share it, too. */
static const double BESIDE_WORK = 0.0625, BESIDE_NONE = 0.5;

bool qk_server_has_enough(qk_server_t *server, bool work) {
  const bool send = !qk_link_alone(&server->downloads) && !server->send_blocked;
  const double share = work ? 1 : qk_dispatch_running(server) > 0 ? BESIDE_WORK : BESIDE_NONE;
  return qk_loop_is_enough(&server->loop, share, send);
}

bool qk_server_who(const qk_server_t *server, zmq_msg_t *msg, qk_peer_t *peer, qk_who_t *who) {
  const bool known = qk_zap_who(server->zap, msg, who);
  peer->connection = who->connection;
  snprintf(peer->key, sizeof peer->key, "%s", who->key ? who->key : "");
  return known;
}

/* ---- sessions ------------------------------------------------------------------------------ */

void qk_server_doom(qk_server_t *server, qk_session_t *session, qk_status_t status,
                    const char *text) {
  if (session->doomed) return;
  qk_log(QK_LOG_WARN, "session", session->name, "dropped: %s", text);
  server->count.dropped++;
  qk_reply_error(server, &session->control, status, text, true, 0);
  session->control.bytes = 0; /* which another session may use before this one is gone */
  session->doomed = true;
}

void qk_server_adopt(qk_session_t *session, qk_job_t *job) {
  if (job->request > session->newest) session->newest = job->request;
  session->njobs++;
  job->session = session;
  qk_list_append(&session->jobs, &job->link);
  snprintf(job->name, sizeof job->name, "%s/%llu", session->name, (unsigned long long)job->request);
}

void qk_server_part(qk_server_t *server, qk_session_t *session) {
  for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
    next = l->next;
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    if (job->detach == 0) qk_leave_behind(server, job);
  }
  qk_leave_some(server);
  session->away = true;
  session->control.bytes = session->data.bytes = 0;
  qk_local_drop(server->local, session->client_id);
  if (qk_link_alone(&session->jobs)) session->doomed = true;
}

static void drop(qk_server_t *server, qk_session_t *session) {
  qk_marks_drop_session(qk_journal_marks(server->journal), session->client_id);
  qk_local_drop(server->local, session->client_id);
  while (!qk_link_alone(&session->jobs))
    qk_leave_behind(server, QK_HOLDER(session->jobs.next, qk_job_t, link));
  qk_session_destroy(&server->sessions, session);
}

static void reap(qk_server_t *server) {
  for (int i = server->sessions.count - 1; i >= 0; i--)
    if (server->sessions.at[i]->doomed) drop(server, server->sessions.at[i]);
}

/* ---- ticks --------------------------------------------------------------------------------- */

/* Nothing that clients could not come for while the front stood still is over the sooner. */
static void be_lenient(qk_server_t *server, double now) {
  const double stood = now - qk_server_awake(server);
  if (stood > server->stood + 1) server->resumed = now;
  if (stood > server->stood)
    server->lenient_until = fmax(now, server->lenient_until) + stood - server->stood;
  server->stood = stood;
}

static void tick_job(qk_server_t *server, qk_session_t *session, qk_job_t *job, double now) {
  if (job->deadline > 0 && now >= job->deadline && job->ended < job->nrhs)
    qk_leave_job(server, job, QK_DEADLINE, "");
  const bool lenient = now < server->lenient_until,
             told = job->sink == QUARK__SINK__SINK_DOWNLOAD && job->acked < job->ended && !lenient;
  for (uint32_t i = 0; i < job->nrhs && told; i++) {
    qk_rhs_t *rhs = &job->rhs[i];
    if ((rhs->solution || rhs->spilled) && rhs->state == QK_RHS_ENDED &&
        now - rhs->ended_at > fmax(job->detach, server->settings->keep))
      qk_rhs_drop_solution(rhs);
  }
  qk_filing_tick(job);
  if (job->progress_due && job->running > 0 && now >= job->progress_at) {
    qk_reply_progress(server, session, job);
    job->progress_due = false;
    job->progress_at = now + QK_PROGRESS_MS * 1e-3;
  }
  if (lenient) return;
  if (session->away && !qk_filing_busy(job) && qk_job_detach_over(job, now)) {
    qk_log(QK_LOG_INFO, "job", job->name, "nobody came for it in %.0f s", job->detach);
    qk_dispatch_forget(server, job);
  } else if (qk_keep_expired(job, now) && qk_keep_count(job) > 0) {
    qk_dispatch_expire(server, job);
  }
}

/* The client may only have been slow, or its messages: it is told what is left, and how to go
 * on. */
static void end_lease(qk_server_t *server, qk_session_t *session, double silent) {
  char text[QK_TEXT_MAX];
  int stay = 0;
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next)
    stay += QK_HOLDER(l, const qk_job_t, link)->detach > 0;
  snprintf(
      text, sizeof text,
      "lease expired: nothing came from this client for %.3g s, and its lease is %.3g s: its "
      "session has ended, %d of its requests with it, and %d go on detached; say HELLO to open "
      "a session again, submit again what has ended, and send a PING every %.3g s",
      silent, session->lease, session->njobs - stay, stay, session->lease / 3);
  qk_log(QK_LOG_INFO, "session", session->name, "%s", text);
  qk_reply_error(server, &session->control, QK_EXPIRED, text, true, 0);
  qk_server_part(server, session);
}

/* After the sockets have been served: who has said something is not silent. */
static void tick_sessions(qk_server_t *server) {
  const double now = qk_server_now(server), awake = qk_server_awake(server);
  be_lenient(server, now);
  for (int i = 0; i < server->sessions.count; i++) {
    qk_session_t *session = server->sessions.at[i];
    if (!session->doomed && !session->away && awake - session->seen > session->lease)
      end_lease(server, session, awake - session->seen);
    for (qk_link_t *l = session->jobs.next, *next; l != &session->jobs; l = next) {
      next = l->next;
      tick_job(server, session, QK_HOLDER(l, qk_job_t, link), now);
    }
    if (session->away && qk_link_alone(&session->jobs)) session->doomed = true;
  }
}

static bool idle(const qk_server_t *server) {
  for (int i = 0; i < server->sessions.count; i++) {
    const qk_session_t *session = server->sessions.at[i];
    for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
      const qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
      if (session->away && server->journal && job->ended == job->nrhs && !qk_filing_busy(job))
        continue;                               /* it stays */
      if (job->acked < job->nrhs) return false; /* the others are there because they are kept */
    }
  }
  return qk_link_alone(&server->orphans);
}

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
  qk_restore_tick(server, now);
  qk_spill_tick(server->spill);
  qk_journal_tick(server->journal, now);
  qk_shm_tick(&server->space);
  if (!server->draining) drain_in_time(server, now);
  if (!server->draining) return;
  const bool finished = idle(server);
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
  if (server->ticked && !server->stopping) tick_sessions(server);
  server->ticked = false;
  reap(server);
  const bool leaving = qk_leave_some(server);
  qk_setups_reap(server);
  for (int m = 0; m < QK_SETUPS_MAX && !server->stopping; m++)
    if (server->mount[m]) qk_dispatch_feed(server->mount[m]);
  qk_reply_waiting(server);
  return (!server->stopping && qk_data_send(server)) || leaving;
}

static void on_retry(uv_timer_t *timer) {
  qk_server_t *server = timer->data;
  server->send_blocked = false;
}

void qk_server_retry_downloads(qk_server_t *server) {
  server->send_blocked = true;
  uv_timer_start(&server->retry, on_retry, RETRY_MS, 0);
}

/* ---- the end ------------------------------------------------------------------------------- */

void qk_server_drain(qk_server_t *server) {
  if (server->draining) {
    qk_server_stop(server, idle(server) ? 0 : EXIT_TRY_AGAIN);
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

/* Peers on ipc are this user and root: by the mode of the file, and by who they are, which abstract names rely on. */
static qk_status_t bind_ipc(void *socket, const char *endpoint, int *failed, qk_err_t *err) {
  const uid_t root = 0, self = geteuid();
  const bool filtered = zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &root, sizeof root) == 0 &&
                        zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &self, sizeof self) == 0;
  if (!filtered && endpoint[6] == '@')
    return qk_fail(err, QK_UNSUPPORTED,
                   "listening on %s: this libzmq cannot tell peers apart: use a path", endpoint);
  const mode_t mask = umask(0177);
  *failed = zmq_bind(socket, endpoint);
  umask(mask);
  return QK_OK;
}

static qk_status_t bind_socket(void *socket, const char *endpoint, char *real, size_t size,
                               qk_err_t *err) {
  int v6 = strchr(endpoint, '[') != NULL, failed = 0;
  zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof v6);
  if (strncmp(endpoint, "ipc://", 6) != 0)
    failed = zmq_bind(socket, endpoint);
  else if (bind_ipc(socket, endpoint, &failed, err) != QK_OK)
    return err->code;
  if (failed) {
    int e = zmq_errno();
    qk_status_t s =
        e == EADDRINUSE || e == EADDRNOTAVAIL || e == ENODEV ? QK_BUSY : QK_BAD_ARGUMENT;
    return qk_fail(err, s, "listening on %s: %s", endpoint, zmq_strerror(e));
  }
  if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, real, &size) != 0)
    return qk_fail(err, QK_INTERNAL, "ZMQ_LAST_ENDPOINT: %s", zmq_strerror(zmq_errno()));
  return QK_OK;
}

static qk_status_t open_router(qk_server_t *server, int64_t max_bytes, int rcvhwm, int sndhwm,
                               void **out, qk_err_t *err) {
  /* TTL above 65 s overflows in 4.3.4 */
  int one = 1, linger = LINGER_MS, ivl = 5000, timeout = 30000, ttl = 60000, greeting = 10000;
  void *s = *out = zmq_socket(server->zmq, ZMQ_ROUTER);
  if (!s) return qk_fail(err, QK_INTERNAL, "zmq_socket: %s", zmq_strerror(zmq_errno()));
  if (qk_zap_curve(server->zap)) max_bytes += QK_CURVE_EXTRA;
  zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes);
  zmq_setsockopt(s, ZMQ_RCVHWM, &rcvhwm, sizeof rcvhwm);
  zmq_setsockopt(s, ZMQ_SNDHWM, &sndhwm, sizeof sndhwm);
  zmq_setsockopt(s, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
  zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(s, ZMQ_HANDSHAKE_IVL, &greeting, sizeof greeting);
  zmq_setsockopt(s, ZMQ_HEARTBEAT_IVL, &ivl, sizeof ivl);
  zmq_setsockopt(s, ZMQ_HEARTBEAT_TIMEOUT, &timeout, sizeof timeout);
  zmq_setsockopt(s, ZMQ_HEARTBEAT_TTL, &ttl, sizeof ttl);
  return qk_zap_guard(server->zap, s, err);
}

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
    status = open_router(server, QK_CONTROL_MAX, QK_CONTROL_RCVHWM, CONTROL_SNDHWM,
                         &server->control, err);
  if (status == QK_OK)
    status = open_router(server, QK_FRAME_MAX, QK_DATA_HWM, QK_DATA_HWM, &server->data, err);
  if (status == QK_OK) {
    qk_guests_open(server, &server->guests);
    qk_zap_wait_for(server->zap, caught_up, server);
  }
  if (status == QK_OK) status = bind_socket(server->control, control, real, sizeof real, err);
  if (status == QK_OK)
    status =
        bind_socket(server->data, data, server->data_endpoint, sizeof server->data_endpoint, err);
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
  for (int i = server->sessions.count - 1; i >= 0; i--) drop(server, server->sessions.at[i]);
  while (qk_leave_some(server)) continue;
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m]) qk_dispatch_abandon(server->mount[m]);
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
