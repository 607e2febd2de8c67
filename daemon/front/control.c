#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/server.h"
#include "proto/control.h"

/* Text of a peer, for the log. */
static void printable(const char *text, char *out, size_t size) {
  size_t i = 0;
  for (; text && text[i] && i + 1 < size; i++)
    out[i] = text[i] > ' ' && text[i] < 127 ? text[i] : '?';
  out[i] = '\0';
}

/* ---- session ------------------------------------------------------------------------------- */

static qk_status_t check_hello(const Quark__Hello *hello, qk_err_t *err) {
  if (hello->version != QK_PROTOCOL_VERSION)
    return qk_fail(err, QK_UNSUPPORTED, "protocol version %u: this server speaks %u",
                   hello->version, QK_PROTOCOL_VERSION);
  if (hello->client_id.len != QK_CLIENT_ID)
    return qk_fail(err, QK_BAD_PROTOCOL, "client_id of %zu bytes: it has %d", hello->client_id.len,
                   QK_CLIENT_ID);
  if (hello->user && strlen(hello->user) > QK_USER_MAX)
    return qk_fail(err, QK_TOO_LARGE, "user of %zu bytes: the limit is %d", strlen(hello->user),
                   QK_USER_MAX);
  if (hello->program && strlen(hello->program) > QK_PROGRAM_MAX)
    return qk_fail(err, QK_TOO_LARGE, "program of %zu bytes: the limit is %d",
                   strlen(hello->program), QK_PROGRAM_MAX);
  return QK_OK;
}

static void on_hello(qk_server_t *server, const qk_peer_t *peer, qk_session_t *mine,
                     const Quark__Hello *hello) {
  qk_err_t err = {0};
  char user[QK_USER_MAX + 1], program[QK_PROGRAM_MAX + 1];
  qk_session_t *session = NULL;
  bool resumed = true;
  if (check_hello(hello, &err) == QK_OK) {
    session = qk_session_by_id(&server->sessions, hello->client_id.data);
    if (mine && mine != session)
      qk_server_doom(server, mine, QK_BAD_PROTOCOL, "HELLO of another client on this connection");
    if (!session) {
      resumed = false;
      qk_session_create(&server->sessions, &server->sched, hello->client_id.data,
                        hello->user ? hello->user : "", qk_server_now(server), &session, &err);
    }
  }
  if (!session) {
    server->count.dropped++;
    qk_reply_error(server, peer, err.code, err.text, true, 0);
    return;
  }
  session->control = *peer;
  session->seen = qk_server_now(server);
  printable(hello->user, user, sizeof user);
  printable(hello->program, program, sizeof program);
  qk_log(QK_LOG_INFO, "session", session->name, "%s: user %s, program %s",
         resumed ? "resumed" : "opened", user, program);
  qk_reply_welcome(server, session, resumed);
}

/* ---- requests ------------------------------------------------------------------------------ */

static void repeat_results(qk_server_t *server, qk_session_t *session, const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs && !session->doomed; i++)
    if (job->rhs[i].state == QK_RHS_ENDED) qk_reply_result(server, session, &job->rhs[i]);
}

static qk_status_t admit(qk_server_t *server, qk_session_t *session, const Quark__Submit *submit,
                         qk_job_t **job, qk_err_t *err) {
  const uint32_t *dims = qk_worker_info(server->worker)->dims;
  if (submit->request > 0 && submit->request <= session->newest)
    return qk_fail(err, QK_EXPIRED, "request %llu is over; %llu was accepted last",
                   (unsigned long long)submit->request, (unsigned long long)session->newest);
  if (server->draining || server->stopping)
    return qk_fail(err, QK_SHUTTING_DOWN, "the daemon takes no new work");
  if (qk_worker_state(server->worker) != QK_WORKER_READY)
    return qk_fail(err, QK_NOT_READY, "no setup is loaded yet");
  qk_status_t s = qk_job_check(submit, dims, err);
  if (s != QK_OK) return s;
  if (session->njobs == QK_CLIENT_REQUESTS_MAX)
    return qk_fail(err, QK_BUSY, "all %d requests of this client are in use",
                   QK_CLIENT_REQUESTS_MAX);
  int64_t cost = qk_job_cost(submit, dims), room = qk_shm_free_bytes();
  if (cost <= server->budget.limit && cost > room)
    return qk_fail(err, QK_BUSY, "request of %lld bytes: /dev/shm has %lld", (long long)cost,
                   (long long)room);
  return qk_job_create(submit, dims, server->settings->kappa, qk_server_now(server),
                       &server->budget, job, err);
}

