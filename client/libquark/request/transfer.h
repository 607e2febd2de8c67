/*
 * transfer.h: sends uploads by chunks; quark_upload, quark_flush and quark_download are in
 * transfer.c too.
 *
 * Chunks go within the credit that the daemon grants, with a checksum for each field.
 */
#ifndef QUARK_TRANSFER_H
#define QUARK_TRANSFER_H

#include "client/libquark/connection/connection.h"

/* A solution in memory of the daemon. */
typedef struct shared {
  int fd;    /* -1: it is not in such memory; the receiver closes it */
  bool ours; /* the daemon is root's or runs as our user */
} shared_t;

/* What quark_download says, but for the copy from shared memory: the solution is in buffer or in
 * *shared. shared is set also on error. Without the mutex. */
quark_code_t quark__fetch(quark_connection_t *conn, uint64_t request, uint32_t rhs, void *buffer,
                          size_t bytes, shared_t *shared, quark_error_t *err);
/* The copy; nothing if it is in buffer already. */
quark_code_t quark__copy_shared(const shared_t *shared, void *buffer, size_t bytes,
                                quark_error_t *err);

/* Sends what may be sent, on the connection's thread. False: the socket takes no more now. */
bool quark__transfer_send_locked(quark_connection_t *conn);

#endif
