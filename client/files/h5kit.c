#include "client/files/h5kit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void qk_h5_begin(void) {
  H5dont_atexit();
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  H5Eclear2(H5E_DEFAULT);
}

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
  if (!cause || !*cause) return qk_fail(err, code, "%s: %s", where, text);
  qk_fail(err, code, "%s: %s (HDF5: %s)", where, text, cause);
  /* HDF5 tells the time of an error as ctime does, with the end of a line */
  for (char *p = err ? strchr(err->text, '\n') : NULL; p; p = strchr(p, '\n')) *p = ' ';
  return code;
}

/* ---- files and objects of others --------------------------------------------------------------
 */

qk_status_t qk_h5_open(const char *path, hid_t *file, qk_err_t *err) {
  struct stat st;
  if (stat(path, &st) != 0 || access(path, R_OK) != 0)
    return qk_fail(err, QK_IO_ERROR, "%s: %s", path, strerror(errno));
  if (!S_ISREG(st.st_mode))
    return qk_fail(err, QK_IO_ERROR, "%s: is %s: an HDF5 file is needed", path,
                   S_ISDIR(st.st_mode)    ? "a folder"
                   : S_ISFIFO(st.st_mode) ? "a FIFO"
                                          : "not a regular file");
  qk_h5_begin();
  const hid_t f = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
  if (f < 0) return qk_h5_fail(err, QK_BAD_FORMAT, path, "is not an HDF5 file or is damaged");
  *file = f;
  return QK_OK;
}

/* The link must be a hard one. */
static qk_status_t check_link(hid_t at, const char *where, const char *name, qk_err_t *err) {
  H5L_info_t info;
  if (H5Lget_info(at, name, &info, H5P_DEFAULT) < 0)
    return qk_fail(err, QK_BAD_FORMAT, "%s: has no object \"%s\"", where, name);
  if (info.type == H5L_TYPE_HARD) return QK_OK;
  return qk_fail(err, QK_DENIED, "%s: object \"%s\" is %s, which is not followed", where, name,
                 info.type == H5L_TYPE_SOFT       ? "a soft link"
                 : info.type == H5L_TYPE_EXTERNAL ? "a link into another file"
                                                  : "a link of a kind that is not known");
}

/* Checks every link on the way to an object. */
static qk_status_t check_way(hid_t at, const char *where, const char *name, qk_err_t *err) {
  char *way = strdup(name);
  if (!way) return qk_fail(err, QK_NO_MEMORY, "%s: no memory for a name", where);
  qk_status_t status = QK_OK;
  for (char *p = way; *p && status == QK_OK;) {
    p += strspn(p, "/");
    p += strcspn(p, "/");
    const char end = *p;
    *p = '\0';
    if (way[strspn(way, "/.")]) status = check_link(at, where, way, err);
    *p = end;
  }
  free(way);
  return status;
}

static qk_status_t check_storage(hid_t dataset, const char *where, const char *name,
                                 qk_err_t *err) {
  const hid_t create = H5Dget_create_plist(dataset);
  const int elsewhere = create < 0 ? -1 : H5Pget_external_count(create);
  const H5D_layout_t layout = create < 0 ? H5D_LAYOUT_ERROR : H5Pget_layout(create);
  char file[256] = "";
  qk_status_t status = QK_OK;
  if (elsewhere < 0 || layout == H5D_LAYOUT_ERROR)
    status = qk_h5_fail(err, QK_BAD_FORMAT, where, "dataset \"%s\": no storage", name);
  else if (elsewhere > 0 && H5Pget_external(create, 0, sizeof file - 1, file, NULL, NULL) >= 0)
    status =
        qk_fail(err, QK_DENIED,
                "%s: the numbers of dataset \"%s\" stand in another file, %s, which is not opened",
                where, name, file);
  else if (elsewhere > 0 || layout == H5D_VIRTUAL)
    status = qk_fail(err, QK_DENIED,
                     "%s: the numbers of dataset \"%s\" stand in other files, which are not opened",
                     where, name);
  if (create >= 0) H5Pclose(create);
  return status;
}

