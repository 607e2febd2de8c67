#include "client/h5meta.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind { TEXT, REAL, INT } kind_t;

typedef struct attribute {
  const char *name;
  kind_t kind;
  size_t offset;
  int count; /* characters with the final zero, or numbers */
} attribute_t;

#define ATTRIBUTE(name, kind, count)                                                               \
  { #name, kind, offsetof(qk_h5meta_t, name), count }
#define TEXT_ATTRIBUTE(name) ATTRIBUTE(name, TEXT, (int)sizeof((qk_h5meta_t *)0)->name)
static const attribute_t attributes[] = {
    ATTRIBUTE(dims, INT, 4),       TEXT_ATTRIBUTE(kind),         TEXT_ATTRIBUTE(basis),
    TEXT_ATTRIBUTE(normalisation), ATTRIBUTE(kappa, REAL, 1),    ATTRIBUTE(mass, REAL, 1),
    ATTRIBUTE(csw, REAL, 1),       ATTRIBUTE(boundary, REAL, 8), ATTRIBUTE(plaquette, REAL, 1),
    ATTRIBUTE(tolerance, REAL, 1), TEXT_ATTRIBUTE(source),       TEXT_ATTRIBUTE(gauge),
    TEXT_ATTRIBUTE(digest),        TEXT_ATTRIBUTE(program),
};
enum { NATTRIBUTE = sizeof attributes / sizeof attributes[0] };

/* A column as it stands in the file: the status by its name. */
typedef struct record {
  char status[24], source[16];
  double true_residual, seconds;
  int64_t iterations;
  int32_t site[4], spin, colour;
  uint64_t seed;
} record_t;

typedef struct member {
  const char *name;
  kind_t kind;
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
    MEMBER(status, TEXT, 1, false),    MEMBER(true_residual, REAL, 1, false),
    MEMBER(iterations, INT, 1, false), MEMBER(seconds, REAL, 1, false),
    MEMBER(source, TEXT, 1, false),    MEMBER(site, INT, 4, false),
    MEMBER(spin, INT, 1, false),       MEMBER(colour, INT, 1, false),
    MEMBER(seed, INT, 1, true),
};
enum { NMEMBER = sizeof members / sizeof members[0] };

static herr_t first_cause(unsigned n, const H5E_error2_t *e, void *arg) {
  (void)n;
  *(const char **)arg = e->desc;
  return 1;
}

qk_status_t qk_h5_fail(qk_err_t *err, qk_status_t code, const char *where, const char *fmt, ...) {
  char text[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  const char *cause = NULL;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, first_cause, &cause);
  if (cause && *cause) return qk_fail(err, code, "%s: %s (HDF5: %s)", where, text, cause);
  return qk_fail(err, code, "%s: %s", where, text);
}

static bool is_known(const qk_h5meta_t *meta, const attribute_t *a) {
  const char *p = (const char *)meta + a->offset;
  if (a->kind == TEXT) return *p != 0;
  if (a->kind == REAL) return !isnan(*(const double *)(const void *)p);
  return true;
}

static hid_t text_type(size_t size) {
  hid_t type = H5Tcopy(H5T_C_S1);
  if (type >= 0 && (H5Tset_size(type, size) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0)) {
    H5Tclose(type);
    return -1;
  }
  return type;
}

static qk_status_t write_attribute(hid_t root, const char *where, const char *name, hid_t file_type,
                                   hid_t memory_type, int count, const void *value, qk_err_t *err) {
  const hsize_t n = (hsize_t)count;
  const hid_t space = count == 1 ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &n, NULL);
  const hid_t attribute =
      space < 0 ? -1 : H5Acreate2(root, name, file_type, space, H5P_DEFAULT, H5P_DEFAULT);
  const bool ok = attribute >= 0 && H5Awrite(attribute, memory_type, value) >= 0;
  qk_status_t status = QK_OK;
  if (!ok) status = qk_h5_fail(err, QK_IO_ERROR, where, "attribute %s cannot be written", name);
  if (attribute >= 0) H5Aclose(attribute);
  if (space >= 0) H5Sclose(space);
  return status;
}

