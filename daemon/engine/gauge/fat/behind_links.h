/*
 * behind_links.h: links of the hop of colour vectors (cuda/stag_ops.h) that begin on the rank
 * behind and lead to this one. Collective. Errors are noted on the device: QK_DEVICE_ERROR,
 * QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_BEHIND_LINKS_H
#define QK_ENGINE_BEHIND_LINKS_H

#include "daemon/engine/lattice/device.h"

/* behind: device memory of qk_stag_behind_bytes for a direction mu that is split, and `reach`
 * slices. send, recv: host memory of as many bytes each. Waits. */
void qk_behind_links(const qk_device_t *dev, const qk_links_t *links, int reach, int mu,
                     void *behind, void *send, void *recv);

#endif
