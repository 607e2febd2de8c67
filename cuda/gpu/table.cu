/* The CUDA backend's table. */
#include "cuda/table.h"

#include "cuda/gpu/ctx.cuh"

const qk_ops_t *qk_ops_gpu(void) {
  static const qk_ops_t table = QK_NS::make_table<qk_gpu_memory>("cuda");
  return &table;
}
