/*
 * project_u3.h: from a 3x3 matrix A to U(3): V = A (A^+ A)^(-1/2), which is the nearest unitary
 * matrix (cuda/linkfield_ops.h: link_project). Exact arithmetic: site/wide.h.
 *
 * One-sided Jacobi rotations (Hestenes) give A Q = (s0 p0, s1 p1, s2 p2) with Q and P = (p0, p1,
 * p2) unitary, and V = P Q^+. What has the smallest singular value is not normalised: p2 is the
 * vector orthogonal to the other two, with the phase of the column that is left. So V is unitary to
 * rounding however small s2 is, and needs no other method near singular matrices, where roots of
 * the characteristic polynomial of A^+ A lose half of the digits.
 */
#ifndef QK_BODY_PROJECT_U3_H
#define QK_BODY_PROJECT_U3_H

#include "cuda/body/links/linkfield.h"
#include "cuda/body/links/paths.h"

namespace QK_NS {
namespace {

QK_HD wide norm2(const wide_matrix &a, int column) {
  wide n = splat(0);
  QK_UNROLL
  for (int i = 0; i < 9; i += 3)
    n += a.e[i + column].re * a.e[i + column].re + a.e[i + column].im * a.e[i + column].im;
  return n;
}

/* Columns p and q of m become c p - conj(s) q and c q + s p in lanes that turn. */
template <int p, int q>
QK_HD void turn_columns(wide_matrix &m, wide c, const wide_complex &s, wide_mask turn) {
  QK_UNROLL
  for (int i = 0; i < 9; i += 3) {
    wide_complex &x = m.e[i + p], &y = m.e[i + q];
    const wide xr = x.re, xi = x.im, yr = y.re, yi = y.im;
    x.re = turn ? c * xr - (s.re * yr + s.im * yi) : xr;
    x.im = turn ? c * xi - (s.re * yi - s.im * yr) : xi;
    y.re = turn ? c * yr + (s.re * xr - s.im * xi) : yr;
    y.im = turn ? c * yi + (s.re * xi + s.im * xr) : yi;
  }
}

/* Columns p and q of a made orthogonal, and Q turned likewise; whether any lane needed it. */
template <int p, int q> QK_HD bool make_orthogonal(wide_matrix &a, wide_matrix &turns) {
  wide re = splat(0), im = splat(0); /* a_p^+ a_q */
  QK_UNROLL
  for (int i = 0; i < 9; i += 3) {
    const wide_complex &x = a.e[i + p], &y = a.e[i + q];
    re += x.re * y.re + x.im * y.im;
    im += x.re * y.im - x.im * y.re;
  }
  const wide np = norm2(a, p), nq = norm2(a, q), size2 = re * re + im * im;
  const wide_mask turn = size2 > 1e-31 * np * nq;
  if (!any(turn)) return false;
  const wide size = wide_sqrt(turn ? size2 : splat(1)), zeta = (nq - np) / (2.0 * size);
  const wide root = wide_sqrt(1.0 + zeta * zeta);
  const wide t = zeta < splat(0) ? 1.0 / (zeta - root) : 1.0 / (zeta + root);
  const wide c = 1.0 / wide_sqrt(1.0 + t * t), f = c * t / size;
  const wide_complex s = {f * re, f * im};
  turn_columns<p, q>(a, c, s, turn);
  turn_columns<p, q>(turns, c, s, turn);
  return true;
}

template <int p, int q> QK_HD void swap_columns(wide_matrix &m, wide_mask swap) {
  QK_UNROLL
  for (int i = 0; i < 9; i += 3) {
    wide_complex &x = m.e[i + p], &y = m.e[i + q];
    const wide_complex old = x;
    x.re = swap ? y.re : x.re;
    x.im = swap ? y.im : x.im;
    y.re = swap ? old.re : y.re;
    y.im = swap ? old.im : y.im;
  }
}

/* The smallest column last. */
template <int p> QK_HD void sort_last(wide_matrix &a, wide_matrix &turns) {
  const wide_mask swap = norm2(a, p) < norm2(a, 2);
  swap_columns<p, 2>(a, swap);
  swap_columns<p, 2>(turns, swap);
}

QK_HD wide normalise_column(wide_matrix &a, int k) {
  const wide length = wide_sqrt(norm2(a, k));
  const wide one = 1.0 / length;
  QK_UNROLL
  for (int i = 0; i < 9; i += 3) {
    a.e[i + k].re = a.e[i + k].re * one;
    a.e[i + k].im = a.e[i + k].im * one;
  }
  return length;
}

/* Column 2 becomes orthogonal to the orthonormal columns 0 and 1 and has length 1; what it had in
 * that direction is returned. */
QK_HD wide complete(wide_matrix &a) {
  wide_complex c[3], z = {splat(0), splat(0)}; /* c: the cross product, conj(p2) but for a phase */
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    const wide_complex *k = a.e + 3 * ((i + 1) % 3), *l = a.e + 3 * ((i + 2) % 3);
    c[i].re = k[0].re * l[1].re - k[0].im * l[1].im - (l[0].re * k[1].re - l[0].im * k[1].im);
    c[i].im = k[0].re * l[1].im + k[0].im * l[1].re - (l[0].re * k[1].im + l[0].im * k[1].re);
    z.re += c[i].re * a.e[3 * i + 2].re - c[i].im * a.e[3 * i + 2].im;
    z.im += c[i].re * a.e[3 * i + 2].im + c[i].im * a.e[3 * i + 2].re;
  }
  const wide length = wide_sqrt(z.re * z.re + z.im * z.im);
  const wide one = 1.0 / length, re = z.re * one, im = z.im * one;
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    a.e[3 * i + 2].re = re * c[i].re + im * c[i].im;
    a.e[3 * i + 2].im = im * c[i].re - re * c[i].im;
  }
  return length;
}

