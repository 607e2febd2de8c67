/*
 * linkfield.h: links with their halo (qk_linkfield_t): from and to the order of host memory, boxes
 * for the exchange, sums of loops. Bodies work on one site.
 */
#ifndef QK_BODY_LINKFIELD_H
#define QK_BODY_LINKFIELD_H

#include "cuda/linkfield_ops.h"
#include "cuda/site/linkfield.h"

namespace QK_NS {

QK_HD void lexicographic(int64_t n, const int32_t extent[4], int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(n % extent[mu]);
    n /= extent[mu];
  }
}

template <bool IMPORT> struct link_copy_site {
  qk_link_copy_args_t a;
  QK_HD void site(int s) const {
    int x[4];
    lexicographic(a.first + s, a.lat.l, x);
    const link_spot at = local_spot(a.lat, a.u, x);
    double *p = a.sites + (int64_t)s * 18 * a.directions;
    for (int mu = 0; mu < a.directions; mu++)
      for (int k = 0; k < 9; k++, p += 2) {
        double *q = link_element(a.u, at, mu, k), re, im;
        load_complex(IMPORT ? p : q, re, im);
        store_complex(IMPORT ? q : p, re, im);
      }
  }
};

/* PACK: to dense memory. `sites`: of the box. */
template <bool PACK> struct link_box_site {
  qk_link_box_args_t a;
  int64_t sites;
  QK_HD void site(int s) const {
    int y[4];
    int32_t extent[4];
    for (int nu = 0; nu < 4; nu++) extent[nu] = a.hi[nu] - a.lo[nu];
    lexicographic(s, extent, y);
    for (int nu = 0; nu < 4; nu++) y[nu] += a.lo[nu];
    const link_spot at = extended_spot(a.lat, a.u, y);
    double *p = a.dense + 2 * (int64_t)s;
    for (int mu = 0; mu < 4; mu++) {
      if (!(a.mask >> mu & 1)) continue;
      for (int k = 0; k < 9; k++, p += 2 * sites) {
        double *q = link_element(a.u, at, mu, k), re, im;
        load_complex(PACK ? q : p, re, im);
        store_complex(PACK ? p : q, re, im);
      }
    }
  }
};

/* Into tiles of eight sites (qk_links_t). */
struct link_tile_site {
  qk_lattice_t lat;
  qk_linkfield_t u;
  double *out;
  QK_HD void site(int s) const {
    const link_spot at = local_spot(lat, u, site_of(lat, s).x);
    for (int mu = 0; mu < 4; mu++) {
      const mat3 m = load_link(u, at, mu);
      double *tile = out + ((int64_t)(s / QK_TILE) * 4 + mu) * (QK_TILE * 18);
      for (int k = 0; k < 18; k++) tile[inner<double, 18>(k, s % QK_TILE)] = m.e[k];
    }
  }
};

struct link_loop_sums {
  static constexpr int n = QK_LINK_SUMS;
  qk_link_sums_args_t a;

  QK_HD mat3 link(const int x[4], int mu, int nu, int along_mu, int along_nu, int dir) const {
    int y[4] = {x[0], x[1], x[2], x[3]};
    y[mu] += along_mu;
    y[nu] += along_nu;
    return link_at(a.lat, a.u, y, dir);
  }

  /* Re tr / 3 of the loop of `length` links along mu and one along nu. */
  QK_HD double loop(const int x[4], int mu, int nu, int length) const {
    mat3 there = link(x, mu, nu, 0, 0, mu), above = link(x, mu, nu, 0, 1, mu);
    for (int i = 1; i < length; i++) {
      there = times(there, link(x, mu, nu, i, 0, mu));
      above = times(above, link(x, mu, nu, i, 1, mu));
    }
    const mat3 right = times(there, link(x, mu, nu, length, 0, nu));
    const mat3 left = times(link(x, mu, nu, 0, 0, nu), above);
    double trace = 0; /* Re tr (right left^+) */
    for (int k = 0; k < 18; k++) trace += right.e[k] * left.e[k];
    return trace / 3;
  }

  QK_HD void site(int s, double v[QK_LINK_SUMS]) const {
    const site_pos p = site_of(a.lat, s);
    int plane = 0;
    v[6] = 0;
    for (int mu = 0; mu < 3; mu++)
      for (int nu = mu + 1; nu < 4; nu++) {
        v[plane++] = loop(p.x, mu, nu, 1);
        if (a.rectangles) v[6] += loop(p.x, mu, nu, 2) + loop(p.x, nu, mu, 2);
      }
  }
  QK_ANY static void join(double *sum, const double *v) {
    for (int k = 0; k < n; k++) sum[k] += v[k];
  }
};

} // namespace QK_NS
#endif
