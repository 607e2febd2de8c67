/*
 * setups.h: reads the daemon's table of setups.
 *
 * quark_setups, quark_load, quark_drop and quark_make_default are in setups.c too.
 */
#ifndef QUARK_SETUPS_H
#define QUARK_SETUPS_H

#include "client/libquark/connection/connection.h"

/* Parameters as one text, "key=value;...". What has no room is left out as a whole. */
void quark__parameters_read(Quark__Setting *const *parameter, size_t n,
                            char text[QUARK_PARAMETER_TEXT]);

/* m NULL: there are none. */
void quark__deflation_read(quark_deflation_t *deflation, const Quark__DeflationReport *m);

/* Stores the setups of a STATUS, on the connection's thread; at most QUARK_SETUPS. */
void quark__setups_read_locked(quark_connection_t *conn, const Quark__StatusReport *m);

#endif
