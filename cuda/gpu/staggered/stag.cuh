/*
 * gpu/staggered/stag.cuh: launches of the staggered hop for one storage type. Each stag_*.cu
 * instantiates it for its type. The arguments have been checked (stag_args.h). A thread has one
 * lane (place.cuh), or several of one site.
 *
 * |out|^2 is added in double: a block of threads leaves a sum for each column in its order, and a
 * second kernel adds these.
 */
#ifndef QK_CUDA_GPU_STAG_CUH
#define QK_CUDA_GPU_STAG_CUH

#include "cuda/body/staggered/stag.h"
#include "cuda/gpu/place.cuh"
#include "cuda/gpu/staggered/tiles.cuh"
#include "cuda/kernels.h"

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

/* Of right-hand sides that fill tiles four threads have those of a site, and load its links once
 * each. In double a thread has every fourth one; else two that stand side by side in each tile, of
 * which it loads a component at once. Four threads load 64 contiguous bytes. */
constexpr int stag_team = 4;
template <class S, int N> constexpr bool stag_pairs = N > 1 && sizeof(S) < 8;

/* Number n of those of thread k of a team, in columns. */
template <class S, int N> QK_ANY int stag_column(int k, int n) {
  return stag_pairs<S, N> ? 2 * k + n % 2 + n / 2 * QK_TILE : k + n * stag_team;
}

template <class S> struct stag_job {
  qk_stag_args_t a;
  stag_numbers<real<S>> num;
  tiled_walk sites;
  thread_layout threads;
  double *partial; /* [column][block]; NULL: no sums wanted */
  int stride;      /* how far apart threads of a warp are that have the same columns */
};

struct stag_pack_job {
  qk_stag_pack_args_t a;
  thread_layout threads;
};

/* Columns that a block of threads can add. */
constexpr int stag_most_sums = 32;

/* First of the columns of thread k of a site. */
template <int N> QK_ANY int stag_first(int k) {
  return N == 1 ? k : k / stag_team * (stag_team * N);
}
template <class S, int N> QK_ANY int stag_column_of(int k, int n) {
  return stag_first<N>(k) + (N == 1 ? 0 : stag_column<S, N>(k % stag_team, n));
}

/* All threads of a block must come here. */
template <class S, int N> __device__ void stag_leave(const double *sum, const stag_job<S> &job) {
  constexpr int warps = stag_threads<S, N> / 32;
  __shared__ double share[warps][stag_most_sums];
  const int lane = (int)threadIdx.x % 32;
  QK_UNROLL
  for (int n = 0; n < N; n++) {
    double v = sum[n];
    for (int far = job.stride; far < 32; far *= 2) v += __shfl_xor_sync(0xffffffffu, v, far);
    if (lane < job.stride) share[threadIdx.x / 32][stag_column_of<S, N>(lane, n)] = v;
  }
  __syncthreads();
  if ((int)threadIdx.x >= job.stride * N) return;
  double all = 0;
  for (int w = 0; w < warps; w++) all += share[w][threadIdx.x];
  job.partial[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] = all;
}

/* Where the sums of columns go. */
struct stag_sums {
  const uint8_t *mask;
  const double *more;
  double c_more, *red;

  __device__ bool wants(int rhs) const { return mask == nullptr || mask[rhs] != 0; }
  __device__ void put(int rhs, double sum) const {
    red[2 * rhs] = more != nullptr ? sum + c_more * more[2 * rhs] : sum;
    red[2 * rhs + 1] = 0;
  }
};

inline stag_sums stag_sums_of(const qk_stag_args_t &a) {
  return {a.mask, a.more, a.c_more, a.red};
}

/* Column blockIdx.x. */
constexpr int stag_add_threads = 1024;
inline __global__ void __launch_bounds__(stag_add_threads)
    stag_add_kernel(const double *partial, int blocks, const stag_sums to) {
  __shared__ double share[stag_add_threads];
  if (!to.wants((int)blockIdx.x)) return;
  const double *p = partial + (int64_t)blockIdx.x * blocks;
  double sum = 0;
#pragma unroll 8
  for (int b = (int)threadIdx.x; b < blocks; b += stag_add_threads) sum += p[b];
  share[threadIdx.x] = sum;
  for (int n = stag_add_threads / 2; n > 0; n /= 2) {
    __syncthreads();
    if (threadIdx.x < n) share[threadIdx.x] += share[threadIdx.x + n];
  }
  if (threadIdx.x == 0) to.put((int)blockIdx.x, share[0]);
}

/* Column blockIdx.x, of which the rest stands in red. */
inline __global__ void stag_more_kernel(const stag_sums to) {
  if (to.wants((int)blockIdx.x)) to.put((int)blockIdx.x, to.red[2 * blockIdx.x]);
}

