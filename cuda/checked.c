#include "cuda/checked.h"

#include <stdbool.h>
#include <string.h>

/* All bits set is a NaN in double, float and half. */
enum { POISON = 0xff, PIECE = 1 << 16 };

static qk_status_t poison(const qk_ops_t *ops, qk_ops_ctx_t *ctx, char *ptr, size_t bytes) {
  char piece[PIECE];
  memset(piece, POISON, sizeof piece);
  for (size_t at = 0; at < bytes; at += PIECE) {
    size_t n = bytes - at < PIECE ? bytes - at : PIECE;
    qk_status_t status = ops->copy(ctx, ptr + at, piece, n, QK_COPY_TO_DEVICE, 0);
    if (status != QK_OK) return status;
  }
  return ops->queue_sync(ctx, 0);
}

static qk_status_t alloc(const qk_ops_t *ops, qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  void *p;
  qk_status_t status = ops->alloc(ctx, bytes, &p);
  if (status != QK_OK) return status;
  status = poison(ops, ctx, p, bytes);
  if (status != QK_OK) {
    ops->free(ctx, p);
    return status;
  }
  *ptr = p;
  return QK_OK;
}

static qk_status_t alloc_host(const qk_ops_t *ops, qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  qk_status_t status = ops->alloc_host(ctx, bytes, ptr);
  if (status == QK_OK) memset(*ptr, POISON, bytes);
  return status;
}

static qk_status_t cpu_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  return alloc(qk_ops_cpu(), ctx, bytes, ptr);
}
static qk_status_t cpu_alloc_host(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  return alloc_host(qk_ops_cpu(), ctx, bytes, ptr);
}
static qk_status_t gpu_alloc(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  return alloc(qk_ops_gpu(), ctx, bytes, ptr);
}
static qk_status_t gpu_alloc_host(qk_ops_ctx_t *ctx, size_t bytes, void **ptr) {
  return alloc_host(qk_ops_gpu(), ctx, bytes, ptr);
}

const qk_ops_t *qk_ops_checked(const qk_ops_t *ops) {
  static qk_ops_t cpu, gpu;
  qk_ops_t *table = ops->host_memory ? &cpu : &gpu;
  *table = *ops;
  table->alloc = ops->host_memory ? cpu_alloc : gpu_alloc;
  table->alloc_host = ops->host_memory ? cpu_alloc_host : gpu_alloc_host;
  return table;
}