/* Of variable length, UTF-8: what h5py shows as str. */
static qk_status_t write_text(hid_t root, const char *where, const char *name, const char *value,
                              qk_err_t *err) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  qk_status_t status;
  if (type < 0 || H5Tset_size(type, H5T_VARIABLE) < 0 || H5Tset_cset(type, H5T_CSET_UTF8) < 0)
    status = qk_h5_fail(err, QK_IO_ERROR, where, "attribute %s: no type", name);
  else
    status = write_attribute(root, where, name, type, type, 1, &value, err);
  if (type >= 0) H5Tclose(type);
  return status;
}

qk_status_t qk_h5meta_write(hid_t root, const char *where, const qk_h5meta_t *meta, qk_err_t *err) {
  const int32_t version = QK_H5FILE_VERSION;
  qk_status_t status = write_text(root, where, "format", "quarkd field", err);
  if (status == QK_OK)
    status = write_attribute(root, where, "format_version", H5T_STD_I32LE, H5T_NATIVE_INT32, 1,
                             &version, err);
  for (int i = 0; i < NATTRIBUTE && status == QK_OK; i++) {
    const attribute_t *a = &attributes[i];
    const char *value = (const char *)meta + a->offset;
    if (!is_known(meta, a)) continue;
    if (a->kind == TEXT)
      status = write_text(root, where, a->name, value, err);
    else if (a->kind == REAL)
      status = write_attribute(root, where, a->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, a->count,
                               value, err);
    else
      status = write_attribute(root, where, a->name, H5T_STD_I32LE, H5T_NATIVE_INT32, a->count,
                               value, err);
  }
  return status;
}

/* Fixed and variable length, any padding; at most size - 1 characters. */
static qk_status_t read_text(hid_t attribute, hid_t type, const char *where, const char *name,
                             char *value, size_t size, qk_err_t *err) {
  const hid_t memory = H5Tcopy(H5T_C_S1);
  const bool variable = H5Tis_variable_str(type) > 0;
  const size_t length = variable ? 0 : H5Tget_size(type);
  char *text = NULL;
  qk_status_t status = QK_OK;
  if (memory < 0 || H5Tset_cset(memory, H5Tget_cset(type)) < 0) goto unreadable;
  if (variable) {
    if (H5Tset_size(memory, H5T_VARIABLE) < 0 || H5Aread(attribute, memory, &text) < 0)
      goto unreadable;
  } else {
    if (length >= (1u << 16) || !(text = calloc(1, length + 1))) goto unreadable;
    if (H5Tset_size(memory, length + 1) < 0 || H5Aread(attribute, memory, text) < 0)
      goto unreadable;
  }
  if (text && strlen(text) >= size)
    status = qk_fail(err, QK_TOO_LARGE, "%s: attribute %s has %zu characters, at most %zu are read",
                     where, name, strlen(text), size - 1);
  else
    snprintf(value, size, "%s", text ? text : "");
  goto out;
unreadable:
  status = qk_h5_fail(err, QK_BAD_FORMAT, where, "attribute %s: text cannot be read", name);
out:
  if (variable && text)
    H5free_memory(text);
  else
    free(text);
  if (memory >= 0) H5Tclose(memory);
  return status;
}

static qk_status_t read_numbers(hid_t attribute, hid_t type, const char *where,
                                const attribute_t *a, void *value, qk_err_t *err) {
  const hid_t space = H5Aget_space(attribute);
  const hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
  if (space >= 0) H5Sclose(space);
  if (n != a->count)
    return qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s has %lld numbers, expected %d", where,
                   a->name, (long long)n, a->count);
  const H5T_class_t class = H5Tget_class(type);
  if (class != H5T_INTEGER && (class != H5T_FLOAT || a->kind == INT))
    return qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s is not %s", where, a->name,
                   a->kind == INT ? "an integer" : "a number");
  if (H5Aread(attribute, a->kind == INT ? H5T_NATIVE_INT32 : H5T_NATIVE_DOUBLE, value) < 0)
    return qk_h5_fail(err, QK_BAD_FORMAT, where, "attribute %s cannot be read", a->name);
  return QK_OK;
}

static qk_status_t read_attribute(hid_t root, const char *where, const attribute_t *a, void *value,
                                  qk_err_t *err) {
  if (H5Aexists(root, a->name) <= 0) return QK_OK;
  qk_status_t status = QK_OK;
  const hid_t attribute = H5Aopen(root, a->name, H5P_DEFAULT);
  const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
  if (type < 0)
    status = qk_h5_fail(err, QK_BAD_FORMAT, where, "attribute %s cannot be opened", a->name);
  else if (a->kind != TEXT)
    status = read_numbers(attribute, type, where, a, value, err);
  else if (H5Tget_class(type) != H5T_STRING)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s is not a text", where, a->name);
  else
    status = read_text(attribute, type, where, a->name, value, (size_t)a->count, err);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return status;
}

