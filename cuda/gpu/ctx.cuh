/*
 * gpu/ctx.cuh: the CUDA backend's context: a stream for each queue (ops.h), and scratch
 * memory for reductions. Every CUDA call goes through qk_gpu_check; kernels end with
 * qk_gpu_launched.
 */
#ifndef QK_CUDA_GPU_CTX_CUH
#define QK_CUDA_GPU_CTX_CUH

#include <cuda_runtime.h>

#include "cuda/ctx.h"

/* Reductions use at most this many blocks along the lattice, whatever the device: a sum's order
 * depends on the lattice only. QK_GPU_MULTI: fields that one pass of multi_dot takes. */
enum { QK_GPU_BLOCKS = 2048, QK_GPU_MULTI = 8 };

struct qk_gpu_ctx {
  qk_ops_ctx base;
  cudaStream_t stream[QK_QUEUES];
  cudaEvent_t event[QK_QUEUES]; /* event[q]: the point of queue q that another one waits for */
  /* Partial sums [RHS tile][result][block][lane][2] between the two passes of a reduction. */
  double *partial;
  /* Per RHS tile, or field and tile (QK_MULTI_MAX of each): blocks of the running reduction that
   * have left theirs; 0 between kernels. */
  unsigned *arrived;
  /* Pinned; set by a kernel that has waited too long for another rank (peer.cu). */
  uint32_t *late;
  int device, multiprocessors;
  int arch;           /* compute capability of the code that runs: 80 for 8.0 (arch.cuh) */
  bool by_driver;     /* the driver compiled that code for this card */
  size_t shared_room; /* bytes of shared memory for a block that takes what it can get */
};

inline qk_gpu_ctx *qk_gpu(qk_ops_ctx_t *ctx) {
  return reinterpret_cast<qk_gpu_ctx *>(ctx);
}

/* QK_OK, or QK_DEVICE_ERROR with "what: CUDA's text" in last_error. */
qk_status_t qk_gpu_check(qk_ops_ctx_t *ctx, cudaError_t code, const char *what);

/* The error of the launch just made. */
inline qk_status_t qk_gpu_launched(qk_ops_ctx_t *ctx, const char *kernel) {
  return qk_gpu_check(ctx, cudaGetLastError(), kernel);
}

/* QK_COMM_ERROR if a kernel has waited too long for another rank. */
qk_status_t qk_gpu_in_time(qk_ops_ctx_t *ctx);

/* The memory and queue entries of the table (ops.h). */
struct qk_gpu_memory {
  static qk_status_t count(int *count, qk_err_t *err);
  static qk_status_t open(int device, qk_ops_ctx_t **ctx, qk_err_t *err);
  static void close(qk_ops_ctx_t *ctx);
  static qk_status_t info(qk_ops_ctx_t *ctx, qk_device_info_t *info);
  static qk_status_t alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr);
  static void free(qk_ops_ctx_t *ctx, void *ptr);
  static qk_status_t alloc_host(qk_ops_ctx_t *ctx, size_t bytes, void **ptr);
  static void free_host(qk_ops_ctx_t *ctx, void *ptr);
  static qk_status_t peer_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr,
                                qk_peer_handle_t *handle);
  static void peer_free(qk_ops_ctx_t *ctx, void *ptr);
  static qk_status_t peer_open(qk_ops_ctx_t *ctx, const qk_peer_handle_t *handle, void **ptr);
  static void peer_close(qk_ops_ctx_t *ctx, void *ptr);
  static qk_status_t copy(qk_ops_ctx_t *ctx, void *dst, const void *src, size_t bytes,
                          qk_copy_t kind, int queue);
  static qk_status_t zero(qk_ops_ctx_t *ctx, void *dst, size_t bytes, int queue);
  static qk_status_t queue_wait(qk_ops_ctx_t *ctx, int waiter, int on);
  static qk_status_t queue_sync(qk_ops_ctx_t *ctx, int queue);
  static qk_status_t queue_idle(qk_ops_ctx_t *ctx, int queue, bool *idle);
  static qk_status_t graph_begin(qk_ops_ctx_t *ctx);
  static qk_status_t graph_end(qk_ops_ctx_t *ctx, qk_graph_t **graph);
  static qk_status_t graph_launch(qk_ops_ctx_t *ctx, qk_graph_t *graph);
  static void graph_destroy(qk_ops_ctx_t *ctx, qk_graph_t *graph);
};

#endif
