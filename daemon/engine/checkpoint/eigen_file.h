/*
 * eigen_file.h: eigenvectors, or the state of their computation, in one file (eigen_header.h) that
 * is bound to links and operator, and reads on any grid of ranks and any backend.
 *
 * A file is written to PATH.tmp and gets its name when all of it is on the disk: a process that is
 * killed leaves the file of before. Of compressed vectors aggregates must not cross ranks. All
 * calls are collective but where it is said. Errors, the same on all ranks: QK_NOT_FOUND (no file,
 * or of something else: err says what differs), QK_BAD_FORMAT, QK_UNSUPPORTED, QK_TRUNCATED,
 * QK_BAD_CHECKSUM, QK_IO_ERROR, QK_DENIED, QK_BUSY (another process writes there); QK_NO_MEMORY,
 * QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_EIGEN_FILE_H
#define QK_ENGINE_EIGEN_FILE_H

#include "daemon/engine/checkpoint/eigen_part.h"

typedef struct qk_eigen_writer qk_eigen_writer_t;
/* h: but for file_bytes complete. geom: of the lattice. */
qk_status_t qk_eigen_writer_open(const qk_geom_t *geom, const char *path,
                                 const qk_eigen_header_t *h, qk_eigen_writer_t **writer,
                                 qk_err_t *err);
qk_status_t qk_eigen_writer_block(qk_eigen_writer_t *writer, int block, const float *part,
                                  qk_err_t *err);
/* Ends it, also after a failure, as abandon does without the file. number: h->numbers. */
qk_status_t qk_eigen_writer_close(qk_eigen_writer_t *writer, const double *number, qk_err_t *err);
void qk_eigen_writer_abandon(qk_eigen_writer_t *writer); /* NULL-safe, not collective */

typedef struct qk_eigen_reader qk_eigen_reader_t;
/* wanted: what it must be of (qk_eigen_header_match); NULL: anything. *number: h->numbers, of the
 * reader. */
qk_status_t qk_eigen_reader_open(const qk_geom_t *geom, const char *path,
                                 const qk_eigen_header_t *wanted, qk_eigen_reader_t **reader,
                                 qk_eigen_header_t *h, const double **number, qk_err_t *err);
qk_status_t qk_eigen_reader_block(qk_eigen_reader_t *reader, int block, float *part, qk_err_t *err);
void qk_eigen_reader_close(qk_eigen_reader_t *reader); /* NULL-safe, not collective */

#endif
