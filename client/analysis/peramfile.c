#include "client/analysis/peramfile.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/files/h5kit.h"
#include "client/files/publish.h"
#include "daemon/base/version.h"

enum { RANK = 6, NAME_BYTES = 4096, SLICES_MAX = QK_H5FILE_MAX_EXTENT };

static const char FORMAT[] = "quarkd perambulator";

static const qk_h5attr_t ATTRIBUTES[] = {
    QK_H5ATTR(qk_perammeta_t, dims, QK_H5_INT, 4),
    QK_H5ATTR(qk_perammeta_t, count, QK_H5_INT, 1),
    QK_H5ATTR(qk_perammeta_t, flavour, QK_H5_INT, 1),
    QK_H5ATTR_TEXT(qk_perammeta_t, vectors),
    QK_H5ATTR_TEXT(qk_perammeta_t, vectors_digest),
    QK_H5ATTR(qk_perammeta_t, lowest, QK_H5_REAL, 1),
    QK_H5ATTR(qk_perammeta_t, highest, QK_H5_REAL, 1),
    QK_H5ATTR(qk_perammeta_t, vector_residual, QK_H5_REAL, 1),
    QK_H5ATTR_TEXT(qk_perammeta_t, action),
    QK_H5ATTR_TEXT(qk_perammeta_t, basis),
    QK_H5ATTR_TEXT(qk_perammeta_t, normalisation),
    QK_H5ATTR_TEXT(qk_perammeta_t, digest),
    QK_H5ATTR(qk_perammeta_t, boundary, QK_H5_REAL, 8),
    QK_H5ATTR(qk_perammeta_t, tolerance, QK_H5_REAL, 1),
    QK_H5ATTR(qk_perammeta_t, tolerance_abs, QK_H5_REAL, 1),
    QK_H5ATTR(qk_perammeta_t, tolerance_hq, QK_H5_REAL, 1),
    /* what may be another one */
    QK_H5ATTR_TEXT(qk_perammeta_t, gauge),
    QK_H5ATTR(qk_perammeta_t, plaquette, QK_H5_REAL, 1),
    QK_H5ATTR_TEXT(qk_perammeta_t, program),
};
enum { ATTRIBUTES_N = sizeof ATTRIBUTES / sizeof *ATTRIBUTES, COMPARED = ATTRIBUTES_N - 3 };

struct qk_peramfile {
  char path[NAME_BYTES], part[NAME_BYTES + 8];
  hid_t file, tau, complete, residual, type; /* type: of a complex number; all < 0: not open */
  int n;
  hsize_t extent[RANK];
  uint8_t *has; /* [n] */
};

void qk_perammeta_init(qk_perammeta_t *m) {
  memset(m, 0, sizeof *m);
  m->lowest = m->highest = m->vector_residual = m->plaquette = NAN;
  m->tolerance = m->tolerance_abs = m->tolerance_hq = NAN;
}

/* ---- what is the same calculation ------------------------------------------------------------ */

static size_t bytes_of(const qk_h5attr_t *a) {
  const size_t one = a->kind == QK_H5_TEXT ? 1 : a->kind == QK_H5_REAL ? sizeof(double) : 4;
  return one * (size_t)a->count;
}

static bool same_member(const qk_h5attr_t *a, const char *x, const char *y) {
  if (a->kind == QK_H5_TEXT) return strcmp(x, y) == 0;
  if (a->kind == QK_H5_INT) return memcmp(x, y, bytes_of(a)) == 0;
  for (int i = 0; i < a->count; i++) {
    double u, v;
    memcpy(&u, x + (size_t)i * sizeof u, sizeof u);
    memcpy(&v, y + (size_t)i * sizeof v, sizeof v);
    if (u != v && !(isnan(u) && isnan(v))) return false;
  }
  return true;
}

