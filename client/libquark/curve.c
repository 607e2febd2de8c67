#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "client/libquark/internal.h"

/* Handshakes that the other side breaks off without a word, in a row, before keys are blamed: it may be a daemon that is
 * just leaving, or a tunnel to one that is not there yet. */
enum { BROKEN_MOST = 5 };

quark_code_t quark__curve_init(quark_connection_t *conn, const quark_options_t *options,
                               quark_error_t *err) {
  char why[400];
  if (!options->server_key && !options->key_file) return QUARK_OK;
  if (!options->server_key || !options->key_file)
    return quark__fail(err, QUARK_BAD_ARGUMENT,
                       "CURVE needs the daemon's public key and an own key file: %s is missing",
                       options->server_key ? "the key file" : "the daemon's key");
  if (!zmq_has("curve"))
    return quark__fail(err, QUARK_UNSUPPORTED, "this libzmq was built without CURVE");
  if (!qk_key_valid(options->server_key))
    return quark__fail(err, QUARK_BAD_ARGUMENT, "the daemon's public key has %d characters of Z85",
                       QK_KEY_TEXT - 1);
  if (qk_key_read_secret(options->key_file, conn->secret_key, why, sizeof why) != QK_OK)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "key file %s", why);
  if (zmq_curve_public(conn->public_key, conn->secret_key) != 0)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "key file %.300s: no secret key",
                       options->key_file);
  memcpy(conn->server_key, options->server_key, QK_KEY_TEXT);
  return QUARK_OK;
}

bool quark__curve_guard(const quark_connection_t *conn, void *socket) {
  if (!*conn->server_key) return true;
  return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, conn->server_key, QK_KEY_TEXT) == 0 &&
         zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, conn->public_key, QK_KEY_TEXT) == 0 &&
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, conn->secret_key, QK_KEY_TEXT) == 0;
}

void quark__curve_failed_locked(quark_connection_t *conn, uint16_t event, uint32_t value) {
  const bool curve = *conn->server_key != '\0';
  const char *why = NULL;
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
    why = "the daemon does not know the key of this client";
  else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
           value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
    why = curve ? "the daemon is not set up for CURVE: leave the keys out"
                : "the daemon wants CURVE: its public key and an own key are needed";
  else if (++conn->broken_handshakes >= BROKEN_MOST && curve && !conn->was_open)
    why = "the handshake breaks off: the public key is not the daemon's, or it does not use CURVE";
  if (!why) return;
  char text[256];
  snprintf(text, sizeof text, "%.120s: %s", conn->endpoint, why);
  conn->reopen = true;
  quark__session_denied_locked(conn, text);
}
