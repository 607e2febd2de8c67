/*
 * gpu/wilson/hop.cuh: launches of the operator for one storage type. Each hop_*.cu instantiates it
 * for its type, so that they compile side by side. The arguments have been checked (hop_args.h). A
 * thread has one lane (place.cuh).
 */
#ifndef QK_CUDA_GPU_HOP_CUH
#define QK_CUDA_GPU_HOP_CUH

#include "cuda/body/hop.h"
#include "cuda/body/pack.h"
#include "cuda/gpu/place.cuh"

namespace QK_NS {

/* Blocks of hop_threads that should be resident on a multiprocessor: registers for loads in flight
 * against threads to hide latency, as measured (docs/performance.md). Double needs the 168
 * registers that three blocks leave, or it spills. */
template <class S> constexpr int hop_resident = sizeof(S) == 8 ? 3 : sizeof(S) == 4 ? 4 : 5;

template <class S> struct hop_job {
  qk_hop_args_t a;
  hop_numbers<real<S>> num;
  region_sites sites;
  thread_layout threads;
};

struct pack_job {
  qk_pack_args_t a;
  thread_layout threads;
};

template <class S, int REALS, bool GENERAL, bool DRESSED>
__global__ void __launch_bounds__(hop_threads, hop_resident<S>)
    hop_kernel(const __grid_constant__ hop_job<S> job) {
  const int ntile = job.a.out.ntile;
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x);
  if (p.n >= job.sites.nwork) return;
  const site_pos here =
      GENERAL ? site_at(job.a.lat, job.sites, p.n) : site_at(job.a.lat, job.sites.box, p.n);
  const one_site at = one_site::with_lane(here, ntile, p.tile, p.lane);
  hop_body<one_site, S, REALS, GENERAL, DRESSED>{job.a, job.num, at, at.here.parity}.run();
}

/* blockIdx.y: 2 * mu + ahead */
template <class S, int REALS, int N>
__global__ void __launch_bounds__(hop_threads) pack_kernel(const __grid_constant__ pack_job job) {
  const int mu = (int)blockIdx.y / 2, ahead = (int)blockIdx.y % 2;
  if (job.a.to[mu][ahead].data == nullptr) return;
  const int ntile = job.a.in.ntile;
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x);
  if (p.n >= pack_sites(job.a.lat, job.a.in_parity, mu)) return;
  int f;
  const int parity = pack_parity(job.a.lat, job.a.in_parity, mu, p.n, &f);
  if (f >= job.a.lat.face[mu]) return;
  const site_pos here = face_site(job.a.lat, parity, mu, ahead ? job.a.lat.l[mu] - 1 : 0, f);
  const one_site at = one_site::with_lane(here, ntile, p.tile, p.lane);
  pack_body<one_site, S, REALS, N>{job.a, at, parity, p.n}.run(mu, ahead);
}

/* One RHS is visited time slice by time slice: three slices of neighbours stay in L2. For a block
 * of RHS they would not, and it is visited in rows. The pass that writes even sites runs backwards:
 * where it follows the one over the odd sites,
 * its first neighbours are what that one wrote last. */
inline region_sites hop_sites(const qk_hop_args_t &a) {
  const site_box box = box_of(a.lat, a.region);
  const int slice[4] = {box.extent[0], box.extent[1], box.extent[2], 1};
  walk w = a.out.ntile > 0 ? walk_in_rows(box, a.out_parity) : walk_over(box, a.out_parity, slice);
  w.backwards = a.out_parity == QK_EVEN;
  return sites_of(a.lat, a.region, a.out_parity, w);
}

/* Whether ghosts are read, a phase is complex or hops are left out (body/hop.h: GENERAL). */
inline bool is_general(const qk_hop_args_t &a) {
  bool general = a.hops != 0;
  for (int mu = 0; mu < 4; mu++)
    general = general || a.phase[mu][1] != 0 || a.block[mu] != 0 ||
              (a.lat.split[mu] && a.region != QK_REGION_INTERIOR);
  return general;
}

template <class S, int REALS> void hop_start(const hop_job<S> &job, cudaStream_t stream) {
  const unsigned blocks = blocks_for(job.sites.nwork, job.threads);
  const bool general = is_general(job.a), dressed = is_dressed(job.a);
  if (general && dressed)
    hop_kernel<S, REALS, true, true><<<blocks, hop_threads, 0, stream>>>(job);
  else if (dressed)
    hop_kernel<S, REALS, false, true><<<blocks, hop_threads, 0, stream>>>(job);
  else if (general)
    hop_kernel<S, REALS, true, false><<<blocks, hop_threads, 0, stream>>>(job);
  else
    hop_kernel<S, REALS, false, false><<<blocks, hop_threads, 0, stream>>>(job);
}

template <class S> qk_status_t hop_launch(qk_ops_ctx_t *ctx, const qk_hop_args_t &a) {
  const region_sites sites = hop_sites(a);
  if (sites.nwork == 0) return QK_OK;
  const hop_job<S> job = {a, hop_numbers_of<real<S>>(a), sites, layout_of(a.out, sites.nwork)};
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.links.reals == 18)
    hop_start<S, 18>(job, stream);
  else if (a.links.reals == 12)
    hop_start<S, 12>(job, stream);
  else
    hop_start<S, 8>(job, stream);
  return qk_gpu_launched(ctx, "hop");
}

/* Whether a call is one for hop_rough.cuh, and its launch. */
bool hop_is_rough(const qk_hop_args_t &a);
qk_status_t hop_rough_launch(qk_ops_ctx_t *ctx, const qk_hop_args_t &a);

/* Whether a call for several fields is one for hop_each.cu, and its launch. */
bool hop_each_is_one(const qk_hop_each_args_t &a);
qk_status_t hop_each_launch(qk_ops_ctx_t *ctx, const qk_hop_each_args_t &a);

template <class S, int REALS> void pack_start(const pack_job &job, dim3 grid, cudaStream_t stream) {
  if (job.a.whole)
    pack_kernel<S, REALS, 24><<<grid, hop_threads, 0, stream>>>(job);
  else
    pack_kernel<S, REALS, 12><<<grid, hop_threads, 0, stream>>>(job);
}

template <class S> qk_status_t pack_launch(qk_ops_ctx_t *ctx, const qk_pack_args_t &a) {
  int sites = 0;
  for (int mu = 0; mu < 4; mu++)
    if ((a.to[mu][0].data != nullptr || a.to[mu][1].data != nullptr) &&
        pack_sites(a.lat, a.in_parity, mu) > sites)
      sites = pack_sites(a.lat, a.in_parity, mu);
  if (sites == 0) return QK_OK;
  const pack_job job = {a, layout_of(a.in, sites)};
  const dim3 grid(blocks_for(sites, job.threads), 8);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.links.reals == 18)
    pack_start<S, 18>(job, grid, stream);
  else if (a.links.reals == 12)
    pack_start<S, 12>(job, grid, stream);
  else
    pack_start<S, 8>(job, grid, stream);
  return qk_gpu_launched(ctx, "pack");
}

#define X(name, type, bytes, scaled)                                                               \
  extern template qk_status_t hop_launch<type>(qk_ops_ctx_t *, const qk_hop_args_t &);             \
  extern template qk_status_t pack_launch<type>(qk_ops_ctx_t *, const qk_pack_args_t &);
QK_STORAGES(X)
#undef X

} // namespace QK_NS
#endif
