/*
 * gpu/staggered/stag.cuh: launches of the staggered hop for one storage type. Each stag_*.cu
 * instantiates it for its type. The arguments have been checked (stag_args.h). A thread has one
 * lane (place.cuh), or several of one site.
 */
#ifndef QK_CUDA_GPU_STAG_CUH
#define QK_CUDA_GPU_STAG_CUH

#include "cuda/body/staggered/stag.h"
#include "cuda/gpu/place.cuh"
#include "cuda/gpu/staggered/tiles.cuh"

namespace QK_NS {

/* Larger blocks share more in L1; double has too few registers for two of them. */
template <class S, int N>
constexpr int stag_threads = N > 1 && sizeof(S) < 8 ? 2 * hop_threads : hop_threads;

/* Times hop_threads: threads that should be resident on a multiprocessor: registers for loads in
 * flight against threads to hide latency. */
template <class S, int N>
constexpr int stag_resident = sizeof(S) == 8 ? (N > 1 ? 3 : 4)
                              : N == 1       ? 6
                              : N == 2       ? 5
                                             : 4;

/* Of right-hand sides that fill tiles a thread has several, `apart` from each other, whose links it
 * loads once; four threads in a row load 64 contiguous bytes of a site. */
constexpr int stag_apart = 4;

template <class S> struct stag_job {
  qk_stag_args_t a;
  stag_numbers<real<S>> num;
  tiled_walk sites;
  thread_layout threads;
};

struct stag_pack_job {
  qk_stag_pack_args_t a;
  thread_layout threads;
};

template <class S, bool LONG, stag_mode MODE, int N>
__global__ void __launch_bounds__(stag_threads<S, N>,
                                  stag_resident<S, N> *hop_threads / stag_threads<S, N>)
    stag_kernel(const __grid_constant__ stag_job<S> job) {
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x, stag_threads<S, N>);
  if (p.n >= job.sites.nwork) return;
  const site_pos here = site_in(job.a.lat, job.sites, p.n);
  const int column = p.tile * QK_TILE + p.lane, k = column % stag_apart;
  const int first = N == 1 ? column : (column - k) * N + k;
  stag_one at[N];
  QK_UNROLL
  for (int n = 0; n < N; n++) {
    const int c = first + n * stag_apart;
    at[n] = stag_one::with_lane(here, job.a.out.ntile, c / QK_TILE, c % QK_TILE);
  }
  stag_body<stag_one, S, LONG, MODE, N>{job.a, job.num, at, here.parity}.run();
}

/* blockIdx.y: 2 * mu + ahead */
template <class S>
__global__ void __launch_bounds__(hop_threads)
    stag_pack_kernel(const __grid_constant__ stag_pack_job job) {
  const int mu = (int)blockIdx.y / 2, ahead = (int)blockIdx.y % 2;
  if (job.a.to[mu][ahead].data == nullptr) return;
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x);
  if (p.n >= stag_pack_sites(job.a, mu)) return;
  stag_pack_lanes<S>(job.a, mu, ahead, p.n, p.tile, p.lane);
}

/* One RHS is visited slice by slice, in the order of the Wilson hop (gpu/wilson/hop.cuh:
 * hop_sites). Of a block of RHS a site reads 16 neighbours of 32 bytes a RHS, and what L2 delivers
 * decides: the threads of a block have a tile of 64 sites (of 16 RHS), of whose reads L1 answers a
 * third, and sites are swept in t, seven slices of a block of the lattice being in L2. */
inline tiled_walk stag_walk(const qk_stag_args_t &a) {
  const int *l = a.lat.l;
  const int slice[4] = {l[0], l[1], l[2], 1}, block[4] = {16, 24, 16, l[3]};
  const int wide[4] = {16, 4, 2, 1}, narrow[4] = {8, 4, 4, 1}, rows[4] = {l[0], 4, 4, 4};
  const int *tile = l[0] % 16 == 0 ? wide : l[0] % 8 == 0 ? narrow : rows;
  tiled_walk w = a.out.ntile > 0 ? walk_in_tiles(a.lat, a.out_parity, tile, block)
                                 : walk_in_tiles(a.lat, a.out_parity, slice, l);
  w.backwards = a.out_parity == QK_EVEN;
  return w;
}

