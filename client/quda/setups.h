/*
 * setups.h: a setup of the daemon for an operator. Rank 0 alone calls these; the others wait in
 * qk_quda_attend meanwhile, as a setup may need their links.
 */
#ifndef QUARK_QUDA_SETUPS_H
#define QUARK_QUDA_SETUPS_H

#include <stdbool.h>

#include "client/quark.h"
#include "operator.h"

/* The name of a ready setup of this operator: one that the daemon has, or a private one that is
 * loaded, which is waited for. Rank 0 alone. Valid until the next call. */
const char *qk_quda_setup(const qk_quda_operator_t *op);
/* Whether that setup is still of this operator: a public one may be replaced under its name. To be
 * asked when the daemon has accepted a request for it, which is then bound to what it was. */
bool qk_quda_setup_holds(const qk_quda_operator_t *op);
/* Forgets which setup it was: the next call loads one. */
void qk_quda_setup_lost(const qk_quda_operator_t *op);
/* Forgets all. */
void qk_quda_setups_forget(void);

#endif
