/*
 * correlate.h: carries out CONTRACT: reads propagators from shared memory, smears them at the sink
 * if requested, contracts them, and writes the correlators to shared memory.
 *
 * Columns are prefetched like sources, through staging buffers (staging.h), during the solver's
 * iterations. Smearing runs between two solver steps; a contraction is queued before a step and
 * collected after it. Without buffers columns are read in one step. On the device the propagators
 * are in single if both came in single, else in double. Slots are not affected. All calls except
 * the queries are collective.
 */
#ifndef QK_ENGINE_CORRELATE_H
#define QK_ENGINE_CORRELATE_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/field_io.h"
#include "daemon/engine/transfer/staging.h"

typedef void qk_tick_fn(void *arg);

typedef struct qk_correlator qk_correlator_t; /* carries out one CONTRACT after the other */

/* Borrows setup, port and stage. */
qk_status_t qk_correlator_create(qk_loaded_t *setup, qk_field_io_t *port, qk_staging_t *stage,
                                 qk_correlator_t **correlator, qk_err_t *err);
void qk_correlator_destroy(qk_correlator_t *correlator); /* NULL-safe */

/* It is busy afterwards, or has ended with the verdict, as below. Here and below, a status other
 * than QK_OK means that the process cannot continue. */
qk_status_t qk_correlator_begin(qk_correlator_t *correlator, const qk_correlate_t *what,
                                qk_err_t *verdict, qk_err_t *err);
/* Advances the contraction, without waiting for columns under way; the caller polls the stage.
 * lacking: how many sources need a buffer and have none. tick is called between long parts.
 * *over: it is not busy any more. Then the verdict is QK_OK and the object of what->shm_out
 * holds the correlators, or the verdict has the reason: BAD_ARGUMENT (an object of the wrong
 * name or size), IO_ERROR, DEVICE_MEMORY, NO_MEMORY. */
qk_status_t qk_correlator_step(qk_correlator_t *correlator, int lacking, qk_tick_fn *tick,
                               void *arg, bool *over, qk_err_t *verdict, qk_err_t *err);
/* Discards the current CONTRACT, at any time. */
void qk_correlator_drop(qk_correlator_t *correlator);
/* Frees the device memory of propagators, which is kept for the next CONTRACT because allocating
 * it stops the solver for milliseconds. Not while it is busy. False: there was none. */
bool qk_correlator_rest(qk_correlator_t *correlator);

bool qk_correlator_busy(const qk_correlator_t *correlator);
/* Number of buffers that sources must leave free for it. */
int qk_correlator_wants(const qk_correlator_t *correlator);

#endif
