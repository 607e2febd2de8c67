#include "client/files/h5meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/h5meta_impl.h"

static const char format[] = "quarkd field";

/* A column as it is in the file, with the name of its status. */
typedef struct record {
  char status[24], source[16];
  double true_residual, hq_residual, seconds;
  int64_t iterations;
  int32_t site[4], spin, colour, momentum[3], every, gamma, flavour;
  uint64_t seed;
} record_t;

typedef struct member {
  const char *name;
  qk_h5kind_t kind;
  size_t offset, size; /* of one number, or of the text */
  int count;
  bool is_unsigned;
} member_t;

#define MEMBER(name, kind, count, is_unsigned)                                                     \
  {                                                                                                \
#name, kind, offsetof(record_t, name), sizeof((record_t *)0)->name / (count), count,           \
        is_unsigned                                                                                \
  }
static const member_t members[] = {
    MEMBER(status, QK_H5_TEXT, 1, false),      MEMBER(true_residual, QK_H5_REAL, 1, false),
    MEMBER(iterations, QK_H5_INT, 1, false),   MEMBER(seconds, QK_H5_REAL, 1, false),
    MEMBER(source, QK_H5_TEXT, 1, false),      MEMBER(site, QK_H5_INT, 4, false),
    MEMBER(spin, QK_H5_INT, 1, false),         MEMBER(colour, QK_H5_INT, 1, false),
    MEMBER(seed, QK_H5_INT, 1, true),          MEMBER(momentum, QK_H5_INT, 3, false),
    MEMBER(every, QK_H5_INT, 1, false),        MEMBER(gamma, QK_H5_INT, 1, false),
    MEMBER(hq_residual, QK_H5_REAL, 1, false), MEMBER(flavour, QK_H5_INT, 1, false),
};
/* The last member is in files of two flavours only. */
enum { NMEMBER = sizeof members / sizeof members[0], NUSUAL = NMEMBER - 1 };

static hid_t text_type(size_t size) {
  hid_t type = H5Tcopy(H5T_C_S1);
  if (type >= 0 && (H5Tset_size(type, size) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0)) {
    H5Tclose(type);
    return -1;
  }
  return type;
}

/* Of fields of five dimensions alone, so that programs which know four find what they expect. */
typedef struct axes {
  char axes[64];
} axes_t;
static const qk_h5attr_t axes_attribute = QK_H5ATTR_TEXT(axes_t, axes);

qk_status_t qk_h5meta_write(hid_t root, const char *where, const qk_h5meta_t *meta, qk_err_t *err) {
  static const axes_t five = {QK_H5FILE_AXES_FIVE};
  int n;
  const qk_h5attr_t *attributes = qk_h5meta_members(&n);
  qk_status_t status = qk_h5format_write(root, where, format, QK_H5FILE_VERSION, err);
  if (status == QK_OK && meta->slices)
    status = qk_h5attr_write(root, where, &axes_attribute, 1, &five, err);
  return status != QK_OK ? status : qk_h5attr_write(root, where, attributes, n, meta, err);
}

qk_status_t qk_h5meta_read(hid_t root, const char *where, qk_h5meta_t *meta, qk_err_t *err) {
  bool ours;
  int n;
  const qk_h5attr_t *attributes = qk_h5meta_members(&n);
  const qk_status_t status = qk_h5format_read(root, where, format, QK_H5FILE_VERSION, &ours, err);
  return status != QK_OK ? status : qk_h5attr_read(root, where, attributes, n, meta, err);
}

qk_status_t qk_h5meta_site_reals(hid_t root, const char *where, int32_t *site_reals,
                                 qk_err_t *err) {
  static const qk_h5attr_t attribute = QK_H5ATTR(qk_h5meta_t, site_reals, QK_H5_INT, 1);
  qk_h5meta_t meta = {.site_reals = 0};
  const bool there = H5Aexists(root, "site_reals") > 0;
  qk_status_t status = qk_h5attr_read(root, where, &attribute, 1, &meta, err);
  if (status == QK_OK && there) status = qk_h5_check_site_reals(where, meta.site_reals, true, err);
  if (status == QK_OK) *site_reals = meta.site_reals;
  return status;
}

