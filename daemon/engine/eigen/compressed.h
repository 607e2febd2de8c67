/*
 * compressed.h: low modes of A = Mhat^+ Mhat as coefficients c_i of a basis V that is cut into
 * aggregates (coherent.h):
 *
 *   w_i = T(A) V c_i
 *
 * V c_i jumps where aggregates meet; the polynomial T, which is small on the upper part of the
 * spectrum, takes out the high modes that this adds. The w_i are the Ritz vectors of A in the space
 * that they span: orthonormal, with (w_i, A w_j) = l_i delta_ij, so that
 *
 *   x = sum_i w_i (w_i, Mhat^+ r) / l_i
 *
 * minimises |r - Mhat x| in it, as for vectors that are kept whole (deflation.h).
 *
 * Shapes: fields of the system. Memory: the basis, coefficients, a few blocks of eight vectors.
 * Cost of a vector: 2 order applications of Mhat and one pass over the basis; of x: twice that for
 * each eight RHS. Collective but for destroy. Errors: those of coherent.h and lanczos.h.
 */
#ifndef QK_ENGINE_COMPRESSED_H
#define QK_ENGINE_COMPRESSED_H

#include "daemon/engine/eigen/chebyshev.h"
#include "daemon/engine/eigen/lanczos.h"

typedef struct qk_compressed qk_compressed_t;

/* The polynomial for a spectrum up to `top`. */
qk_chebyshev_params_t qk_compressed_polynomial(double top);

/* Room for the coefficients of n vectors; they are written by block, values by set_values. It takes
 * the basis on success. */
qk_status_t qk_compressed_create(qk_operator_t *op, qk_work_t *work, qk_coherent_t *basis,
                                 const qk_chebyshev_params_t *p, int n,
                                 qk_compressed_t **compressed, qk_err_t *err);
void qk_compressed_destroy(qk_compressed_t *compressed); /* NULL-safe */
/* As qk_lanczos_take_dense. */
qk_hermitian_job_t *qk_compressed_take_dense(qk_compressed_t *compressed);
qk_field_t *qk_compressed_block(qk_compressed_t *compressed, int b);
void qk_compressed_set_values(qk_compressed_t *compressed, const double *value,
                              const double *residual);

/* Makes Ritz vectors of coefficients whose span is good, in steps of some dozen applications of the
 * operator to eight vectors, and measures their residuals; after `over` it can be used. A dense
 * problem of more than 512 rows is solved by a thread of rank 0, while steps of a millisecond wait
 * for it; the vectors are rotated in parts. Host memory: two matrices of n rows, on
 * rank 0 five.
 * QK_BREAKDOWN: the vectors are dependent, or not finite. */
qk_status_t qk_compressed_step(qk_compressed_t *compressed, bool *over, qk_err_t *err);

int qk_compressed_count(const qk_compressed_t *compressed);
const double *qk_compressed_values(const qk_compressed_t *compressed);
const double *qk_compressed_residuals(const qk_compressed_t *compressed);
const qk_coherent_t *qk_compressed_basis(const qk_compressed_t *compressed);
const qk_chebyshev_params_t *qk_compressed_smoother(const qk_compressed_t *compressed);

/* Once, before apply: coefficients are divided by the roots of the eigenvalues, the basis goes over
 * to precision `store`, QK_SINGLE or QK_HALF. Of single precision. */
qk_status_t qk_compressed_prepare(qk_compressed_t *compressed, qk_prec_t store, qk_err_t *err);
/* x = sum_i w_i (w_i, y) / l_i, fields of the system in single, of any number of RHS; x is not y. A
 * call of an iteration, which waits. */
void qk_compressed_apply(qk_compressed_t *compressed, qk_field_t *x, const qk_field_t *y);

/* Device bytes beside basis and work fields: coefficients of n vectors, and blocks on the way. */
int64_t qk_compressed_bytes(const qk_geom_t *geom, qk_subset_t system, qk_prec_t prec,
                            const qk_coherent_cut_t *cut, int n);

#endif