static void print_member(const qk_h5attr_t *a, const char *x, char text[200]) {
  size_t n = 0;
  if (a->kind == QK_H5_TEXT) snprintf(text, 200, "%.190s", x);
  for (int i = 0; a->kind != QK_H5_TEXT && i < a->count && n < 180; i++) {
    double real;
    int32_t number;
    const char *blank = i > 0 ? " " : "";
    memcpy(&number, x + (size_t)i * (a->kind == QK_H5_INT ? sizeof number : sizeof real), 4);
    if (a->kind == QK_H5_REAL) memcpy(&real, x + (size_t)i * sizeof real, sizeof real);
    n += (size_t)(a->kind == QK_H5_INT ? snprintf(text + n, 200 - n, "%s%d", blank, number)
                                       : snprintf(text + n, 200 - n, "%s%.17g", blank, real));
  }
}

static qk_status_t compare(const char *where, const qk_perammeta_t *there,
                           const qk_perammeta_t *wanted, qk_err_t *err) {
  for (int i = 0; i < COMPARED; i++) {
    const qk_h5attr_t *a = &ATTRIBUTES[i];
    const char *x = (const char *)there + a->offset, *y = (const char *)wanted + a->offset;
    char has[200] = "", asked[200] = "";
    if (same_member(a, x, y)) continue;
    print_member(a, x, has);
    print_member(a, y, asked);
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%s: is of another calculation: its %s is %s, and not %s; give another name, or "
                   "remove it",
                   where, a->name, *has ? has : "not known", *asked ? asked : "not known");
  }
  return QK_OK;
}

/* ---- datasets -------------------------------------------------------------------------------- */

/* With its place in the file from now on. */
static hid_t create_dataset(hid_t file, const char *name, hid_t type, int rank,
                            const hsize_t *extent) {
  const hid_t space = H5Screate_simple(rank, extent, NULL), create = H5Pcreate(H5P_DATASET_CREATE);
  hid_t set = -1;
  if (space >= 0 && create >= 0 && H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY) >= 0 &&
      H5Pset_fill_time(create, H5D_FILL_TIME_NEVER) >= 0)
    set = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
  if (create >= 0) H5Pclose(create);
  if (space >= 0) H5Sclose(space);
  return set;
}

static bool write_whole(hid_t set, hid_t type, const void *data) {
  return set >= 0 && H5Dwrite(set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, data) >= 0;
}

static bool write_residuals(const qk_peramfile_t *f) {
  const size_t n = (size_t)(f->extent[0] * f->extent[1] * f->extent[2]);
  double *none = malloc(n * sizeof *none);
  for (size_t i = 0; none && i < n; i++) none[i] = NAN;
  const bool ok = none && write_whole(f->residual, H5T_NATIVE_DOUBLE, none);
  free(none);
  return ok;
}

/* The same shape, and numbers of the same size. */
static bool is_shaped(hid_t set, hid_t type, int rank, const hsize_t *extent) {
  hsize_t there[RANK] = {0};
  const hid_t space = H5Dget_space(set), own = H5Dget_type(set);
  bool same = space >= 0 && own >= 0 && H5Sget_simple_extent_ndims(space) == rank &&
              H5Sget_simple_extent_dims(space, there, NULL) == rank && H5Tequal(own, type) > 0;
  for (int i = 0; i < rank; i++) same = same && there[i] == extent[i];
  if (own >= 0) H5Tclose(own);
  if (space >= 0) H5Sclose(space);
  return same;
}

static qk_status_t open_dataset(const qk_peramfile_t *f, const char *name, hid_t type, int rank,
                                hid_t *set, qk_err_t *err) {
  hid_t found = -1;
  const qk_status_t status = qk_h5_dataset(f->file, f->part, name, &found, err);
  if (status != QK_OK) return status;
  *set = found;
  if (is_shaped(found, type, rank, f->extent)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "%s: is of another calculation: its dataset %s has other extents or numbers; give "
                 "another name, or remove it",
                 f->part, name);
}

/* ---- a file that is there -------------------------------------------------------------------- */

