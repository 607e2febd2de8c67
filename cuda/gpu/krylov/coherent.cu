/* Bases that are cut into aggregates, on the GPU: components of eight vectors at some sites of an
 * aggregate go through shared memory as plain numbers. */
#include "cuda/body/coherent.h"

#include "cuda/args/coherent_args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int half_comps = QK_COHERENT_HALF, comps = 2 * half_comps;

template <class R> struct number { R re, im; };

/* Component k of column `lane` of a block of eight at a site. */
template <class S>
__device__ number<real<S>> load(const pieces<S> &f, int64_t site, int lane, int k) {
  const S *p = f.data + field_word(f, site, lane, 2 * k);
  number<real<S>> z = {widen(p[0]), widen(p[1])};
  if constexpr (storage<S>::scaled) {
    const float scale = f.scale[f.scale_at(site, 0) + lane];
    z.re *= scale;
    z.im *= scale;
  }
  return z;
}

template <class S> struct args {
  coherent_walk w;
  pieces<S> v[QK_BASIS_BLOCKS];
  pieces<real<S>> y, c;
  int n, m; /* blocks of the basis; coefficients of a chirality */
};

template <class S> args<S> args_of(const qk_coherent_args_t *a) {
  args<S> k = {};
  k.w = coherent_walk_of(*a);
  k.y = pieces_of<real<S>>(a->y);
  k.c = pieces_of<real<S>>(a->c);
  k.n = a->n;
  k.m = a->c.ncomp / 2;
  for (int i = 0; i < a->n; i++) k.v[i] = pieces_of<S>(a->v[i]);
  return k;
}

/* ---- restrict: 16 threads share the 8 x 8 pairs of a site, two by two each; 8 sites at a time */

constexpr int threads = 128, held = 8;

/* Sum of conj(v) y over the components of a chirality, for one pair of columns. */
template <class R> __device__ number<R> product(const number<R> *v, const number<R> *y) {
  number<R> p = {0, 0};
  QK_UNROLL
  for (int k = 0; k < half_comps; k++, v += QK_TILE, y += QK_TILE) {
    p.re += v->re * y->re + v->im * y->im;
    p.im += v->re * y->im - v->im * y->re;
  }
  return p;
}

/* The sum of what the sites that are held at a time have; all threads call it. */
__device__ double total_of(double (*share)[QK_TILE * QK_TILE][2], int pair, int im) {
  __syncthreads();
  double total = 0;
  for (int k = 0; k < held; k++) total += share[k][pair][im];
  return total;
}

/* Block (aggregate and chirality, block of the basis). */
template <class S>
__global__ void __launch_bounds__(threads) restrict_kernel(const __grid_constant__ args<S> a) {
  using R = real<S>;
  __shared__ number<R> vs[held][half_comps * QK_TILE], ys[held][half_comps * QK_TILE];
  __shared__ double share[held][QK_TILE * QK_TILE][2];
  const int X = blockIdx.x / 2, s = blockIdx.x % 2, t = blockIdx.y;
  const int item = threadIdx.x / 16, i0 = threadIdx.x % 16 / 4 * 2, j0 = threadIdx.x % 4 * 2;
  const int items = a.w.items();
  number<double> sum[4] = {};
  for (int at = 0; at < items; at += held) {
    __syncthreads();
    for (int w = threadIdx.x; w < held * half_comps * QK_TILE; w += threads) {
      const int k = w / (half_comps * QK_TILE), in = w % (half_comps * QK_TILE);
      number<R> z = {0, 0}, x = {0, 0};
      if (at + k < items) {
        const int64_t site = a.w.place(X, at + k);
        const int comp = s * half_comps + in / QK_TILE, lane = in % QK_TILE;
        z = load(a.v[t], site, lane, comp);
        x = load(a.y, site, lane, comp);
      }
      vs[k][in] = z;
      ys[k][in] = x;
    }
    __syncthreads();
    QK_UNROLL
    for (int p = 0; p < 4; p++) {
      const number<R> z = product(vs[item] + i0 + p / 2, ys[item] + j0 + p % 2);
      sum[p].re += z.re;
      sum[p].im += z.im;
    }
  }
  for (int p = 0; p < 4; p++) {
    double *of = share[item][(i0 + p / 2) * QK_TILE + j0 + p % 2];
    of[0] = sum[p].re;
    of[1] = sum[p].im;
  }
  const int pair = threadIdx.x / 2, im = threadIdx.x % 2;
  const double total = total_of(share, pair, im);
  a.c.data[field_word(a.c, X, pair % QK_TILE, 2 * (s * a.m + t * QK_TILE + pair / QK_TILE) + im)] =
      (R)total;
}

