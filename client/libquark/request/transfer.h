/*
 * transfer.h: sends uploads by chunks; quark_upload, quark_flush and quark_download are in
 * transfer.c too.
 *
 * Chunks go within the credit that the daemon grants, with a checksum for each field.
 */
#ifndef QUARK_TRANSFER_H
#define QUARK_TRANSFER_H

#include "client/libquark/connection/connection.h"

/* Sends what may be sent, on the connection's thread. False: the socket takes no more now. */
bool quark__transfer_send_locked(quark_connection_t *conn);

#endif
