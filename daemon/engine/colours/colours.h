/*
 * colours.h: contractions of colour vectors, step by step, for correlate.h.
 *
 * They are made in the memory of the host, where the propagators come from, and go to the device
 * only to be smeared and shifted there. A step does a part that ends in some tenths of a second, so
 * that slots, messages and heartbeats do not wait for it: a column that is read, a propagator that
 * is smeared, some time slices. All calls but the queries are collective, and all ranks take the
 * same number of steps.
 */
#ifndef QK_ENGINE_COLOURS_H
#define QK_ENGINE_COLOURS_H

#include "daemon/engine/colours/correlate_order.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/field_io.h"

typedef struct qk_colours qk_colours_t;

/* Whether its propagators need fields of three columns in double, for qk_colours_create. Pure. */
bool qk_colours_need_fields(const qk_correlate_t *what);

/* Borrows all but err; field: of a and b. Errors: QK_NO_MEMORY. */
qk_status_t qk_colours_create(qk_loaded_t *setup, qk_field_io_t *port, const qk_correlate_t *what,
                              qk_field_t *const field[2], qk_colours_t **colours, qk_err_t *err);
void qk_colours_destroy(qk_colours_t *colours); /* NULL-safe */

/* *over: numbers has the correlators of all channels, [channel][momentum][T]. */
qk_status_t qk_colours_step(qk_colours_t *colours, double *numbers, bool *over, qk_err_t *err);

/* When it is over: the largest number of each propagator on this rank; Inf: it is of single
 * precision, whose products a double holds. */
void qk_colours_largest(const qk_colours_t *colours, double largest[2]);

#endif
