/*
 * swap.h: slabs that a rank and its two neighbours along one direction write into each other's
 * memory (peers.h), without the host: halos of links. As in halo.h, the rank behind is 0, the one
 * ahead 1.
 */
#ifndef QK_ENGINE_SWAP_H
#define QK_ENGINE_SWAP_H

#include "daemon/engine/lattice/device.h"

typedef struct qk_swap qk_swap_t;

/* For slabs of so many bytes, along mu. *swap is NULL if some rank does not share memory with both
 * its neighbours. Collective. Errors: as qk_peers_take. */
qk_status_t qk_swap_create(const qk_device_t *dev, int mu, size_t bytes, qk_swap_t **swap);
void qk_swap_destroy(qk_swap_t *swap); /* NULL-safe; not collective */

/* Where the slab for neighbour d of the next exchange belongs: in that rank's device memory. */
void *qk_swap_to(const qk_swap_t *swap, int d);
/* Once what is asked for on queue 0 has written both slabs: the exchange, on queue 0. Notes
 * failures. Collective. */
void qk_swap_make(qk_swap_t *swap);
/* The slab of neighbour d of the last exchange, until the next one has been made. */
void *qk_swap_from(const qk_swap_t *swap, int d);

#endif
