/*
 * su3_near.h: from a 3x3 matrix to SU(3): the nearest matrix, and the exponential. One matrix at a
 * time, in double.
 *
 * Nearest: V maximises Re tr (V^+ A). One-sided Jacobi rotations (Hestenes), which have determinant
 * 1, give A = P diag(s1, s2, s3 e^{i theta}) Q^+ with P and Q in SU(3). Then V = P diag(e^{i f_k})
 * Q^+ with f1 + f2 + f3 = 0, where s1 cos f1 + s2 cos f2 + s3 cos(f3 - theta) is largest: two
 * equations, by Newton's method from where small angles have the solution.
 * Any A of rank 2 or 3 will do.
 */
#ifndef QK_SITE_SU3_NEAR_H
#define QK_SITE_SU3_NEAR_H

#include <math.h>

#include "cuda/site/mat3.h"
#include "cuda/site/su3.h"

namespace QK_NS {

/* Columns p and q of a (and of what is carried along) rotated so that those of a are orthogonal;
 * false if they were. */
template <int p, int q> QK_HD bool rotate_columns(mat3 &a, mat3 &carried) {
  double norm_p = 0, norm_q = 0, re = 0, im = 0; /* a_p^+ a_q */
  QK_UNROLL
  for (int i = 0; i < 18; i += 6) {
    const double pr = a.e[i + 2 * p], pi = a.e[i + 2 * p + 1];
    const double qr = a.e[i + 2 * q], qi = a.e[i + 2 * q + 1];
    norm_p += pr * pr + pi * pi;
    norm_q += qr * qr + qi * qi;
    re += pr * qr + pi * qi;
    im += pr * qi - pi * qr;
  }
  const double size2 = re * re + im * im;
  if (!(size2 > 1e-32 * norm_p * norm_q)) return false;
  const double size = sqrt(size2), zeta = (norm_q - norm_p) / (2 * size);
  const double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + sqrt(1 + zeta * zeta));
  const double c = 1 / sqrt(1 + t * t), sr = c * t * re / size, si = c * t * im / size;
  QK_UNROLL
  for (int i = 0; i < 36; i += 6) {
    double *row = i < 18 ? a.e + i : carried.e + (i - 18);
    const double pr = row[2 * p], pi = row[2 * p + 1], qr = row[2 * q], qi = row[2 * q + 1];
    row[2 * p] = c * pr - (sr * qr + si * qi);
    row[2 * p + 1] = c * pi - (sr * qi - si * qr);
    row[2 * q] = c * qr + (sr * pr - si * pi);
    row[2 * q + 1] = c * qi + (sr * pi + si * pr);
  }
  return true;
}

QK_HD double column_norm(const mat3 &a, int k) {
  double n = 0;
  QK_UNROLL
  for (int i = 0; i < 18; i += 6)
    n += a.e[i + 2 * k] * a.e[i + 2 * k] + a.e[i + 2 * k + 1] * a.e[i + 2 * k + 1];
  return sqrt(n);
}

/* Column k becomes column k + 1, and the last one the first. */
QK_HD void cycle_columns(mat3 &a) {
  QK_UNROLL
  for (int i = 0; i < 18; i += 6) {
    const double re = a.e[i + 4], im = a.e[i + 5];
    QK_UNROLL
    for (int k = 5; k >= 2; k--) a.e[i + k] = a.e[i + k - 2];
    a.e[i] = re;
    a.e[i + 1] = im;
  }
}

/* f1 and f2 of the text above. */
QK_HD void best_phases(const double s[3], double theta, double f[2]) {
  const double w0 = s[1] * s[2], w1 = s[0] * s[2], all = w0 + w1 + s[0] * s[1];
  f[0] = -theta * w0 / all;
  f[1] = -theta * w1 / all;
  for (int iteration = 0; iteration < 20; iteration++) {
    const double c0 = s[0] * cos(f[0]), c1 = s[1] * cos(f[1]), third = f[0] + f[1] + theta;
    const double c2 = s[2] * cos(third), g2 = s[2] * sin(third);
    const double g0 = s[0] * sin(f[0]) + g2, g1 = s[1] * sin(f[1]) + g2;
    const double det = c0 * c1 + c2 * (c0 + c1);
    const double d0 = ((c1 + c2) * g0 - c2 * g1) / det, d1 = ((c0 + c2) * g1 - c2 * g0) / det;
    f[0] -= d0;
    f[1] -= d1;
    if (!(fabs(d0) + fabs(d1) > 1e-15)) return;
  }
}

