/*
 * su3.h: 3x3 complex matrices in host memory, as 18 doubles, row-major, re and im
 * interleaved. Outputs must not overlap inputs.
 */
#ifndef QK_BASE_SU3_H
#define QK_BASE_SU3_H

/* c = a b */
static inline void qk_su3_mul(double *restrict c, const double *a, const double *b) {
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) {
      double re = 0, im = 0;
      for (int k = 0; k < 3; k++) {
        const double *x = a + 2 * (3 * i + k), *y = b + 2 * (3 * k + j);
        re += x[0] * y[0] - x[1] * y[1];
        im += x[0] * y[1] + x[1] * y[0];
      }
      c[2 * (3 * i + j)] = re;
      c[2 * (3 * i + j) + 1] = im;
    }
  }
}

/* Re tr(a b^+) */
static inline double qk_su3_re_dot(const double *a, const double *b) {
  double s = 0;
  for (int i = 0; i < 18; i++) s += a[i] * b[i];
  return s;
}

/* Row 3 = conj(row 1 x row 2). */
static inline void qk_su3_third_row(double *u) {
  for (int j = 0; j < 3; j++) {
    const double *a1 = u + 2 * ((j + 1) % 3), *a2 = u + 2 * ((j + 2) % 3);
    const double *b1 = a1 + 6, *b2 = a2 + 6;
    u[12 + 2 * j] = (a1[0] * b2[0] - a1[1] * b2[1]) - (a2[0] * b1[0] - a2[1] * b1[1]);
    u[13 + 2 * j] = -((a1[0] * b2[1] + a1[1] * b2[0]) - (a2[0] * b1[1] + a2[1] * b1[0]));
  }
}

/* det u = row 3 . (row 1 x row 2) */
static inline void qk_su3_det(const double *u, double det[2]) {
  double w[18];
  for (int i = 0; i < 12; i++) w[i] = u[i];
  qk_su3_third_row(w);
  det[0] = det[1] = 0;
  for (int j = 0; j < 3; j++) {
    const double *c = w + 12 + 2 * j,
                 *r = u + 12 + 2 * j; /* c is the conjugate of the cross product */
    det[0] += r[0] * c[0] + r[1] * c[1];
    det[1] += r[1] * c[0] - r[0] * c[1];
  }
}

#endif
