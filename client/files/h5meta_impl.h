/*
 * h5meta_impl.h: writes and reads the metadata of a field file; used by h5file.c only.
 *
 * Attributes and columns are made from tables (h5kit.h). `where` in errors is the path of the
 * file. Errors: QK_IO_ERROR, QK_BAD_FORMAT, QK_NO_MEMORY, QK_UNSUPPORTED (version). A call that
 * fails leaves its outputs as they were, but qk_h5meta_read may have set some members of meta.
 */
#ifndef QK_CLIENT_H5META_IMPL_H
#define QK_CLIENT_H5META_IMPL_H

#include "client/files/h5kit.h"
#include "client/files/h5meta.h"

enum { QK_H5FILE_VERSION = 1 };

/* The attribute axes, which files of fields of five dimensions have. */
#define QK_H5FILE_AXES_FIVE "rhs s t z y x spin colour"

/* Writes the attributes of the root group. Unknown members are not written. */
qk_status_t qk_h5meta_write(hid_t root, const char *where, const qk_h5meta_t *meta, qk_err_t *err);
/* What the attribute of this name says; 0: it is not there. QK_UNSUPPORTED: the field has other
 * numbers at a site than these programs know. To be called before the shape is read, which depends
 * on it. */
qk_status_t qk_h5meta_site_reals(hid_t root, const char *where, int32_t *site_reals, qk_err_t *err);
/* Whether the attribute axes says that the fields have five dimensions. QK_UNSUPPORTED: it says
 * anything else. */
qk_status_t qk_h5meta_five(hid_t root, const char *where, bool *five, qk_err_t *err);
/* Members that the file does not have stay as they were. The others must have the right class and
 * size. */
qk_status_t qk_h5meta_read(hid_t root, const char *where, qk_h5meta_t *meta, qk_err_t *err);

/* Writes the dataset "columns" of n rows. two: of fields of two flavours, with a member flavour. */
qk_status_t qk_h5column_write(hid_t root, const char *where, bool two, const qk_h5column_t *column,
                              int64_t n, qk_err_t *err);
/* Reads all n rows. *column is malloc'ed; NULL if the file has no columns. */
qk_status_t qk_h5column_read(hid_t root, const char *where, int64_t n, qk_h5column_t **column,
                             qk_err_t *err);

#endif