static void on_submit(qk_server_t *server, qk_session_t *session, const Quark__Submit *submit) {
  qk_err_t err = {0};
  qk_job_t *job = qk_session_job(session, submit->request);
  if (job && job->digest != qk_job_digest(submit)) {
    job = NULL;
    qk_fail(&err, QK_BAD_ARGUMENT, "request %llu is there with other parameters",
            (unsigned long long)submit->request);
  } else if (job) {
    qk_reply_accepted(server, session, job, true);
    repeat_results(server, session, job);
    return;
  } else {
    admit(server, session, submit, &job, &err);
  }
  if (!job) {
    server->count.rejected++;
    qk_log(QK_LOG_INFO, "session", session->name, "request %llu rejected: %s: %s",
           (unsigned long long)submit->request, qk_status_name(err.code), err.text);
    qk_reply_rejected(server, &session->control, submit->request, &err);
    return;
  }
  server->count.accepted++;
  session->newest = job->request;
  session->njobs++;
  job->session = session;
  qk_list_append(&session->jobs, &job->link);
  snprintf(job->name, sizeof job->name, "%s/%llu", session->name, (unsigned long long)job->request);
  qk_log(QK_LOG_INFO, "job", job->name, "accepted: %u right-hand sides, tol %g", job->nrhs,
         job->tol);
  qk_reply_accepted(server, session, job, false);
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (job->rhs[i].state == QK_RHS_QUEUED) qk_dispatch_queue(server, &job->rhs[i]);
}

static void complain(qk_server_t *server, const qk_session_t *session, uint64_t request,
                     const qk_err_t *err) {
  qk_reply_error(server, &session->control, err->code, err->text, false, request);
}

/* The job of a message about a request; NULL where it is over (nothing to do) or was never
 * there (told). */
static qk_job_t *find_job(qk_server_t *server, qk_session_t *session, uint64_t request) {
  qk_job_t *job = qk_session_job(session, request);
  if (!job && (request == 0 || request > session->newest)) {
    qk_err_t err = {0};
    qk_fail(&err, QK_NOT_FOUND, "request %llu was not accepted", (unsigned long long)request);
    complain(server, session, request, &err);
  }
  return job;
}

static qk_status_t check_index(const qk_job_t *job, uint32_t rhs, qk_err_t *err) {
  if (rhs < job->nrhs) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "rhs = %u of a request of %u", rhs, job->nrhs);
}

static void on_grant(qk_server_t *server, qk_session_t *session, const Quark__Grant *grant) {
  qk_err_t err = {0};
  qk_job_t *job = find_job(server, session, grant->request);
  if (!job) return;
  if (check_index(job, grant->rhs, &err) == QK_OK) {
    qk_rhs_t *rhs = &job->rhs[grant->rhs];
    if (rhs->state == QK_RHS_ACKED) return;
    qk_rhs_grant(rhs, grant->until, grant->has_from ? &grant->from : NULL, &err);
    if (err.code == QK_OK && rhs->state == QK_RHS_ENDED && rhs->outcome.written && !rhs->solution)
      qk_fail(&err, QK_EXPIRED, "rhs %u: the solution was kept for %.0f s", grant->rhs,
              server->settings->keep);
    if (err.code == QK_OK) qk_data_offer(server, rhs);
  }
  if (err.code != QK_OK) complain(server, session, grant->request, &err);
}

static void on_ack(qk_server_t *server, qk_session_t *session, const Quark__Ack *ack) {
  qk_err_t err = {0};
  qk_job_t *job = find_job(server, session, ack->request);
  if (!job) return;
  for (size_t i = 0; i < ack->n_rhs; i++) {
    if (check_index(job, ack->rhs[i], &err) != QK_OK) break;
    qk_rhs_t *rhs = &job->rhs[ack->rhs[i]];
    if (rhs->state == QK_RHS_ENDED)
      qk_rhs_ack(rhs);
    else if (rhs->state != QK_RHS_ACKED)
      qk_fail(&err, QK_BAD_ARGUMENT, "rhs %u has not ended", ack->rhs[i]);
  }
  for (uint32_t i = 0; i < job->nrhs && ack->n_rhs == 0; i++)
    if (job->rhs[i].state == QK_RHS_ENDED) qk_rhs_ack(&job->rhs[i]);
  if (err.code != QK_OK) complain(server, session, ack->request, &err);
  if (job->acked == job->nrhs) {
    qk_log(QK_LOG_INFO, "job", job->name, "over");
    qk_dispatch_forget(server, job);
  }
}

