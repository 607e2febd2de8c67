/*
 * gpu/place.cuh: which lane of a spinor field a thread has. Of tiles of columns, threads in a row
 * have the columns of a site, which share its links, then those of the next site; lanes without a
 * column get no thread. Of a single column a thread has a site.
 */
#ifndef QK_CUDA_GPU_PLACE_CUH
#define QK_CUDA_GPU_PLACE_CUH

#include "cuda/gpu/ctx.cuh"
#include "cuda/site/geom.h"

namespace QK_NS {

constexpr int hop_threads = 128;

/* Which site (work index n), tile of columns and lane a thread has. */
struct thread_place {
  int n, tile, lane;
};

/* Threads of a field: teams of 2^log have columns of a site that follow one another, the largest
 * power of two up to a tile that divides the columns. */
struct thread_layout {
  divider teams; /* of a site */
  int log;

  QK_HD thread_place place(unsigned block, unsigned thread, unsigned threads = hop_threads) const {
    thread_place p;
    p.n = (int)(block * (threads >> log) + (thread >> log));
    const int column = (split_off(p.n, teams) << log) + (int)(thread & ((1u << log) - 1));
    p.tile = column / QK_TILE;
    p.lane = column % QK_TILE;
    return p;
  }
};

/* Where the teams of all sites have no number of 31 bits, lanes without a column have threads. */
inline thread_layout layout_of(const qk_spinor_t &f, int64_t sites) {
  const int columns = f.ntile == 0 ? 1 : f.nrhs;
  int log = 3;
  while (columns % (1 << log) != 0) log--;
  if (sites * (columns >> log) > INT32_MAX) return {divider_by(f.ntile), 3};
  return {divider_by(columns >> log), log};
}

inline unsigned blocks_for(int sites, const thread_layout &l, unsigned threads = hop_threads) {
  const int64_t all = ((int64_t)sites * l.teams.d) << l.log;
  return (unsigned)((all + threads - 1) / threads);
}

} // namespace QK_NS
#endif