qk_status_t qk_h5meta_five(hid_t root, const char *where, bool *five, qk_err_t *err) {
  axes_t said = {""};
  const qk_status_t status = qk_h5attr_read(root, where, &axes_attribute, 1, &said, err);
  if (status != QK_OK) return status;
  if (*said.axes && strcmp(said.axes, QK_H5FILE_AXES_FIVE) != 0)
    return qk_fail(err, QK_UNSUPPORTED,
                   "%s: attribute axes = \"%s\": this program knows \"" QK_H5FILE_AXES_FIVE "\"",
                   where, said.axes);
  *five = *said.axes;
  return QK_OK;
}

static hid_t number_type(const member_t *m, bool in_file) {
  if (m->kind == QK_H5_REAL) return in_file ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE;
  if (m->is_unsigned) return in_file ? H5T_STD_U64LE : H5T_NATIVE_UINT64;
  if (m->size == 8) return in_file ? H5T_STD_I64LE : H5T_NATIVE_INT64;
  return in_file ? H5T_STD_I32LE : H5T_NATIVE_INT32;
}

/* The compound of the first n members of a record, packed in the file. */
static hid_t record_type(bool in_file, int n) {
  size_t packed = 0;
  for (int i = 0; i < n; i++) packed += members[i].size * (size_t)members[i].count;
  const hid_t record = H5Tcreate(H5T_COMPOUND, in_file ? packed : sizeof(record_t));
  size_t offset = 0;
  bool ok = record >= 0;
  for (int i = 0; i < n && ok; i++) {
    const member_t *m = &members[i];
    const hsize_t count = (hsize_t)m->count;
    const hid_t type = m->kind == QK_H5_TEXT ? text_type(m->size)
                       : m->count == 1       ? H5Tcopy(number_type(m, in_file))
                                             : H5Tarray_create2(number_type(m, in_file), 1, &count);
    ok = type >= 0 && H5Tinsert(record, m->name, in_file ? offset : m->offset, type) >= 0;
    offset += m->size * (size_t)m->count;
    if (type >= 0) H5Tclose(type);
  }
  if (ok) return record;
  if (record >= 0) H5Tclose(record);
  return -1;
}

static void to_record(record_t *r, const qk_h5column_t *c) {
  memset(r, 0, sizeof *r);
  snprintf(r->status, sizeof r->status, "%s", qk_status_name(c->status));
  snprintf(r->source, sizeof r->source, "%s", c->source);
  r->true_residual = c->true_residual;
  r->hq_residual = c->hq_residual;
  r->seconds = c->seconds;
  r->iterations = c->iterations;
  memcpy(r->site, c->site, sizeof r->site);
  r->spin = c->spin;
  r->colour = c->colour;
  r->seed = c->seed;
  memcpy(r->momentum, c->momentum, sizeof r->momentum);
  r->every = c->every;
  r->gamma = c->gamma;
  r->flavour = c->flavour;
}

static bool from_record(qk_h5column_t *c, const record_t *r) {
  qk_h5column_init(c);
  memcpy(c->source, r->source, sizeof c->source - 1);
  c->true_residual = r->true_residual;
  c->hq_residual = r->hq_residual;
  c->seconds = r->seconds;
  c->iterations = r->iterations;
  memcpy(c->site, r->site, sizeof c->site);
  c->spin = r->spin;
  c->colour = r->colour;
  c->seed = r->seed;
  memcpy(c->momentum, r->momentum, sizeof c->momentum);
  c->every = r->every;
  c->gamma = r->gamma;
  c->flavour = r->flavour;
  char name[sizeof r->status + 1];
  snprintf(name, sizeof name, "%.*s", (int)sizeof r->status, r->status);
  return qk_h5column_status(name, &c->status);
}

