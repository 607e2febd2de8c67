/* The CUDA backend's table. */
#include "cuda/table.h"

#include "cuda/gpu/ctx.cuh"
#include "cuda/site/access.h"

static qk_ops_t make() {
  qk_ops_t t = QK_NS::make_table<qk_gpu_memory>();
  t.name = "cuda";
  t.piece = QK_NS::tile_shape<double, 2>::W;
  t.tuning = &qk_tuning_gpu;
  return t;
}

const qk_ops_t *qk_ops_gpu(void) {
  static const qk_ops_t table = make();
  return &table;
}
