/*
 * gpu/team.cuh: the threads of a block that share a matrix, a warp a row (body/coarse_setup.h,
 * body/aggregate.h).
 */
#ifndef QK_CUDA_GPU_TEAM_CUH
#define QK_CUDA_GPU_TEAM_CUH

#include "cuda/site/lane.h"

namespace QK_NS {

struct block_team {
  QK_ANY static constexpr int size() { return 256; }
  QK_ANY static constexpr int rows() { return size() / 32; }
  QK_ANY static constexpr int lanes() { return 32; }
  QK_HD static int index() { return (int)threadIdx.x; }
  QK_HD static int row() { return (int)threadIdx.x / 32; }
  QK_HD static int lane() { return (int)threadIdx.x % 32; }
  QK_HD static void sync() { __syncthreads(); }
  QK_HD static void sync_row() { __syncwarp(); }
};

} // namespace QK_NS
#endif
