/*
 * cpu/ctx.h: the CPU backend's context. "Device" memory is host memory aligned to 256 bytes; queues
 * are always idle, since every call is done when it returns.
 */
#ifndef QK_CUDA_CPU_CTX_H
#define QK_CUDA_CPU_CTX_H

#include "cuda/ctx.h"

/* Reductions are cut into at most this many chunks, whatever the number of threads. */
enum { QK_CPU_CHUNKS = 256 };

/* Doubles a chunk: QK_MULTI_MAX complex results for each column. */
enum { QK_CPU_PARTIALS = QK_MULTI_MAX * 2 * QK_COLUMNS_MAX };

struct qk_cpu_ctx {
  qk_ops_ctx base;
  /* Partial sums, [QK_CPU_CHUNKS][QK_CPU_PARTIALS], between the two passes of a reduction. */
  double *partial;
};

inline qk_cpu_ctx *qk_cpu(qk_ops_ctx_t *ctx) {
  return reinterpret_cast<qk_cpu_ctx *>(ctx);
}

/* The memory and queue entries of the table (ops.h). */
struct qk_cpu_memory {
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
