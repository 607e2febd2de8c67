/*
 * gpu/place.cuh: which lane of a spinor field a thread has. Of tiles of RHS, eight threads in a row
 * have the lanes of a tile, then come the other tiles of the same site, which share its links, then
 * the next site; of a single RHS a thread has a site.
 */
#ifndef QK_CUDA_GPU_PLACE_CUH
#define QK_CUDA_GPU_PLACE_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/site/geom.h"

namespace QK_NS {

constexpr int hop_threads = 128;

/* Which site (work index n), tile of RHS and lane this thread has. */
struct thread_place {
  int n, tile, lane;
};

QK_HD thread_place thread_lane(int ntile, const divider &tiles) {
  if (ntile == 0) return {(int)(blockIdx.x * hop_threads + threadIdx.x), 0, 0};
  thread_place p;
  p.n = (int)(blockIdx.x * (hop_threads / QK_TILE) + threadIdx.x / QK_TILE);
  p.lane = (int)(threadIdx.x % QK_TILE);
  p.tile = split_off(p.n, tiles);
  return p;
}

inline unsigned blocks_for(int sites, int ntile) {
  const int64_t lanes = (int64_t)sites * (ntile == 0 ? 1 : ntile * QK_TILE);
  return (unsigned)((lanes + hop_threads - 1) / hop_threads);
}

} // namespace QK_NS
#endif
