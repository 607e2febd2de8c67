/*
 * h5wall.h: sums over time slices of solves for domain wall fermions (quark_wall.h), as the group
 * "wall" of a field file. client/README.md describes it.
 */
#ifndef QK_CLIENT_H5WALL_H
#define QK_CLIENT_H5WALL_H

#include <hdf5.h>
#include <stdint.h>

#include "client/files/wall.h"
#include "daemon/base/err.h"

/* Of a group `at`; nrhs and nt are expected. Nothing, and QK_OK, where it has no such group. Files
 * of others: QK_BAD_FORMAT, QK_DENIED (h5kit.h), QK_NO_MEMORY; wall is empty then. */
qk_status_t qk_h5wall_read(hid_t at, const char *where, int64_t nrhs, int nt, qk_wall_t *wall,
                           qk_err_t *err);

/* Nothing where wall has nothing. QK_IO_ERROR: file, object, cause. */
qk_status_t qk_h5wall_write(hid_t root, const char *where, const qk_wall_t *wall, qk_err_t *err);

#endif
