/* Gaussian smearing on the GPU: a thread a lane. */
#include "cuda/args/hop_args.h"
#include "cuda/body/gauss.h"
#include "cuda/gpu/place.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

struct gauss_job {
  qk_gauss_args_t a;
  region_sites sites;
  thread_layout threads;
};

/* Blocks of threads that should be resident on a multiprocessor: more than the registers of double
 * leave would spill. */
template <class S> constexpr int resident = sizeof(S) == 8 ? 3 : 5;

template <class S, int REALS, bool GHOSTS>
__global__ void __launch_bounds__(hop_threads, resident<S>)
    gauss_kernel(const __grid_constant__ gauss_job job) {
  const int ntile = job.a.out.ntile;
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x);
  if (p.n >= job.sites.nwork || p.tile * QK_TILE + p.lane >= job.a.out.nrhs) return;
  const site_pos here = site_at(job.a.lat, job.sites, p.n);
  const one_site at = one_site::with_lane(here, ntile, p.tile, p.lane);
  gauss_body<one_site, S, REALS, GHOSTS>{job.a, at, at.here.parity}.run();
}

template <class S, int REALS> void start(const gauss_job &job, cudaStream_t stream) {
  const unsigned blocks = blocks_for(job.sites.nwork, job.threads);
  const int32_t *split = job.a.lat.split;
  if ((split[0] || split[1] || split[2]) && job.a.region != QK_REGION_INTERIOR)
    gauss_kernel<S, REALS, true><<<blocks, hop_threads, 0, stream>>>(job);
  else
    gauss_kernel<S, REALS, false><<<blocks, hop_threads, 0, stream>>>(job);
}

template <class S> qk_status_t launch(qk_ops_ctx_t *ctx, const qk_gauss_args_t &a) {
  const region_sites sites = gauss_sites(a);
  if (sites.nwork == 0) return QK_OK;
  const gauss_job job = {a, sites, layout_of(a.out, sites.nwork)};
  if (a.links.reals == 18)
    start<S, 18>(job, qk_gpu(ctx)->stream[0]);
  else
    start<S, 12>(job, qk_gpu(ctx)->stream[0]);
  return qk_gpu_launched(ctx, "gauss");
}

} // namespace

qk_status_t gauss(qk_ops_ctx_t *ctx, const qk_gauss_args_t *args) {
  const char *misfit = qk_gauss_misfit(args);
  if (misfit != NULL) return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "gauss: %s", misfit);
  return with_storage(args->out.prec,
                      [=](auto s) { return launch<stored<decltype(s)>>(ctx, *args); });
}

} // namespace QK_NS