static qk_status_t check_times(const qk_peramfile_t *f, const int32_t t[], qk_err_t *err) {
  hid_t set = -1;
  int32_t *there = calloc((size_t)f->n, sizeof *there);
  qk_status_t status = there ? open_dataset(f, "t_source", H5T_STD_I32LE, 1, &set, err)
                             : qk_fail(err, QK_NO_MEMORY, "no memory for %d numbers", f->n);
  if (status == QK_OK && H5Dread(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, there) < 0)
    status = qk_h5_fail(err, QK_IO_ERROR, f->part, "dataset t_source cannot be read");
  for (int i = 0; i < f->n && status == QK_OK; i++)
    if (there[i] != t[i])
      status = qk_fail(err, QK_BAD_ARGUMENT,
                       "%s: is of another calculation: source %d is on time slice %d, and not %d; "
                       "give another name, or remove it",
                       f->part, i, there[i], t[i]);
  if (set >= 0) H5Dclose(set);
  free(there);
  return status;
}

static qk_status_t read_file(qk_peramfile_t *f, const qk_perammeta_t *wanted, const int32_t t[],
                             qk_err_t *err) {
  qk_perammeta_t there;
  bool is = false;
  qk_perammeta_init(&there);
  qk_status_t status = qk_h5format_read(f->file, f->part, FORMAT, QK_PERAMFILE_VERSION, &is, err);
  if (status == QK_OK && !is)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: is no file of a perambulator", f->part);
  if (status == QK_OK)
    status = qk_h5attr_read(f->file, f->part, ATTRIBUTES, ATTRIBUTES_N, &there, err);
  if (status == QK_OK) status = compare(f->part, &there, wanted, err);
  if (status == QK_OK) status = open_dataset(f, "perambulator", f->type, RANK, &f->tau, err);
  if (status == QK_OK)
    status = open_dataset(f, "true_residual", H5T_IEEE_F64LE, 3, &f->residual, err);
  if (status == QK_OK) status = open_dataset(f, "complete", H5T_STD_U8LE, 1, &f->complete, err);
  if (status == QK_OK) status = check_times(f, t, err);
  if (status == QK_OK &&
      H5Dread(f->complete, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, f->has) < 0)
    status = qk_h5_fail(err, QK_IO_ERROR, f->part, "dataset complete cannot be read");
  return status;
}

static qk_status_t open_to_write(qk_peramfile_t *f, qk_err_t *err) {
  struct stat st;
  if (stat(f->part, &st) != 0 || !S_ISREG(st.st_mode))
    return qk_fail(err, QK_IO_ERROR, "%s: is not a regular file", f->part);
  f->file = H5Fopen(f->part, H5F_ACC_RDWR, H5P_DEFAULT);
  if (f->file >= 0) return QK_OK;
  return qk_h5_fail(err, QK_BAD_FORMAT, f->part,
                    "cannot be gone on with: it is damaged, or another process writes it");
}

static qk_status_t open_file(qk_peramfile_t *f, const qk_perammeta_t *meta, const int32_t t[],
                             bool writes, qk_err_t *err) {
  const qk_status_t status = writes ? open_to_write(f, err) : qk_h5_open(f->part, &f->file, err);
  return status == QK_OK ? read_file(f, meta, t, err) : status;
}

/* ---- a new file ------------------------------------------------------------------------------ */

/* All that is in the caches of HDF5 and the system goes to the disk. */
static qk_status_t sync_file(const qk_peramfile_t *f, qk_err_t *err) {
  const int fd = qk_h5_descriptor(f->file);
  errno = 0;
  if (H5Fflush(f->file, H5F_SCOPE_GLOBAL) >= 0 && (fd < 0 || fsync(fd) == 0)) return QK_OK;
  return qk_h5_fail(err, QK_IO_ERROR, f->part, "cannot be written: %s", strerror(errno));
}

