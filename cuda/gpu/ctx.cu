#include "cuda/gpu/ctx.cuh"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/gpu/arch.cuh"

namespace {

/* Which code of this build a device can run is asked of this kernel. */
__global__ void probe() {}

/* Most shared memory that a block takes. More would leave fewer blocks on a multiprocessor. */
constexpr size_t most_shared = 200 << 10;

/* A GPU makes the copies of a direction one by one, in the order in which they were asked for on
 * any queue: the few numbers that a solver waits for would stand behind all fields on their way. A
 * kernel that copies them does not. */
constexpr size_t few_bytes = 64 << 10;

template <class Word> __global__ void copy_kernel(Word *dst, const Word *src, size_t n) {
  const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) dst[i] = src[i];
}

template <class Word> void copy_few(void *dst, const void *src, size_t bytes, cudaStream_t stream) {
  const size_t n = bytes / sizeof(Word);
  copy_kernel<<<(unsigned)((n + 255) / 256), 256, 0, stream>>>((Word *)dst, (const Word *)src, n);
}

/* Whether kernels can read and write there, as in memory of alloc_host. */
bool is_pinned(const void *host) {
  cudaPointerAttributes attributes;
  if (cudaPointerGetAttributes(&attributes, host) == cudaSuccess)
    return attributes.type == cudaMemoryTypeHost && attributes.devicePointer == host;
  cudaGetLastError();
  return false;
}

bool is_queue(int queue) {
  return queue >= 0 && queue < QK_QUEUES;
}

qk_status_t no_device(qk_err_t *err, int device, const char *what, cudaError_t code) {
  cudaGetLastError();
  return qk_fail(err, QK_NO_DEVICE, "device %d: %s: %s", device, what, cudaGetErrorString(code));
}

