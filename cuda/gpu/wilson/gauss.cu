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
  walk w;
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
  if (p.n >= job.w.nwork || p.tile * QK_TILE + p.lane >= job.a.out.nrhs) return;
  const one_site at = one_site::with_lane(site_at(job.a.lat, job.w, p.n), ntile, p.tile, p.lane);
  if (job.a.region != QK_REGION_ALL &&
      reads_ghosts(job.a.lat, at.here.x) != (job.a.region == QK_REGION_BOUNDARY))
    return;
  gauss_body<one_site, S, REALS, GHOSTS>{job.a, at, at.here.parity}.run();
}

template <class S, int REALS> void start(const gauss_job &job, cudaStream_t stream) {
  const unsigned blocks = blocks_for(job.w.nwork, job.threads);
  const int32_t *split = job.a.lat.split;
  if ((split[0] || split[1] || split[2]) && job.a.region != QK_REGION_INTERIOR)
    gauss_kernel<S, REALS, true><<<blocks, hop_threads, 0, stream>>>(job);
  else
    gauss_kernel<S, REALS, false><<<blocks, hop_threads, 0, stream>>>(job);
}

template <class S> qk_status_t launch(qk_ops_ctx_t *ctx, const qk_gauss_args_t &a) {
  const walk w = gauss_walk(a.lat);
  const gauss_job job = {a, w, layout_of(a.out, w.nwork)};
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
