/* The CUDA backend's table. */
#include "cuda/table.h"

#include "cuda/gpu/ctx.cuh"

static qk_ops_t make() {
  qk_ops_t t = QK_NS::make_table<qk_gpu_memory>();
  t.name = "cuda";
  t.tuning = &qk_tuning_gpu;
  return t;
}

const qk_ops_t *qk_ops_gpu(void) {
  static const qk_ops_t table = make();
  return &table;
}