template <class S> qk_status_t run_restrict(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const args<S> k = args_of<S>(a);
  const dim3 grid((unsigned)(2 * k.w.aggregates), (unsigned)k.n);
  restrict_kernel<S><<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "coherent_restrict");
}

/* ---- prolong: a thread has one component of one column, at `made` sites ---------------------- */

constexpr int prolong_threads = comps * QK_TILE, made = 4;

/* Block (aggregate, group of its sites). */
template <class S>
__global__ void __launch_bounds__(prolong_threads)
    prolong_kernel(const __grid_constant__ args<S> a) {
  using R = real<S>;
  __shared__ number<R> vs[made][comps * QK_TILE], q[2][QK_TILE * QK_TILE];
  const int X = blockIdx.x, first = blockIdx.y * made, items = a.w.items();
  const int comp = threadIdx.x / QK_TILE, lane = threadIdx.x % QK_TILE, s = comp / half_comps;
  int64_t site[made];
  for (int h = 0; h < made; h++) site[h] = first + h < items ? a.w.place(X, first + h) : -1;
  number<R> sum[made] = {};
  for (int t = 0; t < a.n; t++) {
    __syncthreads();
    for (int w = threadIdx.x; w < 2 * QK_TILE * QK_TILE; w += prolong_threads) {
      const int of = w / (QK_TILE * QK_TILE), i = w / QK_TILE % QK_TILE;
      q[of][w % (QK_TILE * QK_TILE)] = load(a.c, X, w % QK_TILE, of * a.m + t * QK_TILE + i);
    }
    QK_UNROLL
    for (int h = 0; h < made; h++) {
      number<R> z = {0, 0};
      if (site[h] >= 0) z = load(a.v[t], site[h], lane, comp);
      vs[h][threadIdx.x] = z;
    }
    __syncthreads();
    QK_UNROLL
    for (int i = 0; i < QK_TILE; i++) {
      const number<R> f = q[s][i * QK_TILE + lane];
      QK_UNROLL
      for (int h = 0; h < made; h++) {
        const number<R> z = vs[h][comp * QK_TILE + i];
        sum[h].re += f.re * z.re - f.im * z.im;
        sum[h].im += f.re * z.im + f.im * z.re;
      }
    }
  }
  for (int h = 0; h < made; h++) {
    if (site[h] < 0) continue;
    R *out = a.y.data + field_word(a.y, site[h], lane, 2 * comp);
    out[0] = sum[h].re;
    out[1] = sum[h].im;
  }
}

template <class S> qk_status_t run_prolong(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const args<S> k = args_of<S>(a);
  const dim3 grid((unsigned)k.w.aggregates, (unsigned)((k.w.items() + made - 1) / made));
  prolong_kernel<S><<<grid, prolong_threads, 0, qk_gpu(ctx)->stream[0]>>>(k);
  return qk_gpu_launched(ctx, "coherent_prolong");
}

} // namespace

qk_status_t coherent_restrict(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const qk_status_t status = qk_args_coherent(ctx, "coherent_restrict", a);
  if (status != QK_OK) return status;
  return with_storage(a->v[0].prec,
                      [=](auto s) { return run_restrict<stored<decltype(s)>>(ctx, a); });
}

qk_status_t coherent_prolong(qk_ops_ctx_t *ctx, const qk_coherent_args_t *a) {
  const qk_status_t status = qk_args_coherent(ctx, "coherent_prolong", a);
  if (status != QK_OK) return status;
  return with_storage(a->v[0].prec,
                      [=](auto s) { return run_prolong<stored<decltype(s)>>(ctx, a); });
}

} // namespace QK_NS
