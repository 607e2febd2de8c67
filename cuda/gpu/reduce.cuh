/*
 * gpu/reduce.cuh: rows of block fields shared among the threads,
 * and sums over them in a fixed order (GPU).
 *
 * A block of threads is 16 rows by 8 lanes; blockIdx.y is the tile of RHS; blocks stride over the
 * rows. Each block leaves a partial sum per lane, and they are added in order: on small fields by
 * the block that comes last, so that there is one kernel to launch, on others by a second kernel.
 * Which, and the number of blocks, depend on the lattice and the components only, and no float is
 * added by atomics: same input, same bits.
 *
 * Tiles of colour vectors are no whole lines of memory: block BLAS goes through the tiles of a site
 * together, the rows of a block belonging to each of them in turn.
 */
#ifndef QK_CUDA_GPU_REDUCE_CUH
#define QK_CUDA_GPU_REDUCE_CUH

#include "cuda/body/blas.h"
#include "cuda/gpu/ctx.cuh"

namespace QK_NS {

enum { QK_ROWS = 16, QK_THREADS = QK_ROWS * QK_TILE, QK_LINE = 2 * QK_TILE };

/* Second pass, for n results of a block: red[k][rhs][2] = sum of the partial sums. Masked entries
 * stay as they are, or become 0 (clear); mask has one row for all results,
 * or (mask_per_result) one each. */
struct finish_args {
  double *partial, *red;
  const uint8_t *mask;
  unsigned *arrived; /* NULL: a second kernel adds */
  block_shape b;
  int n, blocks, clear, mask_per_result;

  /* Partial sums of result k of a tile of RHS: [block][lane][2]. */
  QK_ANY double *lines(int tile, int k) const {
    return partial + ((int64_t)tile * n + k) * blocks * QK_LINE;
  }
};
qk_status_t finish_launch(qk_ops_ctx_t *ctx, const finish_args &a);

/* Results first .. first + n - 1 of a tile, n <= NK, by a block of GROUPS * QK_LINE threads: a
 * thread adds every GROUPS-th partial sum of one (lane, part), then the groups are added in order,
 * then, where lanes are sites, the lanes. */
template <int GROUPS, int NK>
__device__ void finish_results(const finish_args &a, int tile, int first, int n) {
  __shared__ double share[NK][GROUPS][QK_LINE];
  const int i = threadIdx.x % QK_LINE, group = threadIdx.x / QK_LINE;
  const double *p = a.lines(tile, first) + i;
  const int64_t line = (int64_t)a.blocks * QK_LINE;
  double sums[NK] = {};
#pragma unroll(NK > 2 ? 4 : 16)
  for (int j = group; j < a.blocks; j += GROUPS) {
    QK_UNROLL
    for (int k = 0; k < NK; k++)
      if (k < n) sums[k] += __ldcg(p + k * line + j * QK_LINE);
  }
  QK_UNROLL
  for (int k = 0; k < NK; k++)
    if (k < n) share[k][group][i] = sums[k];
  __syncthreads();
  for (int k = group; k < n; k += GROUPS) {
    double sum = share[k][0][i];
    for (int g = 1; g < GROUPS; g++) sum += share[k][g][i];
    share[k][0][i] = sum;
  }
  __syncthreads();
  const int rhs = a.b.rhs(tile, i / 2);
  if (rhs >= a.b.nrhs || (a.b.single_rhs && i > 1)) return;
  for (int k = group; k < n; k += GROUPS) {
    double sum = share[k][0][i];
    for (int lane = 1; a.b.single_rhs && lane < QK_TILE; lane++) sum += share[k][0][2 * lane + i];
    const int row = first + k;
    const bool masked =
        a.mask != nullptr && a.mask[(a.mask_per_result ? row * a.b.nrhs : 0) + rhs] == 0;
    if (masked && !a.clear) continue;
    a.red[2 * ((int64_t)row * a.b.nrhs + rhs) + i % 2] = masked ? 0 : sum;
  }
}

/* Whether the tiles of a site can go together. */
QK_ANY bool tiles_fit_rows(const block_shape &b) {
  return b.ntile > 1 && QK_ROWS % b.ntile == 0;
}

/* Blocks along the rows of an operation without results, */
inline int blocks_for(const block_shape &b) {
  const int64_t n = (b.rows + QK_ROWS - 1) / QK_ROWS;
  return n < QK_GPU_BLOCKS ? (int)n : QK_GPU_BLOCKS;
}

/* likewise of all tiles together, */
inline int blocks_together(const block_shape &b) {
  const int64_t n = (b.rows * b.ntile + QK_ROWS - 1) / QK_ROWS;
  return n < QK_GPU_BLOCKS ? (int)n : QK_GPU_BLOCKS;
}

/* and of a reduction; up to so many of them the last block adds. */
constexpr int alone_blocks = 64;

inline finish_args reduction(qk_ops_ctx_t *ctx, const block_shape &b, int n, double *red,
                             const uint8_t *mask, bool together = false) {
  /* the lines of all results and tiles must fit into `partial` */
  constexpr int tiles = QK_MAX_RHS / QK_TILE;
  int room = n > QK_GPU_MULTI ? QK_GPU_BLOCKS * QK_GPU_MULTI / n : QK_GPU_BLOCKS;
  if (b.ntile > tiles) room = room * tiles / b.ntile;
  const int wanted = together ? blocks_together(b) : blocks_for(b);
  const int blocks = wanted < room ? wanted : room;
  unsigned *arrived = blocks <= alone_blocks ? qk_gpu(ctx)->arrived : nullptr;
  return {qk_gpu(ctx)->partial, red, mask, arrived, b, n, blocks, 0, 0};
}

/* A thread's place: its lane of tile blockIdx.y, and the rows first, first + step, ... */
struct thread_place {
  int lane, tile, rhs, first, step;
  bool exists;

