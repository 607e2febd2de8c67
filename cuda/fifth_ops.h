/*
 * fifth_ops.h: arguments of the entries for fields with a fifth dimension (domain wall fermions).
 *
 * A right-hand side is then ls columns of a block, its slices: column rhs * ls + s is slice s of
 * right-hand side rhs. Kernels that know sites (ops.h: hop) work on columns and need not know this;
 * sums of block BLAS are of columns, and fifth_sum makes those of right-hand sides of them.
 */
#ifndef QK_CUDA_FIFTH_OPS_H
#define QK_CUDA_FIFTH_OPS_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_LS_MAX = 64 };

/* At each site and for each right-hand side, with the chirality of each spin (+1: spins 0 and 1):
 *   out_s = c_x x_s + c_in sum_r matrix[chirality][s][r] in_r,   s < to, r < from
 * Fields of one precision with 12 components, of the same sites; in has from columns a right-hand
 * side, out and x have `to`. x may be absent (data NULL) where c_x is 0. out may be x, and in where
 * to == from. Fields of one column whose tiles are eight sites are not half.
 * matrix: device memory, numbers of the arithmetic of the fields (float for half): complex
 * [chirality +1, -1][r][s][2], or with is_real [chirality][r][s]; s runs fastest.
 * Work: 24 to from multiplications (96 where complex, less the additions) a site. */
typedef struct qk_fifth_mix_args {
  int32_t to, from;
  int32_t is_real;
  const void *matrix;
  double c_in, c_x;
  qk_spinor_t in, x, out;
} qk_fifth_mix_args_t;

/* red[k][column] = sum of red[k] over the columns of its right-hand side, in the order of the
 * slices: complex doubles [n][columns][2] in device memory, columns a multiple of ls. */
typedef struct qk_fifth_sum_args {
  int32_t ls, n, columns;
  double *red;
} qk_fifth_sum_args_t;

#ifdef __cplusplus
}
#endif
#endif
