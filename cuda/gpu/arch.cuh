/*
 * gpu/arch.cuh: where kernels differ by the architecture that they were compiled for. Device code
 * asks with this_arch, the host with qk_gpu(ctx)->arch, which is the same number: the compute
 * capability of the kernels' code, 90 for 9.0. It can be less than the card's (ctx.cu).
 */
#ifndef QK_CUDA_GPU_ARCH_CUH
#define QK_CUDA_GPU_ARCH_CUH

namespace QK_NS {

#ifdef __CUDA_ARCH__
constexpr int this_arch = __CUDA_ARCH__ / 10;
#else
constexpr int this_arch = 0; /* the host's pass compiles kernels, but nothing of them is used */
#endif

/* Shared memory of a multiprocessor that kernels plan with, in KB: of 228, 164 or 100 what is left
 * beside 1 KB of each block and what a block has of fixed size. One block may have all of it. */
constexpr int shared_kilobytes(int arch) {
  if (arch >= 90 && arch < 120) return 216;
  return arch == 80 || arch == 87 ? 160 : 96;
}

/* Programmatic dependent launch (settle.cuh). */
constexpr bool launches_early(int arch) {
  return arch >= 90;
}

} // namespace QK_NS
#endif
