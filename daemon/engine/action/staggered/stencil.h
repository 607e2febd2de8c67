/*
 * stencil.h: the hop of staggered fermions as a stencil of eo.h, and its links.
 *
 *   hop(n) = - sum_mu eta_mu(n) [ F_mu(n) in(n+mu)  - F_mu(n-mu)^+  in(n-mu)
 *                               + L_mu(n) in(n+3mu) - L_mu(n-3mu)^+ in(n-3mu) ]
 *
 * with fat links F and, in actions that have them, long links L; eta: 1, (-1)^x, (-1)^(x+y),
 * (-1)^(x+y+z) in x, y, z, t. Fields are colour vectors (cuda/stag_ops.h). T is a number.
 */
#ifndef QK_ENGINE_STENCIL_H
#define QK_ENGINE_STENCIL_H

#include "daemon/engine/action/action.h"

/* Without long links, and with them. */
extern const qk_eo_stencil_t qk_stencil_fat, qk_stencil_fat_long;

/* parts->stag of links without signs, of 18 reals in double on the device, which it takes, also
 * after an error; naik.data NULL: there are none. The phases are those of parts. Collective.
 * QK_DEVICE_MEMORY, QK_NO_MEMORY, QK_COMM_ERROR, QK_DEVICE_ERROR: on all ranks; what was allocated
 * is then the caller's. */
qk_status_t qk_stencil_links(const qk_device_t *dev, qk_links_t fat, qk_links_t naik,
                             qk_eo_parts_t *parts, qk_err_t *err);

/* Device memory of these; making: beside them, of what is given. Pure. */
int64_t qk_stencil_bytes(const qk_ops_t *ops, const qk_lattice_t *lat, const bool want[QK_PRECS],
                         bool naik, bool making);

#endif
