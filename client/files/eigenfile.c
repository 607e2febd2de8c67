#include "client/files/eigenfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/files/h5kit.h"
#include "client/files/publish.h"
#include "daemon/base/version.h"

enum { VERSION = 1, NAME_BYTES = 4096, COLOURS = 3, RANK = 6, EXTENT_MAX = 65536 };

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

static qk_status_t describe(hid_t file, const char *path, const char *format,
                            const qk_eigenmeta_t *meta, qk_err_t *err) {
  const qk_status_t status = qk_h5format_write(file, path, format, VERSION, err);
  if (status != QK_OK) return status;
  return qk_h5attr_write(file, path, ATTRIBUTES, sizeof ATTRIBUTES / sizeof *ATTRIBUTES, meta, err);
}

static qk_status_t fill(hid_t file, const char *path, const qk_eigenmeta_t *meta, uint32_t slices,
                        uint32_t n, const double *pairs, qk_err_t *err) {
  qk_status_t status = describe(file, path, "quarkd eigenvalues", meta, err);
  if (status == QK_OK) status = write_half(file, path, "eigenvalue", slices, n, pairs, 0, err);
  return status == QK_OK ? write_half(file, path, "residual", slices, n, pairs, 1, err) : status;
}

/* A file that gets its name when it is complete. */
static qk_status_t create_part(const char *path, char part[NAME_BYTES], hid_t *file,
                               qk_err_t *err) {
  if (snprintf(part, NAME_BYTES, "%s.part-%ld", path, (long)getpid()) >= NAME_BYTES)
    return qk_fail(err, QK_IO_ERROR, "%.200s: the name is too long", path);
  qk_h5_begin();
  errno = 0;
  *file = qk_h5_create(part);
  if (*file >= 0) return QK_OK;
  return qk_h5_fail(err, QK_IO_ERROR, path, "cannot be created: %s", strerror(errno));
}

/* status: what came of it so far; if that is no success the file goes. */
static qk_status_t end_part(hid_t file, const char *part, const char *path, qk_status_t status,
                            qk_err_t *err) {
  const int fd = qk_h5_descriptor(file);
  if (status == QK_OK && (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || (fd >= 0 && fsync(fd) != 0)))
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be written: %s", strerror(errno));
  if (H5Fclose(file) < 0 && status == QK_OK)
    status = qk_h5_fail(err, QK_IO_ERROR, path, "cannot be closed");
  if (status == QK_OK) status = qk_publish(part, path, err);
  if (status != QK_OK) unlink(part);
  return status;
}

qk_status_t qk_eigenfile_write(const char *path, const qk_eigenmeta_t *given, uint32_t slices,
                               uint32_t n, const double *pairs, qk_err_t *err) {
  char part[NAME_BYTES];
  qk_eigenmeta_t meta = *given;
  hid_t file;
  snprintf(meta.program, sizeof meta.program, "quarkd %s", qk_version());
  const qk_status_t status = create_part(path, part, &file, err);
  if (status != QK_OK) return status;
  return end_part(file, part, path, fill(file, path, &meta, slices, n, pairs, err), err);
}

/* ---- vectors ------------------------------------------------------------------------------- */

/* Floats of 32 or 64 bit; 0: others. */
static int float_bits(hid_t type) {
  const size_t size = H5Tget_class(type) == H5T_FLOAT ? H5Tget_size(type) : 0;
  return size == 4 || size == 8 ? 8 * (int)size : 0;
}

/* The names of r and i, and their bits; 0: it is no such compound. */
static int compound_bits(hid_t type, char name[2][8]) {
  int bits[2] = {0, 0};
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2) return 0;
  for (unsigned i = 0; i < 2; i++) {
    const hid_t member = H5Tget_member_type(type, i);
    char *said = H5Tget_member_name(type, i);
    if (member >= 0 && said && said[0] == "ri"[i] && strlen(said) < sizeof name[i]) {
      bits[i] = float_bits(member);
      snprintf(name[i], sizeof name[i], "%s", said);
    }
    if (said) H5free_memory(said);
    if (member >= 0) H5Tclose(member);
  }
  return bits[0] == bits[1] ? bits[0] : 0;
}

