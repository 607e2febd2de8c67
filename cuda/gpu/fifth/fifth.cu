/* Fields with a fifth dimension on the GPU: slices mixed at each site, sums over them. */
#include "cuda/body/fifth.h"

#include "cuda/args/fifth_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/geom.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int N = fifth_reals;
constexpr int most_threads = 128;
constexpr int spins = 4, part = N / spins, some = 4; /* a thread makes one spin of some slices */
/* Between columns in shared memory, so that threads beside each other have other banks. */
constexpr int pitch = N + 4;
constexpr size_t most_shared = 48 << 10; /* without asking for more */

template <class S> struct mix_args {
  fifth_matrix<real<S>> m;
  spinor<S> in, x, out;
  real<S> c_in, c_x;
  int groups;         /* right-hand sides of all sites */
  int rows;           /* of a group in shared memory */
  int per_block;      /* groups */
  int to;             /* slices that are made, a multiple of `some` */
  divider width, rhs; /* threads of a group; right-hand sides */
  divider matrix_row; /* to */
};

/* The matrix in shared memory, [chirality][r][to], so that rows are a multiple of `some`. */
template <class S, bool REAL> __device__ void stage_matrix(const mix_args<S> &a, real<S> *staged) {
  constexpr int reals = REAL ? 1 : 2;
  int row = (int)threadIdx.x;
  const int s = split_off(row, a.matrix_row), step = (int)blockDim.x / a.to;
  if (row >= step || s >= a.m.to) return;
  for (; row < 2 * a.m.from; row += step) {
    QK_UNROLL
    for (int i = 0; i < reals; i++)
      staged[(row * a.to + s) * reals + i] = a.m.m[(row * a.m.to + s) * reals + i];
  }
}

/* K numbers between registers and shared memory, W of them with one access: the latter is aligned
 * so. */
template <int W, class R> struct alignas(W * sizeof(R)) words { R r[W]; };
template <int W, int K, class R> __device__ void take_words(const R *p, R *r) {
  QK_UNROLL
  for (int k = 0; k < K; k += W) {
    const words<W, R> w = *(const words<W, R> *)(p + k);
    QK_UNROLL
    for (int i = 0; i < W; i++) r[k + i] = w.r[i];
  }
}
template <int W, int K, class R> __device__ void put_words(const R *r, R *p) {
  QK_UNROLL
  for (int k = 0; k < K; k += W) {
    words<W, R> w;
    QK_UNROLL
    for (int i = 0; i < W; i++) w.r[i] = r[k + i];
    *(words<W, R> *)(p + k) = w;
  }
}

/* v[i] += matrix[s0 + i][r] of one spin of the columns r; at: of the matrix, whose rows have
 * `count` slices there. */
template <class R, bool REAL, bool STAGED>
__device__ void mix_spin(const R *columns, const R *at, int from, int row, int count,
                         R (*v)[part]) {
  constexpr int reals = REAL ? 1 : 2, numbers = some * reals;
  for (int r = 0; r < from; r++) {
    R c[numbers], w[part];
    if (STAGED) {
      take_words<16 / (int)sizeof(R), numbers>(at, c);
    } else {
      QK_UNROLL
      for (int k = 0; k < numbers; k++) c[k] = k / reals < count ? __ldg(at + k) : (R)0;
    }
    take_words<2, part>(columns, w);
    QK_UNROLL
    for (int i = 0; i < some; i++) {
      QK_UNROLL
      for (int k = 0; k < part; k += 2) {
        if (REAL) {
          v[i][k] += c[i] * w[k];
          v[i][k + 1] += c[i] * w[k + 1];
        } else {
          v[i][k] += c[2 * i] * w[k] - c[2 * i + 1] * w[k + 1];
          v[i][k + 1] += c[2 * i] * w[k + 1] + c[2 * i + 1] * w[k];
        }
      }
    }
    columns += pitch;
    at += row;
  }
}

/* Threads of a group load a column each, mix one spin of some slices each, and store a column
 * each. */
