/* Shifts of multi-shift CG on the GPU: all of them in one launch. */
#include "cuda/body/shift.h"

#include "cuda/args/args.h"
#include "cuda/gpu/reduce.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

template <class S> struct shift_kernel_args {
  shift_fields<S> f;
  const double *c;
  block_shape b;
};

extern __shared__ double shift_room[];

/* Coefficients of the lanes of a tile in shared memory, [n][a, b][1 + nr][lane]. */
template <class S, int N>
__global__ void __launch_bounds__(QK_THREADS) shift_kernel(const shift_kernel_args<S> a) {
  using R = real<S>;
  R *share = reinterpret_cast<R *>(shift_room);
  const int each = 1 + a.f.nr;
  for (int i = threadIdx.x; i < 2 * a.f.n * each * QK_TILE; i += QK_THREADS) {
    const int rhs = a.b.rhs(blockIdx.y, i % QK_TILE), of = i / QK_TILE;
    if (rhs < a.b.nrhs) share[i] = (R)a.c[2 * ((int64_t)of * a.b.nrhs + rhs)];
  }
  __syncthreads();
  const thread_place me(a.b);
  const auto c = [&](int k, int p, int i) {
    return share[((2 * k + p) * each + i) * QK_TILE + me.lane];
  };
  for (int64_t row = me.first; me.exists && row < a.b.rows; row += me.step)
    shift_tile<S, N>(a.f, spot{a.b.index(row, me.tile), me.lane}, c);
}

template <class S, int N> qk_status_t run(qk_ops_ctx_t *ctx, const qk_shift_args_t &a) {
  const shift_kernel_args<S> k = {shift_fields_of<S>(a), a.c, shape_of(a.x[0], N)};
  const size_t room = (size_t)(2 * a.n * (1 + a.nr) * QK_TILE) * sizeof(real<S>);
  shift_kernel<S, N><<<dim3(blocks_for(k.b), k.b.ntile), QK_THREADS, room, compute(ctx)>>>(k);
  return qk_gpu_launched(ctx, "shift_step");
}

} // namespace

qk_status_t shift_step(qk_ops_ctx_t *ctx, const qk_shift_args_t *a) {
  const qk_status_t status = qk_args_shift(ctx, a);
  if (status != QK_OK) return status;
  return with_row_reals<float>(a->x[0], [=](auto n) {
    constexpr int N = decltype(n)::value;
    return a->p[0].prec == QK_DOUBLE ? run<double, N>(ctx, *a) : run<float, N>(ctx, *a);
  });
}

} // namespace QK_NS