/* No driver, or no card: QK_NO_DEVICE; a driver that is too old: QK_UNSUPPORTED. */
qk_status_t no_devices(qk_err_t *err, int device, cudaError_t code) {
  int driver = 0, runtime = 0;
  if (code != cudaErrorInsufficientDriver || cudaDriverGetVersion(&driver) != cudaSuccess ||
      driver == 0 || cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return no_device(err, device, "cudaGetDeviceCount", code);
  cudaGetLastError();
  return qk_fail(err, QK_UNSUPPORTED,
                 "device %d: the driver is of CUDA %d.%d, this build of CUDA %d.%d: update the "
                 "driver, or build with an older toolkit",
                 device, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
}

/* What code a device, which is current, will run. QK_UNSUPPORTED if this build has none for it. */
qk_status_t find_code(qk_gpu_ctx *gpu, qk_err_t *err) {
  cudaFuncAttributes attributes = {};
  cudaDeviceProp card;
  cudaError_t code = cudaGetDeviceProperties(&card, gpu->device);
  if (code != cudaSuccess) return no_device(err, gpu->device, "cudaGetDeviceProperties", code);
  gpu->multiprocessors = card.multiProcessorCount;
  code = cudaFuncGetAttributes(&attributes, probe);
  const bool none = code == cudaErrorNoKernelImageForDevice || code == cudaErrorInvalidPtx ||
                    code == cudaErrorUnsupportedPtxVersion || code == cudaErrorJitCompilerNotFound;
  if (code != cudaSuccess && !none)
    return no_device(err, gpu->device, "looking for its kernels", code);
  gpu->arch = attributes.ptxVersion;
  gpu->by_driver = attributes.binaryVersion != attributes.ptxVersion;
  const size_t shared = card.sharedMemPerBlockOptin;
  if (none || shared < (size_t)QK_NS::shared_kilobytes(gpu->arch) << 10) {
    cudaGetLastError();
    return qk_fail(err, QK_UNSUPPORTED,
                   "device %d (%s, compute capability %d.%d): this build has no code for it, only "
                   "for " QK_GPU_ARCHS ": build with -Dgpu_archs=native on a machine with this "
                   "card, which must be of compute capability 8.0 or more",
                   gpu->device, card.name, card.major, card.minor);
  }
  gpu->shared_room = QK_NS::shared_kilobytes(gpu->arch) << 10;
  if (gpu->shared_room > most_shared) gpu->shared_room = most_shared;
  return QK_OK;
}

/* Streams, events and scratch of a context whose device is current. */
cudaError_t set_up(qk_gpu_ctx *gpu) {
  for (int q = 0; q < QK_QUEUES; q++) {
    cudaError_t code = cudaStreamCreateWithFlags(&gpu->stream[q], cudaStreamNonBlocking);
    if (code == cudaSuccess)
      code = cudaEventCreateWithFlags(&gpu->event[q], cudaEventDisableTiming);
    if (code != cudaSuccess) return code;
  }
  const size_t tiles = QK_MAX_RHS / QK_TILE, most_tiles = QK_COLUMNS_MAX / QK_TILE;
  const size_t most_arrived = QK_MULTI_MAX * most_tiles * sizeof *gpu->arrived;
  cudaError_t code = cudaMalloc(&gpu->arrived, most_arrived);
  if (code == cudaSuccess) code = cudaMemsetAsync(gpu->arrived, 0, most_arrived, gpu->stream[0]);
  if (code != cudaSuccess) return code;
  code = cudaHostAlloc(&gpu->late, sizeof *gpu->late, cudaHostAllocDefault);
  if (code != cudaSuccess) return code;
  *gpu->late = 0;
  const size_t lines = QK_GPU_MULTI * tiles * QK_GPU_BLOCKS;
  return cudaMalloc(&gpu->partial, lines * QK_TILE * 2 * sizeof(double));
}

} // namespace

qk_status_t qk_gpu_check(qk_ops_ctx_t *ctx, cudaError_t code, const char *what) {
  if (code == cudaSuccess) return QK_OK;
  return qk_ctx_fail(ctx, QK_DEVICE_ERROR, "%s: %s (%s)", what, cudaGetErrorString(code),
                     cudaGetErrorName(code));
}

qk_status_t qk_gpu_in_time(qk_ops_ctx_t *ctx) {
  if (*(volatile uint32_t *)qk_gpu(ctx)->late == 0) return QK_OK;
  return qk_ctx_fail(ctx, QK_COMM_ERROR,
                     "another rank did not send in time: it has ended, or hangs");
}

qk_status_t qk_gpu_memory::count(int *count, qk_err_t *err) {
  const cudaError_t code = cudaGetDeviceCount(count);
  return code == cudaSuccess ? QK_OK : no_devices(err, 0, code);
}

qk_status_t qk_gpu_memory::open(int device, qk_ops_ctx_t **ctx, qk_err_t *err) {
  int count = 0;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code != cudaSuccess) return no_devices(err, device, code);
  if (device < 0 || device >= count)
    return qk_fail(err, QK_NO_DEVICE, "device = %d: this machine has %d (counted from 0)", device,
                   count);
  if ((code = cudaSetDevice(device)) != cudaSuccess)
    return no_device(err, device, "cudaSetDevice", code);

  qk_gpu_ctx *gpu = (qk_gpu_ctx *)calloc(1, sizeof *gpu);
  if (gpu == NULL)
    return qk_fail(err, QK_NO_MEMORY, "cuda context: no memory for %zu bytes", sizeof *gpu);
  gpu->device = device;
  const qk_status_t status = find_code(gpu, err);
  if (status != QK_OK) {
    ::free(gpu);
    return status;
  }
  if ((code = set_up(gpu)) != cudaSuccess) {
    qk_gpu_memory::close(&gpu->base);
    return no_device(err, device, "setting up streams and scratch memory", code);
  }
  *ctx = &gpu->base;
  return QK_OK;
}

/* Failures cannot be handed on here and, after a lost device, all these calls fail: they are
 * ignored. */
void qk_gpu_memory::close(qk_ops_ctx_t *ctx) {
  if (ctx == NULL) return;
  qk_gpu_ctx *gpu = qk_gpu(ctx);
  cudaSetDevice(gpu->device);
  for (int q = 0; q < QK_QUEUES; q++) {
    if (gpu->stream[q] != NULL) {
      cudaStreamSynchronize(gpu->stream[q]);
      cudaStreamDestroy(gpu->stream[q]);
    }
    if (gpu->event[q] != NULL) cudaEventDestroy(gpu->event[q]);
  }
  cudaFree(gpu->partial);
  cudaFree(gpu->arrived);
  cudaFreeHost(gpu->late);
  cudaGetLastError();
  qk_ctx_fini(ctx);
  ::free(gpu);
}

