/*
 * vector_block_ops.h: arguments of the table's entries for bases of many vectors (Lanczos,
 * deflation) and for vectors that leave the device (checkpoints). Included by ops.h.
 *
 * A basis is n blocks of columns of one precision and shape, tiles of RHS, nrhs a multiple of 8,
 * any number of components; its vectors are numbered i = block * nrhs + column. All run on queue 0.
 * Not collective.
 * Errors: those of ops.h; what does not fit:
 * QK_BAD_ARGUMENT with the reason in last_error (vector_block_args.h).
 */
#ifndef QK_CUDA_VECTOR_BLOCK_OPS_H
#define QK_CUDA_VECTOR_BLOCK_OPS_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* QK_BASIS_MAX: vectors that basis_rotate takes. */
enum { QK_BASIS_BLOCKS = 64, QK_BASIS_MAX = 384 };

/* Columns of y beside the vectors v_i of a basis; c: device memory, complex
 * [n * nrhs of v][columns].
 *   basis_dot     c[i][j] = (v_i, y_j), columns = nrhs of y. Products of single precision are
 *                 summed in fp32 over at most 32 components, all else in double, in an order by the
 *                 lattice and the number of columns; a result does not depend on other columns.
 *   basis_axpy    y_j += sign sum_i c[i][j] v_i
 *   basis_rotate  v_j = sum_i c[i][j] v_i, j = 0 .. columns-1, in place; the others stay. Where y
 *                 is given (data not NULL), plus y_j; then n is 1, and y is like v.
 * Precisions of v and y: double and double, single and single;
 * half and single but for basis_rotate.
 * Work: 8 ncomp flop a site and pair. Cost of dot and axpy:
 * all fields once for each eight columns of y. */
typedef struct qk_basis_args {
  int32_t n;
  qk_spinor_t v[QK_BASIS_BLOCKS];
  qk_spinor_t y;
  int32_t columns;
  double sign;
  double *c;
} qk_basis_args_t;

/* Sites first .. first+n-1 of a field in single precision to or from plain numbers, float or 16-bit
 * floats (prec QK_SINGLE or QK_HALF): [site][column][component][re, im], device memory. Sites in
 * lexicographic order, x fastest, of the local lattice, or of those of one parity. */
typedef struct qk_sites_args {
  qk_lattice_t lat;
  qk_spinor_t field;
  qk_prec_t prec;
  void *plain;
  int64_t first, n;
} qk_sites_args_t;

#ifdef __cplusplus
}
#endif
#endif
