/*
 * Projection onto vectors of time slices on the GPU: a matrix product of eight vectors by eight
 * RHS, for each spin, over the sites and colours of a piece of a slice, on the tensor cores in
 * double (gpu/mma_double.cuh).
 *
 * Thread 4g+q of a warp holds vector g and RHS g of site q of a group of four: all three colours
 * of the one, all twelve components of the other, so each number is loaded by the one thread that
 * needs it. A warp has two blocks of vectors; the warps of a block have others on the same sites,
 * so what they read of the RHS comes from the first-level cache but for the first of them.
 */
#include "cuda/body/project.h"

#include "cuda/args/project_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma_double.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int warps = 4, blocks_of_warp = 2;

/* Block b of the vectors as a thread reads it. */
struct vector_reader {
  const float *block, *low;

  __device__ void load(int64_t at, dcx v[3]) const {
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      const float2 z = __ldcs((const float2 *)(block + at) + c);
      v[c] = {z.x, z.y};
    }
    if (low == nullptr) return;
    QK_UNROLL
    for (int c = 0; c < 3; c++) {
      const float2 z = __ldcs((const float2 *)(low + at) + c);
      v[c] = {v[c].re + z.x, v[c].im + z.y};
    }
  }
};

/* One RHS as a thread reads it. */
template <class S> struct rhs_reader {
  const S *data;
  int ntile, rhs;

  __device__ explicit rhs_reader(const qk_project_rhs_t &x)
      : data((const S *)x.field.data), ntile(x.field.ntile), rhs(x.rhs) {}
  __device__ void load(int64_t site, real<S> x[24]) const {
    const int64_t tile = ntile > 0 ? site * ntile + rhs / QK_TILE : site / QK_TILE;
    const int lane = ntile > 0 ? rhs % QK_TILE : (int)(site % QK_TILE);
    load_lane<S, 24>(data + tile * (QK_TILE * 24), lane, x);
  }
};

/* Sums of a piece. Block (piece, slice, group of 2 * warps blocks of vectors). */
template <class S>
__global__ void __launch_bounds__(warps * 32, 3)
    project_kernel(const __grid_constant__ qk_project_args_t a, int pieces) {
  const int lane = (int)threadIdx.x % 32, g = lane / 4, q = lane % 4, t = (int)blockIdx.y;
  const int b0 = ((int)blockIdx.z * warps + (int)threadIdx.x / 32) * blocks_of_warp;
  if (b0 >= a.nblock) return;
  /* what is too much is read again and thrown away: RHS and blocks do not mix */
  const rhs_reader<S> rhs(a.x[g < a.nrhs ? g : 0]);
  vector_reader vectors[blocks_of_warp];
  QK_UNROLL
  for (int b = 0; b < blocks_of_warp; b++) {
    const int of = b0 + b < a.nblock ? b0 + b : b0;
    vectors[b] = {a.vectors[of], a.low[of]};
  }
  double re[blocks_of_warp][4][2] = {}, im[blocks_of_warp][4][2] = {};
  const int64_t slice = (int64_t)t * (2 * a.lat.vcb / a.lat.l[3]);
  int first, last;
  project_piece(a.lat, (int)blockIdx.x, pieces, first, last);
  for (int k = first; k < last; k++) {
    const project_site at(a.lat, a.t0 + t, k, q);
    dcx v[blocks_of_warp][3];
    real<S> x[24];
    QK_UNROLL
    for (int b = 0; b < blocks_of_warp; b++)
      vectors[b].load((slice + at.in_slice) * project_block + g * 6, v[b]);
    rhs.load(at.in_field, x);
    QK_UNROLL
    for (int s = 0; s < 4; s++) {
      QK_UNROLL
      for (int c = 0; c < 3; c++) {
        const dcx z = {x[2 * (3 * s + c)], x[2 * (3 * s + c) + 1]};
        QK_UNROLL
        for (int b = 0; b < blocks_of_warp; b++) mma_conj(re[b][s], im[b][s], v[b][c], z);
      }
    }
  }
  QK_UNROLL
  for (int b = 0; b < blocks_of_warp; b++) {
    if (b0 + b >= a.nblock) break;
    double *out = a.work + project_at(t, pieces, (int)blockIdx.x, a.nblock, b0 + b);
    QK_UNROLL
    for (int s = 0; s < 4; s++)
      *(double4 *)(out + ((g * 4 + s) * QK_PROJECT_RHS + 2 * q) * 2) = {re[b][s][0], im[b][s][0],
                                                                        re[b][s][1], im[b][s][1]};
  }
}

constexpr int sum_threads = 128;

__global__ void sum_kernel(const __grid_constant__ qk_project_args_t a, int pieces) {
  const int64_t n = (int64_t)blockIdx.x * sum_threads + threadIdx.x;
  if (n < project_reals(a)) project_sum(a, pieces, n);
}

} // namespace

qk_status_t project(qk_ops_ctx_t *ctx, const qk_project_args_t *args) {
  qk_status_t status = qk_args_project(ctx, args);
  if (status != QK_OK) return status;
  const int pieces = qk_project_pieces(&args->lat), each = warps * blocks_of_warp;
  const dim3 grid((unsigned)pieces, (unsigned)args->nt,
                  (unsigned)((args->nblock + each - 1) / each));
  const unsigned sums = (unsigned)((project_reals(*args) + sum_threads - 1) / sum_threads);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (args->x[0].field.prec == QK_DOUBLE)
    project_kernel<double><<<grid, warps * 32, 0, stream>>>(*args, pieces);
  else
    project_kernel<float><<<grid, warps * 32, 0, stream>>>(*args, pieces);
  status = qk_gpu_launched(ctx, "project");
  if (status != QK_OK) return status;
  sum_kernel<<<sums, sum_threads, 0, stream>>>(*args, pieces);
  return qk_gpu_launched(ctx, "project sum");
}

} // namespace QK_NS
