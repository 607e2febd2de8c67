/* Block BLAS on the GPU: the table's entries, and the second pass of reductions. */
#include "cuda/gpu/krylov/blas.cuh"

#include "cuda/args/args.h"
#include "cuda/gpu/krylov/dot_small.cuh"
#include "cuda/gpu/reduce.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int groups = 16;

/* A block a result and tile. */
__global__ void __launch_bounds__(QK_LINE *groups) finish_kernel(const finish_args a) {
  finish_results<groups, 1>(a, (int)blockIdx.x, (int)blockIdx.y, 1);
}

} // namespace

qk_status_t finish_launch(qk_ops_ctx_t *ctx, const finish_args &a) {
  if (a.arrived != nullptr) return QK_OK;
  finish_kernel<<<dim3(a.b.ntile, a.n), QK_LINE * groups, 0, qk_gpu(ctx)->stream[0]>>>(a);
  return qk_gpu_launched(ctx, "second pass of a reduction");
}

qk_status_t blas(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  const qk_status_t status = qk_args_blas(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->f[0].prec,
                      [=](auto s) { return blas_launch<stored<decltype(s)>>(ctx, a); });
}

qk_status_t multi_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const qk_status_t status = qk_args_multi(ctx, a, 1);
  if (status != QK_OK) return status;
  if (dot_small_fits(a)) return dot_small(ctx, a);
  return with_storage(a->y.prec,
                      [=](auto s) { return multi_dot_launch<stored<decltype(s)>>(ctx, a); });
}

qk_status_t multi_axpy(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const qk_status_t status = qk_args_multi(ctx, a, 0);
  if (status != QK_OK) return status;
  return with_storage(a->y.prec,
                      [=](auto s) { return multi_axpy_launch<stored<decltype(s)>>(ctx, a); });
}

} // namespace QK_NS
