/* Block BLAS on the GPU: the table's entries, and the second pass of reductions. */
#include "cuda/gpu/blas.cuh"

#include "cuda/args.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int line = QK_TILE * 2, groups = 16;

/* One block a result and tile. A thread adds every 16th partial sum of one (lane, part); then 16
 * threads add the groups, in order; then, where lanes are sites, two threads add the lanes. */
__global__ void __launch_bounds__(line *groups) finish_kernel(const finish_args a) {
  __shared__ double share[groups][line];
  const int tile = blockIdx.x, k = blockIdx.y, i = threadIdx.x % line, group = threadIdx.x / line;
  const double *p = a.partial + ((int64_t)tile * a.n + k) * a.blocks * line;
  double sum = 0;
  for (int j = group; j < a.blocks; j += groups) sum += p[j * line + i];
  share[group][i] = sum;
  __syncthreads();
  if (group == 0) {
    for (int g = 1; g < groups; g++) sum += share[g][i];
    share[0][i] = sum;
  }
  __syncthreads();
  const int rhs = a.b.rhs(tile, i / 2);
  if (group > 0 || rhs >= a.b.nrhs || (a.b.lone && i > 1)) return;
  if (a.b.lone)
    for (int lane = 1; lane < QK_TILE; lane++) sum += share[0][2 * lane + i];
  const bool masked =
      a.mask != nullptr && a.mask[(a.mask_per_result ? k * a.b.nrhs : 0) + rhs] == 0;
  if (masked && !a.clear) return;
  a.red[2 * ((int64_t)k * a.b.nrhs + rhs) + i % 2] = masked ? 0 : sum;
}

} // namespace

qk_status_t finish_launch(qk_ops_ctx_t *ctx, const finish_args &a) {
  finish_kernel<<<dim3(a.b.ntile, a.n), line * groups, 0, qk_gpu(ctx)->stream[0]>>>(a);
  return qk_gpu_launched(ctx, "second pass of a reduction");
}

qk_status_t blas(qk_ops_ctx_t *ctx, qk_blas_op_t op, const qk_blas_args_t *a) {
  const qk_status_t status = qk_args_blas(ctx, op, a);
  if (status != QK_OK) return status;
  switch (a->f[0].prec) {
  case QK_DOUBLE:
    return blas_launch<double>(ctx, op, a);
  case QK_SINGLE:
    return blas_launch<float>(ctx, op, a);
  case QK_HALF:
    return blas_launch<half>(ctx, op, a);
  }
  return QK_BAD_ARGUMENT;
}

qk_status_t multi_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const qk_status_t status = qk_args_multi(ctx, a, 1);
  if (status != QK_OK) return status;
  switch (a->y.prec) {
  case QK_DOUBLE:
    return multi_dot_launch<double>(ctx, a);
  case QK_SINGLE:
    return multi_dot_launch<float>(ctx, a);
  case QK_HALF:
    return multi_dot_launch<half>(ctx, a);
  }
  return QK_BAD_ARGUMENT;
}

qk_status_t multi_axpy(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const qk_status_t status = qk_args_multi(ctx, a, 0);
  if (status != QK_OK) return status;
  switch (a->y.prec) {
  case QK_DOUBLE:
    return multi_axpy_launch<double>(ctx, a);
  case QK_SINGLE:
    return multi_axpy_launch<float>(ctx, a);
  case QK_HALF:
    return multi_axpy_launch<half>(ctx, a);
  }
  return QK_BAD_ARGUMENT;
}

} // namespace QK_NS
