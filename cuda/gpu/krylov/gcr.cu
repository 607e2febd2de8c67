/* Steps of GCR and small least squares problems on the GPU. */
#include "cuda/body/gcr.h"

#include "cuda/args/args.h"
#include "cuda/gpu/reduce.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int rows = QK_ROWS, threads = QK_THREADS, most_blocks = QK_GPU_BLOCKS;

/* Amounts of a block of threads' eight lanes, for up to N fields. */
template <class R, int N> struct amounts_shared {
  cx<R> by[N * QK_TILE];
  R on[N * QK_TILE];
  bool none[N * QK_TILE], partly[N * QK_TILE];

  __device__ void set(int i, const dcx &c) {
    by[i] = {(R)c.re, (R)c.im};
    none[i] = c.re == 0 && c.im == 0;
    partly[i] = false;
    on[i] = 1;
  }
  __device__ gcr_amounts<R> of(int lane) const {
    return {by + lane, on + lane, none + lane, partly + lane, QK_TILE};
  }
};

/* A block of threads is 16 rows by 8 lanes, blockIdx.y the tile of RHS;
 * a thread has one part of a row. */
template <class S>
__global__ void __launch_bounds__(threads)
    gcr_kernel(const gcr_fields<S> f, const gcr_scalars s, const block_shape b) {
  using R = real<S>;
  constexpr int N = gcr_tile<gcr_scaled<S>>, parts = N / gcr_reals<S, gcr_scaled<S>>;
  __shared__ amounts_shared<R, QK_GCR_MAX> minus;
  __shared__ cx<R> a[QK_TILE];
  __shared__ double taken[QK_GCR_MAX][QK_TILE];
  for (int i = threadIdx.x; i < f.n * QK_TILE; i += threads) {
    const int k = i / QK_TILE, l = i % QK_TILE, rhs = b.rhs(blockIdx.y, l);
    if (rhs >= b.nrhs) continue;
    const dcx c = s.share(k, rhs);
    minus.set(i, dcx{-c.re, -c.im});
    taken[k][l] = s.taken(c, k, rhs);
  }
  __syncthreads();
  const int lane = threadIdx.x % QK_TILE, rhs = b.rhs(blockIdx.y, lane);
  if (threadIdx.x < QK_TILE && rhs < b.nrhs) {
    double sum = 0;
    for (int k = 0; k < f.n; k++) sum += taken[k][lane];
    const double left = s.left(f.n, rhs, sum);
    const dcx c = s.length(f.n, rhs, left);
    a[lane] = {(R)c.re, (R)c.im};
    if (blockIdx.x == 0) s.keep(f.n, rhs, left);
  }
  __syncthreads();
  if (rhs >= b.nrhs) return;
  const gcr_amounts<R> c = minus.of(lane);
  const int64_t n = b.rows * parts;
  for (int64_t i = blockIdx.x * rows + threadIdx.x / QK_TILE; i < n; i += gridDim.x * rows)
    gcr_part<S>(f, spot{b.index(i / parts, blockIdx.y), lane}, (int)(i % parts), c, a[lane]);
}

template <class S> qk_status_t run_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &args) {
  constexpr int N = gcr_tile<gcr_scaled<S>>, parts = N / gcr_reals<S, gcr_scaled<S>>;
  const block_shape b = shape_of(args.r, N);
  const int64_t blocks = (b.rows * parts + rows - 1) / rows;
  const dim3 grid(blocks < most_blocks ? (int)blocks : most_blocks, b.ntile);
  gcr_kernel<S>
      <<<grid, threads, 0, compute(ctx)>>>(gcr_fields_of<S>(args), gcr_scalars_of(args), b);
  return qk_gpu_launched(ctx, "step of gcr");
}

