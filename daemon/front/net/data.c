#include "daemon/front/net/data.h"

#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "daemon/base/assert.h"
#include "daemon/base/log.h"
#include "daemon/front/net/net.h"
#include "daemon/front/net/reply.h"
#include "daemon/front/net/router.h"
#include "daemon/front/service/sessions.h"
#include "daemon/front/service/upload.h"

enum { RETRY_MS = 5, CHUNKS_A_TURN = 16 };

void qk_data_offer(qk_net_t *net, qk_rhs_t *rhs) {
  const qk_session_t *session = rhs->job->session;
  if (!session || !qk_peer_reachable(&session->data) || !qk_rhs_sendable(rhs)) return;
  if (qk_link_alone(&rhs->send)) qk_list_append(&net->downloads, &rhs->send);
}

/* ---- out ----------------------------------------------------------------------------------- */

static qk_sent_t send_frame(qk_net_t *net, const qk_peer_t *peer, qk_frame_t *frame,
                            const uint8_t *payload) {
  qk_frame_fault_t fault;
  zmq_msg_t msg;
  qk_sent_t sent = QK_SENT_GONE;
  if (zmq_msg_init_size(&msg, QK_FRAME_HEADER + frame->chunk_bytes) != 0) return QK_SENT_FULL;
  /* first whether the peer takes one, as this is tried every few milliseconds while it does not */
  if (zmq_send(net->data, peer->id, peer->bytes, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    if (zmq_errno() == EAGAIN) sent = QK_SENT_FULL;
  } else {
    uint8_t *bytes = zmq_msg_data(&msg);
    if (frame->chunk_bytes > 0) memcpy(bytes + QK_FRAME_HEADER, payload, frame->chunk_bytes);
    QK_ASSERT(qk_frame_encode(frame, bytes + QK_FRAME_HEADER, bytes, &fault) == QK_OK);
    if (zmq_msg_send(&msg, net->data, ZMQ_DONTWAIT) >= 0) return QK_SENT;
  }
  zmq_msg_close(&msg);
  return sent;
}

/* One chunk of rhs. */
static qk_sent_t send_chunk(qk_net_t *net, qk_session_t *session, qk_rhs_t *rhs) {
  qk_frame_t frame;
  const uint8_t *payload;
  if (qk_rhs_next_chunk(rhs, &frame, &payload) != QK_OK) return QK_SENT_FULL;
  qk_sent_t sent = send_frame(net, &session->data, &frame, payload);
  if (sent == QK_SENT) {
    qk_rhs_sent(rhs, frame.chunk_bytes);
    net->service->count.bytes_out += frame.chunk_bytes;
  }
  return sent;
}

static void on_retry(uv_timer_t *timer) {
  qk_net_t *net = timer->data;
  net->send_blocked = false;
}

/* Downloads pause for a few milliseconds. */
static void retry(qk_net_t *net) {
  net->send_blocked = true;
  uv_timer_start(&net->retry, on_retry, RETRY_MS, 0);
}

bool qk_data_send(qk_net_t *net) {
  int sent = 0;
  if (net->send_blocked) return false;
  for (int i = 0; i < CHUNKS_A_TURN && !qk_link_alone(&net->downloads); i++) {
    if (sent > 0 && qk_loop_time_is_up(net->service->loop)) break;
    qk_rhs_t *rhs = QK_HOLDER(net->downloads.next, qk_rhs_t, send);
    qk_session_t *session = rhs->job->session;
    if (!session || !qk_peer_reachable(&session->data) || !qk_rhs_sendable(rhs)) {
      qk_link_remove(&rhs->send);
      continue;
    }
    qk_sent_t result = qk_marks_lack_rhs(rhs) ? QK_SENT_FULL : send_chunk(net, session, rhs);
    if (result == QK_SENT_GONE) session->data.ended = true;
    sent += result == QK_SENT;
    qk_list_append(&net->downloads, &rhs->send);
  }
  if (qk_link_alone(&net->downloads)) return false;
  if (sent > 0) return true;
  retry(net);
  return false;
}

/* ---- in ------------------------------------------------------------------------------------ */

static void bind_session(qk_net_t *net, const qk_peer_t *peer, const qk_who_t *who,
                         qk_session_t *bound, const uint8_t *payload) {
  qk_session_t *session = qk_session_by_id(&net->service->sessions, payload);
  if (!session || !qk_session_is_of(session, who->user) ||
      memcmp(session->token, payload + QK_CLIENT_ID, QK_CLIENT_ID) != 0) {
    net->service->count.dropped++;
    return;
  }
  if (bound && bound != session) {
    net->service->count.dropped++;
    qk_reply_error(net, &session->control, QK_BAD_PROTOCOL,
                   "BIND on a data connection that belongs to another session: open one of "
                   "its own",
                   false, 0);
    return;
  }
  const bool moved = !bound && session->data.connection > 0; /* it had another one */
  qk_session_set_data(&net->service->sessions, session, peer);
  session->seen = qk_service_awake(net->service);
  qk_frame_t frame = {.kind = QK_FRAME_BOUND};
  send_frame(net, peer, &frame, NULL);
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    for (uint32_t i = 0; i < job->nrhs && job->granted; i++) {
      if (moved) job->rhs[i].granted = job->rhs[i].sent;
      qk_data_offer(net, &job->rhs[i]);
    }
  }
}

