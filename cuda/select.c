#include <stdlib.h>
#include <string.h>

#include "cuda/checked.h"
#include "cuda/ops.h"

/* A device that opens now will open for the caller. */
static const qk_ops_t *best(void) {
  const qk_ops_t *gpu = qk_ops_gpu();
  qk_ops_ctx_t *ctx;
  if (gpu->open(0, &ctx, NULL) != QK_OK) return qk_ops_cpu();
  gpu->close(ctx);
  return gpu;
}

const qk_ops_t *qk_ops_by_name(const char *name) {
  const qk_ops_t *ops = NULL;
  if (strcmp(name, "cpu") == 0)
    ops = qk_ops_cpu();
  else if (strcmp(name, "cuda") == 0)
    ops = qk_ops_gpu();
  else if (strcmp(name, "auto") == 0)
    ops = best();
  return ops != NULL && getenv("QK_CHECKED") != NULL ? qk_ops_checked(ops) : ops;
}
