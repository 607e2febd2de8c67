#include <stdlib.h>

#include "daemon/base/log.h"

#include "cuda/checked.h"
#include "cuda/ops.h"

/* A device that opens now will open for the caller. One that cannot be used must not go unnoticed:
 * solves would take a hundred times as long. */
static const qk_ops_t *best(void) {
  const qk_ops_t *gpu = qk_ops_gpu();
  qk_ops_ctx_t *ctx;
  qk_err_t err = {0};
  const qk_status_t status = gpu->open(0, &ctx, &err);
  if (status == QK_UNSUPPORTED) qk_warn("device", "%s; the CPU is used", err.text);
  if (status != QK_OK) return qk_ops_cpu();
  gpu->close(ctx);
  return gpu;
}

const qk_ops_t *qk_ops_by_name(const char *name) {
  const qk_ops_t *ops = NULL;
  switch (qk_choice_find(&qk_choice_backends, name)) {
  case QK_BACKEND_CPU:
    ops = qk_ops_cpu();
    break;
  case QK_BACKEND_CUDA:
    ops = qk_ops_gpu();
    break;
  case QK_BACKEND_AUTO:
    ops = best();
    break;
  default:
    break;
  }
  return ops != NULL && getenv("QK_CHECKED") != NULL ? qk_ops_checked(ops) : ops;
}
