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

enum { RETRY_MS = 3, SPANS_A_TURN = 64, SPANS_MOST = 32 };

void qk_data_offer(qk_net_t *net, qk_rhs_t *rhs) {
  const qk_session_t *session = rhs->job->session;
  if (!session || !qk_peer_reachable(&session->data) || !qk_rhs_sendable(rhs)) return;
  if (qk_rhs_is_leaving(rhs)) return; /* it is offered when that is back */
  if (qk_link_alone(&rhs->send)) qk_list_append(&net->downloads, &rhs->send);
}

/* ---- out ----------------------------------------------------------------------------------- */

/* Hands the next part of the solution to the thread of the client's connection. False: not now. */
static bool send_span(qk_net_t *net, const qk_session_t *session, qk_rhs_t *rhs) {
  qk_data_thread_t *thread = &net->data[session->data.thread];
  const qk_frame_t frame = {.kind = QK_FRAME_DOWNLOAD,
                            .request = rhs->job->request,
                            .by_blocks = session->by_blocks,
                            .rhs = rhs->index,
                            .field_bytes = rhs->job->part_bytes};
  qk_parcel_t *p = qk_parcel_to_send(&session->data, &frame);
  if (!p) return false;
  if (qk_rhs_send(rhs, QK_DATA_SPAN, session->by_blocks) != QK_OK) {
    qk_data_thread_done(thread, p, true, 1);
    return false;
  }
  p->transfer = rhs->leaving;
  p->begin = p->at = rhs->span_from;
  p->until = rhs->span_until;
  qk_link_remove(&rhs->send);
  qk_data_thread_order(thread, p);
  return true;
}

static void on_retry(uv_timer_t *timer) {
  qk_net_t *net = timer->data;
  net->pause++;
  net->pausing = false;
  while (!qk_link_alone(&net->paused)) qk_list_append(&net->downloads, net->paused.next);
}

/* It is asked again in a few milliseconds, with all others that pause. */
static void pause_rhs(qk_net_t *net, qk_rhs_t *rhs) {
  qk_list_append(&net->paused, &rhs->send);
  if (!net->pausing) uv_timer_start(&net->retry, on_retry, RETRY_MS, 0);
  net->pausing = true;
}

/* Hands the next part over, or lets the download pause. False: its thread has enough to do. */
static bool offer_span(qk_net_t *net, qk_session_t *session, qk_rhs_t *rhs) {
  if (net->data[session->data.thread].sending >= SPANS_MOST) {
    qk_list_append(&net->downloads, &rhs->send);
    return false;
  }
  const bool asked = session->full + 1 == net->pause; /* it took nothing before the pause */
  if (session->full == net->pause || qk_marks_lack_rhs(rhs) || !send_span(net, session, rhs))
    pause_rhs(net, rhs);
  else if (asked) /* no more than this is tried in this pause */
    session->full = net->pause;
  return true;
}

bool qk_data_send(qk_net_t *net) {
  bool more = false;
  for (int i = 0; i < SPANS_A_TURN && !qk_link_alone(&net->downloads); i++) {
    if (more && qk_loop_time_is_up(net->service->loop)) break;
    qk_rhs_t *rhs = QK_HOLDER(net->downloads.next, qk_rhs_t, send);
    qk_session_t *session = rhs->job->session;
    if (session && qk_peer_reachable(&session->data) && qk_rhs_sendable(rhs)) {
      more |= offer_span(net, session, rhs);
      continue;
    }
    qk_link_remove(&rhs->send);
    more = true;
  }
  /* where threads have enough to do the loop turns when they are done */
  return more && !qk_link_alone(&net->downloads);
}

/* The download is at its end until the client asks again; the solution stays as it is. */
static void fail_span(qk_net_t *net, const qk_session_t *session, qk_rhs_t *rhs,
                      const qk_err_t *err) {
  char text[QK_TEXT_MAX];
  qk_log(rhs->unsendable ? QK_LOG_DEBUG : QK_LOG_WARN, "data", rhs->job->name,
         "rhs %u: its solution is not sent: %s", rhs->index, err->text);
  rhs->unsendable = true;
  rhs->granted = rhs->sent;
  if (!session) return;
  snprintf(text, sizeof text,
           "right-hand side %u: the daemon cannot read its solution: %.200s: the downloads of this "
           "request end: fetch them again, or submit this right-hand side anew",
           rhs->index, err->text);
  qk_reply_error(net, &session->control, QK_IO_ERROR, text, false, rhs->job->request);
}

