/*
 * paths.h: sums over paths that fat and long links are made of (cuda/linkfield_ops.h: link_paths,
 * link_long). Exact arithmetic: site/wide.h. Work item w has one site, on the CPU it and the next
 * three, which have its parity; fields may have different halos, so each has its own indices.
 */
#ifndef QK_BODY_PATHS_H
#define QK_BODY_PATHS_H

#include "cuda/body/links/update.h"

namespace QK_NS {
namespace {

/* A group of local sites, and the links around it. */
struct path_sites {
  const qk_lattice_t &lat;
  int x[QK_WIDE][4], parity;

  QK_HD path_sites(const qk_lattice_t &lattice, int w) : lat(lattice) {
    for (int lane = 0; lane < QK_WIDE; lane++) {
      const site_pos at = site_of(lat, w + lane);
      for (int d = 0; d < 4; d++) x[lane][d] = at.x[d];
      parity = at.parity;
    }
  }

  /* Twice the index of the sites a and b steps along mu and nu, as load_links takes it. */
  QK_HD wide_int index(const qk_linkfield_t &u, int mu, int a, int nu, int b) const {
    wide_int n = {};
    for (int lane = 0; lane < QK_WIDE; lane++) {
      int y[4];
      QK_UNROLL
      for (int d = 0; d < 4; d++) y[d] = x[lane][d] + (d == mu ? a : 0) + (d == nu ? b : 0);
      set_lane(n, lane, (int32_t)(2 * local_spot(lat, u, y).i));
    }
    return n;
  }

  /* The links of a direction there, or their adjoints. */
  template <bool ADJOINT>
  QK_HD void load(const qk_linkfield_t &u, int direction, int mu, int a, int nu, int b,
                  wide_matrix &m) const {
    const int64_t stride = link_stride(u);
    load_links<ADJOINT>(part_of(u.data, stride, direction, (parity + a + b) & 1), stride,
                        index(u, mu, a, nu, b), m);
  }

  QK_HD void store(const qk_linkfield_t &u, int direction, const wide_matrix &m) const {
    wide_site s;
    s.n = index(u, 0, 0, 0, 0);
    for (int lane = 0; lane < QK_WIDE; lane++) s.valid[lane] = true;
    const int64_t stride = link_stride(u);
    double *to = part_of(u.data, stride, direction, parity);
    for (int k = 0; k < 9; k++) store_wide(to + 2 * k * stride, s, m.e[k]);
  }
};

struct path_maker {
  static constexpr int blocks = 3; /* on a multiprocessor: what registers allow */
  qk_link_paths_args_t a;

  /* sum += both staples of top[nu] along nu. */
  QK_HD void add_staples(const path_sites &s, int nu, wide_matrix &sum) const {
    wide_matrix side, top, t;
    s.load<false>(a.u, nu, a.mu, 0, nu, 0, side);
    s.load<false>(a.top[nu], 0, a.mu, 0, nu, 1, top);
    multiply<false>(t, side, top);
    s.load<true>(a.u, nu, a.mu, 1, nu, 0, side);
    multiply<true>(sum, t, side);
    s.load<true>(a.u, nu, a.mu, 0, nu, -1, side);
    s.load<false>(a.top[nu], 0, a.mu, 0, nu, -1, top);
    multiply<false>(t, side, top);
    s.load<false>(a.u, nu, a.mu, 1, nu, -1, side);
    multiply<true>(sum, t, side);
  }

  /* sum += both P_nu. */
  QK_HD void add_straight(const path_sites &s, int nu, wide_matrix &sum) const {
    wide_matrix m, t, way;
    s.load<false>(a.u, nu, a.mu, 0, nu, 0, t);
    s.load<false>(a.u, nu, a.mu, 0, nu, 1, m);
    multiply<false>(way, t, m);
    s.load<false>(a.u, a.mu, a.mu, 0, nu, 2, m);
    multiply<false>(t, way, m);
    s.load<true>(a.u, nu, a.mu, 1, nu, 1, m);
    multiply<false>(way, t, m);
    s.load<true>(a.u, nu, a.mu, 1, nu, 0, m);
    multiply<true>(sum, way, m);
    s.load<true>(a.u, nu, a.mu, 0, nu, -1, t);
    s.load<true>(a.u, nu, a.mu, 0, nu, -2, m);
    multiply<false>(way, t, m);
    s.load<false>(a.u, a.mu, a.mu, 0, nu, -2, m);
    multiply<false>(t, way, m);
    s.load<false>(a.u, nu, a.mu, 1, nu, -2, m);
    multiply<false>(way, t, m);
    s.load<false>(a.u, nu, a.mu, 1, nu, -1, m);
    multiply<true>(sum, way, m);
  }

  QK_HD void group(int w) const {
    const path_sites s(a.lat, w);
    wide_matrix sum = {}, own;
    if (a.straight != 0) {
#ifdef __CUDACC__
#pragma unroll(1)
#endif
      for (int nu = 0; nu < 4; nu++)
        if (nu != a.mu) add_straight(s, nu, sum);
      scale(sum, a.straight);
    }
#ifdef __CUDACC__
#pragma unroll(1)
#endif
    for (int nu = 0; nu < 4; nu++)
      if (a.top[nu].data != NULL) add_staples(s, nu, sum);
    s.load<false>(a.u, a.mu, 0, 0, 0, 0, own);
    combine(sum, a.own, own, a.weight, sum);
    s.store(a.out, 0, sum);
  }
};

struct long_maker {
  static constexpr int blocks = 3;
  qk_link_long_args_t a;

  QK_HD void group(int w) const {
    const path_sites s(a.lat, w);
#ifdef __CUDACC__
#pragma unroll(1)
#endif
    for (int mu = 0; mu < 4; mu++) {
      wide_matrix first, second, way;
      s.load<false>(a.u, mu, mu, 0, 0, 0, first);
      s.load<false>(a.u, mu, mu, 1, 0, 0, second);
      multiply<false>(way, first, second);
      s.load<false>(a.u, mu, mu, 2, 0, 0, second);
      multiply<false>(first, way, second);
      scale(first, a.factor);
      s.store(a.out, mu, first);
    }
  }
};

} // namespace
} // namespace QK_NS
#endif
