#include "client/libquark/connection/session.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>
#include <zmq.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"

enum {
  GREETING_MS = 5000, /* without an answer to HELLO or BIND, before they are sent again */
  EXTRA_MS = 2000,    /* the same for BIND if it went to another than the first data endpoint */
  DENIED_MS = 1000,   /* the same if the key is not known */
  SOUGHT_FIRST_MS = 5000,
  SOUGHT_EACH_MS = 60000,
  RECONNECT_MS = 30000,
  RECONNECT_JOURNAL_MS = 15 * 60000,
  GOODBYE_LINGER = 1000
};

bool quark__session_init(quark_connection_t *conn, const quark_options_t *options) {
  struct passwd entry, *pw = NULL;
  char buffer[1024];
  conn->reconnect_ms = options->reconnect_ms;
  conn->keep_session = options->keep_session;
  conn->sought = options->sought;
  conn->sought_arg = options->sought_arg;
  conn->try_local = options->local;
  conn->seeking_since = quark__now_ms();
  if (!options->user) getpwuid_r(geteuid(), &entry, buffer, sizeof buffer, &pw);
  conn->user = strndup(options->user ? options->user : pw ? pw->pw_name : "", QK_USER_MAX);
  conn->setup = options->setup ? strdup(options->setup) : NULL;
  conn->program = strndup(options->program ? options->program : "libquark", QK_PROGRAM_MAX);
  if (!conn->user || !conn->program || (options->setup && !conn->setup)) return false;
  if (!options->client_id)
    return getrandom(conn->client_id, sizeof conn->client_id, 0) == (ssize_t)sizeof conn->client_id;
  memcpy(conn->client_id, options->client_id, sizeof conn->client_id);
  return true;
}

void quark__session_fini(quark_connection_t *conn) {
  free(conn->user);
  free(conn->program);
  free(conn->setup);
  free(conn->denied);
}

static void send_now(quark_connection_t *conn, const Quark__ClientMessage *message) {
  size_t bytes;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (data && zmq_send(conn->control, data, bytes, ZMQ_DONTWAIT) >= 0)
    conn->last_sent = quark__now_ms();
  free(data);
}

void quark__session_connected_locked(quark_connection_t *conn) {
  if (conn->state == SESSION_DEAD) return;
  conn->curve.broken_handshakes = 0;
  Quark__Hello hello = QUARK__HELLO__INIT;
  hello.version = QK_PROTOCOL_VERSION;
  hello.client_id.data = conn->client_id;
  hello.client_id.len = QK_CLIENT_ID;
  hello.user = conn->user;
  hello.program = conn->program;
  hello.n_feature = 1;
  hello.feature = &(uint32_t){QK_FEATURE_BLOCK_SUMS};
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_HELLO;
  message.hello = &hello;
  send_now(conn, &message);
  if (conn->state == SESSION_OPEN) conn->seeking_since = quark__now_ms();
  conn->state = SESSION_GREETING;
  conn->on->suspended(conn);
}

static void forget_denial(quark_connection_t *conn) {
  free(conn->denied);
  conn->denied = NULL;
  conn->reopen = false;
}

void quark__session_lost_locked(quark_connection_t *conn) {
  if (conn->state == SESSION_DEAD) return;
  if (!conn->reopen) forget_denial(conn); /* the next daemon may know the key */
  conn->first_data_only = false;
  if (conn->state == SESSION_OPEN) conn->seeking_since = quark__now_ms();
  conn->state = SESSION_SEEKING;
  conn->on->suspended(conn);
}

void quark__session_die_locked(quark_connection_t *conn, quark_code_t code, const char *text) {
  if (conn->state == SESSION_DEAD) return;
  conn->state = SESSION_DEAD;
  conn->on->suspended(conn);
  quark__fail(&conn->death, code, "%s", text);
  conn->on->ended(conn, code, text);
}

/* The daemon does not know the key, or not for this client. That is the end, unless the session was
 * open: then the key may come back. */
