/*
 * scidac.h: propagators and fermion fields in SciDAC files (QIO, in a LIME container).
 *
 * Layout     Big endian, single (F) or double (D) precision, sites with x fastest, in the
 *            DeGrand-Rossi basis. Two forms are written and read:
 *              scidac  as Chroma has it: one record of a field, of a site
 *                      [spin][spin0][colour][colour0], where spin0 and colour0 are those of the
 *                      source: 1152 bytes in F, 2304 in D
 *              usqcd   as MILC has it: usqcdPropFile of the type
 *                      USQCD_DiracFermion_ScalarSource_TwelveSink, the source as one complex number
 *                      a site, then twelve fermions, each a record [spin][colour] of 96 or 192
 *                      bytes a site
 *            Also read: fermions by themselves, and pairs of source and solution, of which the
 *            solutions are taken. What quarkd knows of a field is in a tag <quarkd>.
 * Memory     Right-hand sides as in h5file.h. A slab of the file, of at most QK_SCIDAC_SLAB bytes,
 *            is in memory at a time.
 * Writing    A propagator is written when all of its columns are there, since they alternate in the
 *            file. Columns that stay readable are read where they are; others wait in a file
 *            without a name in the folder of the output. As in h5file.h the file gets its name when
 *            it is complete.
 * Reading    All checksums are verified by open. A column of a propagator is read in one pass over
 *            the file.
 * Errors     QK_IO_ERROR, QK_BAD_FORMAT, QK_BAD_GEOMETRY, QK_BAD_CHECKSUM, QK_TRUNCATED,
 *            QK_TOO_LARGE, QK_UNSUPPORTED, QK_BAD_ARGUMENT, QK_NO_MEMORY; the text names the file.
 * Threads    One may write columns while another sets what belongs to them.
 */
#ifndef QK_CLIENT_SCIDAC_H
#define QK_CLIENT_SCIDAC_H

#include "client/files/h5meta.h"
#include "daemon/base/err.h"

enum { QK_SCIDAC_SLAB = 8 << 20, QK_SCIDAC_COLUMNS = 12 };

/* ---- writing: scidac_write.c ---- */

typedef struct qk_scidac_out qk_scidac_out_t;

/* Whether such a file can hold so many columns of this kind: QK_UNSUPPORTED says why not, and what
 * to do. Pure. */
qk_status_t qk_scidac_check(const char *path, bool usqcd, const qk_h5meta_t *meta, int64_t nrhs,
                            qk_err_t *err);
/* bits: 32 or 64. Nothing is left behind on error. */
qk_status_t qk_scidac_create(const char *path, bool usqcd, const qk_h5meta_t *meta, int bits,
                             int64_t nrhs, qk_scidac_out_t **file, qk_err_t *err);
/* One column, in any order. stays: the data are there, unchanged, until commit or close; else they
 * are copied to the disk. */
qk_status_t qk_scidac_write(qk_scidac_out_t *file, int64_t rhs, const void *data, bool stays,
                            qk_err_t *err);
qk_status_t qk_scidac_set_column(qk_scidac_out_t *file, int64_t rhs, const qk_h5column_t *column,
                                 qk_err_t *err);
/* Writes the file and gives it its name. QK_UNSUPPORTED: a column was not written. */
qk_status_t qk_scidac_commit(qk_scidac_out_t *file, qk_err_t *err);
void qk_scidac_discard(qk_scidac_out_t *file); /* NULL-safe; after commit, too */

/* ---- reading: scidac_read.c ---- */

typedef struct qk_scidac_in qk_scidac_in_t;

qk_status_t qk_scidac_open(const char *path, qk_scidac_in_t **file, qk_err_t *err);
const qk_h5meta_t *qk_scidac_meta(const qk_scidac_in_t *file);
const qk_h5column_t *qk_scidac_columns(const qk_scidac_in_t *file); /* nrhs of them */
int64_t qk_scidac_nrhs(const qk_scidac_in_t *file);
int qk_scidac_bits(const qk_scidac_in_t *file);
/* One right-hand side as 32 or 64 bit floats. */
qk_status_t qk_scidac_read(const qk_scidac_in_t *file, int64_t rhs, int bits, void *data,
                           qk_err_t *err);
void qk_scidac_close(qk_scidac_in_t *file); /* NULL-safe */

#endif
