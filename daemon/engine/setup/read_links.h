/*
 * read_links.h: the links of a setup: read, judged, and brought to the gauge that LOAD asks for.
 */
#ifndef QK_ENGINE_READ_LINKS_H
#define QK_ENGINE_READ_LINKS_H

#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/lattice/device.h"
#include "daemon/engine/setup/clocks.h"
#include "daemon/engine/setup/load.h"

/* links: host memory for the local part, in the order of gauge.h; *check, and with it the digest,
 * is of what stands there in the end. While the gauge is fixed the device holds links and
 * transformation in double, 720 bytes a site and their halos. progress: phases "read", "check" and,
 * if the gauge is fixed, "fix", in percent of the digits of theta. Collective. Errors: those of
 * qk_gauge_read and qk_gauge_judge; QK_NOT_CONVERGED (theta), QK_UNSUPPORTED (an open boundary),
 * QK_DEVICE_MEMORY. */
qk_status_t qk_read_links(const qk_load_t *load, const qk_device_t *dev,
                          const qk_gauge_info_t *info, qk_clocks_t *clocks,
                          qk_progress_fn *progress, void *arg, double *links,
                          qk_gauge_check_t *check, qk_err_t *err);

#endif
