/*
 * Matrices of coarse operators on the GPU. Element by element: a block of threads a site. Inverse:
 * a block a site, the matrix in shared memory as far as it fits, else in memory of the call.
 * Products: tensor cores in double, a warp eight rows of a site's product.
 */
#include "cuda/args/mg_args.h"
#include "cuda/body/coarse_setup.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/gpu/mma_double.cuh"
#include "cuda/gpu/settle.cuh"
#include "cuda/gpu/team.cuh"

namespace QK_NS {
namespace {

constexpr int threads = block_team::size();

template <class F> __global__ void __launch_bounds__(threads) element_kernel(int n, F body) {
  for (int r = (int)threadIdx.x / 32; r < n; r += threads / 32)
    for (int c = (int)threadIdx.x % 32; c < n; c += 32) body.element((int)blockIdx.x, r, c);
}

template <class F> qk_status_t each_element(qk_ops_ctx_t *ctx, int nsites, int n, const F &body) {
  element_kernel<<<nsites, threads, 0, qk_gpu(ctx)->stream[0]>>>(n, body);
  const qk_status_t status = qk_gpu_launched(ctx, "coarse setup");
  return status == QK_OK ? qk_gpu_settle(ctx) : status;
}

/* The largest modulus of a part of the matrix; NaN if there is one. */
__device__ double largest_part(const double *re, const double *im, int count) {
  __shared__ double part[threads / 32];
  double top = 0;
  for (int i = (int)threadIdx.x; i < count; i += threads)
    top = larger(larger(top, fabs(re[i])), fabs(im[i]));
  for (int step = 16; step > 0; step /= 2) top = larger(top, __shfl_xor_sync(~0u, top, step));
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = top;
  __syncthreads();
  for (int w = 0; w < threads / 32; w++) top = larger(top, part[w]);
  return top;
}

__global__ void __launch_bounds__(threads)
    invert_kernel(qk_coarse_invert_args_t a, double *memory, int *singular) {
  extern __shared__ double shared[];
  __shared__ short pivots[QK_MG_N_MAX], from[QK_MG_N_MAX];
  const int n = a.diag.n;
  double *re = memory == NULL ? shared : memory + (int64_t)blockIdx.x * 2 * n * n;
  double *im = re + n * n;
  const block_team team;
  for (int s = (int)blockIdx.x; s < 2 * a.lat.vcb; s += (int)gridDim.x) {
    for (int r = team.row(); r < n; r += team.rows())
      for (int c = team.lane(); c < n; c += team.lanes()) {
        const dcx x = get_element(a.diag, s, 0, r, c);
        re[r * n + c] = x.re;
        im[r * n + c] = x.im;
      }
    __syncthreads();
    const double top = largest_part(re, im, n * n);
    const bool fine = invert_matrix(team, re, im, n, top, pivots);
    if (threadIdx.x == 0) {
      if (fine)
        columns_after(pivots, n, from);
      else
        atomicAdd(singular, 1);
    }
    __syncthreads();
    for (int r = team.row(); fine && r < n; r += team.rows())
      for (int c = team.lane(); c < n; c += team.lanes())
        put_element(a.inverse, s, 0, r, c, {re[r * n + from[c]], im[r * n + from[c]]});
    __syncthreads();
  }
}

/* Rows 8 * (warp of the block) of the product of direction blockIdx.y at site blockIdx.x. */
__global__ void times_kernel(qk_coarse_times_args_t a) {
  const int n = a.in.n, site = (int)blockIdx.x, d = (int)blockIdx.y;
  const int g = (int)threadIdx.x % 32 / 4, q = (int)threadIdx.x % 4;
  const int row = (int)threadIdx.x / 32 * 8 + g;
  for (int c0 = 0; c0 < n; c0 += 8) {
    double re[2] = {0, 0}, im[2] = {0, 0};
    for (int k = q; k < n; k += 4) {
      const dcx l = row < n ? get_element(a.left, site, 0, row, k) : dcx{0, 0};
      const dcx x = c0 + g < n ? get_element(a.in, site, d, k, c0 + g) : dcx{0, 0};
      mma_complex(re, im, l, x);
    }
    for (int j = 0; j < 2; j++) {
      const int c = c0 + 2 * q + j;
      if (row < n && c < n) put_element(a.out, site, d, row, c, {re[j], im[j]});
    }
  }
}

/* A warp has a row of the matrix of direction blockIdx.y at site blockIdx.x. */
__global__ void eight_kernel(qk_coarse_eight_args_t a) {
  const int n = a.links.n, site = (int)blockIdx.x, d = (int)blockIdx.y;
  const int64_t sites = 2 * (int64_t)a.lat.vcb;
  coarse_byte *to = (coarse_byte *)a.out + coarse_matrix(n, a.links.ndir, site, d);
  float *units = (float *)coarse_units(a.out, n, a.links.ndir, sites);
  for (int r = (int)threadIdx.x / 32; r < n; r += (int)blockDim.x / 32) {
    float top = 0;
    for (int c = (int)threadIdx.x % 32; c < n; c += 32) {
      const dcx x = get_element(a.links, site, d, r, c);
      top = fmaxf(top, fmaxf(fabsf((float)x.re), fabsf((float)x.im)));
    }
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    const float unit = top > 0 ? top / byte_most : 1;
    if (threadIdx.x % 32 == 0) units[coarse_unit_at(n, a.links.ndir, site, d) + r] = unit;
    for (int c = (int)threadIdx.x % 32; c < n; c += 32) {
      const dcx x = get_element(a.links, site, d, r, c);
      const double part[2] = {x.re, x.im};
      for (int im = 0; im < 2; im++) {
        const int whole = (int)rintf((float)part[im] / unit) + byte_zero;
        to[coarse_byte_at(n, r, c, im)].w = (uint8_t)whole;
      }
    }
  }
}

} // namespace
} // namespace QK_NS

