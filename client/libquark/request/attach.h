/*
 * attach.h: what the daemon says of a request of an earlier connection, or of eigenvectors.
 *
 * quark_attach is in attach.c too.
 */
#ifndef QUARK_ATTACH_H
#define QUARK_ATTACH_H

#include "client/libquark/connection/connection.h"

/* ATTACHED, on the connection's thread: stores parameters and columns, then accepts the request. */
void quark__attach_read_locked(quark_connection_t *conn, const Quark__Attached *m);

/* NULL: of none. */
quark_smearing_t quark__read_smearing(const Quark__Smearing *m);

#endif
