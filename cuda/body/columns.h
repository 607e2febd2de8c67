/*
 * columns.h: one RHS of a block, site by site: import from and export to wire order, copies
 * between blocks, and sources.
 *
 * A site is named by its local lexicographic index n (x fastest, then y, z, t), the order of the
 * wire. Values are made in double and rounded once to the field's precision. Conventions:
 * cuda/ops.h.
 * Noise: Philox4x32-10, word c % 4 of counter (site, site >> 32, c / 4, 0) for component c,
 * key = seed; its highest bit is the sign of the real part, the next that of the imaginary part
 * (Z4), 1 is minus.
 */
#ifndef QK_BODY_COLUMNS_H
#define QK_BODY_COLUMNS_H

#include <type_traits>

#include "cuda/ops.h"
#include "cuda/site/geom.h"
#include "cuda/site/phase.h"
#include "cuda/site/philox.h"

namespace QK_NS {

/* Calls body with the number of components of the field as a constant. */
template <class F> void with_components(const qk_spinor_t &f, const F &body) {
  if (f.ncomp == QK_COLOUR_COMPONENTS)
    body(std::integral_constant<int, QK_COLOUR_COMPONENTS>{});
  else
    body(std::integral_constant<int, 12>{});
}

QK_HD void coordinates_of(const int l[4], int64_t n, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(n % l[mu]);
    n /= l[mu];
  }
}

/* Where RHS number rhs of a site, by its place in the field, stands. */
QK_HD spot column_at(int ntile, int rhs, int64_t site) {
  if (ntile == 0) return {site / QK_TILE, (int)(site % QK_TILE)};
  return {site * ntile + rhs / QK_TILE, rhs % QK_TILE};
}

/* Where RHS number rhs of local site x stands in a full field. */
template <class S>
QK_HD spot column_spot(const qk_lattice_t &lat, const spinor<S> &f, int rhs, const int x[4]) {
  const int parity = (x[0] + x[1] + x[2] + x[3]) & 1;
  const int64_t site = (int64_t)parity * lat.vcb + cb_of(lat, x);
  return column_at(f.ntile, rhs, site);
}

/* What the largest of n reals is, and the reals in its units. */
template <int N> QK_HD float take_scale(float *v) {
  constexpr float least = 1.17549435e-38f;
  float top = 0;
  QK_UNROLL
  for (int c = 0; c < N; c++) {
    const float a = v[c] < 0 ? -v[c] : v[c];
    top = a > top ? a : top;
  }
  const float inverse = top < least ? 0 : 1 / top;
  QK_UNROLL
  for (int c = 0; c < N; c++) v[c] *= inverse;
  return top < least ? 0 : top;
}

/* A tile is made of pieces of eight reals a site, that of colour vectors is one of six. */
template <int N> constexpr int column_piece = N == QK_COLOUR_COMPONENTS ? 6 : 8;

/* Piece k, of P reals, of a lane, without the scale of half precision. */
template <int P, class S> QK_HD void load_reals(const S *tile, int k, int lane, real<S> *v) {
  const S *p = tile + k * (QK_TILE * P);
#ifdef __CUDACC__
  load_lane<S, P>(p, lane, v);
#else
  for (int c = 0; c < P; c++) v[c] = widen(p[c * QK_TILE + lane]);
#endif
}
template <int P, class S> QK_HD void store_reals(S *tile, int k, int lane, const real<S> *v) {
  S *p = tile + k * (QK_TILE * P);
#ifdef __CUDACC__
  store_lane<S, P>(p, lane, v);
#else
  for (int c = 0; c < P; c++) narrow(v[c], p[c * QK_TILE + lane]);
#endif
}

template <int N, class S> QK_HD void load_one(const spinor<S> &f, spot at, double *v) {
  const S *p = f.data + at.tile * (QK_TILE * 2 * N);
  double scale = 1;
  if constexpr (storage<S>::scaled) scale = f.scale[at.tile * QK_TILE + at.lane];
  constexpr int P = column_piece<N>;
  real<S> w[2 * N];
  QK_UNROLL
  for (int k = 0; k < 2 * N / P; k++) load_reals<P>(p, k, at.lane, w + k * P);
  for (int c = 0; c < 2 * N; c++) v[c] = scale * (double)w[c];
}

template <int N, class S> QK_HD void store_one(const spinor<S> &f, spot at, const double *v) {
  constexpr int P = column_piece<N>;
  S *p = f.data + at.tile * (QK_TILE * 2 * N);
  real<S> w[2 * N];
  for (int c = 0; c < 2 * N; c++) w[c] = (real<S>)v[c];
  if constexpr (storage<S>::scaled) f.scale[at.tile * QK_TILE + at.lane] = take_scale<2 * N>(w);
  QK_UNROLL
  for (int k = 0; k < 2 * N / P; k++) store_reals<P>(p, k, at.lane, w + k * P);
}

/* out = factor * basis in, on the spin index; in and out may not be the same. Of colour vectors
 * out = factor * in. */
