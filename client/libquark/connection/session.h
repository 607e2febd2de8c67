/*
 * session.h: HELLO, WELCOME and BIND; what becomes of a session when the connection breaks.
 *
 * A session is sought, greeted, bound and open. If the connection breaks, HELLO is sent again with
 * the same client id until a daemon answers or the patience (reconnect_ms) is at its end. Then the
 * session is dead for good. The layers above are told through the handlers of the connection.
 *
 * Threads  All on the connection's thread, but quark__session_init and _fini, which run while
 *          there is none.
 */
#ifndef QUARK_SESSION_H
#define QUARK_SESSION_H

#include "client/libquark/connection/connection.h"

/* Takes user, program, client id and the other options. False: no memory or no random numbers. */
bool quark__session_init(quark_connection_t *conn, const quark_options_t *options);
void quark__session_fini(quark_connection_t *conn);

/* Greets the daemon: control is connected, or the session starts over. */
void quark__session_connected_locked(quark_connection_t *conn);
/* Seeks the daemon: control was lost. */
void quark__session_lost_locked(quark_connection_t *conn);
/* A handshake has failed: event and value are those of the socket's monitor. */
void quark__session_refused_locked(quark_connection_t *conn, uint16_t event, uint32_t value);
/* There is no way to the data endpoint. True: another one is tried. */
bool quark__session_unreachable_locked(quark_connection_t *conn);
/* Ends the session for good. Does nothing if it is dead already. */
void quark__session_die_locked(quark_connection_t *conn, quark_code_t code, const char *text);

/* WELCOME: opens the data socket and sends BIND. */
void quark__session_welcome_locked(quark_connection_t *conn, const Quark__Welcome *m);
/* BOUND: the session is open. */
void quark__session_bound_locked(quark_connection_t *conn);
/* A fatal ERROR: the session starts over or ends. */
void quark__session_error_locked(quark_connection_t *conn, const Quark__Error *m);

/* Keeps the lease, repeats HELLO, gives up. */
void quark__session_tick_locked(quark_connection_t *conn);
/* Sends GOODBYE, unless the session is to be left to its lease. */
void quark__session_leave_locked(quark_connection_t *conn);

#endif
