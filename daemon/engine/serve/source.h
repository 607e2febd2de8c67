/*
 * source.h: the right-hand sides that fills ask for: uploaded, generated, or made of a solution
 * (sequential); smeared where they say so.
 *
 * Sources with the same smearing are smeared together, up to a tile of them at a time. Collective.
 */
#ifndef QK_ENGINE_SOURCE_H
#define QK_ENGINE_SOURCE_H

#include "daemon/engine/serve/round.h"
#include "daemon/engine/setup/loaded.h"
#include "daemon/engine/transfer/port.h"
#include "daemon/engine/transfer/stage.h"

/* Puts source i into field[i] (full, double, one column) where verdict[i].code is QK_OK. What it
 * needs from shared memory stands in buffer[i], which is free afterwards, or is read now where
 * that is NULL. A source that cannot be made gets its reason in verdict[i]: BAD_ARGUMENT,
 * IO_ERROR, and DEVICE_MEMORY or NO_MEMORY of smearing. n: at most QK_SLOTS_MAX. A status other
 * than QK_OK: the process cannot go on. */
qk_status_t qk_source_make(qk_loaded_t *setup, qk_port_t *port, qk_stage_t *stage, int n,
                           const qk_fill_t *const fill[], qk_buffer_t *buffer[],
                           qk_field_t *const field[], qk_err_t verdict[], qk_err_t *err);

#endif
