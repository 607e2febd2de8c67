/*
 * correlate.h: CONTRACT: propagators from shared memory, smeared at the sink where it says so, contracted,
 * and the correlators into shared memory.
 *
 * The propagators stand on the device in single where both came so, else in double, for the time of the
 * call; running slots are not touched. Collective.
 */
#ifndef QK_ENGINE_CORRELATE_H
#define QK_ENGINE_CORRELATE_H

#include "daemon/engine/port.h"

typedef void qk_tick_fn(void *arg);

/* tick is called between columns. *verdict: QK_OK where the object of what->shm_out holds the correlators,
 * else why not: BAD_ARGUMENT (an object of the wrong name or size), IO_ERROR, and DEVICE_MEMORY or
 * NO_MEMORY. A status other than QK_OK: the process cannot go on. */
qk_status_t qk_correlate_run(qk_port_t *port, const qk_correlate_t *what, qk_tick_fn *tick,
                             void *arg, qk_err_t *verdict, qk_err_t *err);

#endif
