/*
 * coherent_ops.h: arguments of the table's entries for bases that are cut into aggregates (local
 * coherence, arXiv:1710.06884). Included by ops.h.
 *
 * A field of many vectors is written as coefficients: of each aggregate of sites and chirality, a
 * complex number for each vector of the basis. Other than the prolongator of multigrid (mg_ops.h)
 * an aggregate has the sites of one parity if fields have one, all `inner` vectors of a field
 * (slices of a fifth dimension), and lattices of aggregates may have any extents.
 */
#ifndef QK_CUDA_COHERENT_OPS_H
#define QK_CUDA_COHERENT_OPS_H

#include "cuda/vector_block_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* With X an aggregate, s a chirality (0: the first half of a site's components), and sums over the
 * sites and vectors of X and the components of s:
 *
 *   coherent_restrict  c_j(X)[s, i] = sum conj(v_i) y_j
 *   coherent_prolong   y_j = sum_i v_i c_j(X)[s, i]
 *
 * block     divides the local extents, block[0] is even; aggregates X are counted in lexicographic
 *           order, x fastest
 * v         n blocks of eight columns and 12 components, i = 8 block + column
 * y         eight columns, of the sites and vectors of v
 * c         eight columns of 2 m components, m >= 8 n: s m + i. Sites: the aggregates, up to the
 *           next multiple of QK_TILE. restrict leaves what has no i or X alone.
 * Precisions of v, y and c: all double, or single, where v may be half. restrict sums six
 * components in the arithmetic of y, all else in double, in an order that the lattice decides.
 * Work: 8 flop a component and pair; restrict reads y once for each block of v. */
typedef struct qk_coherent_args {
  qk_lattice_t lat;
  int32_t block[4];
  int32_t n;
  qk_spinor_t v[QK_BASIS_BLOCKS];
  qk_spinor_t y, c;
} qk_coherent_args_t;

#ifdef __cplusplus
}
#endif
#endif
