/*
 * links.h: the links of a configuration as an action needs them: on the device with their halo, and
 * as links of the hop in the precisions and forms that are wanted.
 *
 * Errors: those of the device, QK_NO_MEMORY; what was allocated is then the caller's.
 */
#ifndef QK_ENGINE_LINKS_H
#define QK_ENGINE_LINKS_H

#include "daemon/engine/action/action.h"

/* links (gauge.h, host memory) on the device with their halo, in double; the caller frees
 * gauge->u.data. Collective. */
qk_status_t qk_links_upload(const qk_device_t *dev, const double *links, qk_gauge_args_t *gauge,
                            qk_err_t *err);

/* Into parts->links, of in->gauge as they are. */
qk_status_t qk_links_set(const qk_action_in_t *in, qk_eo_parts_t *parts);

/* Device memory of what these make. */
int64_t qk_links_upload_bytes(const qk_lattice_t *lat);
int64_t qk_links_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                       const qk_action_params_t *params);

#endif