template <class S, bool LONG, stag_mode MODE, int N>
void stag_start(const qk_stag_args_t &a, const tiled_walk &sites, cudaStream_t stream) {
  const thread_layout threads = N == 1
                                    ? layout_of(a.out, sites.nwork)
                                    : thread_layout{divider_by(a.out.nrhs / (stag_apart * N)), 2};
  const stag_job<S> job = {a, stag_numbers_of<real<S>>(a), sites, threads};
  const unsigned blocks = blocks_for(sites.nwork, threads, stag_threads<S, N>);
  stag_kernel<S, LONG, MODE, N><<<blocks, stag_threads<S, N>, 0, stream>>>(job);
}

/* Double has registers for two at most; in half four were slower (docs/performance.md). */
template <class S, bool LONG, stag_mode MODE>
void stag_choose(const qk_stag_args_t &a, const tiled_walk &sites, cudaStream_t stream) {
  const bool fits = (int64_t)sites.nwork * a.out.nrhs / stag_apart <= INT32_MAX;
  if constexpr (sizeof(S) == 4)
    if (fits && a.out.nrhs % (4 * stag_apart) == 0)
      return stag_start<S, LONG, MODE, 4>(a, sites, stream);
  if (fits && a.out.nrhs % (2 * stag_apart) == 0)
    return stag_start<S, LONG, MODE, 2>(a, sites, stream);
  stag_start<S, LONG, MODE, 1>(a, sites, stream);
}

template <class S, bool LONG>
void stag_any(const qk_stag_args_t &a, const tiled_walk &sites, cudaStream_t stream) {
  switch (stag_mode_of(a)) {
  case STAG_WHOLE:
    return stag_choose<S, LONG, STAG_WHOLE>(a, sites, stream);
  case STAG_SPLIT:
    return stag_choose<S, LONG, STAG_SPLIT>(a, sites, stream);
  case STAG_MASKED:
    return stag_start<S, LONG, STAG_MASKED, 1>(a, sites, stream);
  }
}

template <class S> qk_status_t stag_launch(qk_ops_ctx_t *ctx, const qk_stag_args_t &a) {
  const tiled_walk sites = stag_walk(a);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a.links.naik.data != nullptr)
    stag_any<S, true>(a, sites, stream);
  else
    stag_any<S, false>(a, sites, stream);
  return qk_gpu_launched(ctx, "stag");
}

template <class S> qk_status_t stag_pack_launch(qk_ops_ctx_t *ctx, const qk_stag_pack_args_t &a) {
  int sites = 0;
  for (int mu = 0; mu < 4; mu++)
    if ((a.to[mu][0].data != nullptr || a.to[mu][1].data != nullptr) &&
        stag_pack_sites(a, mu) > sites)
      sites = stag_pack_sites(a, mu);
  if (sites == 0) return QK_OK;
  const stag_pack_job job = {a, layout_of(a.in, sites)};
  const dim3 grid(blocks_for(sites, job.threads), 8);
  stag_pack_kernel<S><<<grid, hop_threads, 0, qk_gpu(ctx)->stream[0]>>>(job);
  return qk_gpu_launched(ctx, "stag_pack");
}

#define X(name, type, bytes, scaled)                                                               \
  extern template qk_status_t stag_launch<type>(qk_ops_ctx_t *, const qk_stag_args_t &);           \
  extern template qk_status_t stag_pack_launch<type>(qk_ops_ctx_t *, const qk_stag_pack_args_t &);
QK_STORAGES(X)
#undef X

} // namespace QK_NS
#endif
