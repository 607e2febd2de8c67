/*
 * event.h: whether an event waits, for the descriptor of quark_fd.
 *
 * quark_event_next is in event.c too. From any thread.
 */
#ifndef QUARK_EVENT_H
#define QUARK_EVENT_H

#include "client/libquark/connection/connection.h"

/* Makes the descriptor readable if an event waits, else not. */
void quark__event_update_locked(quark_connection_t *conn);

#endif
