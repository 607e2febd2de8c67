/*
 * orders.h: queues ACK, CANCEL, RELEASE and PING.
 *
 * The caller holds the mutex of the connection. QUARK_NO_MEMORY. A message is lost if the
 * connection breaks before it is sent.
 */
#ifndef QUARK_ORDERS_H
#define QUARK_ORDERS_H

#include "client/libquark/connection/connection.h"

/* n = 0: all right-hand sides. */
quark_code_t quark__post_ack_locked(quark_connection_t *conn, uint64_t request, uint32_t *rhs,
                                    size_t n, quark_error_t *err);
/* rhs: an index or QUARK_ALL. */
quark_code_t quark__post_cancel_locked(quark_connection_t *conn, uint64_t request, int32_t rhs,
                                       quark_error_t *err);
quark_code_t quark__post_release_locked(quark_connection_t *conn, uint64_t request,
                                        quark_error_t *err);
quark_code_t quark__post_ping_locked(quark_connection_t *conn, quark_error_t *err);

#endif
