#include "cuda/host_pages.h"

static qk_status_t stub_count(int *count, qk_err_t *err) {
  (void)count;
  return qk_fail(err, QK_NO_DEVICE, "this build has no CUDA kernels");
}

static qk_status_t stub_open(int device, qk_ops_ctx_t **ctx, qk_err_t *err) {
  (void)ctx;
  return qk_fail(err, QK_NO_DEVICE, "device %d: this build has no CUDA kernels", device);
}

static void stub_close(qk_ops_ctx_t *ctx) {
  (void)ctx;
}

/* Nothing else of the table can be reached without a context. */
const qk_ops_t *qk_ops_gpu(void) {
  static const qk_ops_t table = {.name = "cuda",
                                 .tuning = &qk_tuning_gpu,
                                 .count = stub_count,
                                 .open = stub_open,
                                 .close = stub_close};
  return &table;
}

const qk_host_pages_t *qk_host_pages_gpu(void) {
  return NULL;
}
