/*
 * setups.h: the daemon, and its setup for an operator. Rank 0 alone calls these.
 */
#ifndef QUARK_QUDA_SETUPS_H
#define QUARK_QUDA_SETUPS_H

#include <stdbool.h>

#include "client/quark.h"
#include "operator.h"

/* The connection, made at the first call; rank 0 alone. */
quark_connection_t *qk_quda_daemon(void);
void qk_quda_disconnect(void);
/* The name of a ready setup of this operator: one that the daemon has, or a private one that is
 * loaded, which is waited for. Rank 0 alone. Valid until the next call. */
const char *qk_quda_setup(const qk_quda_operator_t *op);
/* Whether that setup is still of this operator: a public one may be replaced under its name. To be
 * asked when the daemon has accepted a request for it, which is then bound to what it was. */
bool qk_quda_setup_holds(const qk_quda_operator_t *op);
/* Forgets which setup it was: the next call loads one. */
void qk_quda_setup_lost(const qk_quda_operator_t *op);
/* Sleeps before a call is tried again; the end if err is not worth it, or QUARK_QUDA_WAIT is over.
 * begun: qk_quda_now at the first try. */
void qk_quda_again(const char *what, const quark_error_t *err, double begun);

#endif
