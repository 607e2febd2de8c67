/*
 * local_given.h: local terms that are given as matrices: host memory, the local sites, x fastest,
 * each as in daemon/base/links/clover_term.h. Not collective.
 */
#ifndef QK_ENGINE_LOCAL_GIVEN_H
#define QK_ENGINE_LOCAL_GIVEN_H

#include "daemon/engine/lattice/device.h"

/* Into the matrices of `to`, in double, whose memory is there. QK_NO_MEMORY, QK_DEVICE_ERROR. */
qk_status_t qk_given_upload(const qk_device_t *dev, const double *term, const qk_local_t *to,
                            qk_err_t *err);

/* QK_BAD_ARGUMENT where a number is larger than `most`; the text names the first one and its site.
 */
qk_status_t qk_given_check(const qk_device_t *dev, const double *term, double most, qk_err_t *err);

/* QK_BAD_ARGUMENT of a term that is singular on so many sites; the text names the worst of them. */
qk_status_t qk_given_refuse(const qk_device_t *dev, const double *term, int64_t sites,
                            qk_err_t *err);

#endif
