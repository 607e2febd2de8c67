/*
 * types.h: what the kernels work on, in plain C. Descriptors are small structs that point at device
 * memory; they are passed by value to kernels and own nothing.
 *
 * Site order   Sites are sorted by parity p = (x+y+z+t) mod 2 of the global coordinates; within a
 *              parity the index is i = (((t*Lz + z)*Ly + y)*Lx + x) / 2 with local extents L.
 *              All local extents are even, so each parity has vcb = V/2 sites, a multiple of 8.
 *              A FULL field holds the even sites, then the odd ones.
 * Tiles        Spinor fields are blocks of right-hand sides (RHS). Eight lanes make a tile:
 *                ntile > 0   8 RHS of one site;   tile index = site*ntile + rhs/8, lane = rhs%8
 *                ntile == 0  8 sites of one RHS;  tile index = site/8,             lane = site%8
 *              Real component c of a lane stands at   tile_index*8*n + inner(c, lane), n = reals a
 *              site; inner() is the backend's business (site/access.h, cuda/README.md).
 *              Lanes beyond nrhs exist, hold zeros at the start and are never looked at.
 *              Links and clover matrices are always in tiles of 8 sites.
 * Half         16-bit floats times one float scale per (tile index, lane), chosen so that the
 *              largest component has magnitude 1. Scales of spinors only; links
 *              and clover need none.
 * Precisions   What a precision is, is asked of QK_PRECS, qk_prec_bytes and qk_prec_scaled;
 *              launchers choose the type by with_storage (site/storage.h).
 */
#ifndef QK_CUDA_TYPES_H
#define QK_CUDA_TYPES_H

#include <stdint.h>

#include "proto/choices.h" /* qk_prec_t */