qk_status_t qk_h5column_write(hid_t root, const char *where, bool two, const qk_h5column_t *column,
                              int64_t n, qk_err_t *err) {
  const hsize_t extent = (hsize_t)n;
  const int nmember = two ? NMEMBER : NUSUAL;
  const hid_t file_type = record_type(true, nmember), memory_type = record_type(false, nmember);
  const hid_t space = H5Screate_simple(1, &extent, NULL);
  hid_t dataset = -1;
  qk_status_t status = QK_OK;
  record_t *record = malloc((size_t)n * sizeof *record);
  if (!record) {
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for %lld columns", where, (long long)n);
    goto out;
  }
  for (int64_t i = 0; i < n; i++) to_record(&record[i], &column[i]);
  if (file_type >= 0 && memory_type >= 0 && space >= 0)
    dataset = H5Dcreate2(root, "columns", file_type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (dataset < 0 || H5Dwrite(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, record) < 0)
    status = qk_h5_fail(err, QK_IO_ERROR, where, "dataset columns cannot be written");
out:
  if (dataset >= 0) H5Dclose(dataset);
  if (space >= 0) H5Sclose(space);
  if (memory_type >= 0) H5Tclose(memory_type);
  if (file_type >= 0) H5Tclose(file_type);
  free(record);
  return status;
}

static int64_t rows_of(hid_t dataset) {
  const hid_t space = H5Dget_space(dataset);
  if (space < 0) return -1;
  const int64_t rows =
      H5Sget_simple_extent_ndims(space) == 1 ? H5Sget_simple_extent_npoints(space) : -1;
  H5Sclose(space);
  return rows;
}

/* Members that the file does not have stay as they were. */
static bool read_records(hid_t dataset, record_t *record) {
  const hid_t memory_type = record_type(false, NMEMBER);
  if (memory_type < 0) return false;
  const bool ok = H5Dread(dataset, memory_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, record) >= 0;
  H5Tclose(memory_type);
  return ok;
}

qk_status_t qk_h5column_read(hid_t root, const char *where, int64_t n, qk_h5column_t **column,
                             qk_err_t *err) {
  if (H5Lexists(root, "columns", H5P_DEFAULT) <= 0) {
    *column = NULL;
    return QK_OK;
  }
  hid_t dataset;
  const qk_status_t opened = qk_h5_dataset(root, where, "columns", &dataset, err);
  if (opened != QK_OK) return opened;
  record_t *record = NULL;
  qk_h5column_t *c = NULL, empty;
  qk_status_t status = QK_OK;
  const int64_t rows = rows_of(dataset);
  if (rows != n) {
    status =
        qk_fail(err, QK_BAD_FORMAT, "%s: dataset columns has %lld rows, expected %lld as in field",
                where, (long long)rows, (long long)n);
    goto out;
  }
  record = malloc((size_t)n * sizeof *record);
  c = malloc((size_t)n * sizeof *c);
  if (!record || !c) {
    status = qk_fail(err, QK_NO_MEMORY, "%s: no memory for %lld columns", where, (long long)n);
    goto out;
  }
  qk_h5column_init(&empty);
  for (int64_t i = 0; i < n; i++) to_record(&record[i], &empty);
  if (!read_records(dataset, record)) {
    status = qk_h5_fail(err, QK_BAD_FORMAT, where, "dataset columns cannot be read");
    goto out;
  }
  for (int64_t i = 0; i < n; i++) {
    if (from_record(&c[i], &record[i])) continue;
    status = qk_fail(err, QK_BAD_FORMAT, "%s: columns[%lld].status = \"%.24s\" is not a status",
                     where, (long long)i, record[i].status);
    goto out;
  }
  *column = c;
  c = NULL;
out:
  free(c);
  free(record);
  H5Dclose(dataset);
  return status;
}