qk_status_t qk_gpu_memory::info(qk_ops_ctx_t *ctx, qk_device_info_t *info) {
  const qk_gpu_ctx *gpu = qk_gpu(ctx);
  cudaDeviceProp properties;
  size_t memory_free = 0, memory_total = 0;
  qk_status_t status =
      qk_gpu_check(ctx, cudaGetDeviceProperties(&properties, gpu->device), "device properties");
  if (status == QK_OK)
    status = qk_gpu_check(ctx, cudaMemGetInfo(&memory_free, &memory_total), "memory info");
  if (status != QK_OK) return status;
  memset(info, 0, sizeof *info);
  snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, properties.name);
  snprintf(info->bus, sizeof info->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
           properties.pciBusID, properties.pciDeviceID);
  info->memory_total = (int64_t)memory_total;
  info->memory_free = (int64_t)memory_free;
  info->threads = gpu->multiprocessors;
  snprintf(info->code, sizeof info->code, "%d.%d%s", gpu->arch / 10, gpu->arch % 10,
           gpu->by_driver ? ", compiled by the driver" : "");
  return QK_OK;
}

qk_status_t qk_gpu_memory::alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  void *p = NULL;
  cudaError_t code = cudaMalloc(&p, bytes > 0 ? bytes : 1);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY,
                       "alloc of %zu bytes: no device memory (%lld bytes held)", bytes,
                       (long long)ctx->allocated);
  }
  if (code != cudaSuccess) return qk_gpu_check(ctx, code, "cudaMalloc");
  qk_ctx_hold(ctx, p, bytes);
  *ptr = p;
  return QK_OK;
}

void qk_gpu_memory::free(qk_ops_ctx_t *ctx, void *ptr) {
  if (ptr == NULL) return;
  qk_ctx_release(ctx, ptr);
  qk_gpu_check(ctx, cudaFree(ptr), "cudaFree");
}

qk_status_t qk_gpu_memory::alloc_host(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = qk_ctx_reserve(ctx, bytes);
  if (status != QK_OK) return status;
  void *p = NULL;
  cudaError_t code = cudaHostAlloc(&p, bytes > 0 ? bytes : 1, cudaHostAllocDefault);
  if (code == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "alloc_host of %zu bytes: no pinned memory", bytes);
  }
  if (code != cudaSuccess) return qk_gpu_check(ctx, code, "cudaHostAlloc");
  *ptr = p;
  return QK_OK;
}

void qk_gpu_memory::free_host(qk_ops_ctx_t *ctx, void *ptr) {
  if (ptr != NULL) qk_gpu_check(ctx, cudaFreeHost(ptr), "cudaFreeHost");
}

qk_status_t qk_gpu_memory::copy(qk_ops_ctx_t *ctx, void *dst, const void *src, size_t bytes,
                                qk_copy_t kind, int queue) {
  static const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost,
                                         cudaMemcpyDeviceToDevice};
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "copy: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
  cudaStream_t stream = qk_gpu(ctx)->stream[queue];
  if (bytes == 0 || bytes > few_bytes || kind == QK_COPY_DEVICE ||
      !is_pinned(kind == QK_COPY_TO_HOST ? dst : src))
    return qk_gpu_check(ctx, cudaMemcpyAsync(dst, src, bytes, kinds[kind], stream),
                        "cudaMemcpyAsync");
  if (((uintptr_t)dst | (uintptr_t)src | bytes) % sizeof(uint4) == 0)
    copy_few<uint4>(dst, src, bytes, stream);
  else
    copy_few<char>(dst, src, bytes, stream);
  return qk_gpu_launched(ctx, "copy");
}

