/*
 * eigenfile.h: eigenvalues in HDF5 files, and vectors of time slices.
 *
 * Layout  datasets "eigenvalue" and "residual", [n], or [t][n] of the Laplacian of time slices, 64
 *         bit; attributes of the root group as in the table of eigenfile.c. client/README.md
 *         describes each.
 * Vectors dataset "vectors" [t][n][z][y][x][colour], complex of 32 or 64 bit: a compound r, i, as
 *         h5py writes numpy's, or a last axis of two reals. Other things in the file do not count.
 * Errors  QK_IO_ERROR. A file that is written appears with its whole content at once. Of one that
 *         is read also QK_BAD_FORMAT (what is not as above), QK_BAD_GEOMETRY (extents), QK_DENIED
 *         (h5kit.h), QK_NO_MEMORY.
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

/* Vectors that are read, or written, one by one, whatever the file has. */
typedef struct qk_vectorsfile {
  int32_t dims[4]; /* x, y, z, t */
  uint32_t count;  /* of a time slice */
  int bits;        /* 32 or 64 */
  /* The rest is the file's own. */
  char path[4096], part[4096]; /* part: while it is written */
  char name[2][8];             /* members of the compound; "": two reals */
  int64_t handle, dataset;
} qk_vectorsfile_t;

qk_status_t qk_vectorsfile_open(const char *path, qk_vectorsfile_t *file, qk_err_t *err);
size_t qk_vectorsfile_bytes(const qk_vectorsfile_t *file); /* of a vector */
qk_status_t qk_vectorsfile_read(const qk_vectorsfile_t *file, uint32_t t, uint32_t n, void *vector,
                                qk_err_t *err);
/* Also after open or create has failed; without commit a file that was written goes. */
void qk_vectorsfile_close(qk_vectorsfile_t *file);

/* meta: as of values, in the attributes. */
qk_status_t qk_vectorsfile_create(const char *path, const qk_eigenmeta_t *meta, uint32_t count,
                                  int bits, qk_vectorsfile_t *file, qk_err_t *err);
/* Vector n of each time slice: [t][z][y][x][colour]. */
qk_status_t qk_vectorsfile_write(const qk_vectorsfile_t *file, uint32_t n, const void *slices,
                                 qk_err_t *err);
qk_status_t qk_vectorsfile_commit(qk_vectorsfile_t *file, qk_err_t *err);

#endif
