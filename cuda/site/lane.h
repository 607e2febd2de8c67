/*
 * lane.h: the values that kernel bodies compute with, one source for nvcc and g++.
 *
 * A body works on the eight lanes of a tile (cuda/types.h). On the GPU one thread holds one lane,
 * on the CPU one work item holds all eight in a vector:
 *
 *                    GPU              CPU
 *   lanes<R>         R                eight R's, a GCC vector       (R = float or double)
 *   half             __half           struct of 16 bits
 *   real<S>          what storage type S is computed in: double, or float for float and half
 *
 * Operators + - * / and comparisons work on lanes<R>, and between lanes<R> and R. Bodies live in
 * namespace QK_NS, which the build sets for each compilation (qk_cuda, qk_cpu_base, qk_cpu_v3, ...,
 * because the CPU bodies are compiled for several instruction sets and linked into one program.
 *
 * QK_HD marks every function of a body: it is inlined into the kernel. QK_PART: likewise on the
 * GPU, but a function of its own on the CPU, where its values stand in memory anyway and large
 * bodies take long to compile. QK_ANY: runs on the host too.
 */
#ifndef QK_SITE_LANE_H
#define QK_SITE_LANE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <type_traits>

#include "cuda/types.h"

#ifndef QK_NS
#error "QK_NS must name the namespace of this compilation"
#endif

#ifdef __CUDACC__
#include <cuda_fp16.h>
#define QK_HD __device__ __forceinline__
#define QK_SOFT_HALF QK_HD
#define QK_PART __device__ __forceinline__
#define QK_ANY __host__ __device__ inline
#define QK_UNROLL _Pragma("unroll")
#else
#ifdef __F16C__
#include <immintrin.h>
#endif
#define QK_HD inline __attribute__((always_inline))
#define QK_PART __attribute__((noinline))
/* Functions that convert half: inlined where the processor can, calls where it is done in software,
 * since eight conversions for each row of a tile would swamp the bodies. */
#ifdef __F16C__
#define QK_SOFT_HALF QK_HD
#else
#define QK_SOFT_HALF inline __attribute__((noinline))
#endif
#define QK_ANY inline
#define QK_UNROLL _Pragma("GCC unroll 72")
#endif

