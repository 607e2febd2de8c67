/*
 * lanczos_rotate.h: combinations of the vectors of a basis that take their place, and what of it
 * lanczos_basis.c needs. Private to the files of Lanczos and compressed.c.
 */
#ifndef QK_ENGINE_LANCZOS_ROTATE_H
#define QK_ENGINE_LANCZOS_ROTATE_H

#include "daemon/engine/eigen/lanczos_basis.h"

/* Device memory of coefficients, of a basis that has its system and number of blocks. */
qk_status_t qk_lanczos_rotate_reserve(qk_lanczos_basis_t *k);
/* Its bytes. */
int64_t qk_lanczos_rotate_room(const qk_geom_t *geom, qk_prec_t prec, int nblock,
                               qk_subset_t system);

/* v_j = sum_i q[i + j*ldq] v_i for j < columns, of the first nblock blocks, in place. */
qk_status_t qk_lanczos_rotate(qk_lanczos_basis_t *k, int nblock, int columns,
                              const double complex *q, int ldq);
/* The same of a basis that is too large for one kernel in parts, so that others need not wait for
 * all: *unit is 0 at the beginning, *over says whether all are done. Until then the vectors are of
 * no use. */
qk_status_t qk_lanczos_rotate_some(qk_lanczos_basis_t *k, int nblock, int columns,
                                   const double complex *q, int ldq, int64_t *unit, bool *over);
/* Of one block w: w_j = sum_i q[i + 8 j] w_i. */
qk_status_t qk_lanczos_rotate_block(qk_lanczos_basis_t *k, qk_field_t *w, const double complex *q);

/* As many blocks as a kernel takes, from block `first` of n on. */
qk_basis_args_t qk_lanczos_some_blocks(qk_field_t *const *v, int first, int n);
/* y += sign sum_i v_i c_i, coefficients in k->c: a call of an iteration. */
void qk_lanczos_add_blocks(qk_lanczos_basis_t *k, qk_field_t *const *v, int n, const qk_field_t *y,
                           double sign);

#endif
