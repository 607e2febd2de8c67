/*
 * report.h: reads the daemon's report of itself.
 *
 * quark_status, quark_activity and quark_shutdown are in report.c too.
 */
#ifndef QUARK_REPORT_H
#define QUARK_REPORT_H

#include "client/libquark/connection/connection.h"

/* Stores report and activity of a STATUS, on the connection's thread. Unknown numbers are NaN or 0.
 */
void quark__report_read_locked(quark_connection_t *conn, const Quark__StatusReport *m);

#endif
