/*
 * access.h: where the reals of a tile stand, and how lanes are loaded and stored.
 *
 * A tile of n reals a site is 8*n consecutive storage words. Inside it component c of lane l stands
 * at CPU:  c*8 + l GPU:  components are cut into pieces of W = 16 bytes' worth, the rest r = n % W
 * (a power of two) is a last, shorter piece; a piece holds lane 0's words, then lane 1's, ...: c <
 * n - r:  ((c/W)*8 + l)*W + c%W c >= n - r:  (n - r)*8 + l*r + c - (n - r) so that a thread loads
 * 16 bytes at a time and eight threads one 128-byte line. Pieces of colour vectors (n = 6) are
 * complex numbers in all precisions, W = 2: a thread that has two lanes loads 16 bytes in single.
 *
 * A spot is a place in a field: tile index and lane. On the CPU a work item has all lanes of the
 * tile, and the lane of the spot is used by the functions ending in _one only.
 *
 * Half spinors: 16-bit words times one float per (tile, lane); store computes it. A lane that holds
 * NaN or Inf is stored so that it is read back as not finite; nothing below 1e-38 survives.
 */
#ifndef QK_SITE_ACCESS_H
#define QK_SITE_ACCESS_H

#include "cuda/site/lane.h"

namespace QK_NS {

struct spot {
  int64_t tile;
  int lane;
};

/* A spinor field with its storage type known. */
template <class S> struct spinor {
  S *data;
  float *scale;
  int ntile;
};

template <class S> QK_ANY spinor<S> spinor_of(const qk_spinor_t &f) {
  return {(S *)f.data, f.scale, f.ntile};
}

/* Bytes from the first half of ghosts to that of exchange *epoch + later. */
QK_ANY int64_t turn_bytes(const qk_turns_t &t, uint32_t later) {
  return t.epoch == nullptr ? 0 : (int64_t)((*t.epoch + later) & 1) * t.flip;
}

/* Ghosts in the half that is read, or, one exchange later, written. */
template <class S>
QK_ANY spinor<S> ghosts_of(const qk_spinor_t &f, const qk_turns_t &t, uint32_t later) {
  const int64_t by = turn_bytes(t, later);
  spinor<S> s = spinor_of<S>(f);
  s.data = (S *)((char *)s.data + by);
  if (storage<S>::scaled) s.scale = (float *)((char *)s.scale + by);
  return s;
}

template <class S, int N> struct tile_shape {
  static constexpr int W = N == 2 * QK_COLOUR_COMPONENTS ? 2 : 16 / (int)sizeof(S);
  static constexpr int rest = N % W;
  static constexpr int whole = N - rest;
  static_assert((rest & (rest - 1)) == 0, "the last piece of a tile must be a power of two");
};

/* Index of component c of a lane inside its tile. For code that is not speed-critical. */
template <class S, int N> QK_HD int inner(int c, int lane) {
#ifdef __CUDACC__
  using T = tile_shape<S, N>;
  return c < T::whole ? ((c / T::W) * QK_TILE + lane) * T::W + c % T::W
                      : T::whole * QK_TILE + lane * T::rest + c - T::whole;
#else
  return c * QK_TILE + lane;
#endif
}

#ifdef __CUDACC__

template <int bytes> struct word;
template <> struct word<16> { using type = uint4; };
template <> struct word<8> { using type = uint2; };
template <> struct word<4> { using type = unsigned; };

/* What a load leaves in the caches: of what is read once, nothing in L1; or it may leave all of
 * them first. */
enum qk_keep { QK_KEEP, QK_PAST_L1, QK_LEAVE_FIRST };

inline __device__ uint4 load_past_l1(const uint4 *p) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(p));
  return v;
}
inline __device__ uint2 load_past_l1(const uint2 *p) {
  uint2 v;
  asm("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p));
  return v;
}
inline __device__ unsigned load_past_l1(const unsigned *p) {
  unsigned v;
  asm("ld.global.nc.L1::no_allocate.u32 %0, [%1];" : "=r"(v) : "l"(p));
  return v;
}

template <qk_keep keep, class V> __device__ V load_word(const V *p) {
  if constexpr (keep == QK_PAST_L1)
    return load_past_l1(p);
  else
    return keep == QK_LEAVE_FIRST ? __ldcs(p) : __ldg(p);
}

/* K consecutive storage words, one access. */
template <class S, int K, qk_keep keep> QK_HD void load_piece(const S *p, real<S> *r) {
  using V = typename word<K * sizeof(S)>::type;
  union {
    V v;
    S s[K];
  } u;
  u.v = load_word<keep>((const V *)p);
  QK_UNROLL
  for (int k = 0; k < K; k++) r[k] = widen(u.s[k]);
}

template <class S, int K> QK_HD void store_piece(S *p, const real<S> *r) {
  using V = typename word<K * sizeof(S)>::type;
  union U {
    V v;
    S s[K];
    __device__ U() {}
  } u;
  QK_UNROLL
  for (int k = 0; k < K; k++) narrow(r[k], u.s[k]);
  *(V *)p = u.v;
}

/* All N reals of one lane of the tile that starts at p: one address,
 * and constant distances from it. */
template <class S, int N, qk_keep keep = QK_KEEP>
QK_HD void load_lane(const S *p, int lane, real<S> *r) {
  using T = tile_shape<S, N>;
  const S *q = p + (uint32_t)(lane * T::W);
  QK_UNROLL
  for (int k = 0; k < T::whole / T::W; k++)
    load_piece<S, T::W, keep>(q + k * (QK_TILE * T::W), r + k * T::W);
  if constexpr (T::rest > 0)
    load_piece<S, T::rest, keep>(p + T::whole * QK_TILE + (uint32_t)(lane * T::rest), r + T::whole);
}

template <class S, int N> QK_HD void store_lane(S *p, int lane, const real<S> *r) {
  using T = tile_shape<S, N>;
  S *q = p + (uint32_t)(lane * T::W);
  QK_UNROLL
  for (int k = 0; k < T::whole / T::W; k++)
    store_piece<S, T::W>(q + k * (QK_TILE * T::W), r + k * T::W);
  if constexpr (T::rest > 0)
    store_piece<S, T::rest>(p + T::whole * QK_TILE + (uint32_t)(lane * T::rest), r + T::whole);
}

/* p + tile * words, for a field of fewer than 2^32 lanes: one instruction. */
template <class S> QK_HD S *tile_at(S *p, int64_t tile, uint32_t words) {
  return p + (uint64_t)(uint32_t)tile * words;
}

template <class S, int N> QK_HD void load_lanes(const S *data, spot at, lanes<real<S>> *r) {
  load_lane<S, N>(tile_at(data, at.tile, QK_TILE * N), at.lane, r);
}
template <class S, int N> QK_HD void store_lanes(S *data, spot at, const lanes<real<S>> *r) {
  store_lane<S, N>(tile_at(data, at.tile, QK_TILE * N), at.lane, r);
}
/* Colour vectors of the lane at a spot, which is even, and of the next one. */
template <class S> QK_HD void load_two_lanes(const S *data, spot at, real<S> *a, real<S> *b) {
  const S *p = tile_at(data, at.tile, QK_TILE * 6) + (uint32_t)(2 * at.lane);
  QK_UNROLL
  for (int c = 0; c < 6; c += 2) {
    real<S> v[4];
    load_piece<S, 4, QK_KEEP>(p + c * QK_TILE, v);
    a[c] = v[0];
    a[c + 1] = v[1];
    b[c] = v[2];
    b[c + 1] = v[3];
  }
}
template <class S>
QK_HD void store_two_lanes(S *data, spot at, const real<S> *a, const real<S> *b) {
  S *p = tile_at(data, at.tile, QK_TILE * 6) + (uint32_t)(2 * at.lane);
  QK_UNROLL
  for (int c = 0; c < 6; c += 2) {
    const real<S> v[4] = {a[c], a[c + 1], b[c], b[c + 1]};
    store_piece<S, 4>(p + c * QK_TILE, v);
  }
}
QK_HD float load_scale(const float *scale, spot at) {
  return __ldg(scale + ((uint32_t)at.tile * QK_TILE + (uint32_t)at.lane));
}
QK_HD void store_scale(float *scale, spot at, float s) {
  scale[(uint32_t)at.tile * QK_TILE + (uint32_t)at.lane] = s;
}

#else

#ifdef __AVX512F__
typedef double double_row __attribute__((vector_size(64), aligned(32), may_alias));
#else
using double_row = lanes<double>;
#endif
QK_HD void load_row(const double *p, lanes<double> &v) {
  v = *(const double_row *)p;
}
QK_HD void load_row(const float *p, lanes<float> &v) {
  v = *(const lanes<float> *)p;
}
QK_HD void store_row(double *p, const lanes<double> &v) {
  *(double_row *)p = v;
}
QK_HD void store_row(float *p, const lanes<float> &v) {
  *(lanes<float> *)p = v;
}
#ifdef __F16C__
QK_HD void load_row(const half *p, lanes<float> &v) {
  v = (lanes<float>)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
QK_HD void store_row(half *p, const lanes<float> &v) {
  _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph((__m256)v, _MM_FROUND_TO_NEAREST_INT));
}
#else
QK_SOFT_HALF void load_row(const half *p, lanes<float> &v) {
  for (int l = 0; l < QK_TILE; l++) v[l] = widen(p[l]);
}
QK_SOFT_HALF void store_row(half *p, const lanes<float> &v) {
  for (int l = 0; l < QK_TILE; l++) narrow(v[l], p[l]);
}
#endif

template <class S, int N> QK_HD void load_lanes(const S *data, spot at, lanes<real<S>> *r) {
  const S *p = data + at.tile * (QK_TILE * N);
  QK_UNROLL
  for (int c = 0; c < N; c++) load_row(p + c * QK_TILE, r[c]);
}
template <class S, int N> QK_HD void store_lanes(S *data, spot at, const lanes<real<S>> *r) {
  S *p = data + at.tile * (QK_TILE * N);
  QK_UNROLL
  for (int c = 0; c < N; c++) store_row(p + c * QK_TILE, r[c]);
}
/* The reals of a tile as they stand in a field, loaded where they are used. */
template <class S> struct rows_at {
  const S *p;
  QK_HD lanes<real<S>> operator[](int c) const {
    lanes<real<S>> v;
    load_row(p + c * QK_TILE, v);
    return v;
  }
};
/* Likewise those of one lane. */
template <class S> struct lane_at {
  const S *p;
  QK_HD real<S> operator[](int c) const { return widen(p[c * QK_TILE]); }
};

QK_HD lanes<float> load_scale(const float *scale, spot at) {
  lanes<float> s;
  load_row(scale + at.tile * QK_TILE, s);
  return s;
}
QK_HD void store_scale(float *scale, spot at, lanes<float> s) {
  store_row(scale + at.tile * QK_TILE, s);
}

#endif

/* The N reals of the lanes at a spot of a spinor field (N = 24; 12 in ghosts). */
template <int N, class S> QK_HD void load_spinor(const spinor<S> &f, spot at, lanes<real<S>> *r) {
  load_lanes<S, N>(f.data, at, r);
  if constexpr (storage<S>::scaled) {
    lanes<float> s = load_scale(f.scale, at);
    QK_UNROLL
    for (int c = 0; c < N; c++) r[c] = r[c] * s;
  }
}

/* Half: as 16-bit words and the scale that they are multiples of. */
template <int N, class S>
QK_SOFT_HALF void store_scaled(const spinor<S> &f, spot at, const lanes<float> *r) {
  constexpr float least = 1.17549435e-38f;
  lanes<float> top = lanes_abs(r[0]), scaled[N];
  QK_UNROLL
  for (int c = 1; c < N; c++) top = lanes_max(lanes_abs(r[c]), top);
  const lanes<float> zero = {};
  const lanes<float> inverse = top < least ? zero : 1.0f / top;
  QK_UNROLL
  for (int c = 0; c < N; c++) scaled[c] = r[c] * inverse;
  store_lanes<S, N>(f.data, at, scaled);
  store_scale(f.scale, at, top < least ? zero : top);
}

template <int N, class S>
QK_HD void store_spinor(const spinor<S> &f, spot at, const lanes<real<S>> *r) {
  if constexpr (storage<S>::scaled)
    store_scaled<N>(f, at, r);
  else
    store_lanes<S, N>(f.data, at, r);
}

} // namespace QK_NS
#endif