namespace QK_NS {

#ifdef __CUDACC__
using half = __half;
template <class R> using lanes = R;
#else
struct half {
  uint16_t bits;
};
template <class R> struct lane_vector;
template <> struct lane_vector<float> {
  typedef float type __attribute__((vector_size(QK_TILE * sizeof(float))));
};
#if defined __AVX__ && !defined __AVX512F__
/* Two vectors of four: GCC takes one of eight doubles apart, through memory, where the processor
 * has no registers of that size. */
struct double8 {
  typedef double part __attribute__((vector_size(32)));
  part lo, hi;
  QK_HD double operator[](int l) const { return l < 4 ? lo[l] : hi[l - 4]; }
  QK_HD double &operator[](int l) { return reinterpret_cast<double *>(this)[l]; }
};
#define QK_DOUBLE8(op)                                                                             \
  QK_HD double8 operator op(const double8 &a, const double8 &b) {                                  \
    return {a.lo op b.lo, a.hi op b.hi};                                                           \
  }                                                                                                \
  QK_HD double8 operator op(const double8 &a, double b) {                                          \
    return {a.lo op b, a.hi op b};                                                                 \
  }                                                                                                \
  QK_HD double8 operator op(double a, const double8 &b) {                                          \
    return {a op b.lo, a op b.hi};                                                                 \
  }
QK_DOUBLE8(+)
QK_DOUBLE8(-)
QK_DOUBLE8(*)
QK_DOUBLE8(/)
#undef QK_DOUBLE8
QK_HD double8 operator-(const double8 &a) {
  return {-a.lo, -a.hi};
}
QK_HD double8 lanes_kept(const double8 &on, const double8 &x) {
  const double8::part none = {};
  return {on.lo != 0 ? x.lo : none, on.hi != 0 ? x.hi : none};
}
template <> struct lane_vector<double> { using type = double8; };
#else
template <> struct lane_vector<double> {
  typedef double type __attribute__((vector_size(QK_TILE * sizeof(double))));
};
#endif
template <class R> using lanes = typename lane_vector<R>::type;
#endif

template <class S> struct storage {
  using real = S;
  static constexpr bool scaled = false;
};
template <> struct storage<half> {
  using real = float;
  static constexpr bool scaled = true;
};
template <class S> using real = typename storage<S>::real;

/* ---- storage to arithmetic and back ---- */

QK_HD double widen(double x) {
  return x;
}
QK_HD float widen(float x) {
  return x;
}
QK_HD void narrow(double x, double &s) {
  s = x;
}
QK_HD void narrow(float x, float &s) {
  s = x;
}
QK_HD void narrow(double x, float &s) {
  s = (float)x;
}

#ifdef __CUDACC__

QK_HD float widen(half x) {
  return __half2float(x);
}
QK_HD void narrow(float x, half &s) {
  s = __float2half_rn(x);
}

template <class To, class From> QK_HD To lanes_cast(From x) {
  return (To)x;
}
QK_HD float lanes_max(float a, float b) {
  return fmaxf(a, b);
}
QK_HD float lanes_abs(float a) {
  return fabsf(a);
}

#else

/* Widening is exact. 2^112 moves the exponent from half's bias to float's and normalises
 * subnormals; Inf and NaN are put back to the top exponent. */
QK_HD float widen(half x) {
  uint32_t sign = (uint32_t)(x.bits & 0x8000u) << 16, rest = (uint32_t)(x.bits & 0x7fffu) << 13;
  float f;
  memcpy(&f, &rest, sizeof f);
  f *= 0x1p112f;
  memcpy(&rest, &f, sizeof f);
  rest |= sign | ((x.bits & 0x7c00u) == 0x7c00u ? 0x7f800000u : 0u);
  memcpy(&f, &rest, sizeof f);
  return f;
}

/* To nearest, ties to even; beyond 65504 to Inf; NaN stays NaN. A subnormal result is rounded by
 * adding one half, whose last bit is worth the smallest subnormal. */
QK_HD void narrow(float x, half &s) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  uint32_t sign = u >> 16 & 0x8000u, mag = u & 0x7fffffffu, out;
  float m;
  memcpy(&m, &mag, sizeof m);
  if (mag > 0x7f800000u)
    out = 0x7e00u;
  else if (mag >= 0x477ff000u)
    out = 0x7c00u;
  else if (mag < 0x38800000u) {
    m += 0.5f;
    memcpy(&out, &m, sizeof out);
    out -= 0x3f000000u;
  } else
    out = (mag - 0x38000000u + 0xfffu + (mag >> 13 & 1u)) >> 13;
  s.bits = (uint16_t)(sign | out);
}

template <class To, class From> QK_HD To lanes_cast(const From &x) {
#if defined __AVX__ && !defined __AVX512F__
  typedef float part __attribute__((vector_size(16)));
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<To, double8>) {
    const part lo = __builtin_shufflevector(x, x, 0, 1, 2, 3);
    const part hi = __builtin_shufflevector(x, x, 4, 5, 6, 7);
    return {__builtin_convertvector(lo, double8::part), __builtin_convertvector(hi, double8::part)};
  } else {
    const part lo = __builtin_convertvector(x.lo, part), hi = __builtin_convertvector(x.hi, part);
    return __builtin_shufflevector(lo, hi, 0, 1, 2, 3, 4, 5, 6, 7);
  }
#else
  return __builtin_convertvector(x, To);
#endif
}
/* x in the lanes where on is not 0, else 0. */
template <class V> QK_HD V lanes_kept(const V &on, const V &x) {
  return on != 0 ? x : V{};
}
/* The larger one; b where a is NaN. */
QK_HD lanes<float> lanes_max(lanes<float> a, lanes<float> b) {
  return a > b ? a : b;
}
QK_HD lanes<float> lanes_abs(lanes<float> a) {
  return a < 0.0f ? -a : a;
}

#endif

} // namespace QK_NS
#endif
