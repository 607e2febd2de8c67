/*
 * interrupt.h: SIGINT and SIGTERM, which end long work at the next place that it can be left at; a
 * second one ends the program at once.
 */
#ifndef QK_GAUGE_TOOL_INTERRUPT_H
#define QK_GAUGE_TOOL_INTERRUPT_H

#include <stdbool.h>

#include "daemon/comm/comm.h"

/* From here on. Not collective. */
void qk_interrupt_catch(void);
/* Whether a signal has come, on any rank; *yes is the same on all. Collective. QK_COMM_ERROR. */
qk_status_t qk_interrupt_asked(qk_comm_t *comm, bool *yes, qk_err_t *err);

#endif