static qk_status_t read_shape(qk_vectorsfile_t *f, qk_err_t *err) {
  hsize_t extent[RANK + 1] = {0};
  const hid_t type = H5Dget_type(f->dataset), space = H5Dget_space(f->dataset);
  const int rank = space < 0 ? 0 : H5Sget_simple_extent_ndims(space);
  const bool reals = rank == RANK + 1;
  if (rank == RANK || reals) H5Sget_simple_extent_dims(space, extent, NULL);
  f->bits = type < 0 ? 0 : reals ? float_bits(type) : compound_bits(type, f->name);
  if (type >= 0) H5Tclose(type);
  if (space >= 0) H5Sclose(space);
  if ((rank != RANK && !reals) || (reals && extent[RANK] != 2) || extent[RANK - 1] != COLOURS)
    return qk_fail(err, QK_BAD_FORMAT,
                   "%s: dataset \"vectors\" of %d dimensions: [t][n][z][y][x][3], complex or with "
                   "a last axis of 2, is needed",
                   f->path, rank);
  if (f->bits == 0)
    return qk_fail(err, QK_BAD_FORMAT,
                   "%s: the numbers of dataset \"vectors\" are not complex of 32 or 64 bit "
                   "(a compound r, i) and not reals with a last axis of 2",
                   f->path);
  for (int i = 0; i < RANK - 1; i++)
    if (extent[i] < 1 || extent[i] > EXTENT_MAX)
      return qk_fail(err, QK_BAD_GEOMETRY, "%s: extent %d of \"vectors\" is %llu, must be 1 to %d",
                     f->path, i, (unsigned long long)extent[i], EXTENT_MAX);
  f->count = (uint32_t)extent[1];
  f->dims[3] = (int32_t)extent[0];
  for (int mu = 0; mu < 3; mu++) f->dims[mu] = (int32_t)extent[4 - mu];
  return QK_OK;
}

size_t qk_vectorsfile_bytes(const qk_vectorsfile_t *f) {
  size_t bytes = 2 * COLOURS * (size_t)f->bits / 8;
  for (int mu = 0; mu < 3; mu++) bytes *= (size_t)f->dims[mu];
  return bytes;
}

qk_status_t qk_vectorsfile_open(const char *path, qk_vectorsfile_t *f, qk_err_t *err) {
  *f = (qk_vectorsfile_t){.handle = -1, .dataset = -1};
  if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
    return qk_fail(err, QK_IO_ERROR, "%.200s: the name is too long", path);
  hid_t at = -1;
  qk_status_t status = qk_h5_open(path, &at, err);
  f->handle = at;
  if (status != QK_OK) return status;
  status = qk_h5_dataset(at, path, "vectors", &at, err);
  if (status != QK_OK) return status;
  f->dataset = at;
  return read_shape(f, err);
}

qk_status_t qk_vectorsfile_read(const qk_vectorsfile_t *f, uint32_t t, uint32_t n, void *vector,
                                qk_err_t *err) {
  const int rank = *f->name[0] ? RANK : RANK + 1;
  const hsize_t start[RANK + 1] = {t, n};
  hsize_t count[RANK + 1] = {1, 1, 0, 0, 0, COLOURS, 2};
  for (int mu = 0; mu < 3; mu++) count[4 - mu] = (hsize_t)f->dims[mu];
  const hid_t real = f->bits == 32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  const hid_t type =
      rank == RANK ? qk_h5_complex_type(f->name[0], f->name[1], real) : H5Tcopy(real);
  const hid_t space = H5Dget_space(f->dataset), memory = H5Screate_simple(rank, count, NULL);
  const bool ok = type >= 0 && space >= 0 && memory >= 0 &&
                  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                  H5Dread(f->dataset, type, memory, space, H5P_DEFAULT, vector) >= 0;
  qk_status_t status = QK_OK;
  if (!ok)
    status =
        qk_h5_fail(err, QK_IO_ERROR, f->path, "vector %u of time slice %u cannot be read", n, t);
  if (memory >= 0) H5Sclose(memory);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return status;
}