template <int N>
QK_HD void change_basis(const double basis[4][4][2], double factor, const double *in, double *out) {
  if constexpr (N == QK_COLOUR_COMPONENTS) {
    for (int c = 0; c < 6; c++) out[c] = factor * in[c];
    return;
  }
  for (int s = 0; s < N / 3; s++)
    for (int c = 0; c < 3; c++) {
      double re = 0, im = 0;
      for (int r = 0; r < N / 3; r++) {
        const double br = basis[s][r][0], bi = basis[s][r][1];
        const double vr = in[(r * 3 + c) * 2], vi = in[(r * 3 + c) * 2 + 1];
        if (br == 0 && bi == 0) continue;
        re += br * vr - bi * vi;
        im += br * vi + bi * vr;
      }
      out[(s * 3 + c) * 2] = factor * re;
      out[(s * 3 + c) * 2 + 1] = factor * im;
    }
}

/* Column k of site n, from and to its values in wire order. */
template <int N, class S>
QK_HD void import_site(const qk_rhs_args_t &a, const spinor<S> &f, int64_t n, int k,
                       const double *in) {
  double out[2 * N];
  int x[4];
  coordinates_of(a.lat.l, n, x);
  change_basis<N>(a.basis, a.factor, in, out);
  store_one<N>(f, column_spot(a.lat, f, a.rhs + k, x), out);
}

template <int N, class S>
QK_HD void export_site(const qk_rhs_args_t &a, const spinor<S> &f, int64_t n, int k, double *out) {
  double in[2 * N];
  int x[4];
  coordinates_of(a.lat.l, n, x);
  load_one<N>(f, column_spot(a.lat, f, a.rhs + k, x), in);
  change_basis<N>(a.basis, a.factor, in, out);
}

/* ---- RHS between blocks ---- */

template <class S> QK_HD real<S> lane_scale([[maybe_unused]] const spinor<S> &f, spot at) {
  if constexpr (storage<S>::scaled) return f.scale[at.tile * QK_TILE + at.lane];
  return 1;
}

/* n pieces of P reals, from k on, added to those of `plus` unless it is NULL. */
template <int n, int P, class To, class From>
QK_HD void copy_pieces(const spinor<To> &to, spot there, const spinor<From> &from, spot here,
                       int words, int k, const To *plus) {
  To *t = to.data + there.tile * words;
  const From *f = from.data + here.tile * words;
  const bool add = plus != nullptr;
  real<To> w[n * P] = {};
  real<From> v[n * P];
  const real<From> scale = lane_scale(from, here);
  const real<To> own = add ? lane_scale(to, there) : 1;
  QK_UNROLL
  for (int i = 0; i < n; i++) {
    load_reals<P>(f, k + i, here.lane, v + i * P);
    if (add) load_reals<P>(plus + there.tile * words, k + i, there.lane, w + i * P);
  }
  QK_UNROLL
  for (int c = 0; c < n * P; c++) {
    const real<To> value = (real<To>)(scale * v[c]);
    w[c] = add ? own * w[c] + value : value;
  }
  if constexpr (storage<To>::scaled)
    to.scale[there.tile * QK_TILE + there.lane] = take_scale<n * P>(w);
  QK_UNROLL
  for (int i = 0; i < n; i++) store_reals<P>(t, k + i, there.lane, w + i * P);
}

/* Calls of copy_column_site. */
inline int64_t copy_columns(const qk_rhs_copy_args_t &a) {
  return a.to.nsites * (a.n > 1 ? a.n : 1);
}

/* Column i % n of site i / n. */
template <class To, class From>
QK_HD void copy_column_site(const qk_rhs_copy_args_t &a, spinor<To> to, spinor<From> from,
                            int64_t i) {
  int64_t site = i;
  int k = 0;
  if (a.n > 1) {
    site = i / a.n;
    k = (int)(i % a.n);
    if (from.ntile == 0)
      from.data = (From *)a.single_rhs[k];
    else
      to.data = (To *)a.single_rhs[k];
  }
  const To *plus = a.add ? to.data : nullptr;
  if (a.add && a.plus[k] != nullptr) plus = (const To *)a.plus[k];
  const spot there = column_at(to.ntile, a.to_rhs + (to.ntile == 0 ? 0 : k), site);
  const spot here = column_at(from.ntile, a.from_rhs + (from.ntile == 0 ? 0 : k), site);
  const int words = QK_TILE * 2 * a.to.ncomp, pieces = words / (QK_TILE * 8);
  if (a.to.ncomp == QK_COLOUR_COMPONENTS)
    return copy_pieces<1, 6>(to, there, from, here, words, 0, plus);
  /* of half whole spinors, for the scale */
  if constexpr (storage<To>::scaled || storage<From>::scaled)
    return copy_pieces<3, 8>(to, there, from, here, words, 0, plus);
  for (int k = 0; k < pieces; k++) copy_pieces<1, 8>(to, there, from, here, words, k, plus);
}

