/*
 * gpu/blas.cuh: block BLAS and many-vector operations launched for one storage type; each of
 * blas_double.cu, blas_single.cu and blas_half.cu instantiates it.
 *
 * A block of threads is 16 rows by 8 lanes; blockIdx.y is the tile of RHS; blocks stride over the rows.
 * Reductions: each block leaves a partial sum per lane, a second kernel adds them in order. The number
 * of blocks depends on the lattice only, and no float is added by atomics: same input, same bits.
 */
#ifndef QK_CUDA_GPU_BLAS_CUH
#define QK_CUDA_GPU_BLAS_CUH

#include "cuda/body/blas.h"
#include "cuda/gpu/ctx.cuh"

namespace QK_NS {

/* op was checked; `to` is the first field's storage type. */
template <class S>
qk_status_t blas_launch(qk_ops_ctx_t *ctx, qk_blas_op_t op, const qk_blas_args_t *a);
template <class S> qk_status_t multi_dot_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a);
template <class S> qk_status_t multi_axpy_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a);

/* Second pass, for n results of a block: red[k][rhs][2] = sum of the partial sums. Masked entries stay
 * as they are, or become 0 (clear); mask has one row for all results, or (mask_per_result) one each. */
struct finish_args {
  const double *partial;
  double *red;
  const uint8_t *mask;
  block_shape b;
  int n, blocks, clear, mask_per_result;
};
qk_status_t finish_launch(qk_ops_ctx_t *ctx, const finish_args &a);

enum { QK_ROWS = 16, QK_THREADS = QK_ROWS * QK_TILE };

inline int blocks_for(const block_shape &b) {
  const int64_t n = (b.rows + QK_ROWS - 1) / QK_ROWS;
  return n < QK_GPU_BLOCKS ? (int)n : QK_GPU_BLOCKS;
}

} // namespace QK_NS
#endif
