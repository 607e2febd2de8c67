/* Memory that other ranks write into, flags and sums between ranks (cuda/peer_ops.h). */
#include <string.h>

#include "cuda/args/peer_args.h"
#include "cuda/body/peer.h"
#include "cuda/gpu/ctx.cuh"
#include "cuda/kernels.h"

namespace {

/* A handle exposes the whole block that cudaMalloc took memory from: ours are whole ones. */
constexpr size_t block = 2 << 20;

} // namespace

qk_status_t qk_gpu_memory::peer_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr,
                                      qk_peer_handle_t *handle) {
  void *p = NULL;
  cudaIpcMemHandle_t ipc;
  static_assert(sizeof ipc <= sizeof handle->bytes, "a handle has room for that of CUDA");
  qk_status_t status = alloc(ctx, (bytes + block - 1) / block * block, &p);
  if (status != QK_OK) return status;
  status = qk_gpu_check(ctx, cudaMemset(p, 0, bytes), "cudaMemset");
  if (status == QK_OK) status = qk_gpu_check(ctx, cudaDeviceSynchronize(), "cudaMemset");
  const cudaError_t code = status == QK_OK ? cudaIpcGetMemHandle(&ipc, p) : cudaSuccess;
  if (code != cudaSuccess) {
    cudaGetLastError();
    status = qk_ctx_fail(ctx, QK_UNSUPPORTED, "cudaIpcGetMemHandle: %s", cudaGetErrorString(code));
  }
  if (status != QK_OK) {
    free(ctx, p);
    return status;
  }
  *handle = {};
  memcpy(handle->bytes, &ipc, sizeof ipc);
  *ptr = p;
  return QK_OK;
}

void qk_gpu_memory::peer_free(qk_ops_ctx_t *ctx, void *ptr) {
  free(ctx, ptr);
}

qk_status_t qk_gpu_memory::peer_open(qk_ops_ctx_t *ctx, const qk_peer_handle_t *handle,
                                     void **ptr) {
  cudaIpcMemHandle_t ipc;
  memcpy(&ipc, handle->bytes, sizeof ipc);
  const cudaError_t code = cudaIpcOpenMemHandle(ptr, ipc, cudaIpcMemLazyEnablePeerAccess);
  if (code == cudaSuccess) return QK_OK;
  cudaGetLastError();
  return qk_ctx_fail(ctx, QK_UNSUPPORTED, "cudaIpcOpenMemHandle: %s", cudaGetErrorString(code));
}

void qk_gpu_memory::peer_close(qk_ops_ctx_t *ctx, void *ptr) {
  if (ptr != NULL) qk_gpu_check(ctx, cudaIpcCloseMemHandle(ptr), "cudaIpcCloseMemHandle");
}

namespace QK_NS {
namespace {

__device__ void store_flag(uint32_t *flag, uint32_t value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

__device__ uint32_t load_flag(const uint32_t *flag) {
  uint32_t value;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(flag) : "memory");
  return value;
}

__device__ uint64_t now() {
  uint64_t t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}

/* Until the flag says `epoch` or a later one. Once one wait has been too long, none waits. */
__device__ void wait_for(const uint32_t *flag, uint32_t epoch, uint64_t nanoseconds,
                         volatile uint32_t *late) {
  const uint64_t start = now();
  for (unsigned tries = 1; !has_arrived(load_flag(flag), epoch); tries++) {
    if (tries % 1024 != 0) continue;
    if (*late != 0) return;
    if (now() - start > nanoseconds) {
      *late = 1;
      __threadfence_system();
      return;
    }
    __nanosleep(50);
  }
}

__global__ void signal_kernel(const __grid_constant__ qk_signal_args_t a) {
  if ((int)threadIdx.x < a.n) store_flag(a.flag[threadIdx.x], *a.epoch + 1);
}

__global__ void await_kernel(const __grid_constant__ qk_signal_args_t a, uint32_t *late) {
  const uint32_t epoch = *a.epoch + 1;
  if ((int)threadIdx.x < a.n)
    wait_for(a.flag[threadIdx.x], epoch, (uint64_t)(1e9 * a.seconds), late);
  __syncthreads();
  if (threadIdx.x == 0) *a.epoch = epoch;
}

constexpr int sum_threads = 256;

__global__ void __launch_bounds__(sum_threads)
    peer_sum_kernel(const __grid_constant__ qk_peer_sum_args_t a, uint32_t *late) {
  const uint32_t epoch = *a.epoch + 1;
  const int thread = (int)threadIdx.x;
  for (int r = 0; r < a.ranks; r++)
    for (int i = thread; i < a.n; i += sum_threads) sum_slot(a, r, a.rank, epoch)[i] = a.v[i];
  __threadfence_system();
  __syncthreads();
  if (thread < a.ranks) {
    store_flag(sum_flag(a, thread, a.rank), epoch);
    wait_for(sum_flag(a, a.rank, thread), epoch, (uint64_t)(1e9 * a.seconds), late);
  }
  __syncthreads();
  for (int i = thread; i < a.n; i += sum_threads) {
    double sum = 0;
    for (int r = 0; r < a.ranks; r++) sum += __ldcg(sum_slot(a, a.rank, r, epoch) + i);
    a.v[i] = sum;
  }
  if (thread == 0) *a.epoch = epoch;
}

} // namespace

qk_status_t signal(qk_ops_ctx_t *ctx, const qk_signal_args_t *args) {
  const qk_status_t status = qk_args_signal(ctx, args);
  if (status != QK_OK) return status;
  signal_kernel<<<1, 32, 0, qk_gpu(ctx)->stream[0]>>>(*args);
  return qk_gpu_launched(ctx, "signal");
}

qk_status_t await(qk_ops_ctx_t *ctx, const qk_signal_args_t *args) {
  const qk_status_t status = qk_args_signal(ctx, args);
  if (status != QK_OK) return status;
  await_kernel<<<1, 32, 0, qk_gpu(ctx)->stream[0]>>>(*args, qk_gpu(ctx)->late);
  return qk_gpu_launched(ctx, "await");
}

qk_status_t peer_sum(qk_ops_ctx_t *ctx, const qk_peer_sum_args_t *args) {
  const qk_status_t status = qk_args_peer_sum(ctx, args);
  if (status != QK_OK) return status;
  peer_sum_kernel<<<1, sum_threads, 0, qk_gpu(ctx)->stream[0]>>>(*args, qk_gpu(ctx)->late);
  return qk_gpu_launched(ctx, "peer_sum");
}

} // namespace QK_NS
