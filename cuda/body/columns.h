/*
 * columns.h: one column of a block, site by site: import from and export to wire order, and sources.
 *
 * A site is named by its local lexicographic index n (x fastest, then y, z, t), the order of the wire.
 * Values are made in double and rounded once to the field's precision. Conventions: cuda/ops.h.
 * Noise: Philox4x32-10, word c % 4 of counter (site, site >> 32, c / 4, 0) for component c, key = seed;
 * its highest bit is the sign of the real part, the next that of the imaginary part (Z4), 1 is minus.
 */
#ifndef QK_BODY_COLUMNS_H
#define QK_BODY_COLUMNS_H

#include "cuda/ops.h"
#include "cuda/site/geom.h"
#include "cuda/site/phase.h"
#include "cuda/site/philox.h"

namespace QK_NS {

enum { QK_SPINOR_REALS = 24 };

QK_HD void coordinates_of(const int l[4], int64_t n, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(n % l[mu]);
    n /= l[mu];
  }
}

/* Where column rhs of local site x stands in a full field. */
template <class S>
QK_HD spot column_spot(const qk_lattice_t &lat, const spinor<S> &f, int rhs, const int x[4]) {
  const int parity = (x[0] + x[1] + x[2] + x[3]) & 1;
  const int64_t site = (int64_t)parity * lat.vcb + cb_of(lat, x);
  if (f.ntile == 0) return {site / QK_TILE, (int)(site % QK_TILE)};
  return {site * f.ntile + rhs / QK_TILE, rhs % QK_TILE};
}

template <class S> QK_HD void load_one(const spinor<S> &f, spot at, double *v) {
  const S *p = f.data + at.tile * (QK_TILE * QK_SPINOR_REALS);
  double scale = 1;
  if constexpr (storage<S>::scaled) scale = f.scale[at.tile * QK_TILE + at.lane];
  for (int c = 0; c < QK_SPINOR_REALS; c++)
    v[c] = scale * (double)widen(p[inner<S, QK_SPINOR_REALS>(c, at.lane)]);
}

template <class S> QK_HD void store_one(const spinor<S> &f, spot at, const double *v) {
  S *p = f.data + at.tile * (QK_TILE * QK_SPINOR_REALS);
  float inverse = 1;
  if constexpr (storage<S>::scaled) {
    constexpr float least = 1.17549435e-38f;
    float top = 0;
    for (int c = 0; c < QK_SPINOR_REALS; c++) {
      const float a = v[c] < 0 ? (float)-v[c] : (float)v[c];
      top = a > top ? a : top;
    }
    inverse = top < least ? 0 : 1 / top;
    f.scale[at.tile * QK_TILE + at.lane] = top < least ? 0 : top;
  }
  for (int c = 0; c < QK_SPINOR_REALS; c++) {
    S &to = p[inner<S, QK_SPINOR_REALS>(c, at.lane)];
    if constexpr (storage<S>::scaled)
      narrow((float)v[c] * inverse, to);
    else
      narrow(v[c], to);
  }
}

/* out = factor * basis in, on the spin index; in and out may not be the same. */
QK_HD void change_basis(const double basis[4][4][2], double factor, const double *in, double *out) {
  for (int s = 0; s < 4; s++)
    for (int c = 0; c < 3; c++) {
      double re = 0, im = 0;
      for (int r = 0; r < 4; r++) {
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

template <class S>
QK_HD void import_site(const qk_column_args_t &a, const spinor<S> &f, int64_t n) {
  double in[QK_SPINOR_REALS], out[QK_SPINOR_REALS];
  int x[4];
  for (int c = 0; c < QK_SPINOR_REALS; c++)
    in[c] = a.is_double ? ((const double *)a.wire)[n * QK_SPINOR_REALS + c]
                        : (double)((const float *)a.wire)[n * QK_SPINOR_REALS + c];
  coordinates_of(a.lat.l, n, x);
  change_basis(a.basis, a.factor, in, out);
  store_one(f, column_spot(a.lat, f, a.rhs, x), out);
}

template <class S>
QK_HD void export_site(const qk_column_args_t &a, const spinor<S> &f, int64_t n) {
  double in[QK_SPINOR_REALS], out[QK_SPINOR_REALS];
  int x[4];
  coordinates_of(a.lat.l, n, x);
  load_one(f, column_spot(a.lat, f, a.rhs, x), in);
  change_basis(a.basis, a.factor, in, out);
  for (int c = 0; c < QK_SPINOR_REALS; c++)
    if (a.is_double)
      ((double *)a.wire)[n * QK_SPINOR_REALS + c] = out[c];
    else
      ((float *)a.wire)[n * QK_SPINOR_REALS + c] = (float)out[c];
}

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

template <class S>
QK_HD void source_site(const qk_source_args_t &a, const spinor<S> &f, int64_t n) {
  double v[QK_SPINOR_REALS] = {}, held[QK_SPINOR_REALS], wave[2] = {1, 0};
  int x[4], g[4];
  coordinates_of(a.lat.l, n, x);
  for (int mu = 0; mu < 4; mu++) g[mu] = a.lat.offset[mu] + x[mu];
  const spot at = column_spot(a.lat, f, a.rhs, x);
  const bool here = source_at(a, g);
  const bool moves = here && (a.mom[0] != 0 || a.mom[1] != 0 || a.mom[2] != 0);
  const uint64_t site =
      ((((uint64_t)g[3] * a.lat.global[2] + g[2]) * a.lat.global[1]) + g[1]) * a.lat.global[0] +
      g[0];
  if (here && a.kind == QK_SOURCE_HELD) load_one(f, at, held);
  if (moves) plane_wave(a.mom, a.lat.global, g, wave);
  for (int c = 0; here && c < QK_SPINOR_REALS / 2; c++) {
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
  store_one(f, at, v);
}

/* Components 2*pair and 2*pair + 1 of the columns at local site n: word w of counter (site, site >> 32, pair,
 * column) is the real number (w + 1/2) / 2^31 - 1. */
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
    /* a tile is made of pieces of eight reals a site */
    S *p = f.data + at.tile * (QK_TILE * 2 * a.field.ncomp) + pair / 2 * (QK_TILE * 8);
    for (int k = 0; k < 4; k++)
      narrow((real<S>)((words[k] + 0.5) * 0x1p-31 - 1), p[inner<S, 8>(pair % 2 * 4 + k, at.lane)]);
  }
}

} // namespace QK_NS
#endif
