/*
 * deflation.h: the approximate solution of Mhat x = r in the space of a few low eigenvectors v_i of
 * Mhat^+ Mhat (eigenvalues l_i):
 *
 *   x = sum_i v_i (v_i, Mhat^+ r) / l_i
 *
 * It is the x of this space that minimises |r - Mhat x|. Used for the coarsest level of multigrid,
 * and as the first guess of plain solvers (solver.h). The vectors are stored as v_i / sqrt(l_i), so
 * that x needs two passes over them. Where Mhat is hermitian and positive v_i and l_i are those of
 * Mhat itself, x = sum_i v_i (v_i, r) / l_i needs no application, and there are no images.
 *
 * Shapes: fields of the operator's system, any ncomp; vectors in single, or half on level 0, in
 * blocks of up to 64 columns. Memory: qk_deflation_bytes. Cost of apply: one Mhat^+ and two passes
 * over the vectors for each eight RHS; of compressed vectors, which then also waits, as
 * compressed.h says. Collective except bytes and fit.
 *
 * With the images u_i = Mhat v_i / sqrt(l_i) as well, twice the memory, reduce does the same and
 * makes the residual without an operator:  x = sum_i v_i (u_i, r) / sqrt(l_i),  Mhat x = sum_i u_i
 * (u_i, r).
 */
#ifndef QK_ENGINE_DEFLATION_H
#define QK_ENGINE_DEFLATION_H

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/compressed.h"

typedef struct qk_deflation qk_deflation_t;

/* Computes the vectors (params.prec: precision of the computation) and stores them in precision
 * `store`, QK_SINGLE or QK_HALF (of spinors and colour vectors). params.accept = 0 means 0.005
 * here: the vectors need not be exact. If fewer than params.n converge, it uses those;
 * QK_NOT_CONVERGED if none does. Other errors as qk_lanczos. op, work: borrowed. */
qk_status_t qk_deflation_create(qk_operator_t *op, qk_work_t *work,
                                const qk_lanczos_params_t *params, qk_prec_t store,
                                qk_progress_fn *progress, void *arg, qk_deflation_t **deflation,
                                qk_err_t *err);
/* The same of vectors that were computed before. */
qk_status_t qk_deflation_create_of(qk_operator_t *op, qk_work_t *work, const qk_eigen_t *eigen,
                                   qk_prec_t store, qk_deflation_t **deflation, qk_err_t *err);
/* From existing vectors: nblock fields of `columns` columns each, except the last (as
 * qk_deflation_blocks says). It takes them, also on failure, and divides them by the roots of
 * the n eigenvalues. */
qk_status_t qk_deflation_create_from(qk_operator_t *op, qk_work_t *work, int n, const double *value,
                                     const double *residual, qk_field_t **block,
                                     qk_deflation_t **deflation, qk_err_t *err);
/* From coefficients of a basis (compressed.h), in single, which it takes, also on failure;
 * `store` is that of the basis. There are no blocks of vectors then. */
qk_status_t qk_deflation_create_compressed(qk_operator_t *op, qk_work_t *work, qk_compressed_t *set,
                                           qk_prec_t store, qk_deflation_t **deflation,
                                           qk_err_t *err);
void qk_deflation_destroy(qk_deflation_t *deflation); /* NULL-safe */

/* Reserves everything that apply needs for blocks of up to nrhs. apply then allocates nothing,
 * and on one rank it does not wait. */
qk_status_t qk_deflation_prepare(qk_deflation_t *deflation, int nrhs);
/* x as above, for fields of the system in single or double with at most nrhs columns, as prepared.
 * x is not r. */
qk_status_t qk_deflation_apply(qk_deflation_t *deflation, qk_field_t *x, const qk_field_t *r);

/* Makes the images, by the operator as it is now (its flavours, its precision): of vectors in
 * single that are not those of slices. Takes work fields of up to 64 columns from `work` and the
 * operator's own. QK_BAD_ARGUMENT, QK_DEVICE_MEMORY. */
qk_status_t qk_deflation_keep_images(qk_deflation_t *deflation);
/* x as apply makes it, but for rounding, and r -= Mhat x; fields in single. Needs the images. */
qk_status_t qk_deflation_reduce(qk_deflation_t *deflation, qk_field_t *x, qk_field_t *r);

/* Of coefficients: what it takes out of a residual comes back before the vectors' precision is
 * reached, and the directions of an iteration do not know of it. */
bool qk_deflation_is_compressed(const qk_deflation_t *deflation);
int qk_deflation_count(const qk_deflation_t *deflation);
const double *qk_deflation_values(const qk_deflation_t *deflation);
const double *qk_deflation_residuals(const qk_deflation_t *deflation);
/* The blocks, and how many. */
int qk_deflation_blocks(const qk_deflation_t *deflation, qk_field_t *const **block);
/* Columns of block b of n vectors (0: there is no such block): a multiple of 8, at most 64. */
int qk_deflation_columns(int n, int b);

/* Device bytes of n vectors of a system (operator.h) on this rank; the largest number of vectors
 * (at most QK_EIGEN_MAX) that fit into `bytes`. */
int64_t qk_deflation_bytes(const qk_geom_t *geom, qk_subset_t system, qk_prec_t store, int n);
int qk_deflation_fit(const qk_geom_t *geom, qk_subset_t system, qk_prec_t store, int64_t bytes);

#endif