/* ---- sources ---- */

QK_HD void noise_component(const qk_source_args_t &a, uint64_t site, int c, double *v) {
  uint32_t words[4] = {(uint32_t)site, (uint32_t)(site >> 32), (uint32_t)c / 4, 0};
  philox4x32_10(words, (uint32_t)a.seed, (uint32_t)(a.seed >> 32));
  const double re = words[c % 4] >> 31 ? -1 : 1, im = words[c % 4] >> 30 & 1 ? -1 : 1;
  const double unit = 0.70710678118654752440;
  v[0] = a.kind == QK_SOURCE_Z4 ? re * unit : re;
  v[1] = a.kind == QK_SOURCE_Z4 ? im * unit : 0;
}

/* Whether a source has anything at global site g. */
QK_HD bool source_at(const qk_source_args_t &a, const int g[4]) {
  if (a.site[3] < 0) return true;
  if (a.t_every > 0) return g[3] >= a.site[3] && (g[3] - a.site[3]) % a.t_every == 0;
  bool here = a.site[3] == g[3];
  if (a.kind == QK_SOURCE_POINT)
    for (int mu = 0; mu < 3; mu++) here = here && a.site[mu] == g[mu];
  return here;
}

template <int N, class S>
QK_HD void source_site(const qk_source_args_t &a, const spinor<S> &f, int64_t n) {
  double v[2 * N] = {}, held[2 * N], wave[2] = {1, 0};
  int x[4], g[4];
  coordinates_of(a.lat.l, n, x);
  for (int mu = 0; mu < 4; mu++) g[mu] = a.lat.offset[mu] + x[mu];
  const spot at = column_spot(a.lat, f, a.rhs, x);
  const bool here = source_at(a, g);
  const bool moves = here && (a.mom[0] != 0 || a.mom[1] != 0 || a.mom[2] != 0);
  const uint64_t site =
      ((((uint64_t)g[3] * a.lat.global[2] + g[2]) * a.lat.global[1]) + g[1]) * a.lat.global[0] +
      g[0];
  if (here && a.kind == QK_SOURCE_HELD) load_one<N>(f, at, held);
  if (moves) plane_wave(a.mom, a.lat.global, g, wave);
  for (int c = 0; here && c < N; c++) {
    double *w = v + 2 * c;
    if ((a.spin >= 0 && c / 3 != a.spin) || (a.colour >= 0 && c % 3 != a.colour)) continue;
    if (a.kind == QK_SOURCE_Z2 || a.kind == QK_SOURCE_Z4) {
      noise_component(a, site, c, w);
    } else {
      w[0] = a.kind == QK_SOURCE_HELD ? held[2 * c] : 1;
      w[1] = a.kind == QK_SOURCE_HELD ? held[2 * c + 1] : 0;
    }
    if (!moves) continue;
    const double re = w[0] * wave[0] - w[1] * wave[1];
    w[1] = w[0] * wave[1] + w[1] * wave[0];
    w[0] = re;
  }
  store_one<N>(f, at, v);
}

/* Components come in pairs. */
inline int noise_pairs(const qk_spinor_t &f) {
  return (f.ncomp + 1) / 2;
}

/* Components 2*pair and 2*pair + 1 of each RHS at local site n: word w of counter
 * (site, site >> 32, pair, rhs) is the real number (w + 1/2) / 2^31 - 1. */
template <class S>
QK_HD void noise_pair(const qk_noise_args_t &a, const spinor<S> &f, int64_t n, int pair) {
  int x[4];
  uint64_t site = 0;
  coordinates_of(a.lat.l, n, x);
  for (int mu = 3; mu >= 0; mu--) site = site * a.lat.global[mu] + a.lat.offset[mu] + x[mu];
  const int first = a.rhs < 0 ? 0 : a.rhs, end = a.rhs < 0 ? a.field.nrhs : a.rhs + 1;
  for (int rhs = first; rhs < end; rhs++) {
    uint32_t words[4] = {(uint32_t)site, (uint32_t)(site >> 32), (uint32_t)pair, (uint32_t)rhs};
    philox4x32_10(words, (uint32_t)a.seed, (uint32_t)(a.seed >> 32));
    const spot at = column_spot(a.lat, f, rhs, x);
    const bool colour = a.field.ncomp == QK_COLOUR_COMPONENTS;
    /* a tile is made of pieces of eight reals a site, or one of six */
    S *p = f.data + at.tile * (QK_TILE * 2 * a.field.ncomp) + pair / 2 * (QK_TILE * 8);
    for (int k = 0; k < 4 && 4 * pair + k < 2 * a.field.ncomp; k++) {
      const int c = pair % 2 * 4 + k;
      narrow((real<S>)((words[k] + 0.5) * 0x1p-31 - 1),
             p[colour ? inner<S, 6>(c, at.lane) : inner<S, 8>(c, at.lane)]);
    }
  }
}

} // namespace QK_NS
#endif
