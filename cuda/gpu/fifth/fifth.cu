/* Fields with a fifth dimension on the GPU: slices mixed at each site, sums over them. */
#include "cuda/body/fifth.h"

#include "cuda/args/fifth_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int N = fifth_reals;
constexpr int most_threads = 128;
/* Between the columns of two right-hand sides in shared memory, so that they do not stand in the
 * same banks. */
constexpr int gap = 4;

template <class S> struct mix_args {
  fifth_matrix<real<S>> m;
  spinor<S> in, x, out;
  real<S> c_in, c_x;
  int nrhs, width; /* threads of a right-hand side */
  int64_t groups;  /* right-hand sides of all sites */
};

/* A thread reads one column of a right-hand side at a site, and makes one. */
template <class S> __global__ void __launch_bounds__(most_threads) mix_kernel(const mix_args<S> a) {
  extern __shared__ double memory[];
  const int stride = a.m.from * N + gap;
  const int group = (int)threadIdx.x / a.width, k = (int)threadIdx.x % a.width;
  const int64_t here = (int64_t)blockIdx.x * (blockDim.x / a.width) + group;
  const bool exists = here < a.groups;
  const int64_t site = here / a.nrhs;
  const int rhs = (int)(here % a.nrhs);
  real<S> *columns = (real<S> *)memory + group * stride;
  if (exists && k < a.m.from)
    load_spinor<N>(a.in, fifth_spot(a.in, site, rhs * a.m.from + k), columns + k * N);
  __syncthreads();
  if (!exists || k >= a.m.to) return;
  const spot at = fifth_spot(a.out, site, rhs * a.m.to + k);
  real<S> v[N] = {}, x[N];
  for (int r = 0; r < a.m.from; r++) a.m.add(k, r, columns + r * N, v);
  if (a.x.data) load_spinor<N>(a.x, at, x);
  QK_UNROLL
  for (int c = 0; c < N; c++) v[c] = a.c_in * v[c] + (a.x.data ? a.c_x * x[c] : (real<S>)0);
  store_spinor<N>(a.out, at, v);
}

template <class S> qk_status_t mix_launch(qk_ops_ctx_t *ctx, const qk_fifth_mix_args_t &a) {
  const int width = a.to > a.from ? a.to : a.from, groups = most_threads / width;
  mix_args<S> k = {};
  k.m = fifth_matrix_of<real<S>>(a);
  k.in = spinor_of<S>(a.in);
  k.x = spinor_of<S>(a.x);
  k.out = spinor_of<S>(a.out);
  k.c_in = (real<S>)a.c_in;
  k.c_x = (real<S>)a.c_x;
  k.nrhs = a.in.nrhs / a.from;
  k.width = width;
  k.groups = a.in.nsites * k.nrhs;
  const size_t shared = (size_t)groups * (a.from * N + gap) * sizeof(real<S>);
  mix_kernel<S><<<(unsigned)((k.groups + groups - 1) / groups), groups * width, shared,
                  qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "fifth_mix");
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
