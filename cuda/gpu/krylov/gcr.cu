/* Steps of GCR and small least squares problems on the GPU. */
#include "cuda/body/gcr.h"

#include "cuda/args/args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int rows = 16, threads = rows * QK_TILE, most_blocks = 2048;

/* A block of threads is 16 rows by 8 lanes, blockIdx.y the tile of RHS;
 * a thread has one part of a row. */
template <bool X, class S>
__global__ void __launch_bounds__(threads)
    gcr_kernel(const gcr_fields<S> f, const gcr_scalars s, const block_shape b) {
  using R = real<S>;
  constexpr int N = gcr_tile<S>, parts = N / gcr_reals<S>;
  __shared__ cx<R> minus[QK_GCR_MAX * QK_TILE], a[QK_TILE];
  __shared__ R on[QK_GCR_MAX * QK_TILE];
  __shared__ bool none[QK_GCR_MAX * QK_TILE], partly[QK_GCR_MAX * QK_TILE];
  __shared__ double taken[QK_GCR_MAX][QK_TILE];
  for (int i = threadIdx.x; i < f.n * QK_TILE; i += threads) {
    const int k = i / QK_TILE, l = i % QK_TILE, rhs = b.rhs(blockIdx.y, l);
    if (rhs >= b.nrhs) continue;
    const dcx c = s.share(k, rhs);
    minus[i] = {(R)-c.re, (R)-c.im};
    taken[k][l] = s.taken(c, k, rhs);
    none[i] = c.re == 0 && c.im == 0;
    partly[i] = false;
    on[i] = 1;
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
  const gcr_amounts<R> c = {minus + lane, on + lane, none + lane, partly + lane, QK_TILE, a[lane]};
  const int64_t n = b.rows * parts;
  for (int64_t i = blockIdx.x * rows + threadIdx.x / QK_TILE; i < n; i += gridDim.x * rows)
    gcr_part<X, S>(f, spot{b.index(i / parts, blockIdx.y), lane}, (int)(i % parts), c);
}

template <bool X, class S> qk_status_t run_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &args) {
  constexpr int N = gcr_tile<S>, parts = N / gcr_reals<S>;
  const block_shape b = shape_of(args.r, N);
  const int64_t blocks = (b.rows * parts + rows - 1) / rows;
  const dim3 grid(blocks < most_blocks ? (int)blocks : most_blocks, b.ntile);
  gcr_kernel<X, S><<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(gcr_fields_of<S>(args),
                                                                 gcr_scalars_of(args), b);
  return qk_gpu_launched(ctx, "step of gcr");
}

template <class S> qk_status_t choose_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &a) {
  return a.x.data != nullptr ? run_gcr<true, S>(ctx, a) : run_gcr<false, S>(ctx, a);
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
