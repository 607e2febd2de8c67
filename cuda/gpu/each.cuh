/*
 * each.cuh: bodies that work on one site at a time, on the GPU: a thread a site. The launchers that
 * body/gauge_calls.h and body/linkfield_calls.h are written over.
 */
#ifndef QK_CUDA_GPU_EACH_CUH
#define QK_CUDA_GPU_EACH_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/site/geom.h"

namespace QK_NS {
namespace {

constexpr int threads = 64;

template <class F> __global__ void __launch_bounds__(threads) each_kernel(int nsites, F body) {
  const int s = (int)(blockIdx.x * threads + threadIdx.x);
  if (s < nsites) body.site(s);
}

/* Each block joins its stride of the sites into one row of partial[blocks][n]. */
template <class F>
__global__ void __launch_bounds__(threads) reduce_kernel(int nsites, F body, double *partial) {
  __shared__ double shared[threads][F::n];
  double sum[F::n], v[F::n];
  for (int k = 0; k < F::n; k++) sum[k] = 0;
  for (int64_t s = blockIdx.x * threads + threadIdx.x; s < nsites; s += gridDim.x * threads) {
    body.site((int)s, v);
    F::join(sum, v);
  }
  for (int k = 0; k < F::n; k++) shared[threadIdx.x][k] = sum[k];
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int t = 1; t < threads; t++) F::join(sum, shared[t]);
  for (int k = 0; k < F::n; k++) partial[blockIdx.x * F::n + k] = sum[k];
}

template <class F> qk_status_t each_site(qk_ops_ctx_t *ctx, int nsites, const F &body) {
  each_kernel<<<(nsites + threads - 1) / threads, threads, 0, qk_gpu(ctx)->stream[0]>>>(nsites,
                                                                                        body);
  return qk_gpu_launched(ctx, "gauge");
}

template <class F>
qk_status_t reduce_sites(qk_ops_ctx_t *ctx, int nsites, const F &body, double *sum) {
  constexpr int most = 512;
  double partial[most * F::n];
  const int blocks = nsites < most * threads ? (nsites + threads - 1) / threads : most;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  reduce_kernel<<<blocks, threads, 0, stream>>>(nsites, body, qk_gpu(ctx)->partial);
  qk_status_t status = qk_gpu_launched(ctx, "gauge reduction");
  if (status == QK_OK)
    status = qk_gpu_check(ctx,
                          cudaMemcpyAsync(partial, qk_gpu(ctx)->partial,
                                          sizeof(double) * (size_t)(blocks * F::n),
                                          cudaMemcpyDeviceToHost, stream),
                          "cudaMemcpyAsync");
  if (status == QK_OK)
    status = qk_gpu_check(ctx, cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  if (status != QK_OK) return status;
  for (int i = 0; i < blocks; i++) F::join(sum, partial + i * F::n);
  return QK_OK;
}

} // namespace
} // namespace QK_NS
#endif
