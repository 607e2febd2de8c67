/*
 * gpu/krylov/blas_launch.cuh: the kernels behind blas.cuh. Included by the file of each storage
 * type only.
 */
#ifndef QK_CUDA_GPU_BLAS_LAUNCH_CUH
#define QK_CUDA_GPU_BLAS_LAUNCH_CUH

#include "cuda/gpu/krylov/blas.cuh"
#include "cuda/gpu/reduce.cuh"
#include "cuda/site/storage.h"

namespace QK_NS {

template <class S, int NF> struct blas_kernel_args {
  spinor<S> f[NF];
  const double *c[QK_BLAS_MAX_SCALARS];
  const uint8_t *mask;
  block_shape b;
  finish_args finish;
};

template <class Op, class S, int N>
__global__ void __launch_bounds__(QK_THREADS) blas_kernel(const blas_kernel_args<S, Op::nf> a) {
  const bool together = N == vector_reals && tiles_fit_rows(a.b);
  const thread_place me = together ? thread_place::together(a.b) : thread_place(a.b);
  sums<Op::nr> r = {};
  if (me.exists && (a.mask == nullptr || a.mask[me.rhs] != 0)) {
    dcx c[Op::nc > 0 ? Op::nc : 1], made[Op::nk > 0 ? Op::nk : 1];
    cx<real<S>> k[Op::nk > 0 ? Op::nk : 1];
    for (int i = 0; i < Op::nc; i++) c[i] = {a.c[i][2 * me.rhs], a.c[i][2 * me.rhs + 1]};
    Op::prepare(c, made);
    for (int i = 0; i < Op::nk; i++) k[i] = {(real<S>)made[i].re, (real<S>)made[i].im};
    for (int64_t row = me.first; row < a.b.rows; row += me.step)
      blas_tile<Op, S, N>(a.f, spot{a.b.index(row, me.tile), me.lane}, k, r);
  }
  if constexpr (Op::nr > 0) {
    if constexpr (N == vector_reals)
      if (together) return reduce_together<Op::nr>(r.v, a.finish);
    reduce<Op::nr>(r.v, me.lane, a.finish);
  }
}

template <bool ADD, class To, class From, int N>
__global__ void __launch_bounds__(QK_THREADS)
    blas_mixed_kernel(spinor<To> to, spinor<From> from, const uint8_t *mask, block_shape b) {
  const thread_place me(b);
  if (!me.exists || (mask != nullptr && mask[me.rhs] == 0)) return;
  for (int64_t row = me.first; row < b.rows; row += me.step)
    blas_mixed_tile<ADD, To, From, N>(to, from, spot{b.index(row, me.tile), me.lane});
}

/* F: how f is stored. */
template <class S, class F = S> struct multi_kernel_args {
  spinor<S> y;
  spinor<F> f[QK_MULTI_MAX];
  const double *c, *d;
  const uint8_t *mask;  /* [n][nrhs] */
  const uint8_t *fresh; /* [nrhs] */
  double sign;
  block_shape b;
  int n;
  finish_args finish;
};

template <class S, class F>
__device__ unsigned live_fields(const multi_kernel_args<S, F> &a, const thread_place &me) {
  unsigned live = 0;
  for (int k = 0; me.exists && k < a.n; k++)
    live |= (unsigned)(a.mask == nullptr || a.mask[k * a.b.nrhs + me.rhs] != 0) << k;
  return live;
}

/* r[k] += (f_k, y) over one row. */
template <class S, int N>
__device__ void multi_dot_row(const multi_kernel_args<S> &a, unsigned live, spot at,
                              sums<QK_GPU_MULTI> &r) {
  constexpr int P = part_size<S, N>, NF = QK_GPU_MULTI + 1, Y = QK_GPU_MULTI;
  [[maybe_unused]] sums<QK_GPU_MULTI, float> row = {};
  auto &sum = row_or_all<S>(row, r);
#pragma unroll 1
  for (int part = 0; part < N / P; part++) {
    cx<real<S>> z[P / 2][NF];
    load_words<S, N, NF>(a.y, at, part, Y, z);
    QK_UNROLL
    for (int k = 0; k < QK_GPU_MULTI; k++)
      if (live >> k & 1) load_words<S, N, NF>(a.f[k], at, part, k, z);
    QK_UNROLL
    for (int k = 0; k < QK_GPU_MULTI; k++) {
      if (!(live >> k & 1)) continue;
      QK_UNROLL
      for (int j = 0; j < P / 2; j++) sum.dot(k, z[j][k], z[j][Y]);
    }
  }
  if constexpr (storage<S>::scaled) {
    const double y_scale = scale_at(a.y, at);
    QK_UNROLL
    for (int k = 0; k < QK_GPU_MULTI; k++)
      if (live >> k & 1) r.add(k, row, y_scale * scale_at(a.f[k], at));
  }
}

/* Up to QK_GPU_MULTI fields f against y, which is read once. */
template <class S, int N>
__global__ void __launch_bounds__(QK_THREADS) multi_dot_kernel(const multi_kernel_args<S> a) {
  const thread_place me(a.b);
  const unsigned live = live_fields(a, me);
  sums<QK_GPU_MULTI> r = {};
  for (int64_t row = me.first; live != 0 && row < a.b.rows; row += me.step)
    multi_dot_row<S, N>(a, live, spot{a.b.index(row, me.tile), me.lane}, r);
  reduce<QK_GPU_MULTI>(r.v, me.lane, a.finish);
}

/* y += sum_k sign ratio(c_k, d_k) f_k; y is read and written once. */
template <class S, class F, int N>
__global__ void __launch_bounds__(QK_THREADS) multi_axpy_kernel(const multi_kernel_args<S, F> a) {
  using R = real<S>;
  __shared__ cx<R> share[QK_MULTI_MAX][QK_TILE];
  for (int i = threadIdx.x; i < a.n * QK_TILE; i += QK_THREADS) {
    const int rhs = a.b.rhs(blockIdx.y, i % QK_TILE);
    if (rhs >= a.b.nrhs) continue;
    const int64_t at = 2 * ((int64_t)(i / QK_TILE) * a.b.nrhs + rhs);
    dcx v = {a.c[at], a.c[at + 1]};
    if (a.d != nullptr) v = ratio(v, dcx{a.d[at], a.d[at + 1]});
    share[i / QK_TILE][i % QK_TILE] = {(R)(a.sign * v.re), (R)(a.sign * v.im)};
  }
  __syncthreads();
  const thread_place me(a.b);
  const unsigned live = live_fields(a, me);
  const bool fresh = me.exists && a.fresh != nullptr && a.fresh[me.rhs] != 0;
  for (int64_t row = me.first; (live != 0 || fresh) && row < a.b.rows; row += me.step) {
    const spot at = {a.b.index(row, me.tile), me.lane};
    R v[N] = {}, w[N];
    if (!fresh) load_spinor<N>(a.y, at, v);
    for (int k = 0; k < a.n; k++) {
      if (!(live >> k & 1)) continue;
      load_spinor<N>(a.f[k], at, w);
      const cx<R> c = share[k][me.lane];
      QK_UNROLL
      for (int i = 0; i < N; i += 2) {
        v[i] += c.re * w[i] - c.im * w[i + 1];
        v[i + 1] += c.re * w[i + 1] + c.im * w[i];
      }
    }
    store_spinor<N>(a.y, at, v);
  }
}

template <bool ADD, class To, class From, int N>
qk_status_t run_mixed(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  const block_shape b = shape_of(a->f[0], N);
  blas_mixed_kernel<ADD, To, From, N>
      <<<dim3(blocks_for(b), b.ntile), QK_THREADS, 0, compute(ctx)>>>(
          spinor_of<To>(a->f[0]), spinor_of<From>(a->f[1]), a->mask, b);
  return qk_gpu_launched(ctx, "blas across precisions");
}

template <class Op, class S, int N> qk_status_t run(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  blas_kernel_args<S, Op::nf> k = {};
  k.b = shape_of(a->f[0], N);
  for (int i = 0; i < Op::nf; i++) k.f[i] = spinor_of<S>(a->f[i]);
  for (int i = 0; i < Op::nc; i++) k.c[i] = a->c[i];
  k.mask = a->mask;
  const bool together = N == vector_reals && tiles_fit_rows(k.b);
  k.finish = reduction(ctx, k.b, Op::nr, a->red, a->mask, together);
  const int blocks = Op::nr > 0 ? k.finish.blocks
                     : together ? blocks_together(k.b)
                                : blocks_for(k.b);
  const dim3 grid(blocks, together ? 1 : k.b.ntile);
  blas_kernel<Op, S, N><<<grid, QK_THREADS, 0, compute(ctx)>>>(k);
  const qk_status_t status = qk_gpu_launched(ctx, "blas");
  return status != QK_OK || Op::nr == 0 ? status : finish_launch(ctx, k.finish);
}

template <class Op, class S> qk_status_t run_op(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  if constexpr (!Op::mixed)
    return with_row_reals<S>(a->f[0],
                             [=](auto n) { return run<Op, S, decltype(n)::value>(ctx, a); });
  else
    return with_storage(a->f[1].prec, [=](auto from) {
      using From = stored<decltype(from)>;
      using Wide = std::conditional_t<storage<From>::scaled, From, S>;
      return with_row_reals<Wide>(
          a->f[0], [=](auto n) { return run_mixed<Op::add, S, From, decltype(n)::value>(ctx, a); });
    });
}

template <class S> qk_status_t blas_launch(qk_ops_ctx_t *ctx, const qk_blas_args_t *a) {
  switch (a->op) {
#define X(name, fields, scalars, reductions, formula)                                              \
  case QK_BLAS_##name:                                                                             \
    return run_op<op_##name, S>(ctx, a);
    QK_BLAS_TABLE(X)
#undef X
  case QK_BLAS_NONE:
  case QK_BLAS_COUNT:
    break;
  }
  return QK_BAD_ARGUMENT;
}

/* Fields first .. first + n - 1 of a call, in rows of N. */
template <class S, class F, int N>
multi_kernel_args<S, F> multi_args(const qk_multi_args_t *a, int first, int n) {
  multi_kernel_args<S, F> k = {};
  k.b = shape_of(a->y, N);
  k.y = spinor_of<S>(a->y);
  for (int i = 0; i < n; i++) k.f[i] = spinor_of<F>(a->f[first + i]);
  k.c = a->c;
  k.d = a->d;
  if (a->mask != nullptr) k.mask = a->mask + (int64_t)first * k.b.nrhs;
  k.fresh = a->fresh;
  k.sign = a->sign;
  k.n = n;
  return k;
}

template <class S, int N> qk_status_t run_dot(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  for (int first = 0; first < a->n; first += QK_GPU_MULTI) {
    const int n = a->n - first < QK_GPU_MULTI ? a->n - first : QK_GPU_MULTI;
    multi_kernel_args<S> k = multi_args<S, S, N>(a, first, n);
    k.finish = reduction(ctx, k.b, n, a->red + 2 * (int64_t)first * k.b.nrhs, k.mask);
    k.finish.clear = k.finish.mask_per_result = 1;
    const dim3 grid(k.finish.blocks, k.b.ntile);
    multi_dot_kernel<S, N><<<grid, QK_THREADS, 0, compute(ctx)>>>(k);
    qk_status_t status = qk_gpu_launched(ctx, "multi_dot");
    if (status == QK_OK) status = finish_launch(ctx, k.finish);
    if (status != QK_OK) return status;
  }
  return QK_OK;
}

template <class S> qk_status_t multi_dot_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  return with_row_reals<S>(a->y, [=](auto n) { return run_dot<S, decltype(n)::value>(ctx, a); });
}

