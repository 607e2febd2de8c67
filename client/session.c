#include "client/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

enum { GREETING_MS = 5000 /* for an answer to HELLO or BIND before they are sent again */ };

static void send_now(quark_connection_t *conn, const Quark__ClientMessage *message) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (data && zmq_send(conn->control, data, bytes, ZMQ_DONTWAIT) >= 0)
    conn->last_sent = quark__now_ms();
  free(data);
}

void quark__session_connected_locked(quark_connection_t *conn) {
  if (conn->state == SESSION_DEAD) return;
  conn->broken_handshakes = 0;
  Quark__Hello hello = QUARK__HELLO__INIT;
  hello.version = QK_PROTOCOL_VERSION;
  hello.client_id.data = conn->client_id;
  hello.client_id.len = QK_CLIENT_ID;
  hello.user = conn->user;
  hello.program = conn->program;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_HELLO;
  message.hello = &hello;
  send_now(conn, &message);
  if (conn->state == SESSION_OPEN) conn->seeking_since = quark__now_ms();
  conn->state = SESSION_GREETING;
  quark__local_close_locked(conn);
}

void quark__session_lost_locked(quark_connection_t *conn) {
  if (conn->state == SESSION_DEAD) return;
  if (conn->state == SESSION_OPEN) conn->seeking_since = quark__now_ms();
  conn->state = SESSION_SEEKING;
  quark__local_close_locked(conn);
}

void quark__session_die_locked(quark_connection_t *conn, quark_code_t code, const char *text) {
  if (conn->state == SESSION_DEAD) return;
  conn->state = SESSION_DEAD;
  quark__local_close_locked(conn);
  quark__fail(&conn->death, code, "%s", text);
  for (request_t *r = conn->requests; r; r = r->next) quark__request_fail_locked(r, code, text);
}

/* The host "*" of a data endpoint stands for that of the control endpoint. Caller frees. */
static char *data_endpoint(const char *control, const char *data) {
  const char *star = strstr(data, "://*:"), *host = strstr(control, "://"),
             *end = strrchr(control, ':');
  if (!star || !host || end <= host + 3) return strdup(data);
  char *out = NULL;
  if (asprintf(&out, "%.*s%s", (int)(end - control), control, star + 4) < 0) return NULL;
  return out;
}

static void send_bind(quark_connection_t *conn) {
  uint8_t message[QK_FRAME_HEADER + 2 * QK_CLIENT_ID];
  memcpy(message + QK_FRAME_HEADER, conn->client_id, QK_CLIENT_ID);
  memcpy(message + QK_FRAME_HEADER + QK_CLIENT_ID, conn->token, QK_CLIENT_ID);
  qk_frame_t frame = {
      .kind = QK_FRAME_BIND, .chunk_bytes = 2 * QK_CLIENT_ID, .field_bytes = 2 * QK_CLIENT_ID};
  qk_frame_fault_t fault;
  if (qk_frame_encode(&frame, message + QK_FRAME_HEADER, message, &fault) == QK_OK)
    zmq_send(conn->data, message, sizeof message, ZMQ_DONTWAIT);
}

static void welcome(quark_connection_t *conn, const Quark__Welcome *m) {
  if (m->version != QK_PROTOCOL_VERSION || m->token.len != QK_CLIENT_ID || m->lease_ms == 0) {
    quark__session_die_locked(conn, QUARK_UNSUPPORTED,
                              "the daemon speaks another version of the protocol");
    return;
  }
  const bool bound = conn->state == SESSION_BINDING || conn->state == SESSION_OPEN;
  if (bound && memcmp(conn->token, m->token.data, QK_CLIENT_ID) == 0)
    return; /* of a HELLO sent twice */
  memcpy(conn->token, m->token.data, QK_CLIENT_ID);
  conn->lease_ms = m->lease_ms;
  conn->max_rhs = m->max_rhs;
  if (!conn->was_open) conn->resumed = m->resumed;
  if (conn->was_open && !m->resumed)
    for (request_t *r = conn->requests; r; r = r->next)
      if (r->state == REQUEST_ACCEPTED)
        quark__request_fail_locked(r, QUARK_ENGINE_LOST,
                                   "the daemon was restarted or the lease ran out: submit again");
  char *endpoint = data_endpoint(conn->endpoint, m->data_endpoint);
  if (endpoint && quark__open_data(conn, endpoint)) {
    send_bind(conn);
    conn->state = SESSION_BINDING;
    quark__local_open_locked(conn, m->local_path);
  } else
    quark__session_die_locked(conn, QUARK_IO_ERROR, "no data connection to the daemon");
  free(endpoint);
}

