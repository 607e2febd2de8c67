/*
 * deflate_file.h: low modes of a setup in a file of eigenvectors (checkpoint/eigen_file.h), its own
 * or one of a name (EIGEN). Collective. Errors: those of eigen_file.h;
 * QK_NOT_FOUND: also a state that is not complete.
 */
#ifndef QK_ENGINE_DEFLATE_FILE_H
#define QK_ENGINE_DEFLATE_FILE_H

#include "daemon/engine/checkpoint/eigen_file.h"

/* How many vectors there are, whosoever they are, and how they are compressed (n 0: they are not).
 * geom: of the lattice. */
qk_status_t qk_deflate_file_count(const qk_geom_t *geom, const char *path, int *count,
                                  qk_coherent_cut_t *cut, qk_err_t *err);

/* The n lowest vectors, in single; own: of a file that write has made of n, else of any that has as
 * many of this operator, or of one on colour vectors that has another mass. Destroy *eigen with
 * qk_eigen_destroy. */
qk_status_t qk_deflate_file_read(qk_operator_t *op, const char *path,
                                 const qk_mg_identity_t *identity, int n, bool own,
                                 qk_eigen_t **eigen, qk_err_t *err);
/* The n lowest of gamma_5 M, in double, of any file that has as many of this operator. */
qk_status_t qk_deflate_file_read_gamma5(qk_operator_t *op, const char *path,
                                        const qk_mg_identity_t *identity, int n, qk_eigen_t **eigen,
                                        qk_err_t *err);
/* The n lowest of compressed vectors of this operator, in single. Destroy *set with
 * qk_compressed_destroy. */
qk_status_t qk_deflate_file_compressed(qk_operator_t *op, qk_work_t *work, const char *path,
                                       const qk_mg_identity_t *identity, int n,
                                       qk_compressed_t **set, qk_err_t *err);
/* eigen: in single. */
qk_status_t qk_deflate_file_write(qk_operator_t *op, const char *path,
                                  const qk_mg_identity_t *identity, const qk_eigen_t *eigen,
                                  qk_err_t *err);

#endif
