/*
 * source.h: makes the right-hand sides of fills: uploaded, generated, or made of a solution
 * (sequential); smeared if requested.
 *
 * Sources with the same smearing are smeared together, up to a tile of them at a time. Collective.
 */
#ifndef QK_ENGINE_SOURCE_H
#define QK_ENGINE_SOURCE_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/field_io.h"
#include "daemon/engine/transfer/staging.h"

/* Puts source i into field[i] (full, double, one column) if verdict[i].code is QK_OK. Its data
 * from shared memory is in buffer[i], which is free afterwards; if that is NULL the data is read
 * now. If a source cannot be made, verdict[i] has the reason: BAD_ARGUMENT, IO_ERROR, and
 * DEVICE_MEMORY or NO_MEMORY of smearing. n: at most QK_SLOTS_MAX. A status other than QK_OK:
 * the process cannot continue. */
qk_status_t qk_source_make(qk_loaded_t *setup, qk_field_io_t *port, qk_staging_t *stage, int n,
                           const qk_fill_t *const fill[], qk_buffer_t *buffer[],
                           qk_field_t *const field[], qk_err_t verdict[], qk_err_t *err);

#endif
