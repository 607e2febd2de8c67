#include "cuda/gpu/krylov/dot_small.cuh"

#include "cuda/body/blas.h"

namespace QK_NS {
namespace {

constexpr int N = sub_reals, warps = 32, threads = 32 * warps, rows = threads / QK_TILE;
constexpr int64_t most_rows = 32 * rows;
/* Blocks of threads that share the rows of a field and tile, by the shape of the fields alone; with
 * so many tiles that there is no room for their sums, one. */
constexpr int most_shares = 8, tiles_with_shares = QK_MAX_RHS / QK_TILE;
int shares_of(const block_shape &b) {
  const int64_t n = b.ntile > tiles_with_shares ? 1 : b.rows / (4 * rows);
  return n < 1 ? 1 : n < most_shares ? (int)n : most_shares;
}

struct dot_small_args {
  spinor<float> f[QK_MULTI_MAX], y;
  const uint8_t *mask; /* [n][nrhs] or NULL */
  double *red;
  double *partial;   /* [field][tile][share][QK_LINE] */
  unsigned *arrived; /* [field][tile] */
  block_shape b;
};

/* Sum over the rows of this thread: those of its block from the first on. */
__device__ dcx dot_rows(const dot_small_args &a, const spinor<float> &f, int lane) {
  constexpr int P = part_size<float, N>;
  dcx sum = {0, 0};
#pragma unroll 4
  for (int64_t row = threadIdx.x / QK_TILE + (int64_t)blockIdx.z * rows; row < a.b.rows;
       row += (int64_t)gridDim.z * rows) {
    const spot at = {a.b.index(row, blockIdx.y), lane};
    QK_UNROLL
    for (int part = 0; part < N / P; part++) {
      float v[P], w[P];
      load_part<float, N>(f.data, at, part, v);
      load_part<float, N>(a.y.data, at, part, w);
      QK_UNROLL
      for (int i = 0; i < P; i += 2) {
        sum.re += (double)v[i] * w[i] + (double)v[i + 1] * w[i + 1];
        sum.im += (double)v[i] * w[i + 1] - (double)v[i + 1] * w[i];
      }
    }
  }
  return sum;
}

__device__ double across_rows(double v) {
  v += __shfl_xor_sync(0xffffffffu, v, QK_TILE);
  return v + __shfl_xor_sync(0xffffffffu, v, 2 * QK_TILE);
}

/* The sum of the shares in their order, by the block that comes last; false in the others. */
__device__ bool add_shares(const dot_small_args &a, double *total) {
  __shared__ bool last;
  const int at = (int)(blockIdx.x * gridDim.y + blockIdx.y);
  double *line = a.partial + (int64_t)at * most_shares * (2 * QK_TILE);
  if (threadIdx.x < 2 * QK_TILE) line[blockIdx.z * (2 * QK_TILE) + threadIdx.x] = *total;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(a.arrived + at, 1) + 1 == gridDim.z;
  __syncthreads();
  if (!last) return false;
  __threadfence();
  if (threadIdx.x == 0) a.arrived[at] = 0;
  if (threadIdx.x >= 2 * QK_TILE) return true;
  *total = 0;
  for (int s = 0; s < (int)gridDim.z; s++) *total += __ldcg(line + s * (2 * QK_TILE) + threadIdx.x);
  return true;
}

/* blockIdx.x: the field; blockIdx.y: the tile; blockIdx.z: the share. Warps leave their sums, which
 * are added in order. */
__global__ void __launch_bounds__(threads) dot_small_kernel(const dot_small_args a) {
  __shared__ double share[warps][2 * QK_TILE];
  const int lane = threadIdx.x % QK_TILE, warp = threadIdx.x / 32;
  const int k = blockIdx.x, rhs = a.b.rhs(blockIdx.y, lane);
  const bool exists = rhs < a.b.nrhs;
  const bool live = exists && (a.mask == nullptr || a.mask[k * a.b.nrhs + rhs] != 0);
  const dcx sum = live ? dot_rows(a, a.f[k], lane) : dcx{0, 0};
  const double re = across_rows(sum.re), im = across_rows(sum.im);
  if (threadIdx.x % 32 < QK_TILE) {
    share[warp][2 * lane] = re;
    share[warp][2 * lane + 1] = im;
  }
  __syncthreads();
  double total = 0;
  for (int w = 0; w < warps && threadIdx.x < 2 * QK_TILE; w++) total += share[w][threadIdx.x];
  if (gridDim.z > 1 && !add_shares(a, &total)) return;
  if (threadIdx.x >= 2 * QK_TILE) return;
  const int owner = a.b.rhs(blockIdx.y, threadIdx.x / 2);
  if (a.b.single_rhs) {
    for (int step = 2; step < 2 * QK_TILE; step *= 2)
      total += __shfl_xor_sync(0xffffu, total, step);
    if (threadIdx.x >= 2) return;
  }
  if (owner < a.b.nrhs) a.red[2 * ((int64_t)k * a.b.nrhs + owner) + threadIdx.x % 2] = total;
}

} // namespace

bool dot_small_fits(const qk_multi_args_t *a) {
  return a->y.prec == QK_SINGLE && a->y.ncomp != QK_COLOUR_COMPONENTS &&
         shape_of(a->y, N).rows <= most_rows;
}

qk_status_t dot_small(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  if (a->n == 0) return QK_OK;
  dot_small_args k = {};
  k.b = shape_of(a->y, N);
  k.y = spinor_of<float>(a->y);
  for (int i = 0; i < a->n; i++) k.f[i] = spinor_of<float>(a->f[i]);
  k.mask = a->mask;
  k.red = a->red;
  k.partial = qk_gpu(ctx)->partial;
  k.arrived = qk_gpu(ctx)->arrived;
  const dim3 grid(a->n, k.b.ntile, shares_of(k.b));
  dot_small_kernel<<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "multi_dot");
}

} // namespace QK_NS
