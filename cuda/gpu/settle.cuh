/*
 * gpu/settle.cuh: kernels that begin before the one ahead of them in the queue has ended
 * (programmatic dependent launch; kernels for cards before Hopper wait as usual). Such a kernel is
 * launched by launch_early, and may read what no kernel writes during a cycle, coarse matrices,
 * before await_kernels_before(). Every thread calls that, also those that have nothing to do: so a
 * kernel that has ended means that all before it have. What writes coarse matrices ends with
 * qk_gpu_settle. A kernel that does not call allow_kernel_after lets the next one begin when it
 * ends.
 */
#ifndef QK_CUDA_GPU_SETTLE_CUH
#define QK_CUDA_GPU_SETTLE_CUH

#include "cuda/gpu/arch.cuh"
#include "cuda/gpu/ctx.cuh"
#include "cuda/site/lane.h"

namespace QK_NS {

/* The next kernel of the queue may begin once all blocks have come here or ended. */
QK_HD void allow_kernel_after() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* All kernels before have ended, and what they wrote can be read. */
QK_HD void await_kernels_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

template <class ARGS>
cudaError_t launch_early(void (*kernel)(ARGS), dim3 grid, unsigned threads, size_t shared,
                         const qk_gpu_ctx &gpu, const ARGS &args) {
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.stream = gpu.stream[0];
  config.attrs = &early;
  config.numAttrs = launches_early(gpu.arch) ? 1 : 0;
  return cudaLaunchKernelEx(&config, kernel, args);
}

/* A kernel that does nothing, and begins when all before it have ended:
 * what follows may read early. */
qk_status_t qk_gpu_settle(qk_ops_ctx_t *ctx);

} // namespace QK_NS
#endif