template <class S, class F, int N>
qk_status_t run_axpy(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  const multi_kernel_args<S, F> k = multi_args<S, F, N>(a, 0, a->n);
  const dim3 grid(blocks_for(k.b), k.b.ntile);
  multi_axpy_kernel<S, F, N><<<grid, QK_THREADS, 0, compute(ctx)>>>(k);
  return qk_gpu_launched(ctx, "multi_axpy");
}

template <class S> qk_status_t multi_axpy_launch(qk_ops_ctx_t *ctx, const qk_multi_args_t *a) {
  if (a->n == 0 && a->fresh == nullptr) return QK_OK;
  return with_storage(a->n > 0 ? a->f[0].prec : a->y.prec, [=](auto from) {
    using F = stored<decltype(from)>;
    constexpr bool narrow = storage<F>::scaled && std::is_same_v<real<F>, real<S>>;
    if constexpr (std::is_same_v<F, S> || narrow)
      return with_row_reals<F>(a->y,
                               [=](auto n) { return run_axpy<S, F, decltype(n)::value>(ctx, a); });
    else
      return QK_BAD_ARGUMENT;
  });
}

#define QK_INSTANTIATE_BLAS(S)                                                                     \
  template qk_status_t blas_launch<S>(qk_ops_ctx_t *, const qk_blas_args_t *);                     \
  template qk_status_t multi_dot_launch<S>(qk_ops_ctx_t *, const qk_multi_args_t *);               \
  template qk_status_t multi_axpy_launch<S>(qk_ops_ctx_t *, const qk_multi_args_t *);

} // namespace QK_NS
#endif