static void on_cancel(qk_server_t *server, qk_session_t *session, const Quark__Cancel *cancel) {
  qk_err_t err = {0};
  qk_job_t *job = find_job(server, session, cancel->request);
  if (!job) return;
  for (size_t i = 0; i < cancel->n_rhs; i++) {
    if (check_index(job, cancel->rhs[i], &err) != QK_OK) {
      complain(server, session, cancel->request, &err);
      return;
    }
    qk_dispatch_cancel(server, &job->rhs[cancel->rhs[i]], QK_CANCELLED, "");
  }
  for (uint32_t i = 0; i < job->nrhs && cancel->n_rhs == 0; i++)
    qk_dispatch_cancel(server, &job->rhs[i], QK_CANCELLED, "");
}

static void on_shutdown(qk_server_t *server, const qk_peer_t *peer,
                        const Quark__Shutdown *shutdown) {
  qk_info("server", "a client asks to shut down%s", shutdown->now ? " now" : "");
  qk_reply_shutdown(server, peer, shutdown->now);
  if (shutdown->now)
    qk_server_stop(server, 0);
  else if (!server->draining)
    qk_server_drain(server);
}

/* ---- socket -------------------------------------------------------------------------------- */

static void on_session_message(qk_server_t *server, qk_session_t *session,
                               const Quark__ClientMessage *m) {
  switch (m->body_case) {
  case QUARK__CLIENT_MESSAGE__BODY_SUBMIT:
    on_submit(server, session, m->submit);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_GRANT:
    on_grant(server, session, m->grant);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_ACK:
    on_ack(server, session, m->ack);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_CANCEL:
    on_cancel(server, session, m->cancel);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_PING:
    qk_reply_pong(server, &session->control);
    break;
  case QUARK__CLIENT_MESSAGE__BODY_GOODBYE:
    qk_log(QK_LOG_INFO, "session", session->name, "closed by the client");
    session->doomed = true;
    break;
  default:
    break; /* HELLO, STATUS, SHUTDOWN do not come here */
  }
}

static void handle(qk_server_t *server, const qk_peer_t *peer, const void *data, size_t bytes) {
  qk_session_t *session = qk_session_by_control(&server->sessions, peer);
  Quark__ClientMessage *m = qk_control_unpack_client(data, bytes);
  if (session) session->seen = qk_server_now(server);
  if (!m) {
    const char *text = "control message that cannot be read";
    if (session) {
      qk_server_doom(server, session, QK_BAD_PROTOCOL, text);
    } else {
      server->count.dropped++;
      qk_reply_error(server, peer, QK_BAD_PROTOCOL, text, true, 0);
    }
    return;
  }
  if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_HELLO)
    on_hello(server, peer, session, m->hello);
  else if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_STATUS)
    qk_report_send(server, peer);
  else if (m->body_case == QUARK__CLIENT_MESSAGE__BODY_SHUTDOWN)
    on_shutdown(server, peer, m->shutdown);
  else if (session)
    on_session_message(server, session, m);
  else
    qk_reply_error(server, peer, QK_NOT_FOUND, "no session on this connection: say HELLO", true, 0);
  quark__client_message__free_unpacked(m, NULL);
}

void qk_control_readable(void *arg) {
  qk_server_t *server = arg;
  for (int i = 0; i < QK_MESSAGES_A_TURN; i++) {
    qk_peer_t peer;
    zmq_msg_t msg;
    bool whole;
    zmq_msg_init(&msg);
    if (!qk_server_receive(server->control, &peer, &msg, &whole)) return;
    handle(server, &peer, zmq_msg_data(&msg), whole ? zmq_msg_size(&msg) : 0);
    zmq_msg_close(&msg);
  }
}
