/* Small Krylov spaces on the GPU: inner products of all pairs, and a step along them. */
#include "cuda/body/cagcr.h"

#include "cuda/args/args.h"
#include "cuda/gpu/reduce.cuh"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

template <class S> struct space_kernel_args {
  spinor<S> v[QK_GRAM_MAX + 1], x;
  const double *y;
  int n;
  bool x_zero, last;
  block_shape b;
  finish_args finish;
};

template <class S> space_kernel_args<S> space_args_of(const qk_space_args_t &a) {
  space_kernel_args<S> k = {};
  for (int j = 0; j <= a.n; j++) k.v[j] = spinor_of<S>(a.v[j]);
  k.x = spinor_of<S>(a.x);
  k.y = a.y;
  k.n = a.n;
  k.x_zero = a.x_zero != 0;
  k.last = a.last != 0;
  k.b = shape_of(a.v[0], row_reals<S>);
  return k;
}

/* r[j*(j+1)/2 + i] += (v_i, v_j) of one lane of a row, i <= j < nv. */
template <class S, int N>
__device__ void pairs_of_row(const spinor<S> *v, int nv, spot at, sums<space_pairs> &r) {
  constexpr int P = part_size<S, N>, M = space_most;
  [[maybe_unused]] sums<space_pairs, float> row = {};
  auto &sum = row_or_all<S>(row, r);
#pragma unroll 1
  for (int part = 0; part < N / P; part++) {
    cx<real<S>> z[P / 2][M];
    QK_UNROLL
    for (int j = 0; j < M; j++)
      if (j < nv) load_words<S, N, M>(v[j], at, part, j, z);
    QK_UNROLL
    for (int j = 0; j < M; j++) {
      if (j >= nv) continue;
      QK_UNROLL
      for (int c = 0; c < P / 2; c++) {
        QK_UNROLL
        for (int i = 0; i < j; i++) sum.dot(j * (j + 1) / 2 + i, z[c][i], z[c][j]);
        sum.norm2(j * (j + 1) / 2 + j, z[c][j]);
      }
    }
  }
  if constexpr (storage<S>::scaled) {
    double scale[M];
    QK_UNROLL
    for (int j = 0; j < M; j++) {
      if (j >= nv) continue;
      scale[j] = scale_at(v[j], at);
      QK_UNROLL
      for (int i = 0; i <= j; i++) r.add(j * (j + 1) / 2 + i, row, scale[i] * scale[j]);
    }
  }
}

template <class S>
__global__ void __launch_bounds__(QK_THREADS) space_dots_kernel(const space_kernel_args<S> a) {
  const thread_place me(a.b);
  sums<space_pairs> r = {};
  for (int64_t row = me.first; me.exists && row < a.b.rows; row += me.step)
    pairs_of_row<S, row_reals<S>>(a.v, a.n + 1, spot{a.b.index(row, me.tile), me.lane}, r);
  reduce<space_pairs>(r.v, me.lane, a.finish);
}

template <class S>
__global__ void __launch_bounds__(QK_THREADS) space_step_kernel(const space_kernel_args<S> a) {
  using R = real<S>;
  __shared__ cx<R> y[QK_GRAM_MAX][QK_TILE];
  for (int i = threadIdx.x; i < a.n * QK_TILE; i += QK_THREADS) {
    const int rhs = a.b.rhs(blockIdx.y, i % QK_TILE);
    if (rhs >= a.b.nrhs) continue;
    const double *c = a.y + 2 * ((int64_t)(i / QK_TILE) * a.b.nrhs + rhs);
    y[i / QK_TILE][i % QK_TILE] = {(R)c[0], (R)c[1]};
  }
  __syncthreads();
  const thread_place me(a.b);
  const auto v = [&](int j) -> const spinor<S> & { return a.v[j]; };
  for (int64_t row = me.first; me.exists && row < a.b.rows; row += me.step)
    space_step_row<S, row_reals<S>>(a.n, a.x_zero, a.last, a.x, v, &y[0][me.lane], QK_TILE,
                                    spot{a.b.index(row, me.tile), me.lane});
}

template <class S> qk_status_t run_dots(qk_ops_ctx_t *ctx, const qk_space_args_t &a, int nv) {
  space_kernel_args<S> k = space_args_of<S>(a);
  k.n = nv - 1;
  k.finish = reduction(ctx, k.b, nv * (nv + 1) / 2, a.dots, nullptr);
  space_dots_kernel<S><<<dim3(k.finish.blocks, k.b.ntile), QK_THREADS, 0, compute(ctx)>>>(k);
  const qk_status_t status = qk_gpu_launched(ctx, "space_dots");
  return status == QK_OK ? finish_launch(ctx, k.finish) : status;
}

template <class S> qk_status_t run_step(qk_ops_ctx_t *ctx, const qk_space_args_t &a) {
  const space_kernel_args<S> k = space_args_of<S>(a);
  space_step_kernel<S><<<dim3(blocks_for(k.b), k.b.ntile), QK_THREADS, 0, compute(ctx)>>>(k);
  return qk_gpu_launched(ctx, "space_step");
}

} // namespace

qk_status_t space_dots(qk_ops_ctx_t *ctx, const qk_space_args_t *a) {
  qk_status_t status = qk_args_space(ctx, a, 0);
  if (status != QK_OK) return status;
  const int nv = a->n < space_most ? a->n + 1 : space_most;
  status = with_storage(a->v[0].prec,
                        [=](auto s) { return run_dots<stored<decltype(s)>>(ctx, *a, nv); });
  for (int j = nv; status == QK_OK && j <= a->n; j++) status = space_dots_with(ctx, a, j);
  return status;
}

qk_status_t space_step(qk_ops_ctx_t *ctx, const qk_space_args_t *a) {
  const qk_status_t status = qk_args_space(ctx, a, 1);
  if (status != QK_OK) return status;
  return with_storage(a->x.prec, [=](auto s) { return run_step<stored<decltype(s)>>(ctx, *a); });
}

} // namespace QK_NS
