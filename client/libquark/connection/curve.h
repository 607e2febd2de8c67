/*
 * curve.h: the CURVE keys of a connection, and the reason why a handshake fails.
 *
 * Without keys in the options nothing is encrypted, and all calls succeed.
 * Threads: quark__curve_init before the connection's thread starts; the others on that thread.
 */
#ifndef QUARK_CURVE_H
#define QUARK_CURVE_H

#include "client/quark.h"
#include "proto/key.h"

typedef struct curve {
  char server_key[QK_KEY_TEXT], public_key[QK_KEY_TEXT], secret_key[QK_KEY_TEXT]; /* "": no CURVE */
  int broken_handshakes;                                                          /* in a row */
} curve_t;

/* Takes the keys from the options. QUARK_BAD_ARGUMENT: one is missing or is no key;
 * QUARK_UNSUPPORTED: libzmq has no CURVE. */
quark_code_t quark__curve_init(curve_t *curve, const quark_options_t *options, quark_error_t *err);
/* Overwrites the secret key. */
void quark__curve_fini(curve_t *curve);
/* Sets the keys on a ZeroMQ socket that is not connected yet. */
bool quark__curve_guard(const curve_t *curve, void *socket);
/* Counts a handshake that failed; event and value are those of the socket's monitor. Returns the
 * reason, if it is known, as a constant text; NULL: a later handshake may succeed. was_open: a
 * session was open before, so the keys were right. */
const char *quark__curve_blame(curve_t *curve, uint16_t event, uint32_t value, bool was_open);

#endif
