/* eigens_file.h: the file of an EIGEN, block by block. Private to eigens.c. Collective. */
#ifndef QK_ENGINE_EIGENS_FILE_H
#define QK_ENGINE_EIGENS_FILE_H

#include "daemon/engine/modes/eigens_job.h"

/* Of a file, but what depends on how far it is; of a Laplacian with blocks and numbers. */
void qk_eigens_describe(const qk_eigens_t *s, qk_eigen_header_t *h);
void qk_eigens_describe_slices(const qk_eigens_t *s, qk_eigen_header_t *h);
/* Adds the basis of compressed vectors. */
void qk_eigens_describe_basis(const qk_eigens_t *s, qk_eigen_header_t *h);
/* The state of Lanczos after a restart, or the slices that are done; then block by block. Trouble
 * with the file is logged, and ends nothing. */
qk_status_t qk_eigens_begin_saving(qk_eigens_t *s);
qk_status_t qk_eigens_save_block(qk_eigens_t *s);
/* One block of the vectors to the file. */
qk_status_t qk_eigens_write_block(qk_eigens_t *s, bool *written);

qk_status_t qk_eigens_there(const qk_eigens_t *s, bool *is);
/* What stands in a file that is not another's, but cannot be used. */
bool qk_eigens_is_damage(qk_status_t status);
/* Of an iteration that is made from a file: numbers that it refuses are damage. */
qk_status_t qk_eigens_as_damage(qk_status_t status, qk_err_t *err);
/* A file that is there; one of something else is refused. It goes into what is made, which is then
 * there, or into Lanczos, which the caller creates. */
qk_status_t qk_eigens_open_file(qk_eigens_t *s, qk_err_t *err);
/* The next block; *ends: all is read, Lanczos has its state, and the file is closed. */
qk_status_t qk_eigens_read_block(qk_eigens_t *s, bool *ends, qk_err_t *err);

#endif