/* What r takes of each direction, for the lanes of tile blockIdx.y. All threads come here. */
template <class R>
__device__ void make_amounts(const gcr_records &s, int n, const block_shape &b,
                             amounts_shared<R, QK_GCR_MAX> &to) {
  __shared__ dcx c[QK_GCR_MAX * QK_TILE], made[QK_GCR_MAX * QK_TILE], a[QK_TILE];
  for (int i = threadIdx.x; i < n * QK_TILE; i += threads) {
    const int rhs = b.rhs(blockIdx.y, i % QK_TILE);
    c[i] = rhs < b.nrhs ? s.share_of(i / QK_TILE, rhs) : dcx{0, 0};
  }
  __syncthreads();
  for (int i = threadIdx.x; i < n * QK_TILE; i += threads) {
    const int k = i / QK_TILE, l = i % QK_TILE, rhs = b.rhs(blockIdx.y, l);
    if (rhs >= b.nrhs) continue;
    made[i] = s.made_of(n, k, rhs, c + l, QK_TILE);
    if (blockIdx.x == 0) s.hold(n, k, rhs, made[i]);
  }
  const int lane = threadIdx.x, rhs = lane < QK_TILE ? b.rhs(blockIdx.y, lane) : b.nrhs;
  if (rhs < b.nrhs) {
    double sum = 0;
    for (int k = 0; k < n; k++) sum += s.taken(c[k * QK_TILE + lane], k, rhs);
    const double left = s.left(n, rhs, sum);
    a[lane] = s.length(n, rhs, left);
    if (blockIdx.x == 0) s.keep(n, rhs, left);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < (n + 1) * QK_TILE; i += threads) {
    const dcx t = a[i % QK_TILE];
    if (b.rhs(blockIdx.y, i % QK_TILE) >= b.nrhs) continue;
    to.set(i, i / QK_TILE == n ? dcx{-t.re, -t.im} : t * made[i]);
  }
  __syncthreads();
}

template <class S, class NEXT>
__global__ void __launch_bounds__(threads)
    gcr_pass_kernel(const gcr_pass_fields<S, NEXT> f, const gcr_records s, const finish_args end) {
  using R = real<S>;
  constexpr bool WHOLE = gcr_pass_fields<S, NEXT>::whole;
  constexpr int parts = gcr_tile<WHOLE> / gcr_reals<S, WHOLE>;
  __shared__ amounts_shared<R, QK_GCR_MAX> amounts;
  const thread_place me(end.b);
  sums<1> norm = {};
  make_amounts<R>(s, f.n, end.b, amounts);
  const gcr_amounts<R> c = amounts.of(me.lane);
  const int64_t n = me.exists ? end.b.rows * parts : 0;
  for (int64_t i = me.first; i < n; i += me.step)
    gcr_pass_part(f, spot{end.b.index(i / parts, me.tile), me.lane}, (int)(i % parts), c, norm);
  if (end.red != nullptr) reduce<1>(norm.v, me.lane, end);
}

template <class S, class NEXT> qk_status_t run_pass(qk_ops_ctx_t *ctx, const qk_gcr_args_t &args) {
  const block_shape b = shape_of(args.r, gcr_tile<gcr_pass_fields<S, NEXT>::whole>);
  const finish_args end = reduction(ctx, b, 1, gcr_norm_of(args), args.mask);
  gcr_pass_kernel<S, NEXT><<<dim3(end.blocks, b.ntile), threads, 0, compute(ctx)>>>(
      gcr_pass_fields_of<S, NEXT>(args), gcr_records{gcr_scalars_of(args)}, end);
  const qk_status_t status = qk_gpu_launched(ctx, "step of gcr");
  return status != QK_OK || end.red == nullptr ? status : finish_launch(ctx, end);
}

template <class S> qk_status_t choose_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &a) {
  if (a.x.data != nullptr) return run_gcr<S>(ctx, a);
  if constexpr (std::is_same_v<S, float>)
    if (a.next.data != nullptr && qk_prec_scaled(a.next.prec)) return run_pass<S, half>(ctx, a);
  return run_pass<S, S>(ctx, a);
}

__global__ void gram_kernel(const qk_gram_args_t a) {
  const int rhs = (int)threadIdx.x;
  if (rhs < a.nrhs) gram_solve_one(a, rhs);
}

} // namespace

qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *a) {
  const qk_status_t status = qk_args_gcr(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->r.prec, [=](auto s) { return choose_gcr<stored<decltype(s)>>(ctx, *a); });
}

qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *a) {
  const qk_status_t status = qk_args_gram(ctx, a);
  if (status != QK_OK) return status;
  gram_kernel<<<1, QK_MAX_RHS, 0, qk_gpu(ctx)->stream[0]>>>(*a);
  return qk_gpu_launched(ctx, "least squares");
}

} // namespace QK_NS