template <class S, bool LONG, stag_mode MODE, int N>
__global__ void __launch_bounds__(stag_threads<S, N>,
                                  stag_resident<S, N> *hop_threads / stag_threads<S, N>)
    stag_kernel(const __grid_constant__ stag_job<S> job) {
  const thread_place p = job.threads.place(blockIdx.x, threadIdx.x, stag_threads<S, N>);
  const bool exists = p.n < job.sites.nwork;
  if (!exists && job.partial == nullptr) return;
  const site_pos here = site_in(job.a.lat, job.sites, exists ? p.n : 0);
  const int k = p.tile * QK_TILE + p.lane;
  stag_one at[N];
  QK_UNROLL
  for (int n = 0; n < N; n++) {
    const int c = stag_column_of<S, N>(k, n);
    at[n] = stag_one::with_lane(here, job.a.out.ntile, c / QK_TILE, c % QK_TILE);
  }
  double squares[N] = {};
  const auto rhs_of = [&](int n) { return (int)at[n].first; };
  const auto add_squares = [&](const real<S>(*sum)[colour_reals]) {
    if (job.partial == nullptr) return;
    QK_UNROLL
    for (int n = 0; n < N; n++) QK_UNROLL
    for (int i = 0; i < colour_reals; i++) squares[n] += (double)sum[n][i] * (double)sum[n][i];
  };
  if (exists)
    stag_body<stag_one, S, LONG, MODE, N, stag_pairs<S, N>>{job.a, job.num, at, here.parity}.run(
        rhs_of, add_squares);
  if (job.partial != nullptr) stag_leave<S, N>(squares, job);
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

/* stag_job.stride; 0: threads with the same columns are not the same distance apart in all warps,
 * there are too many columns, or there is no room for their sums. */
template <int N>
int stag_stride(const qk_stag_args_t &a, const thread_layout &threads, unsigned blocks) {
  constexpr int64_t room =
      (int64_t)QK_GPU_MULTI * (QK_MAX_RHS / QK_TILE) * QK_GPU_BLOCKS * QK_TILE * 2;
  const int columns = a.out.ntile == 0 ? 1 : a.out.nrhs, stride = columns / N;
  const bool apart = 32 % stride == 0 && (int)threads.teams.d << threads.log == stride;
  return apart && columns <= stag_most_sums && (int64_t)blocks * columns <= room ? stride : 0;
}

/* |out|^2 by a pass of its own. */
inline qk_status_t stag_norm2(qk_ops_ctx_t *ctx, const qk_stag_args_t &a) {
  const qk_blas_args_t norm2 = stag_norm2_of_out(a);
  const qk_status_t status = blas(ctx, &norm2);
  if (status != QK_OK || a.more == nullptr) return status;
  stag_more_kernel<<<a.out.nrhs, 1, 0, qk_gpu(ctx)->stream[0]>>>(stag_sums_of(a));
  return qk_gpu_launched(ctx, "stag, sums");
}

template <class S, bool LONG, stag_mode MODE, int N>
qk_status_t stag_start(qk_ops_ctx_t *ctx, const qk_stag_args_t &a, const tiled_walk &sites) {
  const thread_layout threads = N == 1 ? layout_of(a.out, sites.nwork)
                                       : thread_layout{divider_by(a.out.nrhs / (stag_team * N)), 2};
  const unsigned blocks = blocks_for(sites.nwork, threads, stag_threads<S, N>);
  const int stride = a.red != nullptr ? stag_stride<N>(a, threads, blocks) : 0;
  double *partial = stride > 0 ? qk_gpu(ctx)->partial : nullptr;
  const stag_job<S> job = {a, stag_numbers_of<real<S>>(a), sites, threads, partial, stride};
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  stag_kernel<S, LONG, MODE, N><<<blocks, stag_threads<S, N>, 0, stream>>>(job);
  const qk_status_t status = qk_gpu_launched(ctx, "stag");
  if (status != QK_OK || a.red == nullptr) return status;
  if (partial == nullptr) return stag_norm2(ctx, a);
  stag_add_kernel<<<stride * N, stag_add_threads, 0, stream>>>(partial, (int)blocks,
                                                               stag_sums_of(a));
  return qk_gpu_launched(ctx, "stag, sums");
}

/* Double has registers for two at most; in half four were slower (docs/performance.md). */
template <class S, bool LONG, stag_mode MODE>
qk_status_t stag_choose(qk_ops_ctx_t *ctx, const qk_stag_args_t &a, const tiled_walk &sites) {
  const bool fits = (int64_t)sites.nwork * a.out.nrhs / stag_team <= INT32_MAX;
  if constexpr (sizeof(S) == 4)
    if (fits && a.out.nrhs % (4 * stag_team) == 0)
      return stag_start<S, LONG, MODE, 4>(ctx, a, sites);
  if (fits && a.out.nrhs % (2 * stag_team) == 0) return stag_start<S, LONG, MODE, 2>(ctx, a, sites);
  return stag_start<S, LONG, MODE, 1>(ctx, a, sites);
}

template <class S, bool LONG>
qk_status_t stag_any(qk_ops_ctx_t *ctx, const qk_stag_args_t &a, const tiled_walk &sites) {
  switch (stag_mode_of(a)) {
  case STAG_WHOLE:
    return stag_choose<S, LONG, STAG_WHOLE>(ctx, a, sites);
  case STAG_SPLIT:
    return stag_choose<S, LONG, STAG_SPLIT>(ctx, a, sites);
  case STAG_MASKED:
    return stag_start<S, LONG, STAG_MASKED, 1>(ctx, a, sites);
  }
  return QK_BAD_ARGUMENT;
}

template <class S> qk_status_t stag_launch(qk_ops_ctx_t *ctx, const qk_stag_args_t &a) {
  const tiled_walk sites = stag_walk(a);
  return a.links.naik.data != nullptr ? stag_any<S, true>(ctx, a, sites)
                                      : stag_any<S, false>(ctx, a, sites);
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