template <class S, bool REAL, bool STAGED>
__global__ void __launch_bounds__(most_threads) mix_kernel(const __grid_constant__ mix_args<S> a) {
  using R = real<S>;
  constexpr int reals = REAL ? 1 : 2, wide = 16 / (int)sizeof(R);
  extern __shared__ double2 memory[];
  R *matrix = (R *)memory;
  int group = (int)threadIdx.x;
  const int k = split_off(group, a.width);
  R *columns = matrix + (STAGED ? 2 * a.m.from * a.to * reals : 0) + group * a.rows * pitch;
  int site = (int)blockIdx.x * a.per_block + group;
  const bool exists = site < a.groups;
  const int rhs = split_off(site, a.rhs);
  if (STAGED) stage_matrix<S, REAL>(a, matrix);
  if (exists && k < a.m.from) {
    R y[N];
    load_spinor<N>(a.in, fifth_spot(a.in, site, rhs * a.m.from + k), y);
    put_words<wide, N>(y, columns + k * pitch);
  }
  __syncthreads();
  const int spin = k % spins, first = k / spins * some, row = (STAGED ? a.to : a.m.to) * reals;
  R v[some][part] = {};
  if (exists && first < a.to) {
    const R *m = (STAGED ? matrix : a.m.m) + spin / 2 * a.m.from * row + first * reals;
    mix_spin<R, REAL, STAGED>(columns + spin * part, m, a.m.from, row, a.m.to - first, v);
  }
  __syncthreads();
  if (exists && first < a.to) {
    QK_UNROLL
    for (int i = 0; i < some; i++)
      put_words<2, part>(v[i], columns + (first + i) * pitch + spin * part);
  }
  __syncthreads();
  if (!exists || k >= a.m.to) return;
  const spot at = fifth_spot(a.out, site, rhs * a.m.to + k);
  R y[N], x[N] = {};
  take_words<wide, N>(columns + k * pitch, y);
  if (a.x.data) load_spinor<N>(a.x, at, x);
  QK_UNROLL
  for (int c = 0; c < N; c++) y[c] = a.c_in * y[c] + (a.x.data ? a.c_x * x[c] : (R)0);
  store_spinor<N>(a.out, at, y);
}

template <class S, bool REAL> qk_status_t mix_start(qk_ops_ctx_t *ctx, const mix_args<S> &k) {
  const size_t columns = (size_t)k.per_block * k.rows * pitch * sizeof(real<S>);
  const size_t matrix = (size_t)2 * k.m.from * k.to * (REAL ? 1 : 2) * sizeof(real<S>);
  const unsigned blocks = (unsigned)((k.groups + k.per_block - 1) / k.per_block);
  const int threads = k.per_block * (int)k.width.d;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (columns + matrix <= most_shared)
    mix_kernel<S, REAL, true><<<blocks, threads, columns + matrix, stream>>>(k);
  else
    mix_kernel<S, REAL, false><<<blocks, threads, columns, stream>>>(k);
  return qk_gpu_launched(ctx, "fifth_mix");
}

template <class S> qk_status_t mix_launch(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t &a) {
  const int to = (a.to + some - 1) / some * some, width = to > a.from ? to : a.from;
  const int nrhs = a.in.nrhs / a.from;
  if (a.in.nsites * nrhs > INT32_MAX)
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT,
                       "fifth_mix: %lld sites of %d right-hand sides: at most 2^31 - 1 together",
                       (long long)a.in.nsites, nrhs);
  mix_args<S> k = {};
  k.m = fifth_matrix_of<real<S>>(a);
  k.in = spinor_of<S>(a.in);
  k.x = spinor_of<S>(a.x);
  k.out = spinor_of<S>(a.out);
  k.c_in = (real<S>)a.c_in;
  k.c_x = (real<S>)a.c_x;
  k.groups = (int)(a.in.nsites * nrhs);
  k.rows = width;
  k.per_block = most_threads / width;
  k.to = to;
  k.width = divider_by(width);
  k.rhs = divider_by(nrhs);
  k.matrix_row = divider_by(to);
  return a.is_real ? mix_start<S, true>(ctx, k) : mix_start<S, false>(ctx, k);
}

/* A thread for each right-hand side of each result. */
__global__ void sum_kernel(const qk_fifth_sum_args_t a) {
  const int64_t i = ((int64_t)blockIdx.x * blockDim.x + threadIdx.x) * a.ls;
  if (i >= (int64_t)a.n * a.columns) return;
  double *red = a.red + 2 * i, re = 0, im = 0;
  for (int s = 0; s < a.ls; s++) {
    re += red[2 * s];
    im += red[2 * s + 1];
  }
  for (int s = 0; s < a.ls; s++) {
    red[2 * s] = re;
    red[2 * s + 1] = im;
  }
}

} // namespace

qk_status_t fifth_mix(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t *a) {
  const qk_status_t status = qk_args_fifth_mix(ctx, a);
  if (status != QK_OK) return status;
  return with_storage(a->in.prec, [=](auto s) { return mix_launch<stored<decltype(s)>>(ctx, *a); });
}

qk_status_t fifth_sum(qk_ops_ctx_t *ctx, const qk_fifth_sum_args_t *a) {
  const qk_status_t status = qk_args_fifth_sum(ctx, a);
  if (status != QK_OK) return status;
  const unsigned sums = (unsigned)(a->n * a->columns / a->ls);
  sum_kernel<<<(sums + most_threads - 1) / most_threads, most_threads, 0, qk_gpu(ctx)->stream[0]>>>(
      *a);
  return qk_gpu_launched(ctx, "fifth_sum");
}

} // namespace QK_NS
