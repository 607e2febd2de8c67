/*
 * su3.h: links in their stored forms, and what they do to half-spinors.
 *
 * A link is 18 reals [row][column][re,im]. Stored forms:
 *   18  all of it
 *   12  two rows; the third is conj(row 0 x row 1)
 *    8  U' = U with its columns shifted cyclically, U'[:,j] = U[:,(j+k)%3], k such that |U'00| is
 *       the smallest of the row, so that |U'01|^2 + |U'02|^2 >= 2/3 can be divided by. Kept are
 *       U'01, U'02, U'10 and the phases of U'00 and U'20 (Bunk and Sommer, Comput. Phys. Commun. 40
 *       (1986) 229); the rest follows from unit rows and columns. The moduli of U'00 and U'20 come
 *       out of square roots: where they are small their error is the square root of the stored one.
 *         float, double: [arg U'00 / pi + 4k, arg U'20 / pi, U'01, U'02, U'10]
 *         half:          16-bit integers, [k + 4 round(2^13 arg U'00 / pi),
 *                        round(2^15 arg U'20 / pi), round(32767 x) for the other six]
 *
 * T is R for one site or lanes<R> for eight.
 */
#ifndef QK_SITE_SU3_H
#define QK_SITE_SU3_H

#include <math.h>

#include "cuda/site/access.h"

