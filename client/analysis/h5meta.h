/*
 * h5meta.h: the attributes and the table of columns of an h5file; used by h5file.c only.
 *
 * Both are made from tables (h5kit.h). `where` in errors is the path of the file. Errors: QK_IO_ERROR, QK_BAD_FORMAT.
 */
#ifndef QK_CLIENT_H5META_H
#define QK_CLIENT_H5META_H

#include "client/analysis/h5file.h"
#include "client/analysis/h5kit.h"

/* Attributes of the root group; unknown members are not written. */
qk_status_t qk_h5meta_write(hid_t root, const char *where, const qk_h5meta_t *meta, qk_err_t *err);
/* What is not in the file stays as it was in meta; what is there must have the right class and
 * size. */
qk_status_t qk_h5meta_read(hid_t root, const char *where, qk_h5meta_t *meta, qk_err_t *err);

/* The columns, written whole and read whole. */
qk_status_t qk_h5column_write(hid_t root, const char *where, const qk_h5column_t *column, int64_t n,
                              qk_err_t *err);
/* *column is malloc'ed, NULL where the file has no columns. */
qk_status_t qk_h5column_read(hid_t root, const char *where, int64_t n, qk_h5column_t **column,
                             qk_err_t *err);

#endif
