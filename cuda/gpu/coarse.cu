/* Coarse operators on the GPU. */
#include "cuda/gpu/coarse.cuh"

#include "cuda/kernels.h"
#include "cuda/mg_args.h"

namespace QK_NS {
namespace {

/* Sites from which on a block of threads takes many rows: below, blocks are too few to fill the GPU. */
constexpr int many_sites = 1024;

template <class M, int RP, int T> void start(coarse_job &job, cudaStream_t stream) {
  const int groups = job.a.out.ncomp / 16 / RP, ntile = job.a.out.ntile;
  const int warps = max(1, min(job.terms, coarse_threads<T> / 32));
  const size_t shared = sizeof(float4) * (size_t)(warps * RP * 8 * (ntile == 0 ? 1 : QK_TILE));
  job.groups = divider_by(groups);
  const dim3 grid((unsigned)(job.w.nwork * groups),
                  (unsigned)(ntile == 0 ? 1 : (ntile + T - 1) / T));
  coarse_kernel<M, RP, T><<<grid, (unsigned)(32 * warps), shared, stream>>>(job);
}

/* Row pieces that a warp may take with T tiles so that its sums stay in registers. */
template <class M, int RP, int T>
constexpr bool fits_registers = RP *T <= (sizeof(M) == sizeof(half) ? 12 : 4);

template <class M, int RP, int T> void start_rows(coarse_job &job, cudaStream_t stream) {
  if constexpr (RP == 1) {
    start<M, 1, T>(job, stream);
  } else {
    const bool many = job.w.nwork >= many_sites && job.terms > 1;
    if constexpr (fits_registers<M, RP, T>)
      if (many && job.a.out.ncomp / 16 % RP == 0) return start<M, RP, T>(job, stream);
    start_rows<M, RP - 1, T>(job, stream);
  }
}

template <class M> void start_tiles(coarse_job &job, cudaStream_t stream) {
  if (job.a.out.ntile < 2)
    start_rows<M, 4, 1>(job, stream);
  else if (job.a.out.ntile == 2)
    start_rows<M, 4, 2>(job, stream);
  else
    start_rows<M, 4, 4>(job, stream);
}

template <class R, class M> void start_plain(const coarse_job &job, cudaStream_t stream) {
  constexpr int threads = 128;
  const int64_t work =
      (int64_t)job.w.nwork * job.a.out.ncomp * (job.a.out.ntile == 0 ? 1 : QK_TILE);
  plain_kernel<R, M><<<(unsigned)((work + threads - 1) / threads), threads, 0, stream>>>(job);
}

template <class M> void start_single(coarse_job &job, cudaStream_t stream) {
  if (job.a.out.ncomp % 16 == 0)
    start_tiles<M>(job, stream);
  else
    start_plain<float, M>(job, stream);
}

} // namespace

qk_status_t coarse(qk_ops_ctx_t *ctx, const qk_coarse_args_t *args) {
  const qk_status_t status = qk_args_coarse(ctx, args);
  if (status != QK_OK) return status;
  const bool hops = args->c_hop != 0, own = args->c_z != 0 && args->diag.data != NULL;
  coarse_job job = {};
  job.a = *args;
  job.w = walk_in_rows(args->lat, args->out_parity);
  job.first = hops ? 0 : 8;
  job.terms = (hops ? 8 : 0) + (own ? 1 : 0);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (args->out.prec == QK_DOUBLE)
    start_plain<double, double>(job, stream);
  else if ((hops ? args->links.prec : args->diag.prec) == QK_HALF)
    start_single<half>(job, stream);
  else
    start_single<float>(job, stream);
  return qk_gpu_launched(ctx, "coarse");
}

} // namespace QK_NS
