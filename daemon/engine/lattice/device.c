#include "daemon/engine/lattice/device.h"

#include <string.h>

qk_status_t qk_device_init(qk_device_t *dev, const qk_ops_t *ops, qk_ops_ctx_t *ctx,
                           const qk_geom_t *geom) {
  void *failed = NULL;
  qk_status_t status = ops->alloc_host(ctx, sizeof *dev->failed, &failed);
  *dev = (qk_device_t){.ops = ops, .ctx = ctx, .geom = geom, .failed = failed};
  if (status == QK_OK) *dev->failed = QK_OK;
  return status;
}

void qk_device_fini(qk_device_t *dev) {
  if (dev->failed != NULL) dev->ops->free_host(dev->ctx, dev->failed);
  dev->failed = NULL;
}

qk_status_t qk_device_explain(const qk_device_t *dev, qk_status_t status, qk_err_t *err) {
  bool told = err->text[0] != '\0' && strcmp(err->text, qk_status_text(status)) != 0;
  if (status == QK_OK || told) return status;
  bool device = dev->ctx != NULL && (status == QK_DEVICE_MEMORY || status == QK_DEVICE_ERROR ||
                                     (status == QK_COMM_ERROR && dev->peers != NULL));
  const char *words = device ? dev->ops->last_error(dev->ctx) : "";
  *err = (qk_err_t){0};
  return qk_fail(err, status, "%s", words[0] != '\0' ? words : qk_status_text(status));
}

void qk_dev_note(const qk_device_t *dev, qk_status_t status) {
  if (*dev->failed == QK_OK) *dev->failed = status;
}

qk_status_t qk_dev_status(const qk_device_t *dev) {
  qk_status_t status = *dev->failed;
  *dev->failed = QK_OK;
  return status;
}

void qk_dev_blas(const qk_device_t *dev, qk_blas_op_t op, qk_blas_args_t args) {
  if (!qk_dev_ok(dev)) return;
  args.op = op;
  qk_dev_note(dev, dev->ops->blas(dev->ctx, &args));
}

void qk_dev_copy(const qk_device_t *dev, void *to, const void *from, size_t bytes, qk_copy_t kind) {
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->copy(dev->ctx, to, from, bytes, kind, 0));
}

void qk_dev_sync(const qk_device_t *dev) {
  if (qk_dev_ok(dev)) qk_dev_note(dev, dev->ops->queue_sync(dev->ctx, 0));
}