/* A part has been sent, as far as the client took it. */
static void sent_span(qk_net_t *net, qk_data_thread_t *thread, qk_parcel_t *p) {
  net->service->count.bytes_out += p->at - p->begin;
  qk_rhs_t *rhs = p->transfer ? qk_rhs_sent(p->transfer, p->at) : NULL;
  qk_session_t *session = rhs ? rhs->job->session : NULL;
  if (session && p->sent == QK_SENT_GONE && qk_peer_same(&session->data, &p->peer))
    session->data.ended = true;
  /* the client does not read as fast: all of its downloads pause */
  if (session && p->sent == QK_SENT_FULL) session->full = net->pause;
  if (session && p->sent == QK_SENT) session->full = 0;
  if (rhs && p->sent == QK_SENT_FAILED) fail_span(net, session, rhs, &p->err);
  if (rhs) qk_data_offer(net, rhs);
  qk_data_thread_done(thread, p, p->transfer != NULL, qk_router_share(net));
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Whether the parcel goes on: as the answer. */
static bool bind_session(qk_net_t *net, qk_parcel_t *p, const qk_who_t *who, qk_session_t *bound) {
  const uint8_t *payload = p->payload;
  qk_session_t *session = qk_session_by_id(&net->service->sessions, payload);
  if (!session || !qk_session_is_of(session, who->user) ||
      !qk_session_has_token(session, payload + QK_CLIENT_ID)) {
    net->service->count.dropped++;
    return false;
  }
  if (bound && bound != session) {
    net->service->count.dropped++;
    qk_reply_error(net, &session->control, QK_BAD_PROTOCOL,
                   "BIND on a data connection that belongs to another session: open one of "
                   "its own",
                   false, 0);
    return false;
  }
  if (!qk_session_bind(session, payload + QK_CLIENT_ID)) {
    net->service->count.dropped++;
    qk_log(QK_LOG_INFO, "session", session->name,
           "a late BIND is ignored: its client has said HELLO since then, and bound another data "
           "connection");
    return false;
  }
  const bool moved = !bound && session->data.connection > 0; /* it had another one */
  qk_session_set_data(&net->service->sessions, session, &p->peer);
  session->seen = qk_service_awake(net->service);
  for (qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next) {
    qk_job_t *job = QK_HOLDER(l, qk_job_t, link);
    for (uint32_t i = 0; i < job->nrhs && job->granted; i++) {
      if (moved) job->rhs[i].granted = 0;
      qk_data_offer(net, &job->rhs[i]);
    }
  }
  qk_parcel_answer(p, &(qk_frame_t){.kind = QK_FRAME_BOUND});
  qk_data_thread_order(&net->data[p->peer.thread], p);
  return true;
}

/* Whether the parcel goes on: into memory. */
static bool upload(qk_net_t *net, qk_session_t *session, qk_parcel_t *p) {
  qk_err_t err = {0};
  qk_rhs_t *failed;
  qk_job_t *job = qk_session_job(session, p->frame.request);
  if (!job) {
    if (p->frame.request > session->newest)
      qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                        "data of a request that was not accepted");
    return false;
  }
  const bool idle = job->chunks == 0;
  const qk_status_t s =
      qk_job_upload(job, &p->frame, qk_service_now(net->service), &p->chunk, &failed, &err);
  if (s != QK_OK) {
    qk_sessions_close(net->service, session, s, err.text);
    return false;
  }
  net->service->count.bytes_in += qk_frame_payload(&p->frame);
  if (failed || !p->chunk.transfer)
    qk_upload_arrived(net->service, session, job, NULL, failed, qk_frame_is_last(&p->frame));
  if (!p->chunk.transfer) return false;
  /* chunks of a request follow each other on one thread, whichever they came by */
  if (idle) job->thread = p->peer.thread;
  p->kind = QK_PARCEL_WRITE;
  qk_data_thread_order(&net->data[job->thread], p);
  return true;
}