/* a becomes V, or NaN: linkfield_ops.h. */
QK_HD void project_u3(wide_matrix &a) {
  wide_matrix turns = {}, back;
  for (int k = 0; k < 3; k++) turns.e[4 * k].re = splat(1);
  for (int sweep = 0; sweep < 30; sweep++) {
    bool turned = make_orthogonal<0, 1>(a, turns);
    turned = make_orthogonal<0, 2>(a, turns) || turned;
    turned = make_orthogonal<1, 2>(a, turns) || turned;
    if (!turned) break;
  }
  sort_last<0>(a, turns);
  sort_last<1>(a, turns);
  const wide s0 = normalise_column(a, 0), s1 = normalise_column(a, 1);
  const wide s2 = complete(a), largest = s0 > s1 ? s0 : s1;
  /* Squares of squares are computed. What is not a number compares as false. */
  const wide_mask good =
      (s2 > 1e-14 * largest) & (s1 > splat(1e-70)) & (s0 < splat(1e70)) & (s0 > splat(1e-70));
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      back.e[3 * i + j].re = turns.e[3 * j + i].re;
      back.e[3 * i + j].im = -turns.e[3 * j + i].im;
    }
  wide_matrix v;
  multiply<false>(v, a, back);
  for (int k = 0; k < 9; k++) {
    a.e[k].re = good ? v.e[k].re : splat(NAN);
    a.e[k].im = good ? v.e[k].im : splat(NAN);
  }
}

/* Work item: a link, direction by direction, all sites of each. */
struct link_projector {
  static constexpr int blocks = 3;
  qk_link_project_args_t a;

  QK_HD void group(int w) const {
    const int sites = 2 * a.lat.vcb, mu = w / sites;
    const path_sites s(a.lat, w % sites);
    wide_matrix m;
    s.load<false>(a.u, mu, 0, 0, 0, 0, m);
    project_u3(m);
    s.store(a.out, mu, m);
  }
};

/* 4 volume minus the number of the first link that is NaN, or 0. */
struct link_find_nan {
  static constexpr int n = 1;
  qk_lattice_t lat;
  qk_linkfield_t u;

  QK_HD void site(int s, double v[1]) const {
    int x[4];
    lexicographic(s, lat.l, x);
    const link_spot at = local_spot(lat, u, x);
    v[0] = 0;
    for (int mu = 3; mu >= 0; mu--) {
      const double re = link_element(u, at, mu, 0)[0];
      if (re != re) v[0] = 8.0 * lat.vcb - (4.0 * s + mu);
    }
  }
  QK_ANY static void join(double *sum, const double *v) {
    if (v[0] > sum[0]) sum[0] = v[0];
  }
};

} // namespace
} // namespace QK_NS
#endif
