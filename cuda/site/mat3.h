/*
 * mat3.h: 3x3 complex matrices in double, one site at a time, and the extended gauge field they are
 * read from (qk_gauge_ext_t, cuda/types.h).
 */
#ifndef QK_SITE_MAT3_H
#define QK_SITE_MAT3_H

#include "cuda/site/geom.h"

namespace QK_NS {

/* [row][column][re,im] */
struct mat3 {
  double e[18];
};

/* a or a^+, element (i, j) */
template <bool DAGGER> QK_HD double re_of(const mat3 &a, int i, int j) {
  return DAGGER ? a.e[6 * j + 2 * i] : a.e[6 * i + 2 * j];
}
template <bool DAGGER> QK_HD double im_of(const mat3 &a, int i, int j) {
  return DAGGER ? -a.e[6 * j + 2 * i + 1] : a.e[6 * i + 2 * j + 1];
}

/* a b, with a^+ for DA and b^+ for DB */
template <bool DA = false, bool DB = false> QK_HD mat3 times(const mat3 &a, const mat3 &b) {
  mat3 c;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      double re = 0, im = 0;
      for (int k = 0; k < 3; k++) {
        const double ar = re_of<DA>(a, i, k), ai = im_of<DA>(a, i, k);
        const double br = re_of<DB>(b, k, j), bi = im_of<DB>(b, k, j);
        re += ar * br - ai * bi;
        im += ar * bi + ai * br;
      }
      c.e[6 * i + 2 * j] = re;
      c.e[6 * i + 2 * j + 1] = im;
    }
  return c;
}

QK_HD double trace_re(const mat3 &a) {
  return a.e[0] + a.e[8] + a.e[16];
}

/* U_mu at the local site x; x[nu] may be -1 or l[nu], which is the halo where nu is split and wraps
 * around where it is not. */
QK_HD mat3 link_of(const qk_lattice_t &lat, const qk_gauge_ext_t &u, const int x[4], int mu) {
  int64_t n = 0;
  for (int nu = 3; nu >= 0; nu--) {
    const int at = lat.split[nu] ? x[nu] + 1 : (x[nu] + lat.l[nu]) % lat.l[nu];
    n = n * u.e[nu] + at;
  }
  mat3 m;
  const double *p = u.data + (n * 4 + mu) * 18;
  for (int k = 0; k < 18; k++) m.e[k] = p[k];
  return m;
}

/* The plaquette from x to +mu, to +nu, and back. */
QK_HD mat3 plaquette_of(const qk_lattice_t &lat, const qk_gauge_ext_t &u, const int x[4], int mu,
                        int nu) {
  int y[4] = {x[0], x[1], x[2], x[3]};
  const mat3 a = link_of(lat, u, y, mu), d = link_of(lat, u, y, nu);
  y[mu]++;
  const mat3 b = link_of(lat, u, y, nu);
  y[mu]--;
  y[nu]++;
  const mat3 c = link_of(lat, u, y, mu);
  return times<false, true>(times(a, b), times(d, c));
}

/* w^+ p w, added to q */
QK_HD void add_carried(mat3 &q, const mat3 &w, const mat3 &p) {
  const mat3 t = times<true, false>(w, times(p, w));
  for (int k = 0; k < 18; k++) q.e[k] += t.e[k];
}

/* (m - m^+) / n; n a power of 2 */
QK_HD mat3 anti_hermitian(const mat3 &m, double n) {
  mat3 f;
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    QK_UNROLL
    for (int j = 0; j < 3; j++) {
      f.e[6 * i + 2 * j] = (m.e[6 * i + 2 * j] - m.e[6 * j + 2 * i]) / n;
      f.e[6 * i + 2 * j + 1] = (m.e[6 * i + 2 * j + 1] + m.e[6 * j + 2 * i + 1]) / n;
    }
  }
  return f;
}

/* Fhat_{mu nu} = (Q - Q^+)/8, Q the four leaves around x that turn from +mu to +nu. */
QK_HD mat3 field_strength(const qk_lattice_t &lat, const qk_gauge_ext_t &u, const int x[4], int mu,
                          int nu) {
  mat3 q = plaquette_of(lat, u, x, mu, nu);
  int y[4] = {x[0], x[1], x[2], x[3]};
  y[mu]--;
  add_carried(q, link_of(lat, u, y, mu), plaquette_of(lat, u, y, mu, nu));
  y[nu]--;
  mat3 w = link_of(lat, u, y, mu);
  const mat3 corner = plaquette_of(lat, u, y, mu, nu);
  y[mu]++;
  const mat3 below_nu = link_of(lat, u, y, nu);
  w = times(w, below_nu);
  add_carried(q, w, corner);
  add_carried(q, below_nu, plaquette_of(lat, u, y, mu, nu));
  return anti_hermitian(q, 8);
}

} // namespace QK_NS
#endif
