/*
 * connection.h: the connection to the daemon: of rank 0, and of the other ranks if each sends and
 * fetches its bricks itself.
 */
#ifndef QUARK_QUDA_CONNECTION_H
#define QUARK_QUDA_CONNECTION_H

#include <stdbool.h>

#include "client/quark.h"

/* The connection of this rank. That of rank 0 is made at the first call, those of others by
 * qk_quda_joins. */
quark_connection_t *qk_quda_daemon(void);
void qk_quda_disconnect(void);
/* Another one, whose reports are of this setup; the caller closes it. */
quark_connection_t *qk_quda_connect(const char *setup);
/* Whether each rank joins requests of rank 0 and moves its own bricks; else these go through rank
 * 0. Called by all ranks together; the first time they connect. */
bool qk_quda_joins(void);
/* From now on they go through rank 0: the daemon knows no parts. By all ranks. */
void qk_quda_joins_not(void);
/* Sleeps before a call is tried again; the end if err is not worth it, or QUARK_QUDA_WAIT is over.
 * begun: qk_quda_now at the first try. */
void qk_quda_again(const char *what, const quark_error_t *err, double begun);
void qk_quda_nap(double seconds);
void qk_quda_program(char name[24]); /* of this process */

#endif
