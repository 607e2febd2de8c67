/* RHS and sources on the GPU: one thread a RHS of a site. */
#include "cuda/body/columns.h"

#include "cuda/args/args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

constexpr int threads = 128;

/* Values in wire order go through shared memory, so that all threads of a warp read and write
 * neighbouring words there: a row a thread, in words of 16 bytes (of 8 where the row of a colour
 * vector has no whole number of them), and one more, so that eight threads in a row have banks of
 * their own.
 * Thread s * n + k of a block has RHS k of its site s. */
template <class T, int N> struct wire_rows {
  static constexpr int reals = 2 * N;
  static constexpr int bytes = reals * (int)sizeof(T);
  using word_t = std::conditional_t<bytes % sizeof(uint4) == 0, uint4, uint2>;
  static constexpr int words = bytes / (int)sizeof(word_t);
  static constexpr int stride = words + 1;
  word_t word[threads * stride];

  union row {
    word_t word[words];
    T real[reals];
    __device__ row() {}
  };
  static __device__ void get(const word_t *from, double *v) {
    row r;
    QK_UNROLL
    for (int w = 0; w < words; w++) r.word[w] = from[w];
    QK_UNROLL
    for (int c = 0; c < reals; c++) v[c] = (double)r.real[c];
  }
  static __device__ void put(word_t *to, const double *v) {
    row r;
    QK_UNROLL
    for (int c = 0; c < reals; c++) r.real[c] = (T)v[c];
    QK_UNROLL
    for (int w = 0; w < words; w++) to[w] = r.word[w];
  }
};

struct wire_place {
  int64_t first; /* site of the block */
  int here, s, k;

  __device__ explicit wire_place(const qk_rhs_args_t &a) {
    const int most = threads / a.n;
    const int64_t sites = 2 * (int64_t)a.lat.vcb;
    first = (int64_t)blockIdx.x * most;
    here = sites - first < most ? (int)(sites - first) : most;
    s = (int)threadIdx.x / a.n;
    k = (int)threadIdx.x % a.n;
  }
};

inline unsigned wire_blocks(const qk_rhs_args_t &a) {
  const int most = threads / a.n;
  return (unsigned)((2 * (int64_t)a.lat.vcb + most - 1) / most);
}

/* Calls body with a word of a.wire[k] and its place in the rows, for all that the block has. */
template <class rows, class F>
__device__ void each_word(const qk_rhs_args_t &a, const wire_place &at, const F &body) {
  using word_t = typename rows::word_t;
  for (int k = 0; k < a.n; k++) {
    word_t *wire = (word_t *)a.wire[k] + at.first * rows::words;
    for (int i = (int)threadIdx.x; i < at.here * rows::words; i += threads)
      body(wire + i, (i / rows::words * a.n + k) * rows::stride + i % rows::words);
  }
}

template <class T, int N, class S>
__global__ void __launch_bounds__(threads) import_kernel(const qk_rhs_args_t a, spinor<S> f) {
  using rows = wire_rows<T, N>;
  using word_t = typename rows::word_t;
  __shared__ rows shared;
  const wire_place at(a);
  each_word<rows>(a, at, [&](const word_t *wire, int i) { shared.word[i] = __ldcs(wire); });
  __syncthreads();
  if (at.s >= at.here) return;
  double in[2 * N];
  rows::get(shared.word + threadIdx.x * rows::stride, in);
  import_site<N>(a, f, at.first + at.s, at.k, in);
}

template <class T, int N, class S>
__global__ void __launch_bounds__(threads) export_kernel(const qk_rhs_args_t a, spinor<S> f) {
  using rows = wire_rows<T, N>;
  using word_t = typename rows::word_t;
  __shared__ rows shared;
  const wire_place at(a);
  if (at.s < at.here) {
    double out[2 * N];
    export_site<N>(a, f, at.first + at.s, at.k, out);
    rows::put(shared.word + threadIdx.x * rows::stride, out);
  }
  __syncthreads();
  each_word<rows>(a, at, [&](word_t *wire, int i) { *wire = shared.word[i]; });
}

template <int N, class S> void import_as(cudaStream_t stream, const qk_rhs_args_t &a) {
  const spinor<S> f = spinor_of<S>(a.field);
  if (a.is_double)
    import_kernel<double, N><<<wire_blocks(a), threads, 0, stream>>>(a, f);
  else
    import_kernel<float, N><<<wire_blocks(a), threads, 0, stream>>>(a, f);
}
template <int N, class S> void export_as(cudaStream_t stream, const qk_rhs_args_t &a) {
  const spinor<S> f = spinor_of<S>(a.field);
  if (a.is_double)
    export_kernel<double, N><<<wire_blocks(a), threads, 0, stream>>>(a, f);
  else
    export_kernel<float, N><<<wire_blocks(a), threads, 0, stream>>>(a, f);
}