static qk_status_t fill_file(qk_peramfile_t *f, const qk_perammeta_t *given, const int32_t t[],
                             qk_err_t *err) {
  qk_perammeta_t meta = *given;
  snprintf(meta.program, sizeof meta.program, "quarkd %s", qk_version());
  qk_status_t status = qk_h5format_write(f->file, f->part, FORMAT, QK_PERAMFILE_VERSION, err);
  if (status == QK_OK)
    status = qk_h5attr_write(f->file, f->part, ATTRIBUTES, ATTRIBUTES_N, &meta, err);
  if (status != QK_OK) return status;
  f->tau = create_dataset(f->file, "perambulator", f->type, RANK, f->extent);
  f->residual = create_dataset(f->file, "true_residual", H5T_IEEE_F64LE, 3, f->extent);
  f->complete = create_dataset(f->file, "complete", H5T_STD_U8LE, 1, f->extent);
  const hid_t times = create_dataset(f->file, "t_source", H5T_STD_I32LE, 1, f->extent);
  const bool ok = f->tau >= 0 && write_whole(times, H5T_NATIVE_INT32, t) &&
                  write_whole(f->complete, H5T_NATIVE_UINT8, f->has) && write_residuals(f);
  if (times >= 0) H5Dclose(times);
  return ok ? sync_file(f, err) : qk_h5_fail(err, QK_IO_ERROR, f->part, "cannot be written");
}

/* It appears when all of its datasets have their place. */
static qk_status_t create_file(qk_peramfile_t *f, const qk_perammeta_t *meta, const int32_t t[],
                               qk_err_t *err) {
  char begun[NAME_BYTES + 40];
  snprintf(begun, sizeof begun, "%s-%ld", f->part, (long)getpid());
  qk_h5_begin();
  errno = 0;
  f->file = qk_h5_create(begun);
  if (f->file < 0)
    return qk_h5_fail(err, QK_IO_ERROR, f->part, "cannot be created: %s", strerror(errno));
  qk_status_t status = fill_file(f, meta, t, err);
  if (status == QK_OK) status = qk_publish(begun, f->part, err);
  if (status != QK_OK) unlink(begun);
  return status;
}

/* ---- life ------------------------------------------------------------------------------------ */

void qk_peramfile_close(qk_peramfile_t *f) {
  if (!f) return;
  if (f->tau >= 0) H5Dclose(f->tau);
  if (f->complete >= 0) H5Dclose(f->complete);
  if (f->residual >= 0) H5Dclose(f->residual);
  if (f->type >= 0) H5Tclose(f->type);
  if (f->file >= 0) H5Fclose(f->file);
  free(f->has);
  free(f);
}

/* NULL with the reason. */
static qk_peramfile_t *make(const char *path, const char *ending, const qk_perammeta_t *meta, int n,
                            int bits, qk_err_t *err) {
  if (n < 1 || n > SLICES_MAX || (bits != 32 && bits != 64)) {
    qk_fail(err, QK_BAD_ARGUMENT, "n, bits = %d, %d: 1 to %d, 32 or 64", n, bits, SLICES_MAX);
    return NULL;
  }
  qk_peramfile_t *f = calloc(1, sizeof *f);
  if (f) f->has = calloc((size_t)n, 1);
  if (!f || !f->has) {
    free(f);
    qk_fail(err, QK_NO_MEMORY, "%.200s: no memory", path);
    return NULL;
  }
  f->file = f->tau = f->complete = f->residual = -1;
  f->n = n;
  qk_h5_begin();
  f->type = qk_h5_complex_type("r", "i", bits == 64 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE);
  const hsize_t count = (hsize_t)meta->count, times = (hsize_t)meta->dims[3];
  const hsize_t extent[RANK] = {(hsize_t)n, QK_PERAM_SPINS, count, times, QK_PERAM_SPINS, count};
  memcpy(f->extent, extent, sizeof extent);
  const bool fits = snprintf(f->path, sizeof f->path, "%s", path) < (int)sizeof f->path &&
                    snprintf(f->part, sizeof f->part, "%s%s", path, ending) < NAME_BYTES;
  if (fits && f->type >= 0) return f;
  qk_peramfile_close(f);
  qk_fail(err, QK_IO_ERROR, "%.200s: the name is too long", path);
  return NULL;
}

