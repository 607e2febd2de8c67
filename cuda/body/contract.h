/*
 * contract.h: hadron two-point functions at a site. Formulas, factors and signs: cuda/ops.h.
 *
 * A work item has its propagators in memory of its own (shared memory on the GPU): complex values
 * V, one site (GPU, V is double) or eight sites (CPU, a vector), element
 * [3 spin + colour of x][column] at prop_at(). Baryons are made in two steps by 16 parts each:
 * first the diquark
 *
 *   R_cc'[al' be'] = eps_abc eps_a'b'c' sum_al be (C g)_al be q1_aa'[al al'] q2_bb'[be be'],
 *
 * whose 16 pairs of source spins are the parts, then its product with the third quark for all
 * 16 open spins. Products of gamma matrices with C have one element i^n a row,
 * known to the compiler.
 */
#ifndef QK_BODY_CONTRACT_H
#define QK_BODY_CONTRACT_H

#include "cuda/body/complex.h"
#include "cuda/ops.h"
#include "cuda/site/geom.h"

namespace QK_NS {

enum {
  CONTRACT_COLUMNS = 12,
  CONTRACT_PARTS = 16,
  CONTRACT_ROW = 13, /* one more than there are columns: spins of x lie in different banks */
  CONTRACT_PROP = 12 * CONTRACT_ROW,
  CONTRACT_SPIN = 5, /* of the second spin of a diquark, likewise */
  CONTRACT_DIQUARK = 9 * 4 * CONTRACT_SPIN
};

QK_HD int prop_at(int spin, int colour, int source_spin, int source_colour) {
  return (3 * spin + colour) * CONTRACT_ROW + 3 * source_spin + source_colour;
}
QK_HD int diquark_at(int colours, int first_spin, int second_spin) {
  return (colours * 4 + first_spin) * CONTRACT_SPIN + second_spin;
}

#ifdef __CUDACC__
QK_HD dcx complex_at(const double *p, int k) {
  const double2 z = ((const double2 *)p)[k];
  return {z.x, z.y};
}
QK_HD void complex_set(double *p, int k, const dcx &z) {
  ((double2 *)p)[k] = make_double2(z.re, z.im);
}
#else
template <class V> QK_HD cx<V> complex_at(const V *p, int k) {
  return {p[2 * k], p[2 * k + 1]};
}
template <class V> QK_HD void complex_set(V *p, int k, const cx<V> &z) {
  p[2 * k] = z.re;
  p[2 * k + 1] = z.im;
}
#endif

/* s += i^P a b: four fused operations. */
template <int P, class V> QK_HD void add_product(cx<V> &s, const cx<V> &a, const cx<V> &b) {
  if constexpr (P % 2 == 1) {
    add_product<P / 2 * 2>(s, cx<V>{-a.im, a.re}, b);
  } else if constexpr (P % 4 == 2) {
    s.re = s.re - a.re * b.re;
    s.im = s.im - a.re * b.im;
    s.re = s.re + a.im * b.im;
    s.im = s.im - a.im * b.re;
  } else {
    s.re = s.re + a.re * b.re;
    s.im = s.im + a.re * b.im;
    s.re = s.re - a.im * b.im;
    s.im = s.im + a.im * b.re;
  }
}
/* s += conj(a) b */
template <class V> QK_HD void add_conj_product(cx<V> &s, const cx<V> &a, const cx<V> &b) {
  s.re = s.re + a.re * b.re;
  s.im = s.im + a.re * b.im;
  s.re = s.re + a.im * b.im;
  s.im = s.im - a.im * b.re;
}
/* s += i^P a */
template <int P, class V> QK_HD void add_power(cx<V> &s, const cx<V> &a) {
  if constexpr (P % 4 == 0)
    s = s + a;
  else if constexpr (P % 4 == 1)
    s = s + cx<V>{-a.im, a.re};
  else if constexpr (P % 4 == 2)
    s = s - a;
  else
    s = s - cx<V>{-a.im, a.re};
}

/* C g_K with C = g_t g_y and g_K = g_5, g_x, g_y, g_z for K = 0 to 3:
 * row r holds i^power in column. */
template <int K> struct diquark_spin {
  QK_ANY static constexpr int column(int r) { return K == 0 ? r ^ 1 : K == 3 ? 3 - r : r ^ 2; }
  QK_ANY static constexpr int power(int r) {
    return K == 0 ? 2 * (r % 2) : K == 1 ? 1 + 2 * (r % 2) : K == 2 ? 0 : 3;
  }
};

/* Adds the terms of sink spin AL to the nine colours of a pair of source spins. */
template <int K, int AL, class V>
QK_HD void add_diquark(const V *q1, const V *q2, int al, int be, cx<V> r[9]) {
  constexpr int BE = diquark_spin<K>::column(AL), P = diquark_spin<K>::power(AL);
  QK_UNROLL
  for (int c = 0; c < 3; c++) {
    QK_UNROLL
    for (int d = 0; d < 3; d++) {
      const int c1 = (c + 1) % 3, c2 = (c + 2) % 3, d1 = (d + 1) % 3, d2 = (d + 2) % 3;
      cx<V> s = r[3 * c + d];
      add_product<P>(s, complex_at(q1, prop_at(AL, c1, al, d1)),
                     complex_at(q2, prop_at(BE, c2, be, d2)));
      add_product<P + 2>(s, complex_at(q1, prop_at(AL, c1, al, d2)),
                         complex_at(q2, prop_at(BE, c2, be, d1)));
      add_product<P + 2>(s, complex_at(q1, prop_at(AL, c2, al, d1)),
                         complex_at(q2, prop_at(BE, c1, be, d2)));
      add_product<P>(s, complex_at(q1, prop_at(AL, c2, al, d2)),
                     complex_at(q2, prop_at(BE, c1, be, d1)));
      r[3 * c + d] = s;
    }
  }
}

template <int K, class V>
QK_PART void diquark_part(int part, const V *q1, const V *q2, V *diquark) {
  const int al = part / 4, be = part % 4;
  cx<V> r[9] = {};
  add_diquark<K, 0>(q1, q2, al, be, r);
  add_diquark<K, 1>(q1, q2, al, be, r);
  add_diquark<K, 2>(q1, q2, al, be, r);
  add_diquark<K, 3>(q1, q2, al, be, r);
  QK_UNROLL
  for (int k = 0; k < 9; k++) complex_set(diquark, diquark_at(k, al, be), r[k]);
}

/* Terms of source spin AL of (C g_J)_{al be} R_cc'[al be] q3_cc'[g g'], in trace[9] first, and of
 * (C g_J)_{al be} R_cc'[g' be] q3_cc'[g al]. */
template <int J, int AL, class V>
QK_HD void add_source_spin(int g, int h, const V *q3, const V *diquark, cx<V> trace[9],
                           cx<V> &exchange) {
  constexpr int BE = diquark_spin<J>::column(AL), P = diquark_spin<J>::power(AL);
  QK_UNROLL
  for (int k = 0; k < 9; k++) {
    add_power<P>(trace[k], complex_at(diquark, diquark_at(k, AL, BE)));
    add_product<P>(exchange, complex_at(q3, prop_at(g, k / 3, AL, k % 3)),
                   complex_at(diquark, diquark_at(k, h, BE)));
  }
}

/* factor (trace + weight exchange) for the open spins of a part. */
template <int J, class V>
QK_PART cx<V> baryon_part(int part, const V *q3, const V *diquark, double factor, double weight) {
  const int g = part / 4, h = part % 4;
  cx<V> trace[9] = {}, exchange = {}, direct = {};
  add_source_spin<J, 0>(g, h, q3, diquark, trace, exchange);
  add_source_spin<J, 1>(g, h, q3, diquark, trace, exchange);
  add_source_spin<J, 2>(g, h, q3, diquark, trace, exchange);
  add_source_spin<J, 3>(g, h, q3, diquark, trace, exchange);
  QK_UNROLL
  for (int k = 0; k < 9; k++)
    add_product<0>(direct, trace[k], complex_at(q3, prop_at(g, k / 3, h, k % 3)));
  return {factor * (direct.re + weight * exchange.re), factor * (direct.im + weight * exchange.im)};
}

/* The baryons whose diquark at x is C g_K: the nucleon for K = 0, else row K of the Delta. A part
 * makes `each` numbers, those of one open spin pair for each g_J at the source. */
template <int K> struct baryon {
  static constexpr int each = K == 0 ? 1 : 3;
  static constexpr int numbers = CONTRACT_PARTS * each;

  template <class V>
  static QK_HD void parts(int part, const V *q3, const V *diquark, cx<V> out[each]) {
    if constexpr (K == 0) {
      out[0] = baryon_part<0>(part, q3, diquark, 1, 1);
    } else {
      out[0] = baryon_part<1>(part, q3, diquark, -2, 2);
      out[1] = baryon_part<2>(part, q3, diquark, 2, 2);
      out[2] = baryon_part<3>(part, q3, diquark, -2, 2);
    }
  }
};

/* ---- sites of a time slice, and their phases ---- */

/* Site k of slice t, even ones first, both in the order of the field. */
struct slice_pos {
  int64_t site;
  int x[3];
};

QK_HD slice_pos slice_site(const qk_lattice_t &lat, int t, int k) {
  slice_pos s;
  const int half = lat.vcb / lat.l[3], odd = k >= half;
  const int in_slice = k - odd * half;
  s.site = (int64_t)odd * lat.vcb + (int64_t)t * half + in_slice;
  int n = 2 * in_slice;
  for (int mu = 0; mu < 3; mu++) {
    s.x[mu] = n % lat.l[mu];
    n /= lat.l[mu];
  }
  s.x[0] += (odd + s.x[1] + s.x[2] + t) & 1;
  return s;
}

/* The phase of a site, from the factors of its coordinates. */
QK_HD dcx phase_at(const double *phase, const qk_lattice_t &lat, const int x[3]) {
  const double *py = phase + 2 * lat.l[0], *pz = py + 2 * lat.l[1];
  const dcx a = {phase[2 * x[0]], phase[2 * x[0] + 1]}, b = {py[2 * x[1]], py[2 * x[1] + 1]};
  const dcx c = {pz[2 * x[2]], pz[2 * x[2] + 1]};
  return a * b * c;
}

/* Complex numbers of a hadron, and factors of a momentum. */
inline int hadron_numbers(qk_hadron_t hadron) {
  return hadron == QK_HADRON_MESON ? 256 : hadron == QK_HADRON_NUCLEON ? 16 : 144;
}
inline int phase_factors(const qk_lattice_t &lat) {
  return lat.l[0] + lat.l[1] + lat.l[2];
}

} // namespace QK_NS
#endif
