/*
 * eigenfile.h: eigenvalues in HDF5 files.
 *
 * Layout  datasets "eigenvalue" and "residual", [n], or [t][n] of the Laplacian of time slices, 64
 *         bit; attributes of the root group as in the table of eigenfile.c. client/README.md
 *         describes each.
 * Errors  QK_IO_ERROR. The file appears with its whole content at once.
 */
#ifndef QK_CLIENT_EIGENFILE_H
#define QK_CLIENT_EIGENFILE_H

#include "client/files/h5meta.h"
#include "daemon/base/err.h"

/* Unknown numbers are NaN; unknown texts are empty. */
typedef struct qk_eigenmeta {
  int32_t dims[4]; /* x, y, z, t */
  char name[72], kind[16], action[QK_OPERATOR_TEXT], gauge[1024], digest[40], links[128],
      program[64]; /* program: filled in */
  double boundary[8], tolerance, plaquette;
} qk_eigenmeta_t;

/* pairs: eigenvalue, residual, [slices][n]; slices 0: one dataset of n. */
qk_status_t qk_eigenfile_write(const char *path, const qk_eigenmeta_t *meta, uint32_t slices,
                               uint32_t n, const double *pairs, qk_err_t *err);

#endif
