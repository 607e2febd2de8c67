/*
 * linkfield.h: where links stand in a qk_linkfield_t (cuda/types.h), one site at a time.
 */
#ifndef QK_SITE_LINKFIELD_H
#define QK_SITE_LINKFIELD_H

#include "cuda/site/mat3.h"

namespace QK_NS {

/* A site of the extended lattice: parity of its global coordinates and index within that parity. */
struct link_spot {
  int parity;
  int64_t i;
};

QK_ANY int64_t link_stride(const qk_linkfield_t &u) {
  return (int64_t)u.e[0] * u.e[1] * u.e[2] * u.e[3] / 2;
}

/* The site at the extended coordinates y. Offsets of ranks are even, so the parity of local
 * coordinates is that of global ones. */
QK_HD link_spot extended_spot(const qk_lattice_t &lat, const qk_linkfield_t &u, const int y[4]) {
  int parity = 0;
  int64_t n = 0;
  for (int nu = 3; nu >= 0; nu--) {
    n = n * u.e[nu] + y[nu];
    parity += y[nu] + u.halo * lat.split[nu];
  }
  return {parity & 1, n / 2};
}

/* The site at the local coordinates x, at most two steps beyond the lattice: in the halo of split
 * directions, around the others. */
QK_HD link_spot local_spot(const qk_lattice_t &lat, const qk_linkfield_t &u, const int x[4]) {
  int y[4];
  for (int nu = 0; nu < 4; nu++) {
    const int l = lat.l[nu];
    y[nu] = lat.split[nu] ? x[nu] + u.halo : x[nu] < 0 ? x[nu] + l : x[nu] >= l ? x[nu] - l : x[nu];
  }
  return extended_spot(lat, u, y);
}

/* Element k = 3 row + column of U_mu. */
QK_HD double *link_element(const qk_linkfield_t &u, link_spot at, int mu, int k) {
  return u.data + 2 * (((mu * 2 + at.parity) * 9 + k) * link_stride(u) + at.i);
}

/* One complex number: on the GPU one access of 16 bytes. */
QK_HD void load_complex(const double *p, double &re, double &im) {
#ifdef __CUDACC__
  const double2 v = *(const double2 *)p;
  re = v.x;
  im = v.y;
#else
  re = p[0];
  im = p[1];
#endif
}
QK_HD void store_complex(double *p, double re, double im) {
#ifdef __CUDACC__
  *(double2 *)p = make_double2(re, im);
#else
  p[0] = re;
  p[1] = im;
#endif
}

QK_HD mat3 load_link(const qk_linkfield_t &u, link_spot at, int mu) {
  mat3 m;
  const double *p = link_element(u, at, mu, 0);
  const int64_t stride = 2 * link_stride(u);
  for (int k = 0; k < 9; k++) load_complex(p + k * stride, m.e[2 * k], m.e[2 * k + 1]);
  return m;
}

QK_HD void store_link(const qk_linkfield_t &u, link_spot at, int mu, const mat3 &m) {
  double *p = link_element(u, at, mu, 0);
  const int64_t stride = 2 * link_stride(u);
  for (int k = 0; k < 9; k++) store_complex(p + k * stride, m.e[2 * k], m.e[2 * k + 1]);
}

QK_HD mat3 link_at(const qk_lattice_t &lat, const qk_linkfield_t &u, const int x[4], int mu) {
  return load_link(u, local_spot(lat, u, x), mu);
}

} // namespace QK_NS
#endif
