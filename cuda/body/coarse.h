/*
 * coarse.h: where the hops of a coarse operator come from (cuda/ops.h: coarse); for one site of the
 * output, on any backend.
 */
#ifndef QK_BODY_COARSE_H
#define QK_BODY_COARSE_H

#include "cuda/ops.h"
#include "cuda/site/coarse.h"
#include "cuda/site/geom.h"
#include "cuda/site/sites.h"

namespace QK_NS {

/* The neighbour in direction d = 2*mu + (0: n+mu, 1: n-mu). */
struct coarse_near {
  bool takes_part; /* by the masks `hops` and `block` */
  bool ghost;
  int site; /* in `in`, or the slot in ghost[d/2][1 - d%2] */
};

QK_ANY coarse_near coarse_neighbour(const qk_coarse_args_t &a, const site_pos &here, int d) {
  const int mu = d / 2, back = d % 2, l = a.lat.l[mu], x = here.x[mu], block = a.block[mu];
  const bool wraps = x == (back ? 0 : l - 1), ghost = wraps && a.lat.split[mu];
  const bool second = a.out_parity == QK_FULL && here.parity == 0; /* the neighbour is odd */
  site_pos to = here;
  to.x[mu] = wraps ? l - 1 - x : x + (back ? -1 : 1);
  const bool same = block == 0 || (!ghost && x / block == to.x[mu] / block);
  const bool takes_part = same && (a.hops == 0 || (a.hops >> d & 1));
  const int at = ghost ? face_of(a.lat, here.x, mu) + (second ? padded(a.lat.face[mu]) : 0)
                       : cb_of(a.lat, to.x) + (second ? a.lat.vcb : 0);
  return {takes_part, ghost, at};
}

inline region_sites coarse_sites(const qk_coarse_args_t &a) {
  const walk box = walk_in_rows(box_of(a.lat, a.region), a.out_parity);
  return sites_of(a.lat, a.region, a.out_parity, box);
}

} // namespace QK_NS
#endif
