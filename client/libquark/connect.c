#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/libquark/ask.h"
#include "client/libquark/connection/clock.h"
#include "client/libquark/connection/error.h"
#include "client/libquark/connection/session.h"
#include "client/libquark/handlers.h"
#include "client/libquark/request/request.h"

void quark_options_init(quark_options_t *options) {
  *options =
      (quark_options_t){.timeout_ms = 10000, .reconnect_ms = QUARK_RECONNECT_AUTO, .local = true};
}

/* The thread has ended, or was never started. */
static void destroy(quark_connection_t *conn) {
  quark__requests_destroy(conn->requests);
  free(conn->answers);
  quark__session_fini(conn);
  quark__connection_destroy(conn);
}

/* NULL: no memory or no descriptors. */
static quark_connection_t *create(const char *endpoint, const quark_options_t *options) {
  quark_connection_t *conn =
      quark__connection_create(endpoint, options->timeout_ms, &quark__handlers);
  if (!conn) return NULL;
  conn->requests = quark__requests_create(options->client_id != NULL);
  conn->answers = calloc(1, sizeof *conn->answers);
  if (conn->requests && conn->answers && quark__session_init(conn, options)) return conn;
  destroy(conn);
  return NULL;
}

/* Waits until the session is open or dead, or the time is over. */
static quark_code_t wait_open(quark_connection_t *conn, quark_error_t *err) {
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  quark_code_t code = QUARK_OK;
  pthread_mutex_lock(&conn->lock);
  while (conn->state != SESSION_OPEN && conn->state != SESSION_DEAD &&
         quark__wait_locked(conn, deadline))
    continue;
  if (conn->state == SESSION_DEAD)
    code = quark__hand_on(err, &conn->death);
  else if (conn->state != SESSION_OPEN)
    code = quark__fail(err, QUARK_TIMEOUT, "no answer from %s within %u ms%s", conn->endpoint,
                       conn->timeout_ms,
                       conn->curve.broken_handshakes ? ": the handshake breaks off" : "");
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_connect(const char *endpoint, const quark_options_t *options,
                           quark_connection_t **conn, quark_error_t *err) {
  quark_options_t defaults;
  quark_options_init(&defaults);
  if (!options) options = &defaults;
  quark_connection_t *c = create(endpoint, options);
  if (!c) return quark__fail(err, QUARK_NO_MEMORY, "no memory or descriptors for a connection");
  quark_code_t code = quark__curve_init(&c->curve, options, err);
  if (code != QUARK_OK) goto fail;
  if (!quark__connection_open(c)) {
    code =
        quark__fail(err, errno == EMFILE || errno == ENOMEM ? QUARK_NO_MEMORY : QUARK_BAD_ARGUMENT,
                    "endpoint \"%s\": %s", endpoint, zmq_strerror(errno));
    goto fail;
  }
  if (!quark__connection_start(c)) {
    code = quark__fail(err, QUARK_NO_MEMORY, "no thread for a connection");
    goto fail;
  }
  if ((code = wait_open(c, err)) == QUARK_OK)
    *conn = c;
  else
    quark_close(c);
  return code;
fail:
  destroy(c);
  return code;
}

void quark_close(quark_connection_t *conn) {
  if (!conn) return;
  quark__connection_stop(conn);
  destroy(conn);
}

void quark_client_id(const quark_connection_t *conn, uint8_t id[QUARK_CLIENT_ID_BYTES]) {
  memcpy(id, conn->client_id, QK_CLIENT_ID);
}

bool quark_resumed(const quark_connection_t *conn) {
  return conn->resumed;
}

int quark_fd(const quark_connection_t *conn) {
  return conn->events;
}
