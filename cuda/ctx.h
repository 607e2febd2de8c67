/*
 * ctx.h: what every backend's context holds: the text of the last failure, whether the device is
 * lost, and which device memory is held. Used by one thread, like the context. Not collective.
 *
 * A backend's own context has this struct as its first member (cpu/ctx.h, gpu/ctx.cuh).
 * Errors: a context that has once returned QK_DEVICE_ERROR returns it for ever.
 * Fault points: "device-call" counts every call that enters through qk_ctx_begin, "device-alloc"
 * every allocation of device or pinned memory.
 */
#ifndef QK_CUDA_CTX_H
#define QK_CUDA_CTX_H

#include "cuda/ops.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_ctx_block {
  void *ptr;
  size_t bytes;
} qk_ctx_block_t;

struct qk_ops_ctx {
  int32_t lost;
  char error[320];
  int64_t allocated; /* bytes in blocks[] */
  qk_ctx_block_t *blocks;
  size_t nblocks, capacity;
};

/* Start of every call but close: QK_DEVICE_ERROR where the context is lost or the fault point
 * fires. */
qk_status_t qk_ctx_begin(qk_ops_ctx_t *ctx);

/* Notes why a call failed (for last_error) and returns code; QK_DEVICE_ERROR also marks the context
 * lost, after which the text stays: the first cause wins. */
__attribute__((format(printf, 3, 4))) qk_status_t qk_ctx_fail(qk_ops_ctx_t *ctx, qk_status_t code,
                                                              const char *fmt, ...);

/* Start of every allocation: room to note one more block, or QK_DEVICE_MEMORY. */
qk_status_t qk_ctx_reserve(qk_ops_ctx_t *ctx, size_t bytes);
/* Notes a block; qk_ctx_reserve was called since the last. */
void qk_ctx_hold(qk_ops_ctx_t *ctx, void *ptr, size_t bytes);
/* Forgets a block; it must be held. */
void qk_ctx_release(qk_ops_ctx_t *ctx, void *ptr);
/* Frees the table itself; what is still held is reported to the log as a leak. */
void qk_ctx_fini(qk_ops_ctx_t *ctx);

#ifdef __cplusplus
}
#endif
#endif
