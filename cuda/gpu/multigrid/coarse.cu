/* Coarse operators on the GPU. */
#include "cuda/gpu/multigrid/coarse.cuh"

#include "cuda/args/mg_args.h"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

template <class M, int RP, int T, int W> cudaError_t start(coarse_job &job, const qk_gpu_ctx &gpu) {
  const size_t warp_bytes = (size_t)coarse_words<M, RP, T, W>(gpu.arch) * 512;
  static_assert(2 * stage_words<M, RP, T> * 512 >= RP * 8 * QK_TILE * sizeof(float4),
                "room for the sums of a tile");
  static const cudaError_t room =
      cudaFuncSetAttribute(coarse_kernel<M, RP, T, W>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           (int)(warp_bytes * W));
  if (room != cudaSuccess) return room;
  const int groups = job.a.out.ncomp / 16 / RP, ntile = job.a.out.ntile;
  const int warps = max(1, min(job.terms, W));
  job.groups = divider_by(groups);
  const dim3 grid((unsigned)(job.sites.nwork * groups),
                  (unsigned)(ntile == 0 ? 1 : (ntile + T - 1) / T));
  return launch_early(coarse_kernel<M, RP, T, W>, grid, (unsigned)(32 * warps),
                      warp_bytes * (size_t)warps, gpu, job);
}

/* Row pieces that a warp may take with T tiles so that its sums stay in registers. */
template <class M, int RP, int T>
constexpr bool fits_registers = RP *T <= (sizeof(M) <= sizeof(half) ? 12 : 4);

template <class M, int RP, int T, int W>
cudaError_t start_rows(coarse_job &job, const qk_gpu_ctx &gpu) {
  if constexpr (RP > 1) {
    if constexpr (fits_registers<M, RP, T>)
      if (job.a.out.ncomp / 16 % RP == 0) return start<M, RP, T, W>(job, gpu);
    return start_rows<M, RP - 1, T, W>(job, gpu);
  } else {
    return start<M, 1, T, W>(job, gpu);
  }
}

/* Sites from which on a block takes fewer warps, so that more blocks share a multiprocessor. */
constexpr int many_sites = 1024;

template <class M, int T> cudaError_t start_warps(coarse_job &job, const qk_gpu_ctx &gpu) {
  if (job.sites.nwork < many_sites) return start_rows<M, 4, T, 8>(job, gpu);
  return start_rows<M, 4, T, 4>(job, gpu);
}

/* Where sites are too few to give every multiprocessor a block, or a site has one matrix, blocks
 * are made as many as can be. */
template <class M> cudaError_t start_tiles(coarse_job &job, const qk_gpu_ctx &gpu) {
  const int ntile = job.a.out.ntile;
  if (job.sites.nwork < gpu.multiprocessors || job.terms < 2) return start<M, 1, 1, 8>(job, gpu);
  if (ntile < 2) return start_warps<M, 1>(job, gpu);
  if (ntile == 2 || job.a.out.ncomp % 64 == 0) return start_warps<M, 2>(job, gpu);
  return start_rows<M, 4, 4, 4>(job, gpu);
}

/* A right-hand side alone. */
cudaError_t start_eight(coarse_job &job, const qk_gpu_ctx &gpu) {
  if (job.sites.nwork < gpu.multiprocessors) return start<coarse_byte, 1, 1, 8>(job, gpu);
  return start_warps<coarse_byte, 1>(job, gpu);
}

template <class R, class M> cudaError_t start_plain(const coarse_job &job, const qk_gpu_ctx &gpu) {
  constexpr int threads = 128;
  const int64_t work =
      (int64_t)job.sites.nwork * job.a.out.ncomp * (job.a.out.ntile == 0 ? 1 : QK_TILE);
  plain_kernel<R, M>
      <<<(unsigned)((work + threads - 1) / threads), threads, 0, gpu.stream[0]>>>(job);
  return cudaGetLastError();
}

template <class M> cudaError_t start_single(coarse_job &job, const qk_gpu_ctx &gpu) {
  if (sizeof(M) == sizeof(half) && job.a.eight != nullptr && job.first == 0 &&
      job.a.out.ntile == 0 && job.a.minus == nullptr)
    return start_eight(job, gpu);
  if (job.a.out.ncomp % 16 == 0) return start_tiles<M>(job, gpu);
  return start_plain<float, M>(job, gpu);
}

__global__ void nothing() {}

} // namespace

qk_status_t qk_gpu_settle(qk_ops_ctx_t *ctx) {
  nothing<<<1, 1, 0, qk_gpu(ctx)->stream[0]>>>();
  return qk_gpu_launched(ctx, "settle");
}

qk_status_t coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *args) {
  const qk_status_t status = qk_args_coarse(ctx, args);
  if (status != QK_OK) return status;
  const bool hops = args->c_hop != 0, own = args->c_z != 0 && args->diag.data != NULL;
  coarse_job job = {};
  job.a = *args;
  job.sites = coarse_sites(*args);
  if (job.sites.nwork == 0) return QK_OK;
  job.first = hops ? 0 : 8;
  job.terms = (hops ? 8 : 0) + (own ? 1 : 0);
  const qk_gpu_ctx &gpu = *qk_gpu(ctx);
  cudaError_t code;
  if (args->out.prec == QK_DOUBLE)
    code = start_plain<double, double>(job, gpu);
  else if ((hops ? args->links.prec : args->diag.prec) == QK_HALF)
    code = start_single<half>(job, gpu);
  else
    code = start_single<float>(job, gpu);
  return qk_gpu_check(ctx, code, "coarse");
}

} // namespace QK_NS
