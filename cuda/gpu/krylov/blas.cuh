/*
 * gpu/krylov/blas.cuh: block BLAS and many-vector operations launched for one storage type; each of
 * blas_double.cu, blas_single.cu and blas_half.cu instantiates it.
 */
#ifndef QK_CUDA_GPU_BLAS_CUH
#define QK_CUDA_GPU_BLAS_CUH

#include "cuda/body/blas.h"
#include "cuda/gpu/ctx.cuh"

namespace QK_NS {

/* Arguments were checked; S is the first field's storage type. */
template <class S> qk_status_t blas_launch(qk_ops_ctx_t *ctx, const qk_blas_args_t *a);
template <class S> qk_status_t multi_dot_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a);
template <class S> qk_status_t multi_axpy_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a);

} // namespace QK_NS
#endif
