/*
 * deflation.h: what a few low eigenvectors v_i of Mhat^+ Mhat (eigenvalues l_i) say of Mhat x = r:
 *
 *   x = sum_i v_i (v_i, Mhat^+ r) / l_i
 *
 * the x in their space that makes |r - Mhat x| least. For the coarsest level of multigrid, and as first guess of
 * plain solvers (solver.h). The vectors are kept as v_i / sqrt(l_i), so that two passes over them do it.
 *
 * Shapes: even fields, any ncomp; vectors in single, or half on level 0, in blocks of up to 64 columns. Memory:
 * qk_deflation_bytes. Cost of apply: one Mhat^+ and two passes over the vectors for each eight RHS. Collective
 * but for bytes and fit.
 */
#ifndef QK_ENGINE_DEFLATION_H
#define QK_ENGINE_DEFLATION_H

#include "daemon/base/progress.h"
#include "daemon/engine/eigen/lanczos.h"

typedef struct qk_deflation qk_deflation_t;

/* Finds the vectors (params.prec: that of the computation) and keeps them in `store`, QK_SINGLE or QK_HALF (12
 * components). params.accept 0 stands for 0.005 here: they need not be exact. Where fewer than params.n converge,
 * those that do; QK_NOT_CONVERGED where none does. Other errors as qk_lanczos. op, work: borrowed. */
qk_status_t qk_deflation_create(qk_operator_t *op, qk_work_t *work,
                                const qk_lanczos_params_t *params, qk_prec_t store,
                                qk_progress_fn *progress, void *arg, qk_deflation_t **deflation,
                                qk_err_t *err);
/* From vectors that are there: nblock fields of `columns` columns each but the last (as qk_deflation_blocks says),
 * taken, also on failure; divided by the roots of the n eigenvalues. */
qk_status_t qk_deflation_create_from(qk_operator_t *op, qk_work_t *work, int n, const double *value,
                                     const double *residual, qk_field_t **block,
                                     qk_deflation_t **deflation, qk_err_t *err);
void qk_deflation_destroy(qk_deflation_t *deflation); /* NULL-safe */

/* All that apply needs for blocks of up to nrhs is reserved; apply then allocates nothing, and on one rank
 * waits for nothing. */
qk_status_t qk_deflation_prepare(qk_deflation_t *deflation, int nrhs);
/* x as above, for even fields in single or double, with nrhs columns at most as prepared. x is not r. */
qk_status_t qk_deflation_apply(qk_deflation_t *deflation, qk_field_t *x, const qk_field_t *r);

int qk_deflation_count(const qk_deflation_t *deflation);
const double *qk_deflation_values(const qk_deflation_t *deflation);
const double *qk_deflation_residuals(const qk_deflation_t *deflation);
/* The blocks, and how many. */
int qk_deflation_blocks(const qk_deflation_t *deflation, qk_field_t *const **block);
/* Columns of block b of n vectors (0: there is no such block): a multiple of 8, at most 64. */
int qk_deflation_columns(int n, int b);

/* Device bytes of n vectors on this rank, and the most vectors that `bytes` hold (at most QK_EIGEN_MAX). */
int64_t qk_deflation_bytes(const qk_geom_t *geom, qk_prec_t store, int n);
int qk_deflation_fit(const qk_geom_t *geom, qk_prec_t store, int64_t bytes);

#endif
