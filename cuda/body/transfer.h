/*
 * transfer.h: the sites of aggregates (cuda/mg_ops.h: qk_aggregates_t), on any backend.
 */
#ifndef QK_BODY_TRANSFER_H
#define QK_BODY_TRANSFER_H

#include "cuda/ops.h"
#include "cuda/site/geom.h"

namespace QK_NS {

/* The aggregates, counted like the sites of the coarse lattice: even ones first. */
struct aggregate_walk {
  walk coarse;
  divider in[4]; /* block extents */
  int volume;    /* sites of an aggregate */
};

inline aggregate_walk aggregates_of(const qk_aggregates_t &agg) {
  aggregate_walk w = {};
  w.coarse = walk_over(agg.coarse, QK_FULL, agg.coarse.l);
  w.volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    w.in[mu] = divider_by(agg.block[mu]);
    w.volume *= agg.block[mu];
  }
  return w;
}

/* Coordinates of the first site of aggregate n. */
QK_ANY void aggregate_origin(const qk_aggregates_t &agg, const aggregate_walk &w, int n, int x[4]) {
  const site_pos s = site_at(agg.coarse, w.coarse, n);
  for (int mu = 0; mu < 4; mu++) x[mu] = s.x[mu] * agg.block[mu];
}

/* Site i of the aggregate at `origin`, lexicographic with x fastest. Parity: of global coordinates,
 * as local offsets are even. */
QK_ANY site_pos aggregate_site(const qk_aggregates_t &agg, const aggregate_walk &w,
                               const int origin[4], int i) {
  site_pos s;
  s.parity = 0;
  for (int mu = 0; mu < 4; mu++) {
    s.x[mu] = origin[mu] + split_off(i, w.in[mu]);
    s.parity ^= s.x[mu] & 1;
  }
  s.cb = cb_of(agg.fine, s.x);
  return s;
}

} // namespace QK_NS
#endif
