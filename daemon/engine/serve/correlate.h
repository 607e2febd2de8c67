/*
 * correlate.h: CONTRACT: propagators from shared memory, smeared at the sink where it says so,
 * contracted, and the correlators into shared memory.
 *
 * Columns come as sources do, through buffers (stage.h), beside the solver's iterations; smearing
 * takes its turn between two of them, and contracting goes before one and is done behind it.
 * Without buffers columns are read in one step. The propagators stand on the device in single
 * where both came so, else in double; slots are not touched. All but the queries is collective.
 */
#ifndef QK_ENGINE_CORRELATE_H
#define QK_ENGINE_CORRELATE_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/port.h"
#include "daemon/engine/transfer/stage.h"

typedef void qk_tick_fn(void *arg);

typedef struct qk_correlator qk_correlator_t; /* carries out one CONTRACT after the other */

/* Borrows setup, port and stage. */
qk_status_t qk_correlator_create(qk_loaded_t *setup, qk_port_t *port, qk_stage_t *stage,
                                 qk_correlator_t **correlator, qk_err_t *err);
void qk_correlator_destroy(qk_correlator_t *correlator); /* NULL-safe */

/* Busy from then on, or it has ended with the verdict, as below. A status other than QK_OK, here
 * and below: the process cannot go on. */
qk_status_t qk_correlator_begin(qk_correlator_t *correlator, const qk_correlate_t *what,
                                qk_err_t *verdict, qk_err_t *err);
/* Moves on, and does not wait for columns that are on their way; the stage is the caller's to
 * poll. lacking: how many sources have no buffer and want one. tick is called between parts that
 * take long. Where *over it is not busy any more, the verdict is QK_OK, and the object of
 * what->shm_out holds the correlators, or says why not: BAD_ARGUMENT (an object of the wrong name
 * or size), IO_ERROR, DEVICE_MEMORY, NO_MEMORY. */
qk_status_t qk_correlator_step(qk_correlator_t *correlator, int lacking, qk_tick_fn *tick,
                               void *arg, bool *over, qk_err_t *verdict, qk_err_t *err);
/* At any time: the CONTRACT under way is forgotten. */
void qk_correlator_drop(qk_correlator_t *correlator);
/* Gives back the device memory of propagators, which is kept for the next CONTRACT: making it anew
 * stops the solver for milliseconds. Not while it is busy. False: there was none. */
bool qk_correlator_rest(qk_correlator_t *correlator);

bool qk_correlator_busy(const qk_correlator_t *correlator);
/* Buffers that sources have to leave it. */
int qk_correlator_wants(const qk_correlator_t *correlator);

#endif
