/*
 * reduce.h: rows of block fields shared among the threads, and sums over them in an order that
 * threads do not change (CPU).
 */
#ifndef QK_CUDA_CPU_REDUCE_H
#define QK_CUDA_CPU_REDUCE_H

#include "cuda/body/blas.h"
#include "cuda/cpu/ctx.h"
#include "cuda/site/storage.h"

namespace QK_NS {
namespace {

/* Storage type, and reals a tile. */
template <class STORAGE, int REALS> struct kind {
  using S = STORAGE;
  static constexpr int N = REALS;
};

/* body(kind of the fields like f), whose arguments have been checked. Tiles of 24 reals where a
 * spinor can be cut to them: sums stay in registers longer. */
template <class F> void as_kind(const qk_spinor_t &f, const F &body) {
  with_storage(f.prec, [&](auto s) {
    using S = stored<decltype(s)>;
    if (!storage<S>::scaled && f.ncomp % 12 == 0)
      body(kind<S, 24>{});
    else
      with_row_reals<S>(f, [&](auto n) { body(kind<S, decltype(n)::value>{}); });
  });
}

/* r += (f, g) of one tile, row by row: arrays of eight doubles would go through memory. */
template <class S, int N>
void dot_tile(const spinor<S> &f, const spinor<S> &g, spot at, cx<lanes<double>> &r) {
  sums<1> all = {{r}};
  [[maybe_unused]] sums<1, float> tile = {};
  auto &sum = row_or_all<S>(tile, all);
  for (int part = 0; part < N / part_size<S, N>; part++) {
    cx<lanes<real<S>>> z[1][2];
    load_words<S, N, 2>(f, at, part, 0, z);
    load_words<S, N, 2>(g, at, part, 1, z);
    sum.dot(0, z[0][0], z[0][1]);
  }
  if constexpr (storage<S>::scaled) all.add(0, tile, scale_at(f, at) * scale_at(g, at));
  r = all.v[0];
}

/* Rows [first, last) of chunk i, a chunk at least 16 spinors of 12 components. The cut depends on
 * the lattice and the number of components only, so that sums keep their order. */
struct chunks {
  int64_t rows, n;
  chunks(const block_shape &b, int N) : rows(b.rows), n(b.rows * N / (16 * 24)) {
    if (n < 1) n = 1;
    if (n > QK_CPU_CHUNKS) n = QK_CPU_CHUNKS;
  }
  int64_t first(int64_t i) const { return rows * i / n; }
};

/* Blocks up to this many reals a lane are done before threads would have met. */
constexpr int64_t small = 256 * 24;

/* Runs body(tile of the block, chunk, first row, last row) for all of them. */
template <int N, class F> void for_chunks(const block_shape &b, const F &body) {
  const chunks c(b, N);
#pragma omp parallel for collapse(2) schedule(static) if (b.rows * b.ntile * N > small)
  for (int t = 0; t < b.ntile; t++)
    for (int64_t i = 0; i < c.n; i++) body(t, i, c.first(i), c.first(i + 1));
}

/* Where result k of a tile's chunk stands between the passes: 8 lanes,
 * real parts then imaginary ones. */
double *partial_of(qk_ops_ctx_t *ctx, int tile, int64_t chunk, int k) {
  return qk_cpu(ctx)->partial +
         ((chunk * (QK_COLUMNS_MAX / QK_TILE) + tile) * QK_MULTI_MAX + k) * (2 * QK_TILE);
}

[[maybe_unused]] void keep(double *partial, const cx<lanes<double>> &v) {
  memcpy(partial, &v.re, sizeof v.re);
  memcpy(partial + QK_TILE, &v.im, sizeof v.im);
}

/* Second pass: red[rhs] = sum over chunks (and over lanes where they are sites), in order. */
[[maybe_unused]] void finish(qk_ops_ctx_t *ctx, const block_shape &b, const chunks &c, int k,
                             const uint8_t *mask, bool clear, double *red) {
  for (int rhs = 0; rhs < b.nrhs; rhs++) {
    const bool masked = mask != NULL && mask[rhs] == 0;
    if (masked && !clear) continue;
    double re = 0, im = 0;
    for (int lane = b.single_rhs ? 0 : rhs % QK_TILE; !masked && lane < QK_TILE;
         lane += b.single_rhs ? 1 : QK_TILE)
      for (int64_t i = 0; i < c.n; i++) {
        const double *p = partial_of(ctx, rhs / QK_TILE, i, k);
        re += p[lane];
        im += p[QK_TILE + lane];
      }
    red[2 * rhs] = re;
    red[2 * rhs + 1] = im;
  }
}

} // namespace
} // namespace QK_NS
#endif
