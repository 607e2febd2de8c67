/*
 * h5file.h: spinor fields in HDF5 files: right-hand sides, solutions and propagators.
 *
 * Layout     dataset "field" [rhs][t][z][y][x][spin][colour] of compounds {r, i}, 32 or 64 bit
 *            floats; of doublets [rhs][flavour][t][z][y][x][spin][colour], the upper flavour first,
 *            with site_reals 48; of colour vectors, which have no spin, [rhs][t][z][y][x][colour],
 *            with site_reals 6; of five dimensions [rhs][s][t][z][y][x][spin][colour], which the
 *            attribute axes says; dataset "columns" [rhs], one compound a right-hand side;
 *            group "wall" where solves have sums over time slices (h5wall.h);
 *            everything else in attributes of the root group. client/README.md describes each.
 * Memory     One right-hand side at a time, in wire order: x runs fastest of the sites; a site has
 *            4 spins x 3 colours, colour fastest, or 3 colours; real and imaginary part
 *            alternate. Of a doublet the whole field of the upper flavour, then that of the
 *            lower; of five dimensions slice by slice, 0 first.
 * Writing    The file grows under a temporary name, which commit changes to its own. An older file
 *            of that name stays until then.
 * Reading    Files of other programs are read if they have the field in its shape. Without the
 *            attribute site_reals eight dimensions are a doublet, fewer are not, and none are
 *            colour vectors. Fields of five
 *            dimensions are read by who asks for them alone. Numbers of either byte order and
 *            precision are converted.
 * Errors     QK_IO_ERROR, QK_BAD_FORMAT, QK_BAD_GEOMETRY, QK_TOO_LARGE, QK_BAD_ARGUMENT,
 *            QK_UNSUPPORTED (version), QK_NO_MEMORY; the text names file, object, what was expected
 *            and what was found.
 * Threads    One file belongs to one thread at a time. One thread may write or push while another
 *            reads another file or sets columns: HDF5 may know nothing of threads, so right-hand
 *            sides are read and written one at a time. All else needs that there are no others.
 */
#ifndef QK_CLIENT_H5FILE_H
#define QK_CLIENT_H5FILE_H

#include <stddef.h>
#include <stdint.h>

#include "client/files/h5meta.h"
#include "client/files/wall.h"
#include "daemon/base/err.h"

typedef struct qk_h5file qk_h5file_t;

/* bits: 32 or 64; nrhs >= 1; meta->site_reals: 24, 48 or 6; with slices 24. Nothing is left behind
 * on error. */
qk_status_t qk_h5file_create(const char *path, const qk_h5meta_t *meta, int bits, int64_t nrhs,
                             qk_h5file_t **file, qk_err_t *err);
/* data: qk_h5file_rhs_bytes in the precision of the file. rhs may come in any order; a second write
 * replaces the first. */
qk_status_t qk_h5file_write(qk_h5file_t *file, int64_t rhs, const void *data, qk_err_t *err);
/* Has the kernel begin to bring to the disk what was written, so that commit finds little to do. */
void qk_h5file_push(const qk_h5file_t *file);
qk_status_t qk_h5file_set_column(qk_h5file_t *file, int64_t rhs, const qk_h5column_t *column,
                                 qk_err_t *err);
/* Of all right-hand sides; borrowed until commit, which writes them. */
void qk_h5file_set_wall(qk_h5file_t *file, const qk_wall_t *wall);
/* Gives the complete file its name. The file must still be closed afterwards. */
qk_status_t qk_h5file_commit(qk_h5file_t *file, qk_err_t *err);

/* dataset NULL: "field", or the only dataset of seven dimensions; six for one right-hand side. Of a
 * doublet eight and seven, of colour vectors six and five. */
qk_status_t qk_h5file_open(const char *path, const char *dataset, qk_h5file_t **file,
                           qk_err_t *err);
/* A file of fields of five dimensions: "field", or the only dataset of eight; seven are one
 * right-hand side if the attribute axes is there. qk_h5file_open refuses files that have it. */
qk_status_t qk_h5file_open_five(const char *path, const char *dataset, qk_h5file_t **file,
                                qk_err_t *err);
const qk_h5meta_t *qk_h5file_meta(const qk_h5file_t *file);
int64_t qk_h5file_nrhs(const qk_h5file_t *file);
int qk_h5file_bits(const qk_h5file_t *file);
/* "7 dimensions [rhs][t][z][y][x][spin][colour]", of fields with so many reals at a site. */
const char *qk_h5file_axes(int32_t site_reals);
/* Bytes of one right-hand side at this precision. */
size_t qk_h5file_rhs_bytes(const qk_h5file_t *file, int bits);
/* One right-hand side as 32 or 64 bit floats. */
qk_status_t qk_h5file_read(qk_h5file_t *file, int64_t rhs, int bits, void *data, qk_err_t *err);
/* QK_NOT_FOUND where the file has no columns. */
qk_status_t qk_h5file_column(qk_h5file_t *file, int64_t rhs, qk_h5column_t *column, qk_err_t *err);

/* NULL-safe; a file that was not committed vanishes. */
void qk_h5file_close(qk_h5file_t *file);

#endif
