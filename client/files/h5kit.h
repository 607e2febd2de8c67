/*
 * h5kit.h: helpers of the readers and writers of HDF5 files; used by h5*.c and corrfile.c only.
 *
 * Attributes are read and written by tables of (name, type, place in a struct), so reading and
 * writing cannot disagree. `where` in errors is the path of the file. Errors: QK_IO_ERROR,
 * QK_BAD_FORMAT, QK_TOO_LARGE (a text), QK_UNSUPPORTED (version).
 */
#ifndef QK_CLIENT_H5KIT_H
#define QK_CLIENT_H5KIT_H

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>

#include "client/files/h5meta.h"
#include "daemon/base/err.h"

/* Opens a file for reading. QK_IO_ERROR: it is not a regular file, but a FIFO or a folder. A file
 * made by others may refer to further files; those are never opened. */
qk_status_t qk_h5_open(const char *path, hid_t *file, qk_err_t *err);
/* Opens a group, or a dataset whose numbers are in the file itself, by a name with slashes. The
 * caller closes it. QK_DENIED, with the name: a soft link, a link into another file, external or
 * virtual storage. */
qk_status_t qk_h5_group(hid_t at, const char *where, const char *name, hid_t *group, qk_err_t *err);
qk_status_t qk_h5_dataset(hid_t at, const char *where, const char *name, hid_t *dataset,
                          qk_err_t *err);

/* Makes a new file. Fails if there is a file of that name, which is not ours. */
hid_t qk_h5_create(const char *part);
/* The descriptor by which HDF5 writes the file, which stays HDF5's; -1: there is none. */
int qk_h5_descriptor(hid_t file);

/* To be called before the first call about a file. HDF5 prints no errors and forgets earlier ones.
 * At the end of the process it does not try again to close what could not be written: HDF5 1.10
 * crashes on that. */
void qk_h5_begin(void);

/* Fills err with "path: what: cause", where cause is the innermost message of HDF5. Returns code.
 */
__attribute__((format(printf, 4, 5))) qk_status_t
qk_h5_fail(qk_err_t *err, qk_status_t code, const char *where, const char *fmt, ...);

/* Members that are not known are not written. */
qk_status_t qk_h5attr_write(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                            const void *values, qk_err_t *err);
/* Members that the file does not have stay as they were. The others must have the right class and
 * size. */
qk_status_t qk_h5attr_read(hid_t object, const char *where, const qk_h5attr_t *table, int n,
                           void *values, qk_err_t *err);

/* The attributes format and format_version. QK_UNSUPPORTED: the file is of another version. */
qk_status_t qk_h5format_write(hid_t root, const char *where, const char *format, int version,
                              qk_err_t *err);
qk_status_t qk_h5format_read(hid_t root, const char *where, const char *format, int version,
                             bool *is_format, qk_err_t *err);

/* QK_UNSUPPORTED: the attribute site_reals is not QK_H5_SITE_REALS; all: nor those of a doublet or
 * of colour vectors. */
qk_status_t qk_h5_check_site_reals(const char *where, int32_t site_reals, bool all, qk_err_t *err);

/* A compound of two reals; negative on failure. The caller closes it. */
hid_t qk_h5_complex_type(const char *re, const char *im, hid_t real);

#endif
