/*
 * event.h: signals on the descriptor of quark_fd whether an event is waiting.
 *
 * event.c also has quark_event_next. Any thread.
 */
#ifndef QUARK_EVENT_H
#define QUARK_EVENT_H

#include "client/libquark/connection/connection.h"

/* Makes the descriptor readable if an event waits, else not. */
void quark__event_update_locked(quark_connection_t *conn);

#endif
