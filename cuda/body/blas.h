/*
 * blas.h: the body of block BLAS: one tile (CPU) or one lane of it (GPU) of the fields of a call.
 *
 * A launcher walks over "rows": a row is N reals of a site (tiles of 8 RHS) or of 8 sites (tiles of
 * one RHS), and has ntile tiles. N is 6 of colour vectors, and 24, a whole spinor, in half; in
 * double and single spinors of any size are cut to 8 reals (on the CPU to 24 where that can be): a
 * tile of n reals is n / N tiles of N. A lane is read in parts of part_size reals, one memory
 * access each on the GPU, so that few values are alive at a time; half fields are kept whole until
 * their scale is known. No lane looks at another one.
 * Cost: each field that is read or written passes through memory once.
 */
#ifndef QK_BODY_BLAS_H
#define QK_BODY_BLAS_H

#include "cuda/body/blas_ops.h"
#include "cuda/site/access.h"

namespace QK_NS {

/* N that does for all fields but half and colour vectors, N of those,
 * and N on the GPU but for them. */
constexpr int sub_reals = 8, vector_reals = 2 * QK_COLOUR_COMPONENTS;
template <class S> constexpr int row_reals = storage<S>::scaled ? 24 : sub_reals;

/* What body returns for N as a std::integral_constant; f: of the kind of the fields of a call, of
 * which one is stored as S. */
template <class S, class F> auto with_row_reals(const qk_spinor_t &f, const F &body) {
  if (f.ncomp == QK_COLOUR_COMPONENTS) return body(std::integral_constant<int, vector_reals>{});
  return body(std::integral_constant<int, row_reals<S>>{});
}

/* How the fields of a call are cut into tiles. */
struct block_shape {
  int64_t rows; /* sites, or eights of them, times nsub; below 2^32 */
  int ntile, nrhs, single_rhs;
  int nsub; /* tiles of N reals that a spinor is cut into */

  QK_ANY int rhs(int tile, int lane) const { return single_rhs ? 0 : tile * QK_TILE + lane; }