void quark__session_bound_locked(quark_connection_t *conn) {
  if (conn->state != SESSION_BINDING) return;
  conn->state = SESSION_OPEN;
  conn->was_open = true;
  conn->sessions++;
  conn->pings = conn->pongs = 0;
  /* What was waiting may be about requests that the daemon must hear of first. */
  packet_t *waiting = conn->out, **waiting_end = conn->out_end;
  conn->out = NULL;
  conn->out_end = &conn->out;
  for (request_t *r = conn->requests; r; r = r->next) quark__request_resume_locked(conn, r);
  if (!waiting) return;
  *conn->out_end = waiting;
  conn->out_end = waiting_end;
}

static void error(quark_connection_t *conn, const Quark__Error *m) {
  const quark_code_t code = (quark_code_t)m->status;
  if (m->fatal && code == QUARK_NOT_FOUND) {
    /* The daemon does not know this connection: a message overtook HELLO, or somebody took the session over. */
    if (conn->state != SESSION_GREETING) quark__session_connected_locked(conn);
  } else if (m->fatal) {
    quark__session_die_locked(conn, code, m->text);
  } else if (m->has_request) {
    quark__fail(&conn->last_error, code, "%s", m->text);
    conn->last_error_request = m->request;
    request_t *r = quark__request_find_locked(conn, m->request);
    if (!r) return;
    quark__request_refused_locked(r, code, m->text);
    quark__download_fail_locked(r, code, m->text);
  } else {
    quark__fail(&conn->last_error, code, "%s", m->text);
    conn->refusals++;
  }
}

void quark__session_message_locked(quark_connection_t *conn, const Quark__ServerMessage *m) {
  request_t *r;
  switch (m->body_case) {
  case QUARK__SERVER_MESSAGE__BODY_WELCOME:
    welcome(conn, m->welcome);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ACCEPTED:
    quark__request_accepted_locked(conn, m->accepted);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ATTACHED:
    quark__request_attached_locked(conn, m->attached);
    break;
  case QUARK__SERVER_MESSAGE__BODY_REJECTED:
    quark__request_rejected_locked(conn, m->rejected);
    break;
  case QUARK__SERVER_MESSAGE__BODY_CREDIT:
    r = quark__request_find_locked(conn, m->credit->request);
    if (r && m->credit->until > r->up.until) r->up.until = m->credit->until;
    if (r && m->credit->next > r->up.taken) r->up.taken = m->credit->next;
    break;
  case QUARK__SERVER_MESSAGE__BODY_PROGRESS:
    quark__request_progress_locked(conn, m->progress);
    break;
  case QUARK__SERVER_MESSAGE__BODY_RESULT:
    quark__request_result_locked(conn, m->result);
    break;
  case QUARK__SERVER_MESSAGE__BODY_ERROR:
    error(conn, m->error);
    break;
  case QUARK__SERVER_MESSAGE__BODY_STATUS:
    quark__report_read_locked(conn, m->status);
    break;
  case QUARK__SERVER_MESSAGE__BODY_SETUP:
    conn->setup_replies++;
    break;
  case QUARK__SERVER_MESSAGE__BODY_SHUTDOWN:
    conn->shutdowns++;
    break;
  case QUARK__SERVER_MESSAGE__BODY_PONG:
    conn->pongs++;
    break;
  default:
    break;
  }
}

void quark__session_tick_locked(quark_connection_t *conn) {
  const int64_t now = quark__now_ms();
  if (conn->state == SESSION_OPEN) {
    if (now - conn->last_sent < conn->lease_ms / 3) return;
    Quark__Ping ping = QUARK__PING__INIT;
    Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
    message.body_case = QUARK__CLIENT_MESSAGE__BODY_PING;
    message.ping = &ping;
    send_now(conn, &message);
    conn->pings++;
    return;
  }
  if (conn->was_open && now - conn->seeking_since > conn->reconnect_ms) {
    char text[160];
    snprintf(text, sizeof text, "no answer from %.80s for %u ms", conn->endpoint,
             conn->reconnect_ms);
    quark__session_die_locked(conn, QUARK_TIMEOUT, text);
  } else if (conn->state != SESSION_SEEKING && now - conn->last_sent > GREETING_MS)
    quark__session_connected_locked(conn);
}