static void deny(quark_connection_t *conn, const char *text) {
  if (conn->state == SESSION_DEAD) return;
  char *why = conn->was_open ? strdup(text) : NULL;
  if (!why) {
    quark__session_die_locked(conn, QUARK_DENIED, text);
    return;
  }
  const int64_t now = quark__now_ms(), since = conn->denied ? conn->denied_since : now;
  quark__session_lost_locked(conn);
  free(conn->denied);
  conn->denied = why;
  conn->denied_since = since;
  conn->last_sent = now;
}

void quark__session_refused_locked(quark_connection_t *conn, uint16_t event, uint32_t value) {
  const char *why = quark__curve_blame(&conn->curve, event, value, conn->was_open);
  if (!why) return;
  char text[256];
  snprintf(text, sizeof text, "%.120s: %s", conn->endpoint, why);
  conn->reopen = true;
  deny(conn, text);
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

/* The daemon names the one first that this client is to use. If another than its first endpoint
 * cannot be reached, as behind a firewall, it is that. */
static const char *choose_endpoint(const quark_connection_t *conn, const Quark__Welcome *m) {
  const bool offered =
      quark__has_feature(conn, QK_FEATURE_DATA_ENDPOINTS) && m->n_extra_data_endpoint > 0;
  return offered && !conn->first_data_only ? m->extra_data_endpoint[0] : m->data_endpoint;
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
  conn->last_sent = quark__now_ms();
}

void quark__session_welcome_locked(quark_connection_t *conn, const Quark__Welcome *m) {
  if (conn->state == SESSION_DEAD) return; /* its user has been told */
  if (m->version != QK_PROTOCOL_VERSION || m->token.len != QK_CLIENT_ID || m->lease_ms == 0) {
    quark__session_die_locked(conn, QUARK_UNSUPPORTED,
                              "the daemon speaks another version of the protocol");
    return;
  }
  const bool bound = conn->state == SESSION_BINDING || conn->state == SESSION_OPEN;
  if (bound && memcmp(conn->token, m->token.data, QK_CLIENT_ID) == 0)
    return; /* the second answer to a HELLO that was sent twice, of an older daemon */
  if (conn->state == SESSION_OPEN) { /* of one whose tokens are new each time: it is bound anew */
    conn->seeking_since = quark__now_ms();
    conn->on->suspended(conn);
  }
  memcpy(conn->token, m->token.data, QK_CLIENT_ID);
  conn->lease_ms = m->lease_ms;
  conn->max_rhs = m->max_rhs;
  conn->journal = m->has_journal && m->journal;
  conn->features = 0;
  for (size_t i = 0; i < m->n_feature; i++)
    if (m->feature[i] < 64) conn->features |= (uint64_t)1 << m->feature[i];
  if (!conn->was_open) conn->resumed = m->resumed;
  if (conn->was_open && !m->resumed)
    conn->on->forgotten(conn, QUARK_ENGINE_LOST,
                        "the session has ended: the daemon was restarted, the lease ran out, or "
                        "quarkctl cancel ended it: submit again");
  const char *chosen = choose_endpoint(conn, m);
  conn->extra_data = strcmp(chosen, m->data_endpoint) != 0;
  char *endpoint = data_endpoint(conn->endpoint, chosen);
  if (endpoint && quark__open_data_locked(conn, endpoint)) {
    send_bind(conn);
    conn->state = SESSION_BINDING;
    conn->on->binding(conn, m->local_path);
  } else
    quark__session_die_locked(conn, QUARK_IO_ERROR, "no data connection to the daemon");
  free(endpoint);
}

/* Behind a firewall or a tunnel there may be no way to any but the first data endpoint. */
bool quark__session_unreachable_locked(quark_connection_t *conn) {
  if (conn->state != SESSION_BINDING || !conn->extra_data) return false;
  conn->first_data_only = true;
  quark__session_connected_locked(conn);
  return true;
}

/* ---- a daemon that has vanished ---- */

static int64_t patience(const quark_connection_t *conn) {
  if (conn->reconnect_ms != QUARK_RECONNECT_AUTO) return conn->reconnect_ms;
  return conn->journal ? RECONNECT_JOURNAL_MS : RECONNECT_MS;
}

static void tell_sought(quark_connection_t *conn, int64_t since) {
  char text[256];
  if (!conn->sought || since < conn->sought_next) return;
  snprintf(text, sizeof text, "no daemon at %.80s for %lld s: it is sought for %lld s more%s",
           conn->endpoint, (long long)since / 1000, (long long)(patience(conn) - since) / 1000,
           conn->journal ? ", and what it had accepted goes on when it is back" : "");
  conn->sought(conn->sought_arg, text);
  conn->sought_next +=
      conn->sought_next < SOUGHT_EACH_MS ? SOUGHT_EACH_MS - SOUGHT_FIRST_MS : SOUGHT_EACH_MS;
}

static void tell_found(quark_connection_t *conn) {
  char text[160];
  if (conn->sought && conn->sought_next > SOUGHT_FIRST_MS) {
    snprintf(text, sizeof text, "the daemon at %.80s is back after %lld s", conn->endpoint,
             (long long)(quark__now_ms() - conn->seeking_since) / 1000);
    conn->sought(conn->sought_arg, text);
  }
  conn->sought_next = SOUGHT_FIRST_MS;
}

void quark__session_bound_locked(quark_connection_t *conn) {
  if (conn->state != SESSION_BINDING) return;
  conn->state = SESSION_OPEN;
  forget_denial(conn);
  tell_found(conn);
  conn->was_open = true;
  conn->sessions++;
  conn->pings = conn->pongs = 0;
  /* Messages that waited may be about requests, which have to be submitted again first. */
  packet_t *waiting = conn->out, **waiting_end = conn->out_end;
  conn->out = NULL;
  conn->out_end = &conn->out;
  conn->on->opened(conn);
  if (!waiting) return;
  *conn->out_end = waiting;
  conn->out_end = waiting_end;
}

void quark__session_error_locked(quark_connection_t *conn, const Quark__Error *m) {
  const quark_code_t code = (quark_code_t)m->status;
  if (code == QUARK_NOT_FOUND) {
    /* The daemon does not know this connection: a message overtook HELLO, or somebody took the
     * session over. */
    if (conn->state != SESSION_GREETING) quark__session_connected_locked(conn);
  } else if (code == QUARK_DENIED) {
    deny(conn, m->text);
  } else {
    quark__session_die_locked(conn, code, m->text);
  }
}

/* Tries the key again. The folder of keys may have been rewritten, or its file system was away. */
static void ask_again(quark_connection_t *conn) {
  const int64_t since = quark__now_ms() - conn->denied_since;
  if (since > patience(conn) || since > RECONNECT_MS) {
    quark__session_die_locked(conn, QUARK_DENIED, conn->denied);
    return;
  }
  if (quark__now_ms() - conn->last_sent < DENIED_MS) return;
  conn->last_sent = quark__now_ms();
  if (!conn->reopen)
    quark__session_connected_locked(conn);
  else if (quark__open_control_locked(conn))
    conn->reopen = false;
  else
    quark__session_die_locked(conn, QUARK_IO_ERROR, "no connection to the daemon");
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
  const int64_t since = now - conn->seeking_since;
  if (conn->denied && conn->state != SESSION_BINDING) {
    ask_again(conn);
    return;
  }
  if (conn->was_open && since > patience(conn)) {
    char text[160];
    snprintf(text, sizeof text, "no answer from %.80s for %lld ms", conn->endpoint,
             (long long)patience(conn));
    quark__session_die_locked(conn, QUARK_TIMEOUT, text);
    return;
  }
  if (conn->was_open) tell_sought(conn, since);
  const bool extra = conn->state == SESSION_BINDING && conn->extra_data;
  if (conn->state == SESSION_SEEKING || now - conn->last_sent <= (extra ? EXTRA_MS : GREETING_MS))
    return;
  if (!quark__session_unreachable_locked(conn)) quark__session_connected_locked(conn);
}

void quark__session_leave_locked(quark_connection_t *conn) {
  const bool open = conn->state == SESSION_OPEN;
  if (open && !conn->keep_session) {
    Quark__Goodbye goodbye = QUARK__GOODBYE__INIT;
    Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
    message.body_case = QUARK__CLIENT_MESSAGE__BODY_GOODBYE;
    message.goodbye = &goodbye;
    send_now(conn, &message);
  }
  const int linger = open ? GOODBYE_LINGER : 0;
  zmq_setsockopt(conn->control, ZMQ_LINGER, &linger, sizeof linger);
}
