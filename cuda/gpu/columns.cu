/* Columns and sources on the GPU: one thread a site. */
#include "cuda/body/columns.h"

#include "cuda/args.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"

namespace QK_NS {
namespace {

constexpr int threads = 128;

template <class S> __global__ void import_kernel(const qk_column_args_t a, spinor<S> f, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (i < n) import_site(a, f, i);
}
template <class S> __global__ void export_kernel(const qk_column_args_t a, spinor<S> f, int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (i < n) export_site(a, f, i);
}
template <class S>
__global__ void source_kernel(const qk_source_args_t a, spinor<S> f, int64_t sites) {
  const int64_t n = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (n < sites) source_site(a, f, n);
}

template <class To, class From>
__global__ void copy_kernel(const qk_column_copy_args_t a, spinor<To> to, spinor<From> from,
                            int64_t n) {
  const int64_t i = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (i < n) copy_column_site(a, to, from, i);
}

template <class To, class From>
void copy_launch(cudaStream_t stream, const qk_column_copy_args_t &a) {
  const int64_t n = copy_columns(a);
  const unsigned blocks = (unsigned)((n + threads - 1) / threads);
  copy_kernel<<<blocks, threads, 0, stream>>>(a, spinor_of<To>(a.to), spinor_of<From>(a.from), n);
}
template <class To> void copy_from(cudaStream_t stream, const qk_column_copy_args_t &a) {
  if (a.from.prec == QK_DOUBLE) return copy_launch<To, double>(stream, a);
  if (a.from.prec == QK_SINGLE) return copy_launch<To, float>(stream, a);
  copy_launch<To, half>(stream, a);
}

template <class S>
__global__ void noise_kernel(const qk_noise_args_t a, spinor<S> f, int64_t sites) {
  const int64_t n = (int64_t)blockIdx.x * threads + threadIdx.x;
  if (n < sites) noise_pair(a, f, n, (int)blockIdx.y);
}

/* Launches the kernel of the field's storage type over all local sites, n threads each. */
#define LAUNCH(kernel, ctx, a, n)                                                                  \
  do {                                                                                             \
    const int64_t all = 2 * (int64_t)(a)->lat.vcb * (n);                                           \
    const unsigned blocks = (unsigned)((all + threads - 1) / threads);                             \
    cudaStream_t stream = qk_gpu(ctx)->stream[0];                                                  \
    switch ((a)->field.prec) {                                                                     \
    case QK_DOUBLE:                                                                                \
      kernel<<<blocks, threads, 0, stream>>>(*(a), spinor_of<double>((a)->field), all);            \
      break;                                                                                       \
    case QK_SINGLE:                                                                                \
      kernel<<<blocks, threads, 0, stream>>>(*(a), spinor_of<float>((a)->field), all);             \
      break;                                                                                       \
    case QK_HALF:                                                                                  \
      kernel<<<blocks, threads, 0, stream>>>(*(a), spinor_of<half>((a)->field), all);              \
      break;                                                                                       \
    }                                                                                              \
  } while (0)

} // namespace

qk_status_t column_import(qk_ops_ctx_t *ctx, const qk_column_args_t *a) {
  const qk_status_t status = qk_args_column(ctx, a);
  if (status != QK_OK) return status;
  LAUNCH(import_kernel, ctx, a, a->n);
  return qk_gpu_launched(ctx, "column_import");
}

qk_status_t column_export(qk_ops_ctx_t *ctx, const qk_column_args_t *a) {
  const qk_status_t status = qk_args_column(ctx, a);
  if (status != QK_OK) return status;
  LAUNCH(export_kernel, ctx, a, a->n);
  return qk_gpu_launched(ctx, "column_export");
}

qk_status_t column_copy(qk_ops_ctx_t *ctx, const qk_column_copy_args_t *a) {
  const qk_status_t status = qk_args_column_copy(ctx, a);
  if (status != QK_OK) return status;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a->to.prec == QK_DOUBLE)
    copy_from<double>(stream, *a);
  else if (a->to.prec == QK_SINGLE)
    copy_from<float>(stream, *a);
  else
    copy_from<half>(stream, *a);
  return qk_gpu_launched(ctx, "column_copy");
}

qk_status_t source(qk_ops_ctx_t *ctx, const qk_source_args_t *a) {
  const qk_status_t status = qk_args_source(ctx, a);
  if (status != QK_OK) return status;
  LAUNCH(source_kernel, ctx, a, 1);
  return qk_gpu_launched(ctx, "source");
}

qk_status_t noise(qk_ops_ctx_t *ctx, const qk_noise_args_t *a) {
  const qk_status_t status = qk_args_noise(ctx, a);
  if (status != QK_OK) return status;
  const int64_t sites = 2 * (int64_t)a->lat.vcb;
  const dim3 grid((unsigned)((sites + threads - 1) / threads), (unsigned)a->field.ncomp / 2);
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  if (a->field.prec == QK_DOUBLE)
    noise_kernel<<<grid, threads, 0, stream>>>(*a, spinor_of<double>(a->field), sites);
  else
    noise_kernel<<<grid, threads, 0, stream>>>(*a, spinor_of<float>(a->field), sites);
  return qk_gpu_launched(ctx, "noise");
}

} // namespace QK_NS
