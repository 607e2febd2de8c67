#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/fault.h"
#include "daemon/base/version.h"
#include "daemon/front/local.h"
#include "daemon/front/server.h"
#include "proto/control.h"

enum { RETRY_BUSY_MS = 1000, RETRY_NOT_READY_MS = 1000 };

static qk_sent_t send_bytes(qk_server_t *server, const qk_peer_t *peer, const uint8_t *data,
                            size_t bytes) {
  if (zmq_send(server->control, peer->id, peer->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
      zmq_send(server->control, data, bytes, ZMQ_DONTWAIT) >= 0)
    return QK_SENT;
  return zmq_errno() == EAGAIN ? QK_SENT_FULL : QK_SENT_GONE;
}

/* Whether the message could say more than the journal holds. While that cannot be written, those wait whose earlier messages do. */
static bool must_wait(const qk_server_t *server, const qk_peer_t *peer) {
  if (qk_journal_clean(server->journal)) return false;
  return !qk_journal_trouble(server->journal) || qk_outbox_has(&server->outbox, peer);
}

qk_sent_t qk_reply_send(qk_server_t *server, const qk_peer_t *peer, Quark__ServerMessage *message) {
  if (peer->bytes == 0 || qk_fault(QK_FAULT_SEND)) return QK_SENT_GONE;
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (!data) return QK_SENT_FULL;
  qk_sent_t sent;
  if (must_wait(server, peer))
    sent = qk_outbox_add(&server->outbox, peer, data, bytes) ? QK_SENT : QK_SENT_FULL;
  else
    sent = send_bytes(server, peer, data, bytes);
  free(data);
  return sent;
}

static void deliver(void *arg, const qk_peer_t *peer, const uint8_t *data, size_t bytes) {
  qk_server_t *server = arg;
  qk_session_t *session;
  if (send_bytes(server, peer, data, bytes) == QK_SENT_FULL &&
      (session = qk_session_by_control(&server->sessions, peer)) != NULL)
    qk_server_doom(server, session, QK_BAD_PROTOCOL, "the client does not read its messages");
}

bool qk_reply_waiting(qk_server_t *server) {
  qk_err_t err = {0};
  if (qk_journal_commit(server->journal, qk_server_now(server), &err) != QK_OK) return false;
  qk_outbox_flush(&server->outbox, deliver, server);
  return true;
}

void qk_reply_error(qk_server_t *server, const qk_peer_t *peer, qk_status_t status,
                    const char *text, bool fatal, uint64_t request) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Error error = QUARK__ERROR__INIT;
  error.status = (uint32_t)status;
  error.text = (char *)text;
  error.fatal = fatal;
  error.has_request = request > 0;
  error.request = request;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ERROR;
  m.error = &error;
  qk_reply_send(server, peer, &m);
}

void qk_reply_welcome(qk_server_t *server, const qk_session_t *session, bool resumed) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Welcome welcome = QUARK__WELCOME__INIT;
  char name[64] = "quarkd ";
  strncat(name, qk_version(), sizeof name - strlen(name) - 1);
  welcome.version = QK_PROTOCOL_VERSION;
  welcome.server = name;
  welcome.token.data = (uint8_t *)session->token;
  welcome.token.len = sizeof session->token;
  welcome.data_endpoint = server->data_endpoint;
  welcome.lease_ms = (uint32_t)(session->lease * 1e3);
  welcome.max_chunk = QK_CHUNK_MAX;
  welcome.max_rhs = QK_REQUEST_RHS_MAX;
  welcome.resumed = resumed;
  welcome.local_path = (char *)qk_local_path(server->local);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_WELCOME;
  m.welcome = &welcome;
  qk_reply_send(server, &session->control, &m);
}

static void set_accepted(Quark__Accepted *accepted, const qk_job_t *job, bool repeated) {
  quark__accepted__init(accepted);
  accepted->request = job->request;
  accepted->field_bytes = job->field_bytes;
  accepted->upload_next = job->upload_next;
  accepted->upload_until = job->upload_until;
  accepted->repeated_submit = repeated;
}

bool qk_reply_attached(qk_server_t *server, qk_session_t *session, const qk_job_t *job) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Attached attached = QUARK__ATTACHED__INIT;
  Quark__Accepted accepted;
  set_accepted(&accepted, job, true);
  attached.accepted = &accepted;
  if (job->contraction)
    attached.contract = quark__contract__unpack(NULL, job->message_bytes, job->message);
  else
    attached.submit = quark__submit__unpack(NULL, job->message_bytes, job->message);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ATTACHED;
  m.attached = &attached;
  const bool said = (attached.contract || attached.submit) &&
                    qk_reply_send(server, &session->control, &m) == QK_SENT;
  if (attached.contract) quark__contract__free_unpacked(attached.contract, NULL);
  if (attached.submit) quark__submit__free_unpacked(attached.submit, NULL);
  return said;
}

