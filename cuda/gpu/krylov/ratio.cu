/* Residuals at each site against the solution there, on the GPU: a thread has a spinor. */
#include "cuda/args/args.h"
#include "cuda/gpu/reduce.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

template <class S> struct ratios_kernel_args {
  spinor<S> r, x;
  int nsub;
  block_shape b;
  finish_args finish;
};

template <class S, int N>
__global__ void __launch_bounds__(QK_THREADS) site_ratios_kernel(const ratios_kernel_args<S> a) {
  const thread_place me(a.b);
  cx<double> sum = {};
  for (int64_t row = me.first; me.exists && row < a.b.rows; row += me.step)
    add_ratios<S, N>(a.r, a.x, spot{a.b.index(row, me.tile), me.lane}, a.nsub, sum);
  reduce<1>(&sum, me.lane, a.finish);
}

template <class S, int N> qk_status_t run(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t &a) {
  ratios_kernel_args<S> k = {};
  k.r = spinor_of<S>(a.r);
  k.x = spinor_of<S>(a.x);
  k.nsub = 2 * a.x.ncomp / N;
  k.b = shape_of(a.x, 2 * a.x.ncomp);
  k.finish = reduction(ctx, k.b, 1, a.red, nullptr);
  site_ratios_kernel<S, N><<<dim3(k.finish.blocks, k.b.ntile), QK_THREADS, 0, compute(ctx)>>>(k);
  const qk_status_t status = qk_gpu_launched(ctx, "site_ratios");
  return status == QK_OK ? finish_launch(ctx, k.finish) : status;
}

} // namespace

qk_status_t site_ratios(qk_ops_ctx_t *ctx, const qk_site_ratios_args_t *a) {
  const qk_status_t status = qk_args_site_ratios(ctx, a);
  if (status != QK_OK) return status;
  return with_row_reals<float>(a->x, [=](auto n) {
    constexpr int N = decltype(n)::value;
    return a->x.prec == QK_DOUBLE ? run<double, N>(ctx, *a) : run<float, N>(ctx, *a);
  });
}

} // namespace QK_NS