static void uploaded(qk_net_t *net, qk_parcel_t *p) {
  qk_err_t err = {0};
  qk_rhs_t *ready, *failed;
  const bool last = qk_frame_is_last(&p->frame);
  qk_job_t *job = qk_job_uploaded(&p->chunk, last ? &p->frame.field_checksum : NULL, &p->err,
                                  qk_service_now(net->service), &ready, &failed, &err);
  qk_session_t *session = job ? job->session : NULL;
  if (err.code != QK_OK && session) qk_sessions_close(net->service, session, err.code, err.text);
  if (job && err.code == QK_OK) qk_upload_arrived(net->service, session, job, ready, failed, last);
  qk_data_thread_done(&net->data[p->peer.thread], p, true, 1);
}

/* Whether it was the work of somebody. *goes_on: it is not ours any more. */
static bool handle(qk_net_t *net, const qk_who_t *who, qk_parcel_t *p, bool *goes_on) {
  const qk_peer_t *peer = &p->peer;
  qk_session_t *session = qk_peers_data(net, peer);
  if (session && (!who || !qk_session_is_of(session, who->user))) {
    qk_peers_forget(net, session, "their key is not authorised any more or is another user's");
    session = NULL;
  }
  if (who && p->status == QK_OK && p->frame.kind == QK_FRAME_BIND) {
    *goes_on = bind_session(net, p, who, session);
  } else if (!session) {
    net->service->count.dropped++;
    if (p->status != QK_OK) qk_peers_cut(net, net->data[peer->thread].endpoint, &p->msg, peer);
  } else if (p->status != QK_OK) {
    char text[160];
    snprintf(text, sizeof text, "data message: %s = %llu, expected or limit %llu", p->fault.field,
             (unsigned long long)p->fault.value, (unsigned long long)p->fault.limit);
    qk_sessions_close(net->service, session, p->status, text);
  } else if (p->frame.kind != QK_FRAME_UPLOAD && p->frame.kind != QK_FRAME_UPLOAD_ZERO) {
    qk_sessions_close(net->service, session, QK_BAD_PROTOCOL,
                      "data message of a kind that only the daemon sends");
  } else if (who->role < QK_ROLE_SUBMIT) {
    net->service->count.denied++;
    qk_reply_error(net, &session->control, QK_DENIED, "an upload needs the role submit", false,
                   p->frame.request);
  } else {
    session->seen = qk_service_awake(net->service);
    *goes_on = upload(net, session, p);
    return true;
  }
  return false;
}

static void arrived(qk_net_t *net, qk_data_thread_t *thread, qk_parcel_t *p) {
  qk_who_t who;
  const bool known = qk_router_who(net, &p->msg, &p->peer, &who);
  bool work = false, goes_on = false;
  qk_guests_heard(net->guests, QK_DOOR_DATA + thread->index, zmq_msg_get(&p->msg, ZMQ_SRCFD),
                  &p->peer);
  if (p->endless) qk_peers_cut_endless(net, thread->endpoint, &p->msg, &p->peer);
  if (!qk_peers_is_cut(net, &p->peer)) work = handle(net, known ? &who : NULL, p, &goes_on);
  if (!goes_on) qk_data_thread_done(thread, p, work, qk_router_share(net));
}

void qk_data_take(void *arg, qk_data_thread_t *thread, qk_parcel_t *p) {
  qk_net_t *net = arg;
  if (p->kind == QK_PARCEL_ARRIVED)
    arrived(net, thread, p);
  else if (p->kind == QK_PARCEL_WRITE)
    uploaded(net, p);
  else
    sent_span(net, thread, p);
}

void qk_data_tick(qk_net_t *net) {
  for (int i = 0; i < net->ndata; i++) {
    qk_data_thread_t *thread = &net->data[i];
    qk_data_thread_collect(thread);
    for (qk_link_t *l = thread->taken.next; l != &thread->taken; l = l->next) {
      qk_parcel_t *p = QK_HOLDER(l, qk_parcel_t, link);
      qk_who_t who;
      if (p->kind != QK_PARCEL_ARRIVED) continue;
      qk_router_who(net, &p->msg, &p->peer, &who);
      qk_guests_heard(net->guests, QK_DOOR_DATA + i, zmq_msg_get(&p->msg, ZMQ_SRCFD), &p->peer);
    }
  }
}