void qk_reply_accepted(qk_server_t *server, qk_session_t *session, const qk_job_t *job,
                       bool repeated) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Accepted accepted;
  set_accepted(&accepted, job, repeated);
  m.body_case = QUARK__SERVER_MESSAGE__BODY_ACCEPTED;
  m.accepted = &accepted;
  qk_reply_send(server, &session->control, &m);
}

void qk_reply_rejected(qk_server_t *server, const qk_peer_t *peer, uint64_t request,
                       const qk_err_t *err) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Rejected rejected = QUARK__REJECTED__INIT;
  rejected.request = request;
  rejected.status = (uint32_t)err->code;
  rejected.text = (char *)err->text;
  rejected.has_retry_after_ms = qk_status_retryable(err->code);
  rejected.retry_after_ms = err->code == QK_NOT_READY ? RETRY_NOT_READY_MS : RETRY_BUSY_MS;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_REJECTED;
  m.rejected = &rejected;
  qk_reply_send(server, peer, &m);
}

void qk_reply_credit(qk_server_t *server, qk_session_t *session, const qk_job_t *job) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Credit credit = QUARK__CREDIT__INIT;
  credit.request = job->request;
  credit.until = job->upload_until;
  credit.has_next = true;
  credit.next = job->upload_next;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_CREDIT;
  m.credit = &credit;
  qk_reply_send(server, &session->control, &m);
}

void qk_reply_progress(qk_server_t *server, qk_session_t *session, const qk_job_t *job) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Progress progress = QUARK__PROGRESS__INIT;
  Quark__RhsProgress running[QK_SEATS_MAX], *list[QK_SEATS_MAX];
  progress.request = job->request;
  progress.ended = job->ended;
  for (uint32_t i = 0; i < job->nrhs; i++) {
    const qk_rhs_t *rhs = &job->rhs[i];
    progress.queued += rhs->state == QK_RHS_QUEUED;
    if (rhs->state != QK_RHS_RUNNING || progress.n_running == QK_SEATS_MAX) continue;
    Quark__RhsProgress *r = &running[progress.n_running];
    quark__rhs_progress__init(r);
    r->rhs = i;
    r->iterations = rhs->iterations;
    r->residual = rhs->residual;
    list[progress.n_running++] = r;
  }
  progress.running = list;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_PROGRESS;
  m.progress = &progress;
  qk_reply_send(server, &session->control, &m);
}

void qk_reply_result(qk_server_t *server, qk_session_t *session, const qk_rhs_t *rhs) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Result result = QUARK__RESULT__INIT;
  const qk_outcome_t *o = &rhs->outcome;
  result.request = rhs->job->request;
  result.rhs = rhs->index;
  result.status = (uint32_t)o->status;
  result.text = o->text[0] ? (char *)o->text : NULL;
  result.true_residual = o->true_residual;
  result.iterations = o->iterations;
  result.applications = o->applications;
  result.seconds = o->seconds;
  result.bytes = qk_rhs_bytes(rhs);
  result.has_norm_b = o->norm_b > 0;
  result.norm_b = o->norm_b;
  result.has_norm_x = o->norm_x > 0;
  result.norm_x = o->norm_x;
  result.has_attempt = rhs->attempt > 0;
  result.attempt = rhs->attempt;
  result.has_queue_seconds = rhs->started_at > 0;
  result.queue_seconds = rhs->started_at - rhs->queue.since;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_RESULT;
  m.result = &result;
  if (qk_reply_send(server, &session->control, &m) == QK_SENT_FULL)
    qk_server_doom(server, session, QK_BAD_PROTOCOL, "the client does not read its messages");
}

void qk_reply_shutdown(qk_server_t *server, const qk_peer_t *peer, bool now) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__ShutdownReply reply = QUARK__SHUTDOWN_REPLY__INIT;
  reply.now = now;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_SHUTDOWN;
  m.shutdown = &reply;
  qk_reply_send(server, peer, &m);
}

void qk_reply_pong(qk_server_t *server, const qk_peer_t *peer) {
  Quark__ServerMessage m = QUARK__SERVER_MESSAGE__INIT;
  Quark__Pong pong = QUARK__PONG__INIT;
  m.body_case = QUARK__SERVER_MESSAGE__BODY_PONG;
  m.pong = &pong;
  qk_reply_send(server, peer, &m);
}
