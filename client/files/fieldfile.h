/*
 * fieldfile.h: files of spinor fields in any of the formats that quarkctl has: HDF5 (h5file.h),
 * and SciDAC in two forms (scidac.h).
 *
 * Right-hand sides, errors, names and threads are as in h5file.h; what a format cannot hold is
 * QK_UNSUPPORTED. A file that is read is recognised by its first bytes.
 */
#ifndef QK_CLIENT_FIELDFILE_H
#define QK_CLIENT_FIELDFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "client/files/h5meta.h"
#include "client/files/wall.h"
#include "daemon/base/err.h"

typedef enum qk_field_format { QK_FIELD_HDF5, QK_FIELD_SCIDAC, QK_FIELD_USQCD } qk_field_format_t;

/* "hdf5", "scidac", "usqcd". */
bool qk_field_format_parse(const char *text, qk_field_format_t *format);
const char *qk_field_format_name(qk_field_format_t format);
/* By the end of the name: .lime and .scidac are SciDAC, all others HDF5. */
qk_field_format_t qk_field_format_of(const char *path);
/* Whether the format can hold so many columns of this kind. */
qk_status_t qk_field_format_check(qk_field_format_t format, const char *path,
                                  const qk_h5meta_t *meta, int64_t nrhs, qk_err_t *err);

typedef struct qk_fieldfile qk_fieldfile_t;

qk_status_t qk_fieldfile_create(const char *path, qk_field_format_t format, const qk_h5meta_t *meta,
                                int bits, int64_t nrhs, qk_fieldfile_t **file, qk_err_t *err);
/* Whether the file is written by commit, from columns that stay where they are. */
bool qk_fieldfile_gathers(const qk_fieldfile_t *file);
/* stays: the data are there, unchanged, until the file is committed or closed. */
qk_status_t qk_fieldfile_write(qk_fieldfile_t *file, int64_t rhs, const void *data, bool stays,
                               qk_err_t *err);
void qk_fieldfile_push(const qk_fieldfile_t *file);
qk_status_t qk_fieldfile_set_column(qk_fieldfile_t *file, int64_t rhs, const qk_h5column_t *column,
                                    qk_err_t *err);
/* Borrowed until commit. Only HDF5 has a place for them. */
void qk_fieldfile_set_wall(qk_fieldfile_t *file, const qk_wall_t *wall);
qk_status_t qk_fieldfile_commit(qk_fieldfile_t *file, qk_err_t *err);

/* dataset: of an HDF5 file, or NULL. QK_BAD_ARGUMENT: of another one. */
qk_status_t qk_fieldfile_open(const char *path, const char *dataset, qk_fieldfile_t **file,
                              qk_err_t *err);
/* A file of fields of five dimensions, which qk_fieldfile_open refuses. Only HDF5 has them. */
qk_status_t qk_fieldfile_open_five(const char *path, const char *dataset, qk_fieldfile_t **file,
                                   qk_err_t *err);
const qk_h5meta_t *qk_fieldfile_meta(const qk_fieldfile_t *file);
int64_t qk_fieldfile_nrhs(const qk_fieldfile_t *file);
int qk_fieldfile_bits(const qk_fieldfile_t *file);
size_t qk_fieldfile_rhs_bytes(const qk_fieldfile_t *file, int bits);
qk_status_t qk_fieldfile_read(qk_fieldfile_t *file, int64_t rhs, int bits, void *data,
                              qk_err_t *err);
/* QK_NOT_FOUND where the file has no columns. */
qk_status_t qk_fieldfile_column(qk_fieldfile_t *file, int64_t rhs, qk_h5column_t *column,
                                qk_err_t *err);

/* NULL-safe; a file that was not committed vanishes. */
void qk_fieldfile_close(qk_fieldfile_t *file);

#endif