template <int N, class S>
__global__ void source_kernel(const qk_source_args_t a, spinor<S> f, int64_t sites) {
  const int64_t n = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (n < sites) source_site<N>(a, f, n);
}

template <class To, class From>
__global__ void copy_kernel(const qk_rhs_copy_args_t a, spinor<To> to, spinor<From> from,
                            int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (i < n) copy_column_site(a, to, from, i);
}

template <class To, class From> void copy_launch(cudaStream_t stream, const qk_rhs_copy_args_t &a) {
  const int64_t n = copy_columns(a);
  const unsigned blocks = (unsigned)((n + threads - 1) / threads);
  copy_kernel<<<blocks, threads, 0, stream>>>(a, spinor_of<To>(a.to), spinor_of<From>(a.from), n);
}
template <class To> void copy_from(cudaStream_t stream, const qk_rhs_copy_args_t &a) {
  with_storage(a.from.prec, [=](auto s) { copy_launch<To, stored<decltype(s)>>(stream, a); });
}

template <class S>
__global__ void noise_kernel(const qk_noise_args_t a, spinor<S> f, int64_t sites) {
  const int64_t n = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (n < sites) noise_pair(a, f, n, (int)blockIdx.y);
}

template <int N, class S> void source_as(cudaStream_t stream, const qk_source_args_t &a) {
  const int64_t sites = 2 * (int64_t)a.lat.vcb;
  const unsigned blocks = (unsigned)((sites + threads - 1) / threads);
  source_kernel<N><<<blocks, threads, 0, stream>>>(a, spinor_of<S>(a.field), sites);
}

/* launch(stream, null pointer to the storage type of prec), if the arguments have passed. */
template <class F>
qk_status_t launch_as(qk_ops_ctx_t *ctx, const char *call, qk_status_t passed, qk_prec_t prec,
                      const F &launch) {
  if (passed != QK_OK) return passed;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  with_storage(prec, [&](auto s) { launch(stream, s); });
  return qk_gpu_launched(ctx, call);
}

/* launch(stream, null pointer to the storage type, components), likewise. */
template <class F>
qk_status_t launch_of(qk_ops_ctx_t *ctx, const char *call, qk_status_t passed, const qk_spinor_t &f,
                      const F &launch) {
  return launch_as(ctx, call, passed, f.prec, [&](auto stream, auto s) {
    with_components(f, [&](auto n) { launch(stream, s, n); });
  });
}

} // namespace

qk_status_t rhs_import(qk_ops_ctx_t *ctx, const qk_rhs_args_t *a) {
  return launch_of(
      ctx, "rhs_import", qk_args_rhs(ctx, a), a->field,
      [=](auto stream, auto s, auto n) { import_as<n, stored<decltype(s)>>(stream, *a); });
}

qk_status_t rhs_export(qk_ops_ctx_t *ctx, const qk_rhs_args_t *a) {
  return launch_of(
      ctx, "rhs_export", qk_args_rhs(ctx, a), a->field,
      [=](auto stream, auto s, auto n) { export_as<n, stored<decltype(s)>>(stream, *a); });
}

qk_status_t rhs_copy(qk_ops_ctx_t *ctx, const qk_rhs_copy_args_t *a) {
  return launch_as(ctx, "rhs_copy", qk_args_rhs_copy(ctx, a), a->to.prec,
                   [=](auto stream, auto s) { copy_from<stored<decltype(s)>>(stream, *a); });
}

qk_status_t source(qk_ops_ctx_t *ctx, const qk_source_args_t *a) {
  return launch_of(
      ctx, "source", qk_args_source(ctx, a), a->field,
      [=](auto stream, auto s, auto n) { source_as<n, stored<decltype(s)>>(stream, *a); });
}

qk_status_t noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *a) {
  const qk_status_t status = qk_args_noise(ctx, a);
  if (status != QK_OK) return status;
  const int64_t sites = 2 * (int64_t)a->lat.vcb;
  const dim3 grid((unsigned)((sites + threads - 1) / threads), (unsigned)noise_pairs(a->field));
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a->field.prec == QK_DOUBLE)
    noise_kernel<<<grid, threads, 0, stream>>>(*a, spinor_of<double>(a->field), sites);
  else
    noise_kernel<<<grid, threads, 0, stream>>>(*a, spinor_of<float>(a->field), sites);
  return qk_gpu_launched(ctx, "noise");
}

} // namespace QK_NS
