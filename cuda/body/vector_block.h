/*
 * vector_block.h: what the kernels of vector_block_ops.h share on all backends.
 *
 * The 2 * ncomp reals of a tile are pieces of eight reals, 64 words each, one after the other, in
 * all storage types (cuda/README.md); so one kernel serves any number of components. Colour vectors
 * are one piece of six reals.
 */
#ifndef QK_BODY_VECTOR_BLOCK_H
#define QK_BODY_VECTOR_BLOCK_H

#include "cuda/site/geom.h"
#include "cuda/vector_block_ops.h"

namespace QK_NS {

/* Of pieces that are not colour vectors. */
enum { QK_PIECE_REALS = 8, QK_PIECE_WORDS = QK_PIECE_REALS * QK_TILE };

/* A field seen as pieces. */
template <class S> struct pieces {
  S *data;
  const float *scale;
  int ntile, per_tile, tile_words;

  /* First word of a piece of a tile of RHS at a site, and of the tile's scales. */
  QK_ANY int64_t word(int64_t site, int tile, int piece) const {
    return (site * ntile + tile) * tile_words + piece * QK_PIECE_WORDS;
  }
  QK_ANY int64_t scale_at(int64_t site, int tile) const { return (site * ntile + tile) * QK_TILE; }
  /* First word of a piece of the eight sites that `site` is one of, in a field of one RHS. */
  QK_ANY int64_t single_rhs_word(int64_t site, int piece) const {
    return site / QK_TILE * tile_words + piece * QK_PIECE_WORDS;
  }
};

template <class S> QK_ANY pieces<S> pieces_of(const qk_spinor_t &f) {
  const bool colours = f.ncomp == QK_COLOUR_COMPONENTS;
  return {(S *)f.data, f.scale, f.ntile, colours ? 1 : 2 * f.ncomp / QK_PIECE_REALS,
          2 * f.ncomp * QK_TILE};
}

/* body(reals of a piece as a std::integral_constant). */
template <class F> auto with_piece_reals(const qk_spinor_t &f, const F &body) {
  if (f.ncomp == QK_COLOUR_COMPONENTS)
    return body(std::integral_constant<int, 2 * QK_COLOUR_COMPONENTS>{});
  return body(std::integral_constant<int, QK_PIECE_REALS>{});
}

/* The blocks of a basis, as tiles: tile i stands in block i / ntile. */
template <class S> struct basis {
  pieces<S> block[QK_BASIS_BLOCKS];
  int tiles, ntile;
};

template <class S> QK_ANY basis<S> basis_of(const qk_basis_args_t &a) {
  basis<S> v = {};
  v.ntile = a.v[0].ntile;
  v.tiles = a.n * v.ntile;
  for (int i = 0; i < a.n; i++) v.block[i] = pieces_of<S>(a.v[i]);
  return v;
}

/* Where site n of a qk_sites_args_t stands in the field. */
QK_ANY int64_t field_site(const qk_lattice_t &lat, bool full, int64_t n) {
  if (!full) return n;
  int64_t rest = n;
  int odd = 0;
  for (int mu = 0; mu < 4; mu++) {
    odd += (int)(rest % lat.l[mu]);
    rest /= lat.l[mu];
  }
  return n / 2 + (odd % 2 != 0 ? lat.vcb : 0);
}

/* Word of real c of column `rhs` at a site. */
template <class S> QK_HD int64_t field_word(const pieces<S> &f, int64_t site, int rhs, int c) {
  constexpr int colours = 2 * QK_COLOUR_COMPONENTS;
  const int piece = c / QK_PIECE_REALS, in = c % QK_PIECE_REALS;
  const int lane = f.ntile == 0 ? (int)(site % QK_TILE) : rhs % QK_TILE;
  const int at = f.tile_words == colours * QK_TILE ? inner<S, colours>(c, lane)
                                                   : inner<S, QK_PIECE_REALS>(in, lane);
  return at + (f.ntile == 0 ? f.single_rhs_word(site, piece) : f.word(site, rhs / QK_TILE, piece));
}

} // namespace QK_NS
#endif
