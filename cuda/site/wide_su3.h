/*
 * wide_su3.h: 3x3 complex matrices of neighbouring sites and SU(2) subgroups of SU(3), in
 * arithmetic that has the same bits on every backend (wide.h).
 *
 * Quaternions q = (q0, q1, q2, q3) stand for q0 + i (q1 s1 + q2 s2 + q3 s3)
 * with Pauli matrices s_k.
 */
#ifndef QK_SITE_WIDE_SU3_H
#define QK_SITE_WIDE_SU3_H

#include "cuda/site/wide.h"

namespace QK_NS {
namespace {

struct wide_complex {
  wide re, im;
};
/* row by row */
struct wide_matrix {
  wide_complex e[9];
};
struct quaternion {
  wide q[4];
};

/* c = a b, or c += a b; c is neither a nor b.
 * (Members one by one: whole structs go through the stack.) */
template <bool ADD>
QK_PART void multiply(wide_matrix &__restrict c, const wide_matrix &a, const wide_matrix &b) {
  QK_UNROLL
  for (int i = 0; i < 3; i++) QK_UNROLL
  for (int j = 0; j < 3; j++) {
    wide re = a.e[3 * i].re * b.e[j].re - a.e[3 * i].im * b.e[j].im;
    wide im = a.e[3 * i].re * b.e[j].im + a.e[3 * i].im * b.e[j].re;
    QK_UNROLL
    for (int k = 1; k < 3; k++) {
      const wide_complex &x = a.e[3 * i + k], &y = b.e[3 * k + j];
      re += x.re * y.re;
      re -= x.im * y.im;
      im += x.re * y.im;
      im += x.im * y.re;
    }
    wide_complex &to = c.e[3 * i + j];
    to.re = ADD ? to.re + re : re;
    to.im = ADD ? to.im + im : im;
  }
}

/* c = a x + b y for numbers a, b */
QK_HD void combine(wide_matrix &c, double a, const wide_matrix &x, double b, const wide_matrix &y) {
  for (int k = 0; k < 9; k++) {
    c.e[k].re = a * x.e[k].re + b * y.e[k].re;
    c.e[k].im = a * x.e[k].im + b * y.e[k].im;
  }
}

QK_HD void scale(wide_matrix &m, double a) {
  for (int k = 0; k < 9; k++) {
    m.e[k].re = a * m.e[k].re;
    m.e[k].im = a * m.e[k].im;
  }
}

/* The real quaternion r with Re tr (g w) = (g r)_0 for all g of the SU(2) of rows and columns a,
 * b. */
QK_HD quaternion block_of(const wide_matrix &w, int a, int b) {
  const wide_complex &aa = w.e[4 * a], &ab = w.e[3 * a + b], &ba = w.e[3 * b + a], &bb = w.e[4 * b];
  return {{aa.re + bb.re, ab.im + ba.im, ab.re - ba.re, aa.im - bb.im}};
}

QK_HD wide norm2(const quaternion &r) {
  return r.q[0] * r.q[0] + r.q[1] * r.q[1] + r.q[2] * r.q[2] + r.q[3] * r.q[3];
}

/* h v^+ */
QK_HD quaternion times_adjoint(const quaternion &h, const quaternion &v) {
  const wide *a = h.q, *b = v.q;
  return {{a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3],
           a[1] * b[0] - a[0] * b[1] + (a[2] * b[3] - a[3] * b[2]),
           a[2] * b[0] - a[0] * b[2] + (a[3] * b[1] - a[1] * b[3]),
           a[3] * b[0] - a[0] * b[3] + (a[1] * b[2] - a[2] * b[1])}};
}

/* Rows a, b of m from the left by g. */
QK_HD void rotate_rows(const quaternion &g, int a, int b, wide_matrix &m) {
  const wide g0 = g.q[0], g1 = g.q[1], g2 = g.q[2], g3 = g.q[3];
  QK_UNROLL
  for (int j = 0; j < 3; j++) {
    wide_complex &x = m.e[3 * a + j], &y = m.e[3 * b + j];
    const wide xr = x.re, xi = x.im, yr = y.re, yi = y.im;
    x.re = g0 * xr - g3 * xi + (g2 * yr - g1 * yi);
    x.im = g0 * xi + g3 * xr + (g2 * yi + g1 * yr);
    y.re = g0 * yr + g3 * yi - (g2 * xr + g1 * xi);
    y.im = g0 * yi - g3 * yr + (g1 * xr - g2 * xi);
  }
}

QK_HD void normalise_row(wide_complex *r) {
  wide n = r[0].re * r[0].re + r[0].im * r[0].im;
  for (int j = 1; j < 3; j++) n = n + r[j].re * r[j].re + r[j].im * r[j].im;
  n = 1.0 / wide_sqrt(n);
  for (int j = 0; j < 3; j++) {
    r[j].re = r[j].re * n;
    r[j].im = r[j].im * n;
  }
}

/* Rows 1 and 2 orthonormal by Gram-Schmidt, row 3 = conj(row 1 x row 2). */
QK_HD void project(wide_matrix &m) {
  wide_complex *a = m.e, *b = m.e + 3, *c = m.e + 6;
  normalise_row(a);
  wide re = splat(0), im = splat(0); /* (row 1)^* . (row 2) */
  for (int j = 0; j < 3; j++) {
    re = re + a[j].re * b[j].re + a[j].im * b[j].im;
    im = im + a[j].re * b[j].im - a[j].im * b[j].re;
  }
  for (int j = 0; j < 3; j++) {
    b[j].re = b[j].re - (re * a[j].re - im * a[j].im);
    b[j].im = b[j].im - (re * a[j].im + im * a[j].re);
  }
  normalise_row(b);
  QK_UNROLL
  for (int j = 0; j < 3; j++) {
    const int k = (j + 1) % 3, l = (j + 2) % 3;
    c[j].re = a[k].re * b[l].re - a[k].im * b[l].im - (a[l].re * b[k].re - a[l].im * b[k].im);
    c[j].im = a[l].re * b[k].im + a[l].im * b[k].re - (a[k].re * b[l].im + a[k].im * b[l].re);
  }
}

} // namespace
} // namespace QK_NS
#endif
