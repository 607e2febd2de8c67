#include "client/files/eigenfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/files/h5kit.h"
#include "client/files/publish.h"
#include "daemon/base/version.h"

enum { VERSION = 1, NAME_BYTES = 4096 };

static const qk_h5attr_t ATTRIBUTES[] = {
    QK_H5ATTR(qk_eigenmeta_t, dims, QK_H5_INT, 4),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, name),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, kind),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, action),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, gauge),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, digest),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, links),
    QK_H5ATTR_TEXT(qk_eigenmeta_t, program),
    QK_H5ATTR(qk_eigenmeta_t, boundary, QK_H5_REAL, 8),
    QK_H5ATTR(qk_eigenmeta_t, tolerance, QK_H5_REAL, 1),
    QK_H5ATTR(qk_eigenmeta_t, plaquette, QK_H5_REAL, 1),
};

/* Every second number from `first` on. */
static qk_status_t write_half(hid_t file, const char *path, const char *name, uint32_t slices,
                              uint32_t n, const double *pairs, int first, qk_err_t *err) {
  const hsize_t extent[2] = {slices, n}, count = (hsize_t)n * (slices ? slices : 1);
  const hid_t space =
      slices ? H5Screate_simple(2, extent, NULL) : H5Screate_simple(1, extent + 1, NULL);
  const hid_t set = space < 0 ? -1
                              : H5Dcreate2(file, name, H5T_IEEE_F64LE, space, H5P_DEFAULT,
                                           H5P_DEFAULT, H5P_DEFAULT);
  double *half = malloc((size_t)count * sizeof *half);
  for (hsize_t i = 0; half && i < count; i++) half[i] = pairs[2 * i + (hsize_t)first];
  const bool ok = half && set >= 0 &&
                  H5Dwrite(set, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, half) >= 0;
  qk_status_t status = QK_OK;
  if (!ok) status = qk_h5_fail(err, QK_IO_ERROR, path, "dataset %s cannot be written", name);
  if (set >= 0) H5Dclose(set);
  if (space >= 0) H5Sclose(space);
  free(half);
  return status;
}

static qk_status_t fill(hid_t file, const char *path, const qk_eigenmeta_t *meta, uint32_t slices,
                        uint32_t n, const double *pairs, qk_err_t *err) {
  qk_status_t status = qk_h5format_write(file, path, "quarkd eigenvalues", VERSION, err);
  if (status == QK_OK)
    status =
        qk_h5attr_write(file, path, ATTRIBUTES, sizeof ATTRIBUTES / sizeof *ATTRIBUTES, meta, err);
  if (status == QK_OK) status = write_half(file, path, "eigenvalue", slices, n, pairs, 0, err);
  return status == QK_OK ? write_half(file, path, "residual", slices, n, pairs, 1, err) : status;
}

qk_status_t qk_eigenfile_write(const char *path, const qk_eigenmeta_t *given, uint32_t slices,
                               uint32_t n, const double *pairs, qk_err_t *err) {
  char part[NAME_BYTES];
  qk_eigenmeta_t meta = *given;
  snprintf(meta.program, sizeof meta.program, "quarkd %s", qk_version());
  if (snprintf(part, sizeof part, "%s.part-%ld", path, (long)getpid()) >= (int)sizeof part)
    return qk_fail(err, QK_IO_ERROR, "%.200s: the name is too long", path);
  qk_h5_begin();
  errno = 0;
  const hid_t file = qk_h5_create(part);
  if (file < 0) return qk_h5_fail(err, QK_IO_ERROR, path, "cannot be created: %s", strerror(errno));
  qk_status_t status = fill(file, path, &meta, slices, n, pairs, err);
  const int fd = qk_h5_descriptor(file);
  if (status == QK_OK && (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || (fd >= 0 && fsync(fd) != 0)))
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be written: %s", strerror(errno));
  if (H5Fclose(file) < 0 && status == QK_OK)
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be closed");
  if (status == QK_OK) status = qk_publish(part, path, err);
  if (status != QK_OK) unlink(part);
  return status;
}
