/*
 * gather.h: a field of a lattice that is cut over the ranks becomes one that every rank has whole
 * (qk_geom_whole), and back.
 *
 * Ranks that share memory (peers.h) store what they have into the memory of all, announce it by
 * flags and wait for those of the others, all on the device, as in an exchange of halos
 * (cuda/peer_ops.h); a copy then brings the field from the half of that exchange to where it is
 * wanted, so that nobody has to say that it was read. Other ranks broadcast their parts through the
 * host, one after the other. Either way the bits are those of the parts: all ranks have the same.
 *
 * Buffers are allocated at the first field of a kind (precision, nrhs) and kept until destroy.
 * Calls of an iteration (device.h), on queue 0. Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR,
 * QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_GATHER_H
#define QK_ENGINE_GATHER_H

#include "daemon/engine/lattice/field.h"

typedef struct qk_gather qk_gather_t;

/* part: the ranks' lattice; whole: the same lattice, whole. Borrows both. Not collective. */
qk_status_t qk_gather_create(const qk_device_t *part, const qk_device_t *whole,
                             qk_gather_t **gather);
void qk_gather_destroy(qk_gather_t *gather); /* NULL-safe; not collective */

/* The room for this rank's part of fields like `whole`, full ones of that lattice in single or
 * double; it stays where it is. Without memory after a failure. Collective. */
qk_field_t qk_gather_room(qk_gather_t *gather, const qk_field_t *whole);
/* whole = what all ranks have in their room. Collective. */
void qk_gather_all(qk_gather_t *gather, qk_field_t *whole);
/* The room = this rank's part of it; the room is there already, or made: collective. */
qk_field_t qk_gather_own(qk_gather_t *gather, const qk_field_t *whole);

#endif