  /* Index, among tiles of N reals, of that of a row and a tile of RHS. */
  QK_ANY int64_t index(int64_t row, int tile) const {
    if (ntile == 1) return row;
    if (nsub == 1) return row * ntile + tile;
    const uint32_t site = (uint32_t)row / (uint32_t)nsub, sub = (uint32_t)row - site * nsub;
    return ((int64_t)site * ntile + tile) * nsub + sub;
  }
};

/* N: reals a tile. */
QK_ANY block_shape shape_of(const qk_spinor_t &f, int N) {
  const int nsub = 2 * f.ncomp / N;
  return f.ntile == 0 ? block_shape{f.nsites / QK_TILE * nsub, 1, 1, 1, nsub}
                      : block_shape{f.nsites * nsub, f.ntile, f.nrhs, 0, nsub};
}

#ifdef __CUDACC__
#define QK_UNROLL_PARTS QK_UNROLL
template <class S, int N> constexpr int part_size = tile_shape<S, N>::W;

template <class S, int N> QK_HD void load_part(const S *data, spot at, int part, real<S> *r) {
  constexpr int W = part_size<S, N>;
  load_piece<S, W, QK_KEEP>(data + at.tile * (QK_TILE * N) + (part * QK_TILE + at.lane) * W, r);
}
template <class S, int N> QK_HD void store_part(S *data, spot at, int part, const real<S> *r) {
  constexpr int W = part_size<S, N>;
  store_piece<S, W>(data + at.tile * (QK_TILE * N) + (part * QK_TILE + at.lane) * W, r);
}
#else
#define QK_UNROLL_PARTS /* rows are in memory anyway; unrolled code would only be longer */
template <class S, int N> constexpr int part_size = 2;

template <class S, int N>
QK_HD void load_part(const S *data, spot at, int part, lanes<real<S>> *r) {
  const S *p = data + at.tile * (QK_TILE * N) + part * (2 * QK_TILE);
  load_row(p, r[0]);
  load_row(p + QK_TILE, r[1]);
}
template <class S, int N>
QK_HD void store_part(S *data, spot at, int part, const lanes<real<S>> *r) {
  S *p = data + at.tile * (QK_TILE * N) + part * (2 * QK_TILE);
  store_row(p, r[0]);
  store_row(p + QK_TILE, r[1]);
}
#endif

/* One part of field i of an op, to complex numbers z[j][i]: the words as they stand. */
template <class S, int N, int NF>
QK_HD void load_words(const spinor<S> &f, spot at, int part, int i, cx<lanes<real<S>>> (*z)[NF]) {
  lanes<real<S>> r[part_size<S, N>];
  load_part<S, N>(f.data, at, part, r);
  QK_UNROLL
  for (int j = 0; j < part_size<S, N> / 2; j++) z[j][i] = {r[2 * j], r[2 * j + 1]};
}

/* The number that the words of a lane are multiples of. */
template <class S>
QK_HD auto scale_at([[maybe_unused]] const spinor<S> &f, [[maybe_unused]] spot at) {
  if constexpr (storage<S>::scaled)
    return lanes_cast<lanes<double>>(load_scale(f.scale, at));
  else
    return 1.0;
}

/* Where products of words go before their scales are known: half: sums of a row in single, which
 * are then added to those of all rows with the scales in double, so that no square is lost below
 * the range of single, and few numbers are converted;
 * otherwise straight to the sums of all rows. */
template <class S, class ROW, class ALL> QK_HD auto &row_or_all(ROW &row, ALL &all) {
  if constexpr (storage<S>::scaled)
    return row;
  else
    return all;
}

/* One part of field i of an op, to complex numbers z[j][i]: values. */
template <class S, int N, int NF>
QK_HD void load_complex(const spinor<S> &f, spot at, int part, const lanes<float> &scale, int i,
                        cx<lanes<real<S>>> (*z)[NF]) {
  load_words<S, N, NF>(f, at, part, i, z);
  QK_UNROLL
  for (int j = 0; j < part_size<S, N> / 2; j++)
    if constexpr (storage<S>::scaled) z[j][i] = {z[j][i].re * scale, z[j][i].im * scale};
}

/* Applies Op to the lanes at a spot. k: coefficients of these lanes. */
template <class Op, class S, int N>
QK_HD void blas_tile(const spinor<S> *f, spot at, const cx<lanes<real<S>>> *k, sums<Op::nr> &r) {
  using V = lanes<real<S>>;
  constexpr bool scaled = storage<S>::scaled;
  constexpr int P = part_size<S, N>, NF = Op::nf;
  static_assert(N % P == 0, "a lane must be a whole number of parts");
  lanes<float> scale[NF];
  V whole[NF][scaled ? N : 1]; /* half: what will be stored */
  QK_UNROLL
  for (int i = 0; i < NF; i++)
    if (scaled && (Op::reads >> i & 1)) scale[i] = load_scale(f[i].scale, at);
  QK_UNROLL
  for (int part = 0; part < N / P; part++) {
    cx<V> z[P / 2][NF];
    QK_UNROLL
    for (int i = 0; i < NF; i++)
      if (Op::reads >> i & 1) load_complex<S, N, NF>(f[i], at, part, scale[i], i, z);
    QK_UNROLL
    for (int j = 0; j < P / 2; j++) Op::apply(z[j], k, r);
    QK_UNROLL
    for (int i = 0; i < NF; i++) {
      if (!(Op::writes >> i & 1)) continue;
      V out[P];
      QK_UNROLL
      for (int j = 0; j < P; j++) {
        out[j] = j % 2 == 0 ? z[j / 2][i].re : z[j / 2][i].im;
        if constexpr (scaled) whole[i][part * P + j] = out[j];
      }
      if constexpr (!scaled) store_part<S, N>(f[i].data, at, part, out);
    }
  }
  if constexpr (scaled) {
    QK_UNROLL
    for (int i = 0; i < NF; i++)
      if (Op::writes >> i & 1) store_spinor<N>(f[i], at, whole[i]);
  }
}

/* to = from, or to += from, across precisions; sums are made in the arithmetic of `to`. */
template <bool ADD, class To, class From, int N>
QK_HD void blas_mixed_tile(const spinor<To> &to, const spinor<From> &from, spot at) {
  lanes<real<From>> in[N];
  lanes<real<To>> out[N];
  load_spinor<N>(from, at, in);
  if constexpr (ADD) load_spinor<N>(to, at, out);
  QK_UNROLL
  for (int c = 0; c < N; c++) {
    const auto v = lanes_cast<lanes<real<To>>>(in[c]);
    if constexpr (ADD)
      out[c] = out[c] + v;
    else
      out[c] = v;
  }
  store_spinor<N>(to, at, out);
}

/* ---- site_ratios: |r|^2 / |x|^2 at each site ---------------------------------------------------
 *
 * A site whose |x|^2 is small enough to have lost digits is computed once more, with both fields
 * times a power of two: a solution far from its source is not 0. */

/* Below this |x|^2 is computed again, of numbers times that. */
constexpr double ratio_small = 0x1p-900, ratio_lift = 0x1p560;

/* |r|^2 and |x|^2 of one spinor a lane, of numbers times unit. */
struct site_squares {
  lanes<double> r, x;
};

template <class S> QK_HD void add_square(const cx<lanes<S>> &z, double unit, lanes<double> &sum) {
  const auto re = lanes_cast<lanes<double>>(z.re) * unit;
  const auto im = lanes_cast<lanes<double>>(z.im) * unit;
  sum = sum + re * re + im * im;
}

/* at: of the first of nsub tiles of N reals that the spinor is cut into. */
template <class S, int N>
QK_HD site_squares squares_at(const spinor<S> &r, const spinor<S> &x, spot at, int nsub,
                              double unit) {
  constexpr int P = part_size<S, N>;
  site_squares sum = {};
  for (int sub = 0; sub < nsub; sub++) {
    QK_UNROLL_PARTS
    for (int part = 0; part < N / P; part++) {
      cx<lanes<S>> z[P / 2][2];
      load_words<S, N, 2>(r, spot{at.tile + sub, at.lane}, part, 0, z);
      load_words<S, N, 2>(x, spot{at.tile + sub, at.lane}, part, 1, z);
      QK_UNROLL
      for (int j = 0; j < P / 2; j++) {
        add_square<S>(z[j][0], unit, sum.r);
        add_square<S>(z[j][1], unit, sum.x);
      }
    }
  }
  return sum;
}

/* Adds a site to the sum of ratios, or to the number of those where x is 0. */
QK_HD void add_site(double r2, double x2, double &ratios, double &zeros) {
  if (x2 == 0)
    zeros += 1;
  else
    ratios += r2 / x2;
}

/* Adds the spinors of a whole tile (CPU) or one lane of it (GPU) to (ratios, zeros). tile: among
 * those of whole spinors. */
template <class S, int N>
QK_HD void add_ratios(const spinor<S> &r, const spinor<S> &x, spot of, int nsub,
                      cx<lanes<double>> &sum) {
  const spot at = {of.tile * nsub, of.lane};
  const site_squares plain = squares_at<S, N>(r, x, at, nsub, 1);
#ifdef __CUDACC__
  const site_squares s =
      plain.x < ratio_small ? squares_at<S, N>(r, x, at, nsub, ratio_lift) : plain;
  add_site(s.r, s.x, sum.re, sum.im);
#else
  bool small[QK_TILE], any = false;
  for (int l = 0; l < QK_TILE; l++) any |= small[l] = plain.x[l] < ratio_small;
  const site_squares lifted = any ? squares_at<S, N>(r, x, at, nsub, ratio_lift) : plain;
  for (int l = 0; l < QK_TILE; l++) {
    const site_squares &s = small[l] ? lifted : plain;
    double ratios = sum.re[l], zeros = sum.im[l];
    add_site(s.r[l], s.x[l], ratios, zeros);
    sum.re[l] = ratios;
    sum.im[l] = zeros;
  }
#endif
}

} // namespace QK_NS
#endif