typedef hid_t open_fn(hid_t at, const char *name, hid_t access);

/* what: "group" */
static qk_status_t open_at(hid_t at, const char *where, open_fn *open, const char *what,
                           const char *name, hid_t *object, qk_err_t *err) {
  const qk_status_t status = check_way(at, where, name, err);
  if (status != QK_OK) return status;
  const hid_t found = open(at, name, H5P_DEFAULT);
  if (found < 0)
    return qk_h5_fail(err, QK_BAD_FORMAT, where, "%s \"%s\" cannot be opened", what, name);
  *object = found;
  return QK_OK;
}

qk_status_t qk_h5_group(hid_t at, const char *where, const char *name, hid_t *group,
                        qk_err_t *err) {
  return open_at(at, where, H5Gopen2, "group", name, group, err);
}

qk_status_t qk_h5_dataset(hid_t at, const char *where, const char *name, hid_t *dataset,
                          qk_err_t *err) {
  hid_t found = H5I_INVALID_HID;
  qk_status_t status = open_at(at, where, H5Dopen2, "dataset", name, &found, err);
  if (status != QK_OK) return status;
  status = check_storage(found, where, name, err);
  if (status != QK_OK) H5Dclose(found);
  if (status == QK_OK) *dataset = found;
  return status;
}

hid_t qk_h5_create(const char *part) {
  unlink(part); /* of a process that died */
  return H5Fcreate(part, H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT);
}

int qk_h5_descriptor(hid_t file) {
  void *fd = NULL;
  const hid_t access = H5Fget_access_plist(file);
  const bool known = access >= 0 && H5Pget_driver(access) == H5FD_SEC2 &&
                     H5Fget_vfd_handle(file, access, &fd) >= 0 && fd;
  if (access >= 0) H5Pclose(access);
  return known ? *(const int *)fd : -1;
}

/* ---- attributes -------------------------------------------------------------------------------
 */

static bool is_known(const void *values, const qk_h5attr_t *a) {
  const char *p = (const char *)values + a->offset;
  if (a->kind == QK_H5_TEXT) return *p != 0;
  if (a->kind == QK_H5_REAL) return !isnan(*(const double *)(const void *)p);
  return true;
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

/* Writes a text of variable length in UTF-8, which h5py reads as str. */
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

qk_status_t qk_h5attr_write(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                            const void *values, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < n && status == QK_OK; i++) {
    const qk_h5attr_t *a = &table[i];
    const char *value = (const char *)values + a->offset;
    if (!is_known(values, a)) continue;
    if (a->kind == QK_H5_TEXT)
      status = write_text(object, where, a->name, value, err);
    else if (a->kind == QK_H5_REAL)
      status = write_attribute(object, where, a->name, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, a->count,
                               value, err);
    else
      status = write_attribute(object, where, a->name, H5T_STD_I32LE, H5T_NATIVE_INT32, a->count,
                               value, err);
  }
  return status;
}

/* Reads a text of fixed or variable length, with any padding, of at most size - 1 characters. */
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
                                const qk_h5attr_t *a, void *value, qk_err_t *err) {
  const hid_t space = H5Aget_space(attribute);
  const hssize_t n = space < 0 ? -1 : H5Sget_simple_extent_npoints(space);
  if (space >= 0) H5Sclose(space);
  if (n != a->count)
    return qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s has %lld numbers, expected %d", where,
                   a->name, (long long)n, a->count);
  const H5T_class_t class = H5Tget_class(type);
  if (class != H5T_INTEGER && (class != H5T_FLOAT || a->kind == QK_H5_INT))
    return qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s is not %s", where, a->name,
                   a->kind == QK_H5_INT ? "an integer" : "a number");
  if (H5Aread(attribute, a->kind == QK_H5_INT ? H5T_NATIVE_INT32 : H5T_NATIVE_DOUBLE, value) < 0)
    return qk_h5_fail(err, QK_BAD_FORMAT, where, "attribute %s cannot be read", a->name);
  return QK_OK;
}

