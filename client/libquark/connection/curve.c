#include "client/libquark/connection/curve.h"

#include <string.h>
#include <zmq.h>

#include "client/libquark/connection/error.h"

/* Broken handshakes in a row before the keys are blamed. The other side may be a daemon that is
 * just leaving, or a tunnel to one that is not there yet. */
enum { BROKEN_MOST = 5 };

quark_code_t quark__curve_init(curve_t *curve, const quark_options_t *options, quark_error_t *err) {
  char why[400];
  if (!options->server_key && !options->key_file) return QUARK_OK;
  if (!options->server_key || !options->key_file)
    return quark__fail(
        err, QUARK_BAD_ARGUMENT,
        "CURVE needs the daemon's public key and a key file of your own: %s is missing",
        options->server_key ? "the key file" : "the daemon's key");
  if (!zmq_has("curve"))
    return quark__fail(err, QUARK_UNSUPPORTED, "this libzmq was built without CURVE");
  if (!qk_key_valid(options->server_key))
    return quark__fail(err, QUARK_BAD_ARGUMENT, "the daemon's public key has %d characters of Z85",
                       QK_KEY_TEXT - 1);
  if (qk_key_read_secret(options->key_file, curve->secret_key, why, sizeof why) != QK_OK)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "key file %s", why);
  if (zmq_curve_public(curve->public_key, curve->secret_key) != 0)
    return quark__fail(err, QUARK_BAD_ARGUMENT, "key file %.300s: no secret key",
                       options->key_file);
  memcpy(curve->server_key, options->server_key, QK_KEY_TEXT);
  return QUARK_OK;
}

void quark__curve_fini(curve_t *curve) {
  explicit_bzero(curve->secret_key, sizeof curve->secret_key);
}

bool quark__curve_guard(const curve_t *curve, void *socket) {
  if (!*curve->server_key) return true;
  return zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, curve->server_key, QK_KEY_TEXT) == 0 &&
         zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, curve->public_key, QK_KEY_TEXT) == 0 &&
         zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, curve->secret_key, QK_KEY_TEXT) == 0;
}

const char *quark__curve_blame(curve_t *curve, uint16_t event, uint32_t value, bool was_open) {
  const bool used = *curve->server_key != '\0';
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
    return "the daemon does not know the key of this client";
  if (event == ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL &&
      value == ZMQ_PROTOCOL_ERROR_ZMTP_MECHANISM_MISMATCH)
    return used ? "the daemon is not set up for CURVE: leave the keys out"
                : "the daemon uses CURVE: give its public key and a key of your own";
  if (++curve->broken_handshakes >= BROKEN_MOST && used && !was_open)
    return "the handshake fails: the public key is not the daemon's, or it does not use CURVE";
  return NULL;
}
