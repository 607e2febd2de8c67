/*
 * clanes.h: complex numbers of the eight lanes of a tile, as its rows of real and of imaginary
 * parts (CPU). Their arithmetic is that of each lane alone, whether the processor holds both rows
 * in one register or in two.
 *
 *   clanes<R>   with AVX-512 and R = float one vector, the eight real parts and then the imaginary
 *               ones, as two rows stand in a field; otherwise two lanes<R>
 *
 * Operators + and - work on clanes<R>, and * between R or shared(lanes<R>) and clanes<R>.
 */
#ifndef QK_SITE_CLANES_H
#define QK_SITE_CLANES_H

#include "cuda/site/access.h"

namespace QK_NS {

template <class R> struct clanes_split { lanes<R> re, im; };

template <class R>
QK_HD clanes_split<R> operator+(const clanes_split<R> &a, const clanes_split<R> &b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R>
QK_HD clanes_split<R> operator-(const clanes_split<R> &a, const clanes_split<R> &b) {
  return {a.re - b.re, a.im - b.im};
}
template <class F, class R> QK_HD clanes_split<R> operator*(const F &f, const clanes_split<R> &z) {
  return {f * z.re, f * z.im};
}

template <class R> struct clanes_kind { using type = clanes_split<R>; };
#ifdef __AVX512F__
typedef float float_clanes __attribute__((vector_size(2 * QK_TILE * sizeof(float))));
template <> struct clanes_kind<float> { using type = float_clanes; };
#endif
template <class R> using clanes = typename clanes_kind<R>::type;

/* ---- two rows ---- */

template <class S, class R> QK_HD void load_complex_row(const S *p, clanes_split<R> &z) {
  load_row(p, z.re);
  load_row(p + QK_TILE, z.im);
}
template <class S, class R> QK_HD void store_complex_row(S *p, const clanes_split<R> &z) {
  store_row(p, z.re);
  store_row(p + QK_TILE, z.im);
}
/* As rows of reals, and back. */
template <class R> QK_HD void to_rows(const clanes_split<R> &z, lanes<R> *r) {
  r[0] = z.re;
  r[1] = z.im;
}
template <class R> QK_HD void from_rows(const lanes<R> *r, clanes_split<R> &z) {
  z = {r[0], r[1]};
}
/* Lane l of z becomes that of x. */
template <class R> QK_HD void take_lane(clanes_split<R> &z, int l, const clanes_split<R> &x) {
  z.re[l] = x.re[l];
  z.im[l] = x.im[l];
}
template <class R> QK_HD clanes_split<R> times_i(const clanes_split<R> &z) {
  return {-z.im, z.re};
}
/* For * with clanes: a factor of each lane, or one of all. */
template <class R> QK_HD R shared(R f) {
  return f;
}
#ifdef __AVX512F__
QK_HD lanes<double> shared(const lanes<double> &f) {
  return f;
}
#else
QK_HD lanes<float> shared(const lanes<float> &f) {
  return f;
}
QK_HD lanes<double> shared(const lanes<double> &f) {
  return f;
}
#endif
/* a + i f z, where f has gone through turning(). */
template <class F> QK_HD F turning(const F &f) {
  return f;
}
template <class F, class R>
QK_HD clanes_split<R> add_turned(const clanes_split<R> &a, const F &f, const clanes_split<R> &z) {
  return {a.re - f * z.im, a.im + f * z.re};
}

#ifdef __AVX512F__

typedef float float_clanes_there __attribute__((vector_size(64), aligned(32), may_alias));

QK_HD void load_complex_row(const float *p, float_clanes &z) {
  z = *(const float_clanes_there *)p;
}
QK_HD void load_complex_row(const half *p, float_clanes &z) {
  z = (float_clanes)_mm512_maskz_cvtph_ps((__mmask16)-1, _mm256_loadu_si256((const __m256i *)p));
}
QK_HD void store_complex_row(float *p, const float_clanes &z) {
  *(float_clanes_there *)p = z;
}
QK_HD void to_rows(const float_clanes &z, lanes<float> *r) {
  r[0] = __builtin_shufflevector(z, z, 0, 1, 2, 3, 4, 5, 6, 7);
  r[1] = __builtin_shufflevector(z, z, 8, 9, 10, 11, 12, 13, 14, 15);
}
QK_HD float_clanes joined(const lanes<float> &re, const lanes<float> &im) {
  return __builtin_shufflevector(re, im, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}
QK_HD void from_rows(const lanes<float> *r, float_clanes &z) {
  z = joined(r[0], r[1]);
}
QK_HD void take_lane(float_clanes &z, int l, const float_clanes &x) {
  z[l] = x[l];
  z[QK_TILE + l] = x[QK_TILE + l];
}
QK_HD float_clanes swapped(const float_clanes &z) {
  return __builtin_shufflevector(z, z, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
}
/* f times (-1 for real parts, 1 for imaginary ones). */
QK_HD float_clanes minus_first(const float_clanes &f) {
  typedef int32_t bits __attribute__((vector_size(64)));
  constexpr int32_t s = INT32_MIN;
  const bits sign = {s, s, s, s, s, s, s, s};
  return (float_clanes)((bits)f ^ sign);
}
QK_HD float_clanes times_i(const float_clanes &z) {
  return minus_first(swapped(z));
}
QK_HD float_clanes shared(const lanes<float> &f) {
  return joined(f, f);
}
QK_HD float_clanes turning(float f) {
  return minus_first(f - float_clanes{});
}
QK_HD float_clanes turning(const float_clanes &f) {
  return minus_first(f);
}
QK_HD float_clanes add_turned(const float_clanes &a, const float_clanes &f, const float_clanes &z) {
  return a + f * swapped(z);
}

#endif

/* Components of a tile as they stand in a field, loaded where they are used. */
template <class S> struct complex_rows_at {
  const S *p;
  QK_HD clanes<real<S>> operator[](int c) const {
    clanes<real<S>> z;
    load_complex_row(p + 2 * c * QK_TILE, z);
    return z;
  }
};

} // namespace QK_NS
#endif
