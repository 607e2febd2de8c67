/*
 * gpu/staggered/tiles.cuh: sites in tiles, x fastest, of a size that threads share an L1 cache
 * over, and tiles in blocks, of a size that L2 holds some slices of.
 */
#ifndef QK_CUDA_GPU_STAG_TILES_CUH
#define QK_CUDA_GPU_STAG_TILES_CUH

#include "cuda/site/geom.h"

namespace QK_NS {

struct tiled_walk {
  /* Sites in a tile, tiles in a block, blocks of the lattice; of x those of a parity. */
  divider of[3][4];
  int step[3][4];   /* in sites, to the next of these */
  divider parities; /* 1 or 2; of a tile the even sites come first */
  int first;        /* parity visited when there is one */
  int nwork;        /* sites visited */
  int backwards;    /* from the last site to the first */
};

/* The largest divisor of n that is not above `most` and a multiple of `step`, which divides n. */
inline int divisor_up_to(int n, int most, int step) {
  int d = most < n ? most : n;
  while (d > step && (n % d != 0 || d % step != 0)) d--;
  return d > step ? d : step;
}

/* tile and block: in sites, the largest extents wanted. */
inline tiled_walk walk_in_tiles(const qk_lattice_t &lat, qk_subset_t parity, const int tile[4],
                                const int block[4]) {
  tiled_walk w = {};
  w.parities = divider_by(parity == QK_FULL ? 2 : 1);
  w.first = parity == QK_ODD;
  w.nwork = (int)w.parities.d;
  for (int mu = 0; mu < 4; mu++) {
    const int l = lat.l[mu], least = mu == 0 ? 2 : 1;
    const int t = divisor_up_to(l, tile[mu], least), b = divisor_up_to(l, block[mu], t);
    const int size[4] = {least, t, b, l};
    w.nwork *= l / least;
    for (int k = 0; k < 3; k++) {
      w.of[k][mu] = divider_by(size[k + 1] / size[k]);
      w.step[k][mu] = size[k];
    }
  }
  return w;
}

QK_ANY site_pos site_in(const qk_lattice_t &lat, const tiled_walk &w, int n) {
  site_pos s = {};
  if (w.backwards) n = w.nwork - 1 - n;
  for (int k = 0; k < 3; k++) {
    for (int mu = 0; mu < 4; mu++) s.x[mu] += split_off(n, w.of[k][mu]) * w.step[k][mu];
    if (k == 0) s.parity = w.first + split_off(n, w.parities);
  }
  s.x[0] += (s.parity + s.x[1] + s.x[2] + s.x[3]) & 1;
  s.cb = cb_of(lat, s.x);
  return s;
}

} // namespace QK_NS
#endif
