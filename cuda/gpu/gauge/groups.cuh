/* groups.cuh: bodies that work on one link or site at a time in exact arithmetic (site/wide.h): the
 * launcher of update_calls.h and fix_calls.h on the GPU. */
#ifndef QK_CUDA_GPU_GROUPS_CUH
#define QK_CUDA_GPU_GROUPS_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/site/wide.h"

namespace QK_NS {
namespace {

constexpr int group_threads = 128;

template <class F>
__global__ void __launch_bounds__(group_threads, F::blocks)
    group_kernel(int n, const __grid_constant__ F body) {
  const int w = (int)(blockIdx.x * group_threads + threadIdx.x);
  if (w < n) body.group(w);
}

template <class F> qk_status_t each_group(qk_ops_ctx_t *ctx, int n, const F &body) {
  const int groups = (n + group_threads - 1) / group_threads;
  group_kernel<<<groups, group_threads, 0, qk_gpu(ctx)->stream[0]>>>(n, body);
  return qk_gpu_launched(ctx, "link update");
}

} // namespace
} // namespace QK_NS
#endif