static qk_status_t read_attribute(hid_t object, const char *where, const qk_h5attr_t *a,
                                  void *value, qk_err_t *err) {
  if (H5Aexists(object, a->name) <= 0) return QK_OK;
  qk_status_t status = QK_OK;
  const hid_t attribute = H5Aopen(object, a->name, H5P_DEFAULT);
  const hid_t type = attribute < 0 ? -1 : H5Aget_type(attribute);
  if (type < 0)
    status = qk_h5_fail(err, QK_BAD_FORMAT, where, "attribute %s cannot be opened", a->name);
  else if (a->kind != QK_H5_TEXT)
    status = read_numbers(attribute, type, where, a, value, err);
  else if (H5Tget_class(type) != H5T_STRING)
    status = qk_fail(err, QK_BAD_FORMAT, "%s: attribute %s is not a text", where, a->name);
  else
    status = read_text(attribute, type, where, a->name, value, (size_t)a->count, err);
  if (type >= 0) H5Tclose(type);
  if (attribute >= 0) H5Aclose(attribute);
  return status;
}

qk_status_t qk_h5attr_read(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                           void *values, qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (int i = 0; i < n && status == QK_OK; i++)
    status = read_attribute(object, where, &table[i], (char *)values + table[i].offset, err);
  return status;
}

typedef struct head {
  char format[64];
  int32_t version;
} head_t;

static const qk_h5attr_t head_attributes[] = {
    {"format", QK_H5_TEXT, offsetof(head_t, format), sizeof((head_t *)0)->format},
    {"format_version", QK_H5_INT, offsetof(head_t, version), 1},
};

qk_status_t qk_h5format_write(hid_t root, const char *where, const char *format, int version,
                              qk_err_t *err) {
  head_t head = {.version = version};
  snprintf(head.format, sizeof head.format, "%s", format);
  return qk_h5attr_write(root, where, head_attributes, 2, &head, err);
}

qk_status_t qk_h5format_read(hid_t root, const char *where, const char *format, int version,
                             bool *is_format, qk_err_t *err) {
  head_t head = {.version = version};
  qk_status_t status = qk_h5attr_read(root, where, head_attributes, 2, &head, err);
  if (status != QK_OK) return status;
  *is_format = strcmp(head.format, format) == 0;
  if (*is_format && head.version != version)
    return qk_fail(err, QK_UNSUPPORTED, "%s: attribute format_version = %d, this program reads %d",
                   where, head.version, version);
  return QK_OK;
}

qk_status_t qk_h5_check_site_reals(const char *where, int32_t site_reals, bool all, qk_err_t *err) {
  const char *kind = site_reals == 6                      ? ", as of staggered fermions"
                     : site_reals == QK_H5_TWO_SITE_REALS ? ", as of a doublet of flavours"
                                                          : "";
  if (site_reals == QK_H5_SITE_REALS) return QK_OK;
  if (all && (site_reals == QK_H5_TWO_SITE_REALS || site_reals == QK_H5_COLOUR_SITE_REALS))
    return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED,
                 "%s: attribute site_reals = %d: its fields have %d real numbers at a site%s; this "
                 "program knows those with %d (4 spins, 3 colours)%s",
                 where, site_reals, site_reals, kind, QK_H5_SITE_REALS,
                 all ? ", 48 (two flavours of these) and 6 (3 colours)" : "");
}

hid_t qk_h5_complex_type(const char *re, const char *im, hid_t real) {
  const size_t size = H5Tget_size(real);
  const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * size);
  if (type >= 0 && (H5Tinsert(type, re, 0, real) < 0 || H5Tinsert(type, im, size, real) < 0)) {
    H5Tclose(type);
    return -1;
  }
  return type;
}