QK_HD mat3 nearest_su3(mat3 a) {
  mat3 q, p, v;
  QK_UNROLL
  for (int k = 0; k < 18; k++) q.e[k] = k % 8 == 0;
  for (int sweep = 0; sweep < 30; sweep++) {
    bool turned = rotate_columns<0, 1>(a, q);
    turned = rotate_columns<0, 2>(a, q) || turned;
    turned = rotate_columns<1, 2>(a, q) || turned;
    if (!turned) break;
  }
  /* the smallest column last */
  double s[3] = {column_norm(a, 0), column_norm(a, 1), column_norm(a, 2)};
  for (int turn = 0; turn < 2 && !(s[2] <= s[0] && s[2] <= s[1]); turn++) {
    cycle_columns(a);
    cycle_columns(q);
    const double last = s[2];
    s[2] = s[1];
    s[1] = s[0];
    s[0] = last;
  }
  double first[6], second[6], third[6], z[2] = {0, 0};
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    QK_UNROLL
    for (int k = 0; k < 2; k++) {
      first[2 * i + k] = a.e[6 * i + k] / s[0];
      second[2 * i + k] = a.e[6 * i + 2 + k] / s[1];
    }
  }
  third_row(first, second, third);
  QK_UNROLL
  for (int i = 0; i < 6; i += 2) {
    const double ar = a.e[3 * i + 4], ai = a.e[3 * i + 5];
    z[0] += third[i] * ar + third[i + 1] * ai;
    z[1] += third[i] * ai - third[i + 1] * ar;
  }
  s[2] = sqrt(z[0] * z[0] + z[1] * z[1]);
  double f[2];
  best_phases(s, atan2(z[1], z[0]), f);
  const double c[3] = {cos(f[0]), cos(f[1]), cos(f[0] + f[1])};
  const double d[3] = {sin(f[0]), sin(f[1]), -sin(f[0] + f[1])};
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    const double *column[3] = {first + 2 * i, second + 2 * i, third + 2 * i};
    QK_UNROLL
    for (int k = 0; k < 3; k++) {
      p.e[6 * i + 2 * k] = c[k] * column[k][0] - d[k] * column[k][1];
      p.e[6 * i + 2 * k + 1] = c[k] * column[k][1] + d[k] * column[k][0];
    }
  }
  v = times<false, true>(p, q);
  return v;
}

/* exp(X) of an anti-hermitian traceless X = i H. H^3 = c1 H + c0 turns the series into three
 * numbers; X is halved until it is small, and the result squared as often. */
QK_HD mat3 exponential(mat3 x) {
  double norm2 = 0;
  QK_UNROLL
  for (int k = 0; k < 18; k++) norm2 += x.e[k] * x.e[k];
  int halvings = 0;
  for (; norm2 > 0.25 && halvings < 30; halvings++) {
    QK_UNROLL
    for (int k = 0; k < 18; k++) x.e[k] *= 0.5;
    norm2 *= 0.25;
  }
  const mat3 x2 = times(x, x);
  double trace = 0; /* Im tr X^3 */
  QK_UNROLL
  for (int i = 0; i < 3; i++) {
    QK_UNROLL
    for (int j = 0; j < 3; j++)
      trace += x2.e[6 * i + 2 * j] * x.e[6 * j + 2 * i + 1] +
               x2.e[6 * i + 2 * j + 1] * x.e[6 * j + 2 * i];
  }
  const double c0 = -trace / 3, c1 = norm2 / 2;
  /* sum of (i H)^n / n!, H^n = h[0] + h[1] H + h[2] H^2 */
  double f[3][2] = {{1, 0}, {0, 0}, {0, 0}}, h[3] = {1, 0, 0}, factor = 1;
  for (int n = 1; n <= 16; n++) {
    const double top = h[2];
    h[2] = h[1];
    h[1] = h[0] + top * c1;
    h[0] = top * c0;
    factor /= n;
    const double signed_factor = n % 4 < 2 ? factor : -factor;
    QK_UNROLL
    for (int k = 0; k < 3; k++) f[k][n % 2] += signed_factor * h[k];
  }
  /* H = -i X, H^2 = -X^2 */
  mat3 e;
  QK_UNROLL
  for (int k = 0; k < 18; k += 2) {
    const double one = k % 8 == 0;
    e.e[k] = one * f[0][0] + f[1][1] * x.e[k] + f[1][0] * x.e[k + 1] - f[2][0] * x2.e[k] +
             f[2][1] * x2.e[k + 1];
    e.e[k + 1] = one * f[0][1] + f[1][1] * x.e[k + 1] - f[1][0] * x.e[k] - f[2][0] * x2.e[k + 1] -
                 f[2][1] * x2.e[k];
  }
  for (; halvings > 0; halvings--) e = times(e, e);
  return e;
}

} // namespace QK_NS
#endif
