/*
 * h5kit.h: what the writers and readers of HDF5 files share; used by h5*.c and corrfile.c only.
 *
 * Attributes are made from tables of (name, type, place in a struct), so that reading and writing
 * cannot disagree. `where` in errors is the path of the file. Errors: QK_IO_ERROR, QK_BAD_FORMAT,
 * QK_TOO_LARGE (a text), QK_UNSUPPORTED (version).
 */
#ifndef QK_CLIENT_H5KIT_H
#define QK_CLIENT_H5KIT_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

#include "daemon/base/err.h"

/* Files that others made are read as far as they are files of their own: nothing of another one is
 * opened on their word. The file: QK_IO_ERROR for what is no regular file, which a FIFO or a folder
 * is not. */
qk_status_t qk_h5_open(const char *path, hid_t *file, qk_err_t *err);
/* A group, or a dataset whose numbers stand in the file, by names with slashes: QK_DENIED for soft
 * links, links into other files, external and virtual storage, with the name of what it is. The
 * caller closes it. */
qk_status_t qk_h5_group(hid_t at, const char *where, const char *name, hid_t *group, qk_err_t *err);
qk_status_t qk_h5_dataset(hid_t at, const char *where, const char *name, hid_t *dataset,
                          qk_err_t *err);

/* A new file; what is there under that name is none of ours, and is not written to. */
hid_t qk_h5_create(const char *part);

typedef enum qk_h5kind {
  QK_H5_TEXT, /* char[]; empty: not known */
  QK_H5_REAL, /* double; NaN: not known */
  QK_H5_INT   /* int32_t */
} qk_h5kind_t;

typedef struct qk_h5attr {
  const char *name;
  qk_h5kind_t kind;
  size_t offset;
  int count; /* characters with the final zero, or numbers */
} qk_h5attr_t;

#define QK_H5ATTR(type, name, kind, count)                                                         \
  { #name, kind, offsetof(type, name), count }
#define QK_H5ATTR_TEXT(type, name) QK_H5ATTR(type, name, QK_H5_TEXT, (int)sizeof((type *)0)->name)

/* Before the first call about a file: errors are not printed, earlier ones are forgotten, and the end of the
 * process does not try again to close what could not be written, on which HDF5 1.10 crashes. */
void qk_h5_begin(void);

/* Fills err with "path: what: cause", cause being HDF5's innermost message; returns code. */
__attribute__((format(printf, 4, 5))) qk_status_t
qk_h5_fail(qk_err_t *err, qk_status_t code, const char *where, const char *fmt, ...);

/* Members that are not known are not written. */
qk_status_t qk_h5attr_write(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                            const void *values, qk_err_t *err);
/* What is not in the file stays as it was in values; what is there must have the right class and
 * size. */
qk_status_t qk_h5attr_read(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                           void *values, qk_err_t *err);

/* Attributes format and format_version. Reading: QK_UNSUPPORTED for this format in another version. */
qk_status_t qk_h5format_write(hid_t root, const char *where, const char *format, int version,
                              qk_err_t *err);
qk_status_t qk_h5format_read(hid_t root, const char *where, const char *format, int version,
                             bool *is_format, qk_err_t *err);

/* A compound of two reals; negative on failure. The caller closes it. */
hid_t qk_h5_complex_type(const char *re, const char *im, hid_t real);

/* The bytes of a closed file reach the disk before it takes its name. */
qk_status_t qk_h5_publish(const char *part, const char *path, qk_err_t *err);

#endif