namespace QK_NS {

/* c = conj(a x b) for rows a, b, c of three complex numbers. */
template <class T> QK_HD void third_row(const T *a, const T *b, T *c) {
  QK_UNROLL
  for (int j = 0; j < 3; j++) {
    const int k = 2 * ((j + 1) % 3), l = 2 * ((j + 2) % 3);
    c[2 * j] = a[k] * b[l] - a[k + 1] * b[l + 1] - a[l] * b[k] + a[l + 1] * b[k + 1];
    c[2 * j + 1] = a[l] * b[k + 1] + a[l + 1] * b[k] - a[k] * b[l + 1] - a[k + 1] * b[l];
  }
}

#ifdef __CUDACC__
QK_HD void sincos_pi(double x, double *s, double *c) {
  sincospi(x, s, c);
}
QK_HD void sincos_pi(float x, float *s, float *c) {
  sincospif(x, s, c);
}
#else
QK_HD void sincos_pi(double x, double *s, double *c) {
  *s = sin(M_PI * x);
  *c = cos(M_PI * x);
}
QK_HD void sincos_pi(float x, float *s, float *c) {
  *s = sinf((float)M_PI * x);
  *c = cosf((float)M_PI * x);
}
#endif

/* The link from its eight stored numbers, already widened; p0, p2: phases / pi of U'00 and U'20. */
template <class R> QK_HD void expand8(R p0, R p2, int k, const R *w, R u[18]) {
  const R *a1 = w, *a2 = w + 2, *b0 = w + 4;
  R v[18];
  const R n = a1[0] * a1[0] + a1[1] * a1[1] + a2[0] * a2[0] + a2[1] * a2[1];
  const R rest = n - b0[0] * b0[0] - b0[1] * b0[1], inverse = (R)1 / n;
  const R m0 = n < (R)1 ? sqrt((R)1 - n) : (R)0, m2 = rest > (R)0 ? sqrt(rest) : (R)0;
  R s, c;
  sincos_pi(p0, &s, &c);
  const R a0[2] = {m0 * c, m0 * s};
  sincos_pi(p2, &s, &c);
  const R c0[2] = {m2 * c, m2 * s};
  const R q[2] = {inverse * (a0[0] * b0[0] + a0[1] * b0[1]),
                  inverse * (a0[0] * b0[1] - a0[1] * b0[0])};
  const R d[2] = {inverse * c0[0], -inverse * c0[1]};
  v[0] = a0[0];
  v[1] = a0[1];
  v[2] = a1[0];
  v[3] = a1[1];
  v[4] = a2[0];
  v[5] = a2[1];
  v[6] = b0[0];
  v[7] = b0[1];
  /* row 1: -(q a1 + d conj a2), d conj a1 - q a2, with q = conj(a0) b0 / n, d = conj(c0) / n */
  v[8] = -(q[0] * a1[0] - q[1] * a1[1]) - (d[0] * a2[0] + d[1] * a2[1]);
  v[9] = -(q[0] * a1[1] + q[1] * a1[0]) - (d[1] * a2[0] - d[0] * a2[1]);
  v[10] = (d[0] * a1[0] + d[1] * a1[1]) - (q[0] * a2[0] - q[1] * a2[1]);
  v[11] = (d[1] * a1[0] - d[0] * a1[1]) - (q[0] * a2[1] + q[1] * a2[0]);
  third_row(v, v + 6, v + 12);
  QK_UNROLL
  for (int i = 0; i < 18; i += 6) {
    QK_UNROLL
    for (int j = 0; j < 6; j++)
      u[i + j] = k == 0 ? v[i + j] : k == 1 ? v[i + (j + 4) % 6] : v[i + (j + 2) % 6];
  }
}

/* Whether the words of a link of 8 reals are integers: those of 16 bits, whatever 16-bit float the
 * other links are. */
template <class S> constexpr bool integer_words = sizeof(S) == 2;

template <class S> QK_HD int16_t integer_of(S x) {
  int16_t b;
  static_assert(sizeof b == sizeof x, "words of 16 bits");
  memcpy(&b, &x, sizeof b);
  return b;
}

template <class S> QK_HD void expand8_words(const S w[8], real<S> u[18]) {
  using R = real<S>;
  if constexpr (integer_words<S>) {
    const int first = integer_of(w[0]);
    float rest[6];
    QK_UNROLL
    for (int i = 0; i < 6; i++) rest[i] = (float)integer_of(w[i + 2]) * (1.0f / 32767.0f);
    expand8<float>((float)(first >> 2) * 0x1p-13f, (float)integer_of(w[1]) * 0x1p-15f, first & 3,
                   rest, u);
  } else {
    const R k = floor(w[0] * (R)0.25 + (R)0.5);
    expand8<R>(w[0] - 4 * k, w[1], (int)k, w + 2, u);
  }
}

/* The link of one site out of its stored words. */
#ifdef __CUDACC__
template <class S, int REALS>
QK_HD void load_link_one(const S *tile, int lane, int, real<S> u[18]) {
  if constexpr (REALS == 8) {
    S w[8];
    const uint4 *p = (const uint4 *)tile + lane;
    constexpr int pieces = (int)sizeof(S) / 2;
    QK_UNROLL
    for (int k = 0; k < pieces; k++) {
      const uint4 v = __ldg(p + k * QK_TILE);
      memcpy(w + k * (8 / pieces), &v, sizeof v);
    }
    expand8_words(w, u);
  } else {
    load_lane<S, REALS>(tile, lane, u);
    if constexpr (REALS == 12) third_row(u, u + 6, u + 12);
  }
}
#else
/* The CPU decides on the number of reals at run time: it is a branch a link, and one body instead
 * of three. */
template <class S> QK_PART void load_link_one(const S *tile, int lane, int reals, real<S> u[18]) {
  if (reals == 8) {
    S w[8];
    for (int k = 0; k < 8; k++) w[k] = tile[k * QK_TILE + lane];
    expand8_words(w, u);
    return;
  }
  for (int k = 0; k < reals; k++) u[k] = widen(tile[k * QK_TILE + lane]);
  if (reals == 12) third_row(u, u + 6, u + 12);
}

/* The links of the eight sites of a tile. */
template <class S> QK_PART void load_link_tile(const S *tile, int reals, lanes<real<S>> *u) {
  if (reals == 8) {
    for (int l = 0; l < QK_TILE; l++) {
      real<S> one[18];
      load_link_one<S>(tile, l, reals, one);
      for (int k = 0; k < 18; k++) u[k][l] = one[k];
    }
    return;
  }
  for (int k = 0; k < reals; k++) load_row(tile + k * QK_TILE, u[k]);
  if (reals == 12) third_row(u, u + 6, u + 12);
}
#endif

/* r = U h, or U^+ h, for one row of a half-spinor: six sums and the row stay in registers. */
template <bool DAGGER, class U, class T> QK_HD void link_times_row(const U &u, const T *h, T *r) {
  QK_UNROLL
  for (int j = 0; j < 3; j++) {
    QK_UNROLL
    for (int i = 0; i < 3; i++) {
      const int k = DAGGER ? 6 * j + 2 * i : 6 * i + 2 * j;
      const auto ur = u[k], ui = u[k + 1];
      const T hr = h[2 * j], hi = h[2 * j + 1];
      const T re = j == 0 ? ur * hr : r[2 * i] + ur * hr;
      const T im = j == 0 ? ur * hi : r[2 * i + 1] + ur * hi;
      r[2 * i] = DAGGER ? re + ui * hi : re - ui * hi;
      r[2 * i + 1] = DAGGER ? im - ui * hr : im + ui * hr;
    }
  }
}
/* r = U h, or U^+ h, for both spins of a half-spinor. */
template <bool DAGGER, class U, class T> QK_HD void link_times(const U *u, const T *h, T *r) {
  QK_UNROLL
  for (int s = 0; s < 12; s += 6) {
    QK_UNROLL
    for (int i = 0; i < 3; i++) {
      T re, im;
      QK_UNROLL
      for (int j = 0; j < 3; j++) {
        const U ur = u[DAGGER ? 6 * j + 2 * i : 6 * i + 2 * j];
        const U ui = u[DAGGER ? 6 * j + 2 * i + 1 : 6 * i + 2 * j + 1];
        const T hr = h[s + 2 * j], hi = h[s + 2 * j + 1];
        if (j == 0) {
          re = ur * hr;
          im = ur * hi;
        } else {
          re = re + ur * hr;
          im = im + ur * hi;
        }
        re = DAGGER ? re + ui * hi : re - ui * hi;
        im = DAGGER ? im - ui * hr : im + ui * hr;
      }
      r[s + 2 * i] = re;
      r[s + 2 * i + 1] = im;
    }
  }
}

/* ---- compression, from double, one site ---- */

template <class S> QK_HD void narrow_link(double x, S &s) {
  narrow((real<S>)x, s);
}

template <class S> QK_HD void set_words8(const double w[2], int k, const double x[6], S out[8]) {
  if constexpr (integer_words<S>) {
    int16_t b[8];
    b[0] = (int16_t)(k + 4 * (((int)rint(w[0] * 8192.0) + 8192) % 16384 - 8192));
    b[1] = (int16_t)(((int)rint(w[1] * 32768.0) + 32768) % 65536 - 32768);
    for (int i = 0; i < 6; i++) b[i + 2] = (int16_t)rint(fmax(-1.0, fmin(1.0, x[i])) * 32767.0);
    memcpy(out, b, sizeof b);
  } else {
    out[0] = (S)(w[0] + 4.0 * k);
    out[1] = (S)w[1];
    for (int i = 0; i < 6; i++) out[i + 2] = (S)x[i];
  }
}

/* The stored words of a link. */
template <class S> QK_HD void compress_link(const double u[18], int reals, S *out) {
  if (reals != 8) {
    for (int i = 0; i < reals; i++) narrow_link(u[i], out[i]);
    return;
  }
  int k = 0;
  double least = 2.0;
  for (int j = 0; j < 3; j++) {
    const double m = u[2 * j] * u[2 * j] + u[2 * j + 1] * u[2 * j + 1];
    if (m < least) {
      least = m;
      k = j;
    }
  }
  const int c0 = 2 * k, c1 = 2 * ((k + 1) % 3), c2 = 2 * ((k + 2) % 3);
  const double phase[2] = {atan2(u[c0 + 1], u[c0]) / M_PI,
                           atan2(u[12 + c0 + 1], u[12 + c0]) / M_PI};
  const double x[6] = {u[c1], u[c1 + 1], u[c2], u[c2 + 1], u[6 + c0], u[6 + c0 + 1]};
  set_words8(phase, k, x, out);
}

} // namespace QK_NS
#endif
