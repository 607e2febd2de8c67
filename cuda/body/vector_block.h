/*
 * vector_block.h: what the kernels of vector_block_ops.h share on all backends.
 *
 * The 2 * ncomp reals of a tile are pieces of eight reals, 64 words each, one after the other, in
 * all storage types (cuda/README.md); so one kernel serves any number of components.
 */
#ifndef QK_BODY_VECTOR_BLOCK_H
#define QK_BODY_VECTOR_BLOCK_H

#include "cuda/site/geom.h"
#include "cuda/vector_block_ops.h"

namespace QK_NS {

enum { QK_PIECE_REALS = 8, QK_PIECE_WORDS = QK_PIECE_REALS * QK_TILE };

/* A field seen as pieces. */
template <class S> struct pieces {
  S *data;
  const float *scale;
  int ntile, per_tile;

  /* First word of a piece of a tile of RHS at a site, and of the tile's scales. */
  QK_ANY int64_t word(int64_t site, int tile, int piece) const {
    return ((site * ntile + tile) * per_tile + piece) * QK_PIECE_WORDS;
  }
  QK_ANY int64_t scale_at(int64_t site, int tile) const { return (site * ntile + tile) * QK_TILE; }
  /* First word of a piece of the eight sites that `site` is one of, in a field of one RHS. */
  QK_ANY int64_t single_rhs_word(int64_t site, int piece) const {
    return (site / QK_TILE * per_tile + piece) * QK_PIECE_WORDS;
  }
};

template <class S> QK_ANY pieces<S> pieces_of(const qk_spinor_t &f) {
  return {(S *)f.data, f.scale, f.ntile, 2 * f.ncomp / QK_PIECE_REALS};
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
  const int piece = c / QK_PIECE_REALS, in = c % QK_PIECE_REALS;
  if (f.ntile == 0)
    return f.single_rhs_word(site, piece) + inner<S, QK_PIECE_REALS>(in, (int)(site % QK_TILE));
  return f.word(site, rhs / QK_TILE, piece) + inner<S, QK_PIECE_REALS>(in, rhs % QK_TILE);
}

} // namespace QK_NS
#endif
