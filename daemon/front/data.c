#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/restore.h"

void qk_data_offer(qk_server_t *server, qk_rhs_t *rhs) {
  const qk_session_t *session = rhs->job->session;
  if (!session || session->data.bytes == 0 || !qk_rhs_sendable(rhs)) return;
  if (qk_link_alone(&rhs->send)) qk_list_append(&server->downloads, &rhs->send);
}

/* ---- out ----------------------------------------------------------------------------------- */

static qk_sent_t send_frame(qk_server_t *server, const qk_peer_t *peer, qk_frame_t *frame,
                            const uint8_t *payload) {
  qk_frame_fault_t fault;
  zmq_msg_t msg;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER + frame->chunk_bytes) != 0) return QK_SENT_FULL;
  uint8_t *bytes = zmq_msg_data(&msg);
  if (frame->chunk_bytes > 0) memcpy(bytes + QK_FRAME_HEADER, payload, frame->chunk_bytes);
  qk_sent_t sent = QK_SENT_GONE;
  if (qk_frame_encode(frame, bytes + QK_FRAME_HEADER, bytes, &fault) == QK_OK) {
    if (zmq_send(server->data, peer->id, peer->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0 &&
        zmq_msg_send(&msg, server->data, ZMQ_DONTWAIT) >= 0)
      return QK_SENT;
    if (zmq_errno() == EAGAIN) sent = QK_SENT_FULL;
  }
  zmq_msg_close(&msg);
  return sent;
}

/* One chunk of rhs. */
static qk_sent_t send_chunk(qk_server_t *server, qk_session_t *session, qk_rhs_t *rhs) {
  qk_frame_t frame;
  const uint8_t *payload;
  if (qk_rhs_next_chunk(rhs, &frame, &payload) != QK_OK) return QK_SENT_FULL;
  qk_sent_t sent = send_frame(server, &session->data, &frame, payload);
  if (sent == QK_SENT) {
    qk_rhs_sent(rhs, frame.chunk_bytes);
    server->count.bytes_out += frame.chunk_bytes;
  }
  return sent;
}

bool qk_data_send(qk_server_t *server) {
  int sent = 0;
  if (server->send_blocked) return false;
  for (int i = 0; i < QK_CHUNKS_A_TURN && !qk_link_alone(&server->downloads); i++) {
    qk_rhs_t *rhs = QK_HOLDER(server->downloads.next, qk_rhs_t, send);
    qk_session_t *session = rhs->job->session;
    if (!session || session->data.bytes == 0 || !qk_rhs_sendable(rhs)) {
      qk_link_remove(&rhs->send);
      continue;
    }
    qk_sent_t result = send_chunk(server, session, rhs);
    if (result == QK_SENT_GONE) session->data.bytes = 0;
    sent += result == QK_SENT;
    qk_list_append(&server->downloads, &rhs->send);
  }
  if (qk_link_alone(&server->downloads)) return false;
  if (sent > 0) return true;
  qk_server_retry_downloads(server);
  return false;
}

/* ---- in ------------------------------------------------------------------------------------ */

static void bind_session(qk_server_t *server, const qk_peer_t *peer, const qk_who_t *who,
                         qk_session_t *bound, const uint8_t *payload) {
  qk_session_t *session = qk_session_by_id(&server->sessions, payload);
  if (!session || !qk_session_is_of(session, who->user) ||
      memcmp(session->token, payload + QK_CLIENT_ID, QK_CLIENT_ID) != 0) {
    server->count.dropped++;
    return;
  }
  if (bound && bound != session) {
    qk_server_doom(server, bound, QK_BAD_PROTOCOL, "BIND of a connection that is bound already");
    return;
  }
  bool moved = session->data.bytes > 0 && !bound;
  session->data = *peer;
  session->seen = qk_server_now(server);
  qk_frame_t frame = {.kind = QK_FRAME_BOUND};
  send_frame(server, peer, &frame, NULL);
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    for (uint32_t i = 0; i < job->nrhs; i++) {
      if (moved) job->rhs[i].granted = job->rhs[i].sent;
      qk_data_offer(server, &job->rhs[i]);
    }
  }
}

void qk_data_arrived(qk_server_t *server, qk_session_t *session, qk_job_t *job, qk_rhs_t *ready,
                     qk_rhs_t *failed, bool tell) {
  if (ready) {
    qk_dispatch_queue(server, ready);
    qk_restore_spool(server, ready);
  }
  if (failed) qk_dispatch_ended(server, failed);
  if (qk_job_raise_credit(job) || tell) qk_reply_credit(server, session, job);
}

static void upload(qk_server_t *server, qk_session_t *session, const qk_frame_t *frame,
                   const uint8_t *payload) {
  qk_err_t err = {0};
  qk_rhs_t *ready, *failed;
  qk_job_t *job = qk_session_job(session, frame->request);
  if (!job) {
    if (frame->request > session->newest)
      qk_server_doom(server, session, QK_BAD_PROTOCOL, "data of a request that was not accepted");
    return;
  }
  qk_status_t s = qk_job_upload(job, frame, payload, qk_server_now(server), &ready, &failed, &err);
  if (s != QK_OK) {
    qk_server_doom(server, session, s, err.text);
    return;
  }
  server->count.bytes_in += frame->chunk_bytes;
  qk_data_arrived(server, session, job, ready, failed, qk_frame_is_last(frame));
}

static void handle(qk_server_t *server, const qk_peer_t *peer, const qk_who_t *who,
                   const void *message, size_t bytes) {
  qk_frame_t frame;
  qk_frame_fault_t fault;
  const uint8_t *payload;
  qk_session_t *session = qk_session_by_data(&server->sessions, peer);
  qk_status_t s = qk_frame_decode(message, bytes, &frame, &payload, &fault);
  if (s == QK_OK && frame.kind == QK_FRAME_BIND) {
    bind_session(server, peer, who, session, payload);
  } else if (!session || !qk_session_is_of(session, who->user)) {
    server->count.dropped++;
  } else if (s != QK_OK) {
    char text[160];
    snprintf(text, sizeof text, "data message: %s = %llu, expected or limit %llu", fault.field,
             (unsigned long long)fault.value, (unsigned long long)fault.limit);
    qk_server_doom(server, session, s, text);
  } else if (frame.kind != QK_FRAME_UPLOAD) {
    qk_server_doom(server, session, QK_BAD_PROTOCOL,
                   "data message of a kind that only servers send");
  } else if (who->role < QK_ROLE_SUBMIT) {
    server->count.denied++;
    qk_reply_error(server, &session->control, QK_DENIED, "an upload needs the role submit", false,
                   frame.request);
  } else {
    session->seen = qk_server_now(server);
    upload(server, session, &frame, payload);
  }
}

void qk_data_readable(void *arg) {
  qk_server_t *server = arg;
  for (int i = 0; i < QK_CHUNKS_A_TURN; i++) {
    qk_peer_t peer;
    zmq_msg_t msg;
    qk_who_t who;
    bool whole;
    zmq_msg_init(&msg);
    if (!qk_server_receive(server->data, &peer, &msg, &whole)) return;
    /* parts beyond the first have been thrown away: an empty message is as wrong */
    if (qk_zap_who(server->zap, &msg, &who))
      handle(server, &peer, &who, zmq_msg_data(&msg), whole ? zmq_msg_size(&msg) : 0);
    else
      server->count.dropped++;
    zmq_msg_close(&msg);
  }
}
