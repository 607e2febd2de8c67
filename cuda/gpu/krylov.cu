/* Steps of GCR and small least squares problems on the GPU. */
#include "cuda/body/krylov.h"

#include "cuda/args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int rows = 16, threads = rows * QK_TILE, most_blocks = 2048;

/* A block of threads is 16 rows by 8 lanes, blockIdx.y the tile of RHS; a thread has one part of a row. */
template <class S>
__global__ void __launch_bounds__(threads)
    gcr_kernel(const gcr_fields<S> f, const gcr_scalars s, const block_shape b) {
  constexpr int N = sub_reals, parts = N / part_size<S, N>;
  __shared__ cx<S> minus[QK_GCR_MAX][QK_TILE], a[QK_TILE];
  __shared__ double taken[QK_GCR_MAX][QK_TILE];
  for (int i = threadIdx.x; i < f.n * QK_TILE; i += threads) {
    const int k = i / QK_TILE, l = i % QK_TILE, rhs = b.rhs(blockIdx.y, l);
    if (rhs >= b.nrhs) continue;
    const dcx c = s.live(rhs) ? s.share(k, rhs) : dcx{0, 0};
    minus[k][l] = {(S)-c.re, (S)-c.im};
    taken[k][l] = s.taken(c, k, rhs);
  }
  __syncthreads();
  const int lane = threadIdx.x % QK_TILE, rhs = b.rhs(blockIdx.y, lane);
  if (threadIdx.x < QK_TILE && rhs < b.nrhs) {
    double sum = 0;
    for (int k = 0; k < f.n; k++) sum += taken[k][lane];
    const double left = gcr_scalars::rest(s.size(f.n, rhs), sum);
    const dcx c = s.live(rhs) ? s.length(f.n, rhs, left) : dcx{0, 0};
    a[lane] = {(S)c.re, (S)c.im};
    if (blockIdx.x == 0 && s.live(rhs)) s.keep(f.n, rhs, left);
  }
  __syncthreads();
  if (rhs >= b.nrhs) return;
  const int64_t n = b.rows * parts;
  for (int64_t i = blockIdx.x * rows + threadIdx.x / QK_TILE; i < n; i += gridDim.x * rows)
    gcr_part<S>(f, spot{b.index(i / parts, blockIdx.y), lane}, (int)(i % parts), &minus[0][lane],
                QK_TILE, a[lane]);
}

template <class S> qk_status_t run_gcr(qk_ops_ctx_t *ctx, const qk_gcr_args_t &args) {
  constexpr int N = sub_reals, parts = N / part_size<S, N>;
  const block_shape b = shape_of(args.r, N);
  const int64_t blocks = (b.rows * parts + rows - 1) / rows;
  const dim3 grid(blocks < most_blocks ? (int)blocks : most_blocks, b.ntile);
  const gcr_scalars s = {args.dots, args.norm2, args.mask, b.nrhs};
  gcr_kernel<S><<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(gcr_fields_of<S>(args), s, b);
  return qk_gpu_launched(ctx, "step of gcr");
}

__global__ void gram_kernel(const qk_gram_args_t a) {
  const int rhs = (int)threadIdx.x;
  if (rhs < a.nrhs) gram_solve_one(a, rhs);
}

} // namespace

qk_status_t gcr_step(qk_ops_ctx_t *ctx, const qk_gcr_args_t *a) {
  const qk_status_t status = qk_args_gcr(ctx, a);
  if (status != QK_OK) return status;
  return a->r.prec == QK_DOUBLE ? run_gcr<double>(ctx, *a) : run_gcr<float>(ctx, *a);
}

qk_status_t gram_solve(qk_ops_ctx_t *ctx, const qk_gram_args_t *a) {
  const qk_status_t status = qk_args_gram(ctx, a);
  if (status != QK_OK) return status;
  gram_kernel<<<1, QK_MAX_RHS, 0, qk_gpu(ctx)->stream[0]>>>(*a);
  return qk_gpu_launched(ctx, "least squares");
}

} // namespace QK_NS
