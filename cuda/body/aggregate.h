/*
 * aggregate.h: sites of an aggregate, and what makes its columns orthonormal (Cholesky QR).
 */
#ifndef QK_BODY_AGGREGATE_H
#define QK_BODY_AGGREGATE_H

#include <math.h>

#include "cuda/body/complex.h"
#include "cuda/mg_ops.h"
#include "cuda/site/geom.h"

namespace QK_NS {

/* Sites of every aggregate with coordinates start[mu] .. start[mu] + extent[mu] - 1 within it,
 * numbered x fastest. */
struct aggregate_box {
  qk_lattice_t fine, coarse;
  int block[4], start[4], nsites;
  divider extent[4];
};

/* mu < 0: all sites. Else those that a step forwards in mu takes out of the aggregate (leaving), or
 * the others; there may be none. */
inline aggregate_box box_of(const qk_aggregates_t &agg, int mu, bool leaving) {
  aggregate_box box = {};
  box.fine = agg.fine;
  box.coarse = agg.coarse;
  box.nsites = 1;
  for (int nu = 0; nu < 4; nu++) {
    const int l = agg.block[nu], extent = nu != mu ? l : leaving ? 1 : l - 1;
    box.block[nu] = l;
    box.start[nu] = nu == mu && leaving ? l - 1 : 0;
    box.extent[nu] = divider_by(extent > 0 ? extent : 1);
    box.nsites *= extent;
  }
  return box;
}

/* The first site of the box in aggregate `site` of the full coarse lattice. */
struct box_corner {
  int x[4];
};
QK_HD box_corner corner_of(const aggregate_box &box, int site) {
  const site_pos p = site_of(box.coarse, site);
  box_corner corner;
  for (int mu = 0; mu < 4; mu++) corner.x[mu] = p.x[mu] * box.block[mu] + box.start[mu];
  return corner;
}

/* Site k of the box, in the full field. */
QK_HD int box_site(const aggregate_box &box, const box_corner &corner, int k) {
  int x[4], odd = 0;
  QK_UNROLL
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = corner.x[mu] + split_off(k, box.extent[mu]);
    odd += x[mu];
  }
  return cb_of(box.fine, x) + (odd & 1) * box.fine.vcb;
}

/* For G = R^+ R with R upper triangular, the inverse of R^+, by a team of threads as in
 * coarse_setup.h. On entry the upper triangle of the n x n matrix re, im, rows of ld, holds G and
 * below it stands zero; on return the lower one holds R^-+. False where what is left of a column is
 * below 1e-6 of it, or is not finite. norm: [n], work space.
 *
 * Elimination of the rows below row k from G and, below the diagonal, from the unit matrix. */
template <class Team>
QK_HD bool invert_factor(const Team &team, double *re, double *im, int n, int ld, double *norm) {
  for (int k = team.index(); k < n; k += team.size()) norm[k] = re[k * ld + k];
  team.sync();
  for (int k = 0; k < n; k++) {
    double *re_k = re + k * ld, *im_k = im + k * ld;
    const double left = re_k[k];
    if (!(left > 1e-12 * norm[k]) || left - left != 0) return false;
    const double scale = 1 / sqrt(left);
    team.sync();
    for (int c = team.index(); c < n; c += team.size()) {
      re_k[c] = c == k ? scale : re_k[c] * scale;
      im_k[c] = c == k ? 0 : im_k[c] * scale;
    }
    team.sync();
    for (int r = k + 1 + team.row(); r < n; r += team.rows()) {
      const double fr = re_k[r], fi = -im_k[r];
      for (int c = team.lane(); c < n; c += team.lanes()) {
        if (c > k && c < r) continue;
        re[r * ld + c] -= fr * re_k[c] - fi * im_k[c];
        im[r * ld + c] -= fr * im_k[c] + fi * re_k[c];
      }
    }
    team.sync();
  }
  return true;
}

} // namespace QK_NS
#endif
