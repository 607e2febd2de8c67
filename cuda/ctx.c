#include "cuda/ctx.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/assert.h"
#include "daemon/base/fault.h"
#include "daemon/base/log.h"

qk_status_t qk_ctx_begin(qk_ops_ctx_t *ctx) {
  if (ctx->lost) return QK_DEVICE_ERROR;
  if (qk_fault(QK_FAULT_DEVICE_CALL))
    return qk_ctx_fail(ctx, QK_DEVICE_ERROR, "injected device fault");
  return QK_OK;
}

qk_status_t qk_ctx_fail(qk_ops_ctx_t *ctx, qk_status_t code, const char *fmt, ...) {
  if (ctx->lost) return code;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(ctx->error, sizeof ctx->error, fmt, ap);
  va_end(ap);
  if (code == QK_DEVICE_ERROR) ctx->lost = 1;
  return code;
}

qk_status_t qk_ctx_reserve(qk_ops_ctx_t *ctx, size_t bytes) {
  if (qk_fault(QK_FAULT_DEVICE_ALLOC))
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "alloc of %zu bytes: injected fault", bytes);
  if (ctx->nblocks < ctx->capacity) return QK_OK;
  size_t capacity = ctx->capacity == 0 ? 64 : 2 * ctx->capacity;
  qk_ctx_block_t *blocks = realloc(ctx->blocks, capacity * sizeof *blocks);
  if (blocks == NULL)
    return qk_ctx_fail(ctx, QK_DEVICE_MEMORY, "no host memory to note a device block of %zu bytes",
                       bytes);
  ctx->blocks = blocks;
  ctx->capacity = capacity;
  return QK_OK;
}

void qk_ctx_hold(qk_ops_ctx_t *ctx, void *ptr, size_t bytes) {
  QK_ASSERT(ctx->nblocks < ctx->capacity);
  ctx->blocks[ctx->nblocks++] = (qk_ctx_block_t){ptr, bytes};
  ctx->allocated += (int64_t)bytes;
}

void qk_ctx_release(qk_ops_ctx_t *ctx, void *ptr) {
  size_t i = ctx->nblocks;
  while (i > 0 && ctx->blocks[i - 1].ptr != ptr) i--;
  QK_ASSERT(i > 0);
  ctx->allocated -= (int64_t)ctx->blocks[i - 1].bytes;
  ctx->blocks[i - 1] = ctx->blocks[--ctx->nblocks];
}

void qk_ctx_fini(qk_ops_ctx_t *ctx) {
  if (ctx->nblocks > 0)
    qk_warn("device", "context closed with %zu blocks, %" PRId64 " bytes, still held", ctx->nblocks,
            ctx->allocated);
  free(ctx->blocks);
}
