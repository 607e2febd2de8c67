/*
 * correlate.h: CONTRACT: propagators from shared memory, smeared at the sink where it says so, contracted,
 * and the correlators into shared memory.
 *
 * Columns come as sources do, through berths (stage.h), beside the solver's iterations; smearing and contracting
 * take their turn between two of them. Without berths all of it is done in one step. The propagators stand on the device in
 * single where both came so, else in double, for as long as the CONTRACT is under way; slots are not touched. Collective.
 */
#ifndef QK_ENGINE_CORRELATE_H
#define QK_ENGINE_CORRELATE_H

#include "daemon/engine/port.h"
#include "daemon/engine/stage.h"

typedef void qk_tick_fn(void *arg);

typedef struct qk_correlator qk_correlator_t; /* a CONTRACT under way */

/* *run NULL: it has ended with the verdict, as below. Borrows port and stage. A status other than QK_OK, here and below: the
 * process cannot go on. */
qk_status_t qk_correlate_begin(qk_port_t *port, qk_stage_t *stage, const qk_correlate_t *what,
                               qk_correlator_t **run, qk_err_t *verdict, qk_err_t *err);
/* Moves on, and does not wait for columns that are on their way; the stage is the caller's to poll. lacking: how many sources
 * have no berth and want one. tick is called between parts that take long. Where *over, the verdict is QK_OK, and the object of what->shm_out holds the correlators, or says why
 * not: BAD_ARGUMENT (an object of the wrong name or size), IO_ERROR, DEVICE_MEMORY, NO_MEMORY. */
qk_status_t qk_correlate_step(qk_correlator_t *run, int lacking, qk_tick_fn *tick, void *arg,
                              bool *over, qk_err_t *verdict, qk_err_t *err);
/* Berths that sources have to leave it. */
int qk_correlate_wants(const qk_correlator_t *run);
/* At any time: columns on their way are forgotten. NULL-safe. */
void qk_correlate_end(qk_correlator_t *run);

#endif
