/*
 * wide.h: doubles of neighbouring sites, for code that must give the same bits on every backend:
 *
 *                GPU (a thread a site)    CPU (four sites in a vector)
 *   wide         double                   4 doubles
 *   wide_mask    bool                     4 x all ones or zero
 *   wide_int     int32_t                  4 int32_t
 *
 * Only + - * /, square roots, comparisons and bits of doubles, one operation after the other as
 * written. So what includes this must be compiled without contraction to fused multiply-adds
 * (-ffp-contract=off, nvcc --fmad=false), and everything stands in an anonymous namespace, lest the
 * linker take the copy of another compilation.
 */
#ifndef QK_SITE_WIDE_H
#define QK_SITE_WIDE_H

#include <math.h>

#include "cuda/site/philox.h"

namespace QK_NS {
namespace {

#ifdef __CUDACC__

enum { QK_WIDE = 1 };
using wide = double;
using wide_mask = bool;
using wide_int = int32_t;
using wide_bits = uint64_t;

QK_HD wide splat(double x) {
  return x;
}
QK_HD bool any(wide_mask m) {
  return m;
}
QK_HD bool lane_is_set(wide_mask m, int) {
  return m;
}
template <class V, class T> QK_HD void set_lane(V &v, int, T x) {
  v = x;
}
QK_HD wide_bits bits_of(wide x) {
  return (wide_bits)__double_as_longlong(x);
}
QK_HD wide double_of(wide_bits b) {
  return __longlong_as_double((long long)b);
}
QK_HD wide wide_sqrt(wide x) {
  return sqrt(x);
}

#else

enum { QK_WIDE = 4 };
typedef double wide __attribute__((vector_size(32)));
typedef int64_t wide_mask __attribute__((vector_size(32)));
typedef int32_t wide_int __attribute__((vector_size(16)));
typedef uint64_t wide_bits __attribute__((vector_size(32)));

QK_HD wide splat(double x) {
  return wide{x, x, x, x};
}
QK_HD bool any(wide_mask m) {
  return (m[0] | m[1] | m[2] | m[3]) != 0;
}
QK_HD bool lane_is_set(wide_mask m, int lane) {
  return m[lane] != 0;
}
template <class V, class T> QK_HD void set_lane(V &v, int lane, T x) {
  v[lane] = x;
}
QK_HD wide_bits bits_of(wide x) {
  return (wide_bits)x;
}
QK_HD wide double_of(wide_bits b) {
  return (wide)b;
}
QK_HD wide wide_sqrt(wide x) {
  wide y;
  for (int l = 0; l < QK_WIDE; l++) y[l] = __builtin_sqrt(x[l]);
  return y;
}

#endif

/* An integer below 2^52 as a double, exactly. */
QK_HD wide double_from(wide_bits b) {
  return double_of(b | 0x4330000000000000u) - 0x1p52;
}

/* -log(u) for 2^-1022 <= u <= 1: u = 2^e m with m between 1/sqrt 2 and sqrt 2, and
 * log m = 2 s (1 + s^2/3 + s^4/5 + ...) with s = (m - 1) / (m + 1). */
QK_HD wide minus_log(wide u) {
  const wide_bits b = bits_of(u);
  wide m = double_of((b & 0xfffffffffffffu) | 0x3ff0000000000000u);
  wide e = double_from(b >> 52) - 1023.0;
  const wide_mask upper = m > splat(1.4142135623730951);
  m = upper ? m * 0.5 : m;
  e = upper ? e + 1.0 : e;
  const wide s = (m - 1.0) / (m + 1.0), z = s * s;
  wide p = splat(1.0 / 21);
  QK_UNROLL
  for (int k = 9; k >= 0; k--) p = p * z + 1.0 / (2 * k + 1);
  return -(e * 0.69314718055994530942 + 2.0 * s * p);
}

/* sin(pi x) for |x| <= 1/2, by its series; where that rounds beyond 1, 1:
 * roots are taken of 1 - sin^2. */
QK_HD wide sin_pi(wide x) {
  const wide y = x * 3.14159265358979323846, z = y * y;
  wide p = splat(1);
  QK_UNROLL
  for (int k = 11; k >= 1; k--) p = 1.0 - z * (1.0 / (2 * k * (2 * k + 1))) * p;
  const wide s = y * p, least = s < splat(-1) ? splat(-1) : s;
  return least > splat(1) ? splat(1) : least;
}

/* Two uniform numbers of (0, 1], multiples of 2^-53, and eleven more bits: what one call of Philox
 * gives. */
struct wide_random {
  wide u[2];
  wide_bits spare;
};

/* Lane l: counter (site of the lane, c1, c2, c3). */
QK_PART void draw(const uint32_t site[QK_WIDE], uint32_t c1, uint32_t c2, uint32_t c3, uint64_t key,
                  wide_random &r) {
  wide_bits hi[2], lo[2];
  for (int l = 0; l < QK_WIDE; l++) {
    uint32_t c[4] = {site[l], c1, c2, c3};
    philox4x32_10(c, (uint32_t)key, (uint32_t)(key >> 32));
    for (int k = 0; k < 2; k++) {
      set_lane(hi[k], l, (uint64_t)c[2 * k]);
      set_lane(lo[k], l, (uint64_t)c[2 * k + 1]);
    }
  }
  for (int k = 0; k < 2; k++)
    r.u[k] = double_from(hi[k]) * 0x1p-32 + (double_from(lo[k] >> 11) + 1.0) * 0x1p-53;
  r.spare = lo[1] & 0x7ffu;
}

} // namespace
} // namespace QK_NS
#endif