qk_status_t qk_gpu_memory::zero(qk_ops_ctx_t *ctx, void *dst, size_t bytes, int queue) {
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "zero: queue = %d: 0 to %d", queue, QK_QUEUES - 1);
  return qk_gpu_check(ctx, cudaMemsetAsync(dst, 0, bytes, qk_gpu(ctx)->stream[queue]),
                      "cudaMemsetAsync");
}

qk_status_t qk_gpu_memory::queue_wait(qk_ops_ctx_t *ctx, int waiter, int on) {
  if (!is_queue(waiter) || !is_queue(on))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_wait: queues %d, %d: 0 to %d", waiter, on,
                       QK_QUEUES - 1);
  if (waiter == on) return QK_OK;
  qk_gpu_ctx *gpu = qk_gpu(ctx);
  qk_status_t status =
      qk_gpu_check(ctx, cudaEventRecord(gpu->event[on], gpu->stream[on]), "cudaEventRecord");
  if (status != QK_OK) return status;
  return qk_gpu_check(ctx, cudaStreamWaitEvent(gpu->stream[waiter], gpu->event[on], 0),
                      "cudaStreamWaitEvent");
}

qk_status_t qk_gpu_memory::queue_sync(qk_ops_ctx_t *ctx, int queue) {
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_sync: queue = %d: 0 to %d", queue,
                       QK_QUEUES - 1);
  const qk_status_t status =
      qk_gpu_check(ctx, cudaStreamSynchronize(qk_gpu(ctx)->stream[queue]), "cudaStreamSynchronize");
  return status != QK_OK ? status : qk_gpu_in_time(ctx);
}

qk_status_t qk_gpu_memory::queue_idle(qk_ops_ctx_t *ctx, int queue, bool *idle) {
  if (!is_queue(queue))
    return qk_ctx_fail(ctx, QK_BAD_ARGUMENT, "queue_idle: queue = %d: 0 to %d", queue,
                       QK_QUEUES - 1);
  const cudaError_t code = cudaStreamQuery(qk_gpu(ctx)->stream[queue]);
  *idle = code == cudaSuccess;
  if (code == cudaSuccess) return qk_gpu_in_time(ctx);
  if (code != cudaErrorNotReady) return qk_gpu_check(ctx, code, "cudaStreamQuery");
  cudaGetLastError();
  return QK_OK;
}

/* ---- graphs ---- */

struct qk_graph {
  cudaGraphExec_t exec;
};

qk_status_t qk_gpu_memory::graph_begin(qk_ops_ctx_t *ctx) {
  return qk_gpu_check(
      ctx, cudaStreamBeginCapture(qk_gpu(ctx)->stream[0], cudaStreamCaptureModeThreadLocal),
      "cudaStreamBeginCapture");
}

qk_status_t qk_gpu_memory::graph_end(qk_ops_ctx_t *ctx, qk_graph_t **graph) {
  cudaGraph_t recorded = NULL;
  qk_status_t status = qk_gpu_check(ctx, cudaStreamEndCapture(qk_gpu(ctx)->stream[0], &recorded),
                                    "cudaStreamEndCapture");
  if (status != QK_OK) return status;
  qk_graph_t *g = (qk_graph_t *)calloc(1, sizeof *g);
  if (g == NULL)
    status = qk_ctx_fail(ctx, QK_NO_MEMORY, "no memory for %zu bytes of a graph", sizeof *g);
  else
    status = qk_gpu_check(ctx, cudaGraphInstantiate(&g->exec, recorded, 0), "cudaGraphInstantiate");
  cudaGraphDestroy(recorded);
  if (status != QK_OK) {
    ::free(g);
    return status;
  }
  *graph = g;
  return QK_OK;
}

qk_status_t qk_gpu_memory::graph_launch(qk_ops_ctx_t *ctx, qk_graph_t *graph) {
  return qk_gpu_check(ctx, cudaGraphLaunch(graph->exec, qk_gpu(ctx)->stream[0]), "cudaGraphLaunch");
}

void qk_gpu_memory::graph_destroy(qk_ops_ctx_t *ctx, qk_graph_t *graph) {
  if (graph == NULL) return;
  qk_gpu_check(ctx, cudaGraphExecDestroy(graph->exec), "cudaGraphExecDestroy");
  ::free(graph);
}