static hid_t file_type(const qk_vectorsfile_t *f, bool native) {
  const hid_t wide = native ? H5T_NATIVE_DOUBLE : H5T_IEEE_F64LE,
              narrow = native ? H5T_NATIVE_FLOAT : H5T_IEEE_F32LE;
  return qk_h5_complex_type("r", "i", f->bits == 32 ? narrow : wide);
}

/* All vectors; number n of each time slice where n >= 0 is given. */
static hid_t space_of(const qk_vectorsfile_t *f, int64_t n) {
  hsize_t extent[RANK] = {(hsize_t)f->dims[3], f->count, 0, 0, 0, COLOURS}, start[RANK] = {0};
  for (int mu = 0; mu < 3; mu++) extent[4 - mu] = (hsize_t)f->dims[mu];
  const hid_t space = H5Screate_simple(RANK, extent, NULL);
  if (space < 0 || n < 0) return space;
  start[1] = (hsize_t)n;
  extent[1] = 1;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extent, NULL);
  return space;
}

qk_status_t qk_vectorsfile_create(const char *path, const qk_eigenmeta_t *given, uint32_t count,
                                  int bits, qk_vectorsfile_t *f, qk_err_t *err) {
  qk_eigenmeta_t meta = *given;
  hid_t file = -1;
  *f = (qk_vectorsfile_t){.count = count, .bits = bits, .handle = -1, .dataset = -1};
  memcpy(f->dims, meta.dims, sizeof f->dims);
  if (snprintf(f->path, sizeof f->path, "%s", path) >= (int)sizeof f->path)
    return qk_fail(err, QK_IO_ERROR, "%.200s: the name is too long", path);
  snprintf(meta.program, sizeof meta.program, "quarkd %s", qk_version());
  qk_status_t status = create_part(path, f->part, &file, err);
  if (status != QK_OK) return status;
  f->handle = file;
  status = describe(file, path, "quarkd vectors", &meta, err);
  if (status != QK_OK) return status;
  const hid_t type = file_type(f, false), space = space_of(f, -1);
  if (type >= 0 && space >= 0)
    f->dataset = H5Dcreate2(file, "vectors", type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  if (f->dataset >= 0) return QK_OK;
  return qk_h5_fail(err, QK_IO_ERROR, path, "dataset vectors cannot be created");
}

qk_status_t qk_vectorsfile_write(const qk_vectorsfile_t *f, uint32_t n, const void *slices,
                                 qk_err_t *err) {
  const hsize_t numbers = (hsize_t)f->dims[3] * qk_vectorsfile_bytes(f) / ((hsize_t)f->bits / 4);
  const hid_t type = file_type(f, true), space = space_of(f, n),
              memory = H5Screate_simple(1, &numbers, NULL);
  const bool ok = type >= 0 && space >= 0 && memory >= 0 &&
                  H5Dwrite(f->dataset, type, memory, space, H5P_DEFAULT, slices) >= 0;
  qk_status_t status = QK_OK;
  if (!ok) status = qk_h5_fail(err, QK_IO_ERROR, f->path, "vectors %u cannot be written", n);
  if (memory >= 0) H5Sclose(memory);
  if (space >= 0) H5Sclose(space);
  if (type >= 0) H5Tclose(type);
  return status;
}

qk_status_t qk_vectorsfile_commit(qk_vectorsfile_t *f, qk_err_t *err) {
  const hid_t file = f->handle;
  qk_status_t status = QK_OK;
  if (H5Dclose(f->dataset) < 0)
    status = qk_h5_fail(err, QK_IO_ERROR, f->path, "dataset vectors cannot be closed");
  f->dataset = f->handle = -1;
  return end_part(file, f->part, f->path, status, err);
}

void qk_vectorsfile_close(qk_vectorsfile_t *f) {
  if (f->dataset >= 0) H5Dclose(f->dataset);
  if (f->handle >= 0) {
    H5Fclose(f->handle);
    if (*f->part) unlink(f->part);
  }
  f->dataset = f->handle = -1;
}