  __device__ explicit thread_place(const block_shape &b)
      : lane(threadIdx.x % QK_TILE), tile(blockIdx.y),
        rhs(b.rhs(blockIdx.y, threadIdx.x % QK_TILE)),
        first(blockIdx.x * QK_ROWS + threadIdx.x / QK_TILE), step(gridDim.x * QK_ROWS),
        exists(rhs < b.nrhs) {}

  /* With all tiles together. */
  __device__ static thread_place together(const block_shape &b) {
    thread_place p(b);
    p.tile = (int)(threadIdx.x / QK_TILE) % b.ntile;
    p.rhs = b.rhs(p.tile, p.lane);
    p.first /= b.ntile;
    p.step /= b.ntile;
    p.exists = p.rhs < b.nrhs;
    return p;
  }
};

/* Adds v over the threads of the block that share a lane; the sums of a.n <= NK results go to the
 * block's lines. All threads of the block must come here. */
template <int NK>
__device__ void leave_partials(const cx<double> *v, int lane, const finish_args &a) {
  constexpr int warps = QK_THREADS / 32;
  __shared__ double share[warps][NK][QK_TILE][2];
  for (int k = 0; k < NK; k++) {
    double re = v[k].re, im = v[k].im;
    for (int distance = QK_TILE; distance < 32; distance *= 2) {
      re += __shfl_xor_sync(0xffffffffu, re, distance);
      im += __shfl_xor_sync(0xffffffffu, im, distance);
    }
    if (threadIdx.x % 32 < QK_TILE) {
      share[threadIdx.x / 32][k][lane][0] = re;
      share[threadIdx.x / 32][k][lane][1] = im;
    }
  }
  __syncthreads();
  const double *flat = &share[0][0][0][0];
  for (int i = threadIdx.x; i < a.n * QK_LINE; i += QK_THREADS) {
    double sum = 0;
    for (int w = 0; w < warps; w++) sum += flat[w * NK * QK_LINE + i];
    a.lines((int)blockIdx.y, i / QK_LINE)[blockIdx.x * QK_LINE + i % QK_LINE] = sum;
  }
}

/* Both passes, or the first one: all threads of the block must come here. */
template <int NK> __device__ void reduce(const cx<double> *v, int lane, const finish_args &a) {
  __shared__ bool last;
  leave_partials<NK>(v, lane, a);
  if (a.arrived == nullptr) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(a.arrived + blockIdx.y, 1) + 1 == gridDim.x;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) a.arrived[blockIdx.y] = 0;
  finish_results<QK_THREADS / QK_LINE, NK>(a, (int)blockIdx.y, 0, a.n);
}

/* The same with all tiles together. */
template <int NK> __device__ void reduce_together(const cx<double> *v, const finish_args &a) {
  __shared__ double share[QK_ROWS][NK][QK_LINE];
  __shared__ bool last;
  const int row = threadIdx.x / QK_TILE, lane = threadIdx.x % QK_TILE, tiles = a.b.ntile;
  for (int k = 0; k < NK; k++) {
    share[row][k][2 * lane] = v[k].re;
    share[row][k][2 * lane + 1] = v[k].im;
  }
  __syncthreads();
  for (int i = threadIdx.x; i < tiles * a.n * QK_LINE; i += QK_THREADS) {
    const int of = i / QK_LINE, tile = of / a.n, k = of % a.n;
    double sum = 0;
    for (int r = tile; r < QK_ROWS; r += tiles) sum += share[r][k][i % QK_LINE];
    a.lines(tile, k)[blockIdx.x * QK_LINE + i % QK_LINE] = sum;
  }
  if (a.arrived == nullptr) return;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = atomicAdd(a.arrived, 1) + 1 == gridDim.x;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (threadIdx.x == 0) a.arrived[0] = 0;
  for (int tile = 0; tile < tiles; tile++) {
    finish_results<QK_THREADS / QK_LINE, NK>(a, tile, 0, a.n);
    __syncthreads();
  }
}

inline cudaStream_t compute(qk_ops_ctx_t *ctx) {
  return qk_gpu(ctx)->stream[0];
}

} // namespace QK_NS
#endif
