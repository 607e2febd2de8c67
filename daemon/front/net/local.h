/*
 * local.h: whole fields by descriptor, to and from clients on this machine (PROTOCOL.md, section
 * 14): a SOCK_SEQPACKET socket in the private folder, beside the two of ZeroMQ and on the same
 * loop.
 *
 * Trust     Only processes of this user, and of root, are let in. What comes is a sealed memfd that
 *           its client may still write to: libuv's threads copy it into a segment of the front's
 *           space (copy.h), two fields of a connection at a time, and they are taken in the order
 *           in which they were handed over. Solutions are handed out meanwhile. A connection with
 *           QK_LOCAL_PUTS fields that have not been taken is not read from, so that one that sends
 *           faster than its fields are copied waits.
 *           With CURVE the token came by a connection of a key: what that may not do any more ends
 *           here, too.
 * Offences  close the connection and nothing else: the client goes on with the data socket.
 */
#ifndef QK_FRONT_LOCAL_H
#define QK_FRONT_LOCAL_H

#include "daemon/front/net/net.h"

/* Opens the socket in net->dir. QK_IO_ERROR, QK_NO_MEMORY. */
qk_status_t qk_local_open(qk_net_t *net, qk_local_t **local, qk_err_t *err);
/* Before the loop ends, which waits for copies under way. NULL-safe, so are all below. */
void qk_local_close(qk_local_t *local);

/* What WELCOME names; NULL where there is none. */
const char *qk_local_path(const qk_local_t *local);
/* The session is no more: neither is its connection. */
void qk_local_drop(qk_local_t *local, const uint8_t *client_id);
/* Closes connections that do not say who they are. */
void qk_local_tick(qk_local_t *local, double now);

#endif
