/*
 * source.h: the right-hand sides that fills ask for: uploaded, generated, or made of a solution
 * (sequential); smeared where they say so.
 *
 * Sources with the same smearing are smeared together, up to a tile of them at a time. Collective.
 */
#ifndef QK_ENGINE_SOURCE_H
#define QK_ENGINE_SOURCE_H

#include "daemon/engine/port.h"

/* Puts source i into field[i] (full, double, one column) where verdict[i].code is QK_OK; a source
 * that cannot be made gets its reason there: BAD_ARGUMENT, IO_ERROR, and DEVICE_MEMORY or NO_MEMORY of
 * smearing. n: at most QK_SLOTS_MAX. A status other than QK_OK: the process cannot go on. */
qk_status_t qk_source_make(qk_port_t *port, int n, const qk_fill_t *const fill[],
                           qk_field_t *const field[], qk_err_t verdict[], qk_err_t *err);

#endif