#include "cuda/body/coarse_setup_calls.h"

namespace QK_NS {

qk_status_t coarse_invert(qk_ops_ctx_t *ctx, const qk_coarse_invert_args_t *a) {
  const size_t most_shared = qk_gpu(ctx)->shared_room;
  qk_status_t status = qk_args_coarse_invert(ctx, a);
  if (status != QK_OK) return status;
  const size_t matrix = sizeof(double) * 2 * (size_t)a->diag.n * (size_t)a->diag.n;
  const bool fits = matrix <= most_shared;
  const int sites = 2 * a->lat.vcb, resident = 2 * qk_gpu(ctx)->multiprocessors;
  const int blocks = fits || sites < resident ? sites : resident;
  cudaStream_t stream = qk_gpu(ctx)->stream[0];
  int *count = (int *)qk_gpu(ctx)->partial, found = 0;
  void *memory = NULL;
  if (!fits) status = qk_gpu_memory::alloc(ctx, matrix * (size_t)blocks, &memory);
  if (status == QK_OK)
    status = qk_gpu_check(ctx,
                          cudaFuncSetAttribute(invert_kernel,
                                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                                               (int)most_shared),
                          "cudaFuncSetAttribute");
  if (status == QK_OK)
    status = qk_gpu_check(ctx, cudaMemsetAsync(count, 0, sizeof *count, stream), "cudaMemsetAsync");
  if (status == QK_OK) {
    invert_kernel<<<blocks, threads, fits ? matrix : 0, stream>>>(*a, (double *)memory, count);
    status = qk_gpu_launched(ctx, "coarse_invert");
  }
  if (status == QK_OK)
    status = qk_gpu_check(
        ctx, cudaMemcpyAsync(&found, count, sizeof found, cudaMemcpyDeviceToHost, stream),
        "cudaMemcpyAsync");
  if (status == QK_OK)
    status = qk_gpu_check(ctx, cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  qk_gpu_memory::free(ctx, memory);
  if (status == QK_OK) *a->singular = found;
  return status;
}

qk_status_t coarse_eight(qk_ops_ctx_t *ctx, const qk_coarse_eight_args_t *a) {
  qk_status_t status = qk_args_coarse_eight(ctx, a);
  if (status != QK_OK) return status;
  const dim3 grid((unsigned)(2 * a->lat.vcb), (unsigned)a->links.ndir);
  eight_kernel<<<grid, threads, 0, qk_gpu(ctx)->stream[0]>>>(*a);
  status = qk_gpu_launched(ctx, "coarse_eight");
  return status == QK_OK ? qk_gpu_settle(ctx) : status;
}

qk_status_t coarse_times(qk_ops_ctx_t *ctx, const qk_coarse_times_args_t *a) {
  qk_status_t status = qk_args_coarse_times(ctx, a);
  if (status != QK_OK) return status;
  const int sites = 2 * a->lat.vcb, n = a->in.n;
  if (a->left.data == NULL) return each_element(ctx, sites, n, converted{a->in, a->out, a->twist});
  const dim3 grid((unsigned)sites, (unsigned)a->in.ndir);
  times_kernel<<<grid, 32 * ((n + 7) / 8), 0, qk_gpu(ctx)->stream[0]>>>(*a);
  status = qk_gpu_launched(ctx, "coarse_times");
  return status == QK_OK ? qk_gpu_settle(ctx) : status;
}

} // namespace QK_NS
