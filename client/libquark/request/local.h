/*
 * local.h: whole fields by descriptor, from and to a daemon on this machine.
 *
 * PUT hands over a field of an upload in the shared ring (upload.h); FETCH asks for a descriptor of
 * a solution. If the local socket cannot be opened or breaks, everything goes by chunks.
 *
 * Threads  The caller holds the mutex of the connection. The socket is not ZeroMQ's: every thread
 *          may send on it. Only the connection's thread reads.
 */
#ifndef QUARK_LOCAL_H
#define QUARK_LOCAL_H

#include "client/libquark/request/request.h"

/* Connects to the socket that WELCOME named; NULL: none. */
void quark__local_open_locked(quark_connection_t *conn, const char *path);
/* Tries again, if the socket had no room for one more client. */
void quark__local_tick_locked(quark_connection_t *conn);
/* Closes the socket. What was under way goes on by chunks. */
void quark__local_close_locked(quark_connection_t *conn);
/* True if the next field of the upload goes by descriptor. */
bool quark__local_takes(const quark_connection_t *conn, const request_t *request);
/* Sends what may be sent. False: the socket takes no more now. */
bool quark__local_send_locked(quark_connection_t *conn);
/* Takes the descriptors that have come. */
void quark__local_read_locked(quark_connection_t *conn);

#endif