qk_status_t qk_peramfile_open(const char *path, const qk_perammeta_t *meta, int n,
                              const int32_t t[], int bits, qk_peramfile_t **file, qk_err_t *err) {
  qk_peramfile_t *f = make(path, ".part", meta, n, bits, err);
  if (!f) return err->code;
  const bool there = access(f->part, F_OK) == 0;
  const qk_status_t status =
      there ? open_file(f, meta, t, true, err) : create_file(f, meta, t, err);
  if (status == QK_OK)
    *file = f;
  else
    qk_peramfile_close(f);
  return status;
}

qk_status_t qk_peramfile_is_done(const char *path, const qk_perammeta_t *meta, int n,
                                 const int32_t t[], int bits, bool *is, qk_err_t *err) {
  *is = access(path, F_OK) == 0;
  if (!*is) return QK_OK;
  qk_peramfile_t *f = make(path, "", meta, n, bits, err);
  if (!f) return err->code;
  const qk_status_t status = open_file(f, meta, t, false, err);
  qk_peramfile_close(f);
  return status;
}

bool qk_peramfile_has(const qk_peramfile_t *f, int i) {
  return f->has[i] == 1;
}

/* ---- numbers --------------------------------------------------------------------------------- */

/* One element of the first `rank` axes, all of the others. */
static bool write_at(hid_t set, hid_t type, int rank, const hsize_t *start, const hsize_t *count,
                     const void *data) {
  const hid_t space = H5Dget_space(set), memory = H5Screate_simple(rank, count, NULL);
  const bool ok = space >= 0 && memory >= 0 &&
                  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0 &&
                  H5Dwrite(set, type, memory, space, H5P_DEFAULT, data) >= 0;
  if (memory >= 0) H5Sclose(memory);
  if (space >= 0) H5Sclose(space);
  return ok;
}

qk_status_t qk_peramfile_write(qk_peramfile_t *f, int i, int spin0, int n0, const void *data,
                               double residual, qk_err_t *err) {
  const hsize_t start[RANK] = {(hsize_t)i, (hsize_t)spin0, (hsize_t)n0};
  const hsize_t count[RANK] = {1, 1, 1, f->extent[3], f->extent[4], f->extent[5]};
  errno = 0;
  if (write_at(f->tau, f->type, RANK, start, count, data) &&
      write_at(f->residual, H5T_NATIVE_DOUBLE, 3, start, count, &residual))
    return QK_OK;
  return qk_h5_fail(err, QK_IO_ERROR, f->part, "time slice %d cannot be written: %s", i,
                    strerror(errno));
}

qk_status_t qk_peramfile_complete(qk_peramfile_t *f, int i, qk_err_t *err) {
  const hsize_t start = (hsize_t)i, one = 1;
  const uint8_t yes = 1;
  qk_status_t status = sync_file(f, err);
  if (status != QK_OK) return status;
  if (!write_at(f->complete, H5T_NATIVE_UINT8, 1, &start, &one, &yes))
    return qk_h5_fail(err, QK_IO_ERROR, f->part, "time slice %d cannot be marked", i);
  status = sync_file(f, err);
  if (status == QK_OK) f->has[i] = 1;
  return status;
}

/* Two processes that begin at the same time: the first one has lost its file to the second. */
static bool is_ours(const qk_peramfile_t *f) {
  struct stat own, named;
  const int fd = qk_h5_descriptor(f->file);
  return fd < 0 || (fstat(fd, &own) == 0 && stat(f->part, &named) == 0 &&
                    own.st_ino == named.st_ino && own.st_dev == named.st_dev);
}

qk_status_t qk_peramfile_commit(qk_peramfile_t *f, qk_err_t *err) {
  qk_status_t status = sync_file(f, err);
  if (status == QK_OK && !is_ours(f))
    status =
        qk_fail(err, QK_IO_ERROR, "%s: has gone, or another process has begun it, too", f->part);
  H5Dclose(f->tau);
  H5Dclose(f->complete);
  H5Dclose(f->residual);
  const bool closed = H5Fclose(f->file) >= 0;
  f->file = f->tau = f->complete = f->residual = -1;
  if (status == QK_OK && !closed)
    status = qk_h5_fail(err, QK_IO_ERROR, f->part, "cannot be closed");
  return status == QK_OK ? qk_publish(f->part, f->path, err) : status;
}