#ifdef __cplusplus
extern "C" {
#endif

/* How a precision of proto/choices.h is stored: X(NAME, type, bytes of a real, whether spinors have
 * a scale for each lane of a tile); the type is C++ (site/lane.h). */
#define QK_STORAGES(X) X(DOUBLE, double, 8, 0) X(SINGLE, float, 4, 0) X(HALF, half, 2, 1)

#define X(name, type, bytes, scaled) +1
/* Right-hand sides of a block that has no fifth dimension, and columns of any (fifth_ops.h). */
enum { QK_TILE = 8, QK_MAX_RHS = 64, QK_COLUMNS_MAX = 256, QK_PRECS = 0 QK_STORAGES(X) };
#undef X

/* Both: 0 for what is no precision. A precision without a row does not compile. */
static inline int qk_prec_bytes(qk_prec_t prec) {
  switch (prec) {
#define X(name, type, bytes, scaled)                                                               \
  case QK_##name:                                                                                  \
    return bytes;
    QK_STORAGES(X)
#undef X
  }
  return 0;
}
static inline int qk_prec_scaled(qk_prec_t prec) {
  switch (prec) {
#define X(name, type, bytes, scaled)                                                               \
  case QK_##name:                                                                                  \
    return scaled;
    QK_STORAGES(X)
#undef X
  }
  return 0;
}

typedef enum qk_subset { QK_EVEN = 0, QK_ODD = 1, QK_FULL = 2 } qk_subset_t;

/* BOUNDARY: sites that read ghosts; INTERIOR: the others. */
typedef enum qk_region { QK_REGION_ALL, QK_REGION_INTERIOR, QK_REGION_BOUNDARY } qk_region_t;

/* The local lattice of one rank. Directions are 0..3 = x, y, z, t. */
typedef struct qk_lattice {
  int32_t l[4];      /* local extents, even, >= 2 (>= 4 where split, on the finest level) */
  int32_t vcb;       /* local sites of one parity */
  int32_t split[4];  /* 1: neighbours across the local edge come from ghosts; 0: they wrap around */
  int32_t at_lo[4];  /* 1: local coordinate 0 is global coordinate 0 */
  int32_t at_hi[4];  /* 1: local coordinate l-1 is the last global coordinate */
  int32_t face[4];   /* sites of one parity on a face across direction mu: vcb / l[mu] */
  int32_t offset[4]; /* global coordinate of local coordinate 0 */
  int32_t global[4]; /* global extents */
} qk_lattice_t;

/* Components of a site of colour vectors. */
enum { QK_COLOUR_COMPONENTS = 3 };

/* Whether fields have tiles for so many components a site. */
static inline int qk_ncomp_fits(int ncomp) {
  return ncomp == QK_COLOUR_COMPONENTS || (ncomp >= 4 && ncomp % 4 == 0);
}

/* n complex components a site: 12 for spinors, 6 for half-spinors in ghosts, QK_COLOUR_COMPONENTS
 * for colour vectors, 2 * nvec on coarse levels. */
typedef struct qk_spinor {
  void *data;
  float *scale; /* qk_prec_scaled: one per (tile index, lane); else NULL */
  qk_prec_t prec;
  qk_subset_t subset;
  int32_t ncomp;
  int32_t nrhs; /* with a fifth dimension: columns, ls for each right-hand side (fifth_ops.h) */
  /* Vectors that a RHS has, which stand one behind the other and have nsites together; 0 says 1.
   * What knows sites (hop, sources, wire order, transfers) takes one of them, BLAS all. */
  int32_t inner;
  int32_t ntile;  /* 0: tiles of one RHS by 8 sites (nrhs == 1); else (nrhs + 7) / 8 */
  int64_t nsites; /* vcb, 2*vcb for QK_FULL, or the padded face for ghosts; times inner */
} qk_spinor_t;

/* Ghosts in two halves that exchanges use by turns: that of exchange e is half e & 1, `flip` bytes
 * behind the first. epoch: the exchanges that are over, in device memory; NULL: there is one half.
 * Kernels with ghosts read the half of exchange *epoch, packs write that of *epoch + 1. */
typedef struct qk_turns {
  const uint32_t *epoch;
  int64_t flip;
} qk_turns_t;

/* SU(3) links joining n to n+mu, as 18, 12 or 8 reals. Per tile of 8 sites (full lattice, even then
 * odd), then direction. Without boundary phases. Units: dimensionless. */
typedef struct qk_links {
  const void *data;
  qk_prec_t prec;
  int32_t reals; /* 18, 12 or 8 */
} qk_links_t;

/* The site-diagonal, or local, term T = (A + Q) B of an operator.
 *   A    per site two chiral blocks, each a hermitian 6x6 matrix on (spin in the block, colour),
 *        packed into 36 reals (6 diagonal, then the 15 complex elements below the diagonal, column
 *        by column); data == NULL: the number `scalar` times one
 *   Q    a complex number for each chiral block, 0 where there is no twist: T is then hermitian
 *   B    a field like A that commutes with it, or NULL: one
 * T^+ = (A + conj(Q)) B. */
typedef struct qk_local {
  const void *data, *b;
  qk_prec_t prec;
  double scalar;
  double q[2][2]; /* [chirality][re, im]: spins 0 and 1, then 2 and 3 */
} qk_local_t;

/* Links of the local lattice with a halo one site wide in split directions, edges and corners
 * filled: complex double [t'][z'][y'][x'][mu][3][3], extents e[mu] = l[mu] + 2*split[mu]; the local
 * site x stands at x' = x + split. Device memory of the backend that is given it. */
typedef struct qk_gauge_ext {
  const double *data;
  int32_t e[4];
} qk_gauge_ext_t;

/* SU(3) links that are worked on: evolved, smeared. Complex double 3x3, row by row, of the local
 * lattice and of `halo` sites beyond it on both sides of split directions (edges and corners too).
 * The extended lattice has extents e[mu] = l[mu] + 2*halo*split[mu]; local site x stands at
 * x' = x + halo*split. With p the parity of the global coordinates, i = lexicographic index of
 * x' / 2 and n = e[0] e[1] e[2] e[3] / 2, element k = 3*row + column of U_mu is the complex number
 *   data[2 * (((mu*2 + p)*9 + k)*n + i)]
 * so that neighbouring sites of one parity are neighbours in memory. Device memory. */
typedef struct qk_linkfield {
  double *data;
  int32_t halo; /* width: 1 or 2 sites */
  int32_t e[4];
} qk_linkfield_t;

#ifdef __cplusplus
}
#endif
#endif
