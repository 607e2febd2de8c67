/* Launches of the operator with sums in half (hop_rough.cuh). */
#include "cuda/gpu/wilson/hop_rough.cuh"

#include "cuda/args/hop_args.h"
#include "cuda/gpu/wilson/hop.cuh"

namespace QK_NS {
namespace {

/* Many threads, with registers for little more than sums: as measured (docs/performance.md). */
constexpr int rough_resident = 8;

template <bool DRESSED, bool WIDE>
__global__ void __launch_bounds__(hop_threads, rough_resident)
    rough_kernel(const __grid_constant__ hop_job<half> job) {
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x);
  if (p.n >= job.sites.nwork) return;
  const site_pos here = site_at(job.a.lat, job.sites.box, p.n);
  const one_site at = one_site::with_lane(here, job.a.out.ntile, p.tile, p.lane);
  rough_body<DRESSED, WIDE>{job.a, job.num, at}.run();
}

template <bool WIDE>
void rough_start(const hop_job<half> &job, unsigned blocks, cudaStream_t stream) {
  if (is_dressed(job.a))
    rough_kernel<true, WIDE><<<blocks, hop_threads, 0, stream>>>(job);
  else
    rough_kernel<false, WIDE><<<blocks, hop_threads, 0, stream>>>(job);
}

/* Numbers of the local term that 16 bits hold with what they are multiplied by. */
bool fits_words(const qk_local_t &t) {
  constexpr double most = 256;
  bool fits = fabs(t.scalar) <= most;
  for (int c = 0; c < 2; c++)
    for (int k = 0; k < 2; k++) fits = fits && fabs(t.q[c][k]) <= most;
  return fits;
}

} // namespace

bool hop_is_rough(const qk_hop_args_t &a) {
  return a.rough != 0 && qk_prec_scaled(qk_hop_prec(&a)) && a.out.ntile > 0 &&
         a.out_parity != QK_FULL && a.links.reals == 18 && !a.dagger && a.c_hop != 0 &&
         a.c_z == 0 && !is_general(a) && fits_words(a.diag);
}

qk_status_t hop_rough_launch(qk_ops_ctx_t *ctx, const qk_hop_args_t &a) {
  const region_sites sites = hop_sites(a);
  if (sites.nwork == 0) return QK_OK;
  const hop_job<half> job = {a, hop_numbers_of<float>(a), sites, layout_of(a.out, sites.nwork)};
  const unsigned blocks = blocks_for(sites.nwork, job.threads);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.out.scale == nullptr)
    rough_start<true>(job, blocks, stream);
  else
    rough_start<false>(job, blocks, stream);
  return qk_gpu_launched(ctx, "hop");
}

} // namespace QK_NS
