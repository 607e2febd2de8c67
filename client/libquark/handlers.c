#include "client/libquark/handlers.h"

#include "client/libquark/ask.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/connection/session.h"
#include "client/libquark/eigen.h"
#include "client/libquark/report.h"
#include "client/libquark/request/attach.h"
#include "client/libquark/request/event.h"
#include "client/libquark/request/local.h"
#include "client/libquark/request/request.h"
#include "client/libquark/request/transfer.h"
#include "client/libquark/setups.h"

/* ---- what arrives ---- */

static void receive_error(quark_connection_t *conn, const Quark__Error *m) {
  if (m->fatal) {
    quark__session_error_locked(conn, m);
    return;
  }
  quark__fail(&conn->last_error, (quark_code_t)m->status, "%s", m->text);
  if (!m->has_request) {
    conn->refusals++;
    return;
  }
  conn->last_error_request = m->request;
  quark__request_error_locked(conn, m);
}

static void receive_status(quark_connection_t *conn, const Quark__StatusReport *m) {
  quark__report_read_locked(conn, m);
  quark__eigen_read_locked(conn, m->setup);
  quark__setups_read_locked(conn, m);
}

static void receive_message(quark_connection_t *conn, const Quark__ServerMessage *m) {
  switch (m->body_case) {
  case QUARK__SERVER_MESSAGE__BODY_WELCOME:
    quark__session_welcome_locked(conn, m->welcome);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ACCEPTED:
    quark__request_accepted_locked(conn, m->accepted);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ATTACHED:
    quark__attach_read_locked(conn, m->attached);
    break;
  case QUARK__SERVER_MESSAGE__BODY_REJECTED:
    quark__request_rejected_locked(conn, m->rejected);
    break;
  case QUARK__SERVER_MESSAGE__BODY_CREDIT:
    quark__request_credit_locked(conn, m->credit);
    break;
  case QUARK__SERVER_MESSAGE__BODY_PROGRESS:
    quark__request_progress_locked(conn, m->progress);
    break;
  case QUARK__SERVER_MESSAGE__BODY_RESULT:
    quark__request_result_locked(conn, m->result);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ERROR:
    receive_error(conn, m->error);
    break;
  case QUARK__SERVER_MESSAGE__BODY_STATUS:
    receive_status(conn, m->status);
    break;
  case QUARK__SERVER_MESSAGE__BODY_SETUP:
    conn->answers->setup_replies++;
    break;
  case QUARK__SERVER_MESSAGE__BODY_SHUTDOWN:
    conn->answers->shutdowns++;
    break;
  case QUARK__SERVER_MESSAGE__BODY_PONG:
    conn->pongs++;
    break;
  default:
    break;
  }
}

static void receive_frame(quark_connection_t *conn, const qk_frame_t *frame,
                          const uint8_t *payload) {
  if (frame->kind == QK_FRAME_BOUND) quark__session_bound_locked(conn);
  if (frame->kind != QK_FRAME_DOWNLOAD) return;
  request_t *r = quark__request_find_locked(conn, frame->request);
  if (r) quark__download_chunk_locked(conn, &r->downloads, frame, payload);
}

/* ---- once a turn ---- */

static full_t send_all(quark_connection_t *conn) {
  full_t full;
  full.data = conn->state == SESSION_OPEN && !quark__transfer_send_locked(conn);
  full.local = !quark__local_send_locked(conn);
  quark__event_update_locked(conn);
  return full;
}

static void tick(quark_connection_t *conn) {
  quark__session_tick_locked(conn);
  quark__local_tick_locked(conn);
  quark__spare_tick(&conn->requests->spare);
}

/* ---- what becomes of the session ---- */

static void resume_requests(quark_connection_t *conn) {
  for (request_t *r = conn->requests->first; r; r = r->next) quark__request_resume_locked(conn, r);
}

static void fail_accepted(quark_connection_t *conn, quark_code_t code, const char *text) {
  for (request_t *r = conn->requests->first; r; r = r->next)
    if (r->state == REQUEST_ACCEPTED) quark__request_fail_locked(r, code, text);
}

static void fail_all(quark_connection_t *conn, quark_code_t code, const char *text) {
  for (request_t *r = conn->requests->first; r; r = r->next)
    quark__request_fail_locked(r, code, text);
}

const quark__handlers_t quark__handlers = {
    .connected = quark__session_connected_locked,
    .lost = quark__session_lost_locked,
    .refused = quark__session_refused_locked,
    .unreachable = quark__session_unreachable_locked,
    .message = receive_message,
    .frame = receive_frame,
    .damaged = quark__session_die_locked,
    .readable = quark__local_read_locked,
    .send = send_all,
    .tick = tick,
    .leave = quark__session_leave_locked,
    .binding = quark__local_open_locked,
    .opened = resume_requests,
    .suspended = quark__local_close_locked,
    .forgotten = fail_accepted,
    .ended = fail_all,
};