static void upload(qk_net_t *net, qk_session_t *session, const qk_frame_t *frame,
                   const uint8_t *payload) {
  qk_err_t err = {0};
  qk_rhs_t *ready, *failed;
  qk_job_t *job = qk_session_job(session, frame->request);
  if (!job) {
    if (frame->request > session->newest)
      qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                        "data of a request that was not accepted");
    return;
  }
  qk_status_t s =
      qk_job_upload(job, frame, payload, qk_service_now(net->service), &ready, &failed, &err);
  if (s != QK_OK) {
    qk_sessions_close(net->service, session, s, err.text);
    return;
  }
  net->service->count.bytes_in += frame->chunk_bytes;
  qk_upload_arrived(net->service, session, job, ready, failed, qk_frame_is_last(frame));
}

/* Whether it was the work of somebody. */
static bool handle(qk_net_t *net, const qk_peer_t *peer, const qk_who_t *who, zmq_msg_t *msg,
                   size_t bytes) {
  qk_frame_t frame;
  qk_frame_fault_t fault;
  const uint8_t *payload;
  qk_session_t *session = qk_peers_data(net, peer);
  if (session && (!who || !qk_session_is_of(session, who->user))) {
    qk_peers_forget(net, session, "their key is not authorised any more or is another user's");
    session = NULL;
  }
  qk_status_t s = qk_frame_decode(zmq_msg_data(msg), bytes, &frame, &payload, &fault);
  if (who && s == QK_OK && frame.kind == QK_FRAME_BIND) {
    bind_session(net, peer, who, session, payload);
  } else if (!session) {
    net->service->count.dropped++;
    if (s != QK_OK) qk_peers_cut(net, net->data, msg, peer);
  } else if (s != QK_OK) {
    char text[160];
    snprintf(text, sizeof text, "data message: %s = %llu, expected or limit %llu", fault.field,
             (unsigned long long)fault.value, (unsigned long long)fault.limit);
    qk_sessions_close(net->service, session, s, text);
  } else if (frame.kind != QK_FRAME_UPLOAD) {
    qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                      "data message of a kind that only the daemon sends");
  } else if (who->role < QK_ROLE_SUBMIT) {
    net->service->count.denied++;
    qk_reply_error(net, &session->control, QK_DENIED, "an upload needs the role submit", false,
                   frame.request);
  } else {
    session->seen = qk_service_awake(net->service);
    upload(net, session, &frame, payload);
    return true;
  }
  return false;
}

void qk_data_readable(void *arg) {
  qk_net_t *net = arg;
  bool work;
  do {
    qk_peer_t peer;
    zmq_msg_t msg;
    qk_who_t who;
    bool whole;
    zmq_msg_init(&msg);
    if (!qk_router_receive(net, QK_DOOR_DATA, &peer, &msg, &whole)) return;
    /* parts beyond the first have been thrown away: an empty message is as wrong */
    const bool known = qk_router_who(net, &msg, &peer, &who);
    qk_guests_heard(net->guests, QK_DOOR_DATA, zmq_msg_get(&msg, ZMQ_SRCFD), &peer);
    work = !qk_peers_is_cut(net, &peer) &&
           handle(net, &peer, known ? &who : NULL, &msg, whole ? zmq_msg_size(&msg) : 0);
    qk_peers_cut_endless(net, QK_DOOR_DATA, &msg, &peer);
    zmq_msg_close(&msg);
  } while (!qk_router_has_enough(net, work));
}