qk_status_t qk_h5meta_read(hid_t root, const char *where, qk_h5meta_t *meta, qk_err_t *err) {
  char format[64] = "";
  int32_t version = QK_H5FILE_VERSION;
  const attribute_t head[2] = {{"format", TEXT, 0, sizeof format}, {"format_version", INT, 0, 1}};
  qk_status_t status = read_attribute(root, where, &head[0], format, err);
  if (status == QK_OK && strcmp(format, "quarkd field") == 0) {
    status = read_attribute(root, where, &head[1], &version, err);
    if (status == QK_OK && version != QK_H5FILE_VERSION)
      status =
          qk_fail(err, QK_UNSUPPORTED, "%s: attribute format_version = %d, this program reads %d",
                  where, version, QK_H5FILE_VERSION);
  }
  for (int i = 0; i < NATTRIBUTE && status == QK_OK; i++)
    status = read_attribute(root, where, &attributes[i], (char *)meta + attributes[i].offset, err);
  return status;
}

static hid_t number_type(const member_t *m, bool in_file) {
  if (m->kind == REAL) return in_file ? H5T_IEEE_F64LE : H5T_NATIVE_DOUBLE;
  if (m->is_unsigned) return in_file ? H5T_STD_U64LE : H5T_NATIVE_UINT64;
  if (m->size == 8) return in_file ? H5T_STD_I64LE : H5T_NATIVE_INT64;
  return in_file ? H5T_STD_I32LE : H5T_NATIVE_INT32;
}

/* The compound of a record, packed in the file. */
static hid_t record_type(bool in_file) {
  size_t packed = 0;
  for (int i = 0; i < NMEMBER; i++) packed += members[i].size * (size_t)members[i].count;
  const hid_t record = H5Tcreate(H5T_COMPOUND, in_file ? packed : sizeof(record_t));
  size_t offset = 0;
  bool ok = record >= 0;
  for (int i = 0; i < NMEMBER && ok; i++) {
    const member_t *m = &members[i];
    const hsize_t count = (hsize_t)m->count;
    const hid_t type = m->kind == TEXT ? text_type(m->size)
                       : m->count == 1 ? H5Tcopy(number_type(m, in_file))
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
  r->seconds = c->seconds;
  r->iterations = c->iterations;
  memcpy(r->site, c->site, sizeof r->site);
  r->spin = c->spin;
  r->colour = c->colour;
  r->seed = c->seed;
}

static bool parse_status(const char *name, qk_status_t *status) {
#define X(NAME, number, retryable, text)                                                           \
  if (strcmp(name, #NAME) == 0) {                                                                  \
    *status = QK_##NAME;                                                                           \
    return true;                                                                                   \
  }
  QK_STATUS_TABLE(X)
#undef X
  return false;
}

static bool from_record(qk_h5column_t *c, const record_t *r) {
  qk_h5column_init(c);
  memcpy(c->source, r->source, sizeof c->source - 1);
  c->true_residual = r->true_residual;
  c->seconds = r->seconds;
  c->iterations = r->iterations;
  memcpy(c->site, r->site, sizeof c->site);
  c->spin = r->spin;
  c->colour = r->colour;
  c->seed = r->seed;
  char name[sizeof r->status + 1];
  snprintf(name, sizeof name, "%.*s", (int)sizeof r->status, r->status);
  return parse_status(name, &c->status);
}

qk_status_t qk_h5column_write(hid_t root, const char *where, const qk_h5column_t *column, int64_t n,
                              qk_err_t *err) {
  const hsize_t extent = (hsize_t)n;
  const hid_t file_type = record_type(true), memory_type = record_type(false);
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

/* Members that the file leaves out keep what is in record. */
static bool read_records(hid_t dataset, record_t *record) {
  const hid_t memory_type = record_type(false);
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
  const hid_t dataset = H5Dopen2(root, "columns", H5P_DEFAULT);
  if (dataset < 0) return qk_h5_fail(err, QK_BAD_FORMAT, where, "dataset columns cannot be opened");
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
