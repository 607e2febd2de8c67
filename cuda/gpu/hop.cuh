/*
 * gpu/hop.cuh: launches of the operator for one storage type. Each hop_*.cu instantiates it for its
 * type, so that they compile side by side. The arguments have been checked (hop_args.h).
 *
 * A thread has one lane: of tiles of RHS, eight threads in a row have the lanes of a tile, then come
 * the other tiles of the same site, which share its links, then the next site.
 */
#ifndef QK_CUDA_GPU_HOP_CUH
#define QK_CUDA_GPU_HOP_CUH

#include "cuda/body/hop.h"
#include "cuda/body/pack.h"
#include "cuda/gpu/ctx.cuh"

namespace QK_NS {

constexpr int hop_threads = 128;

/* Blocks of hop_threads that should be resident on a multiprocessor: four bound a thread to 128
 * registers, which double needs and the others use for loads in flight. */
template <class S> constexpr int hop_resident = 4;

struct hop_job {
  qk_hop_args_t a;
  walk w;
  divider tiles; /* by ntile */
};

struct pack_job {
  qk_pack_args_t a;
  divider tiles;
};

/* Work item and lane of this thread; n counts sites. */
QK_HD one_site thread_lane(int ntile, const divider &tiles, int &n) {
  one_site at;
  if (ntile == 0) {
    n = (int)(blockIdx.x * hop_threads + threadIdx.x);
    at.tile = at.lane = 0;
  } else {
    n = (int)(blockIdx.x * (hop_threads / QK_TILE) + threadIdx.x / QK_TILE);
    at.lane = (int)(threadIdx.x % QK_TILE);
    at.tile = split_off(n, tiles);
  }
  return at;
}

inline unsigned blocks_for(int sites, int ntile) {
  const int64_t lanes = (int64_t)sites * (ntile == 0 ? 1 : ntile * QK_TILE);
  return (unsigned)((lanes + hop_threads - 1) / hop_threads);
}

template <class S, int REALS>
__global__ void __launch_bounds__(hop_threads, hop_resident<S>)
    hop_kernel(const __grid_constant__ hop_job job) {
  int n;
  one_site at = thread_lane(job.a.out.ntile, job.tiles, n);
  if (n >= job.w.nwork) return;
  at.here = site_at(job.a.lat, job.w, n);
  if (job.a.region != QK_REGION_ALL &&
      reads_ghosts(job.a.lat, at.here.x) != (job.a.region == QK_REGION_BOUNDARY))
    return;
  hop_body<one_site, S, REALS>{job.a, at, at.here.parity}.run();
}

/* blockIdx.y: 2 * mu + ahead */
template <class S, int REALS>
__global__ void __launch_bounds__(hop_threads) pack_kernel(const __grid_constant__ pack_job job) {
  const int mu = (int)blockIdx.y / 2, ahead = (int)blockIdx.y % 2;
  if (job.a.to[mu][ahead].data == nullptr) return;
  int w, f;
  one_site at = thread_lane(job.a.in.ntile, job.tiles, w);
  if (w >= pack_sites(job.a, mu)) return;
  const int parity = pack_parity(job.a, mu, w, &f);
  if (f >= job.a.lat.face[mu]) return;
  at.here = face_site(job.a.lat, parity, mu, ahead ? job.a.lat.l[mu] - 1 : 0, f);
  pack_body<one_site, S, REALS>{job.a, at, parity, w}.run(mu, ahead);
}

/* Sites are visited time slice by time slice. The pass that writes even sites runs backwards: where it
 * follows the one over the odd sites, its first neighbours are what that one wrote last. */
inline walk hop_walk(const qk_hop_args_t &a) {
  const int block[4] = {a.lat.l[0], a.lat.l[1], a.lat.l[2], 1};
  walk w = walk_over(a.lat, a.out_parity, block);
  w.backwards = a.out_parity == QK_EVEN;
  return w;
}

template <class S> qk_status_t hop_launch(qk_ops_ctx_t *ctx, const qk_hop_args_t &a) {
  const int ntile = a.out.ntile;
  const hop_job job = {a, hop_walk(a), divider_by(ntile > 0 ? ntile : 1)};
  const unsigned blocks = blocks_for(job.w.nwork, ntile);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.links.reals == 18)
    hop_kernel<S, 18><<<blocks, hop_threads, 0, stream>>>(job);
  else if (a.links.reals == 12)
    hop_kernel<S, 12><<<blocks, hop_threads, 0, stream>>>(job);
  else
    hop_kernel<S, 8><<<blocks, hop_threads, 0, stream>>>(job);
  return qk_gpu_launched(ctx, "hop");
}

template <class S> qk_status_t pack_launch(qk_ops_ctx_t *ctx, const qk_pack_args_t &a) {
  const int ntile = a.in.ntile;
  const pack_job job = {a, divider_by(ntile > 0 ? ntile : 1)};
  int sites = 0;
  for (int mu = 0; mu < 4; mu++)
    if ((a.to[mu][0].data != nullptr || a.to[mu][1].data != nullptr) && pack_sites(a, mu) > sites)
      sites = pack_sites(a, mu);
  if (sites == 0) return QK_OK;
  const dim3 grid(blocks_for(sites, ntile), 8);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.links.reals == 18)
    pack_kernel<S, 18><<<grid, hop_threads, 0, stream>>>(job);
  else if (a.links.reals == 12)
    pack_kernel<S, 12><<<grid, hop_threads, 0, stream>>>(job);
  else
    pack_kernel<S, 8><<<grid, hop_threads, 0, stream>>>(job);
  return qk_gpu_launched(ctx, "pack");
}

extern template qk_status_t hop_launch<double>(qk_ops_ctx_t *, const qk_hop_args_t &);
extern template qk_status_t hop_launch<float>(qk_ops_ctx_t *, const qk_hop_args_t &);
extern template qk_status_t hop_launch<half>(qk_ops_ctx_t *, const qk_hop_args_t &);
extern template qk_status_t pack_launch<double>(qk_ops_ctx_t *, const qk_pack_args_t &);
extern template qk_status_t pack_launch<float>(qk_ops_ctx_t *, const qk_pack_args_t &);
extern template qk_status_t pack_launch<half>(qk_ops_ctx_t *, const qk_pack_args_t &);

} // namespace QK_NS
#endif
