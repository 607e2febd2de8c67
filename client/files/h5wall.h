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

/* Nothing where wall has nothing. QK_IO_ERROR: file, object, cause. */
qk_status_t qk_h5wall_write(hid_t root, const char *where, const qk_wall_t *wall, qk_err_t *err);

#endif
