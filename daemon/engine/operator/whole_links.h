/*
 * whole_links.h: coarse matrices that the ranks have of their sites become those of the whole
 * lattice on every rank. Private to galerkin.c.
 */
#ifndef QK_ENGINE_WHOLE_LINKS_H
#define QK_ENGINE_WHOLE_LINKS_H

#include "daemon/engine/lattice/device.h"

/* to = from of all ranks, with their bits. cut: the device with the ranks' lattice; whole: with the
 * same lattice whole. Goes through the host, in pieces; waits. Collective. Errors:
 * QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_whole_links(const qk_device_t *cut, const qk_device_t *whole,
                           const qk_coarse_links_t *from, const qk_coarse_links_t *to);

#endif
