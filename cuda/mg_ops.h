/*
 * mg_ops.h: arguments of the table's entries for multigrid (arXiv:1612.07873): coarse operators,
 * prolongator and restrictor, and what a setup is made of. Included by ops.h.
 *
 * Levels       Level 0 is the lattice of the gauge field, 12 components a site. An aggregate, a
 *              block of sites of level l, is one site of level l+1, which has 2 * nvec components:
 *              c = chirality * nvec + vector. Of every level the first half of a site's components
 *              is chirality +1 of gamma_5, the second half chirality -1;
 *              G5 = diag(+1, -1) on the halves.
 * Fields       Coarse spinors are ordinary spinors with ncomp = 2 * nvec (types.h), QK_DOUBLE or
 *              QK_SINGLE; the same in a whole cycle. Coarse lattices obey types.h:
 *              even local extents.
 * Prolongator  P: psi(x)[s, c] = sum_v V_s(x)[c, v] phi(X)[s, v], X the aggregate of x, s a
 *              chirality; R = P^+. With the vectors of an aggregate orthonormal in each chirality,
 *              P^+ P = 1.
 * Coarse operator  M = A + sum_mu (Y_+mu + Y_-mu), A the site-diagonal matrices:
 *              (Y_+mu psi)(n) = Y_+mu(n) psi(n+mu),  (Y_-mu psi)(n) = Y_-mu(n) psi(n-mu).
 *              All matrices of site n are stored at n. Boundary phases are in the matrices.
 *              M^+ = G5 M G5, so Y_-mu(n) = G5 Y_+mu(n-mu)^+ G5.
 *
 * All run on queue 0. Not collective. Errors: those of ops.h; descriptors that do not fit:
 * QK_BAD_ARGUMENT with the reason in last_error (mg_args.h). Lanes as in ops.h:
 * no RHS depends on another.
 */
#ifndef QK_CUDA_MG_OPS_H
#define QK_CUDA_MG_OPS_H

#include "cuda/peer_ops.h"
#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A lattice cut into aggregates: fine.l[mu] = block[mu] * coarse.l[mu], likewise global extents and
 * offsets. Aggregates do not cross ranks. Block extents may be odd. */
typedef struct qk_aggregates {
  qk_lattice_t fine, coarse;
  int32_t block[4];
} qk_aggregates_t;

/* n x n complex matrices, ndir of them at each site of the full lattice (even sites, then odd
 * ones). ndir 8: direction d = 2*mu + (0: Y_+mu, 1: Y_-mu); ndir 1: site-diagonal. n is a multiple
 * of 4. Order inside: the backend's business (site/coarse.h). Bytes: coarse_bytes of the table. */
typedef struct qk_coarse_links {
  void *data;
  qk_prec_t prec; /* QK_DOUBLE, QK_SINGLE, or QK_HALF: plain 16-bit floats */
  int32_t n, ndir;
} qk_coarse_links_t;

/* Vectors of a prolongator. Order inside: the backend's business. Bytes:
 * transfer_bytes of the table. */
typedef struct qk_transfer {
  qk_aggregates_t agg;
  void *data;
  qk_prec_t prec; /* QK_SINGLE or QK_HALF: plain 16-bit floats */
  int32_t ncomp;  /* of a fine site: 12, or 2 * vectors of the finer level */
  int32_t nvec;   /* even; coarse sites have 2 * nvec components */
} qk_transfer_t;

/* ---- the cycle ------------------------------------------------------------------------------- */

/* The coarse operator, fused like qk_hop_args_t:
 *
 *   hop(n) = sum of Y_d(n) in(n +- mu) over the directions d that take part
 *   out    = c_hop*hop + c_z*T z + c_x*x,  T: `diag`; T absent (data NULL): 1
 *
 * c_hop == 0 leaves the hop out (in, links not read). out_parity, single-parity views, region,
 * coefficient and aliasing rules as in qk_hop_args_t. Fields have one precision, shape and nrhs.
 * Precisions of fields and matrices: double and double, single and single, single and half
 * (16-bit matrices, fp32 sums).
 * minus: device bytes [nrhs], NULL for none; right-hand sides whose byte is set have links_minus
 * and diag_minus, of the same shapes and precisions, in place of links and diag.
 * eight: what coarse_eight made of links, or NULL: taken in place of 16-bit links for a right-hand
 * side alone (out.ntile 0) where minus is NULL.
 * Work: 8 ndir n^2 flop a site; bytes: matrices once for the whole block. */
typedef struct qk_coarse_args {
  qk_lattice_t lat;
  qk_subset_t out_parity;
  qk_region_t region;
  uint32_t hops;    /* 0: all */
  int32_t block[4]; /* as in qk_hop_args_t */
  double c_hop, c_z, c_x;
  qk_coarse_links_t links; /* ndir 8 */
  qk_coarse_links_t diag;  /* ndir 1 */
  qk_coarse_links_t links_minus, diag_minus;
  const uint8_t *minus;
  const void *eight;
  qk_spinor_t in, z, x, out;
  /* Whole spinors received in split directions, [0] from the rank behind, [1] from the rank ahead:
   * order and parities as qk_hop_args_t.ghost. */
  qk_spinor_t ghost[4][2];
  qk_turns_t turns;
} qk_coarse_args_t;

/* Whole spinors of any ncomp for the neighbours, like qk_pack_args_t with whole set. */
typedef struct qk_coarse_pack_args {
  qk_lattice_t lat;
  qk_subset_t in_parity;
  qk_spinor_t in;
  qk_spinor_t to[4][2]; /* data NULL where not split */
  qk_turns_t turns;
} qk_coarse_pack_args_t;

/* part_put: of[i] = part at the sites that a rank has of the whole lattice, i = 0 .. n-1, in the
 * half of turns that is written; their other sites are left alone. part_get: part = of[0] at these
 * sites, from the half that is read. lat: what the rank has; whole: the lattice on one rank. part:
 * full field, QK_DOUBLE or QK_SINGLE, any ncomp; of[i]: full fields of the whole lattice, else like
 * it. Bits are not changed. */
typedef struct qk_part_args {
  qk_lattice_t lat, whole;
  qk_spinor_t part;
  int32_t n; /* 1 to QK_PEER_RANKS */
  void *of[QK_PEER_RANKS];
  qk_turns_t turns;
} qk_part_args_t;

/* restrict: coarse = R fine;  prolong: fine = P coarse, or fine += P coarse where `add`.
 * parity: the fine sites that take part; `fine` holds them (a single-parity view, or a full field);
 * restrict treats the others as zero. coarse: full field of agg.coarse, QK_SINGLE. fine: QK_SINGLE
 * or QK_HALF. Same nrhs and tile shape. Work: 8 ncomp nvec flop a fine site. */
typedef struct qk_transfer_args {
  qk_transfer_t t;
  qk_subset_t parity;
  int32_t add;
  qk_spinor_t fine, coarse;
} qk_transfer_args_t;

/* out = plus * (1+G5)/2 in + minus * (1-G5)/2 in, any ncomp and precision; out may be in.
 * (1, -1): gamma_5; (1, 0), (0, 1): projectors. */
typedef struct qk_chiral_args {
  double plus, minus;
  qk_spinor_t in, out;
} qk_chiral_args_t;

/* ---- setup ----------------------------------------------------------------------------------- */

/* The nrhs columns of v (full field, QK_SINGLE or QK_DOUBLE, tiles of RHS) become orthonormal on
 * every aggregate and chirality; two passes of block Gram-Schmidt (or Cholesky QR), sums in double.
 * The span of the first k columns is kept for all k. Synchronous. dependent: aggregates
 * (counted per chirality) whose columns are linearly dependent or not finite to working precision;
 * their columns are then undefined. */
typedef struct qk_orthonormalise_args {
  qk_aggregates_t agg;
  qk_spinor_t v;
  int64_t *dependent;
} qk_orthonormalise_args_t;

/* On every aggregate and chirality the first `keep` columns of v (as above) become the left
 * singular vectors of its columns with the largest singular values, that one first, each of unit
 * length but for rounding (0 where the value is below 1e-7 of the largest); the other columns are
 * undefined then. By cyclic Jacobi rotations of the Gram matrix in double (arXiv:2505.14399 says
 * why one wants them). nrhs even. QK_UNSUPPORTED, and v stays, if two matrices of nrhs x nrhs in
 * double do not fit into the shared memory of a block of threads (cards with 100 KB of it: 48). */
typedef struct qk_principal_args {
  qk_aggregates_t agg;
  qk_spinor_t v;
  int32_t keep; /* 1 .. nrhs */
} qk_principal_args_t;

/* The field v (as above, QK_SINGLE), the vectors first .. first + nrhs - 1, to or from a transfer;
 * the other vectors are left alone. first: a multiple of QK_TILE; nrhs, too, but for the last
 * vectors. */
typedef struct qk_transfer_copy_args {
  qk_transfer_t t;
  qk_spinor_t v;
  int32_t first;
} qk_transfer_copy_args_t;

/* Galerkin products, for columns (s, v) of one chirality s: with
 *   K(X)[(s',v'), (s,v)] = sum over x in X of sum_c conj(V_s'(x)[c, v']) w(x)[s', c; v]
 * where w is an operator applied to the columns of v with chirality s alone left; v and w: blocks
 * of columns (full fields, QK_SINGLE), the vectors v' from row0 on and v from column0 on. Other
 * elements are left alone; all have the same bits however they are cut. mu < 0: inner += K.
 * mu = 0..3: sites x on the face of X where x+mu leaves X add to ahead (direction 2*mu of it), the
 * others to inner. inner: ndir 1; ahead: ndir 8; both QK_SINGLE or QK_DOUBLE, n = 2 nvec. Sums in
 * fp32 or better, in an order that depends on the lattice alone. */
typedef struct qk_galerkin_args {
  qk_aggregates_t agg;
  int32_t mu, chirality; /* s: 0 (+1) or 1 (-1) */
  int32_t row0, column0;
  qk_spinor_t v, w;
  qk_coarse_links_t inner, ahead;
} qk_galerkin_args_t;

/* diag += inner + G5 inner^+ G5: hops inside aggregates, both ways. And where ahead.data is given,
 * its odd directions: Y_-mu(n) = G5 Y_+mu(n-mu)^+ G5. In split directions Y_+mu(n-mu) of face 0
 * comes from ghost[mu]: full n x n matrices, complex double
 * [even face sites, odd face sites][row][column], parity of the site n-mu,
 * face index as in qk_pack_args_t. */
typedef struct qk_coarse_close_args {
  qk_lattice_t lat;
  qk_coarse_links_t inner, diag, ahead;
  const double *ghost[4];
} qk_coarse_close_args_t;

/* The face l[mu]-1 of Y_+mu, as the rank ahead wants it in ghost[mu]. */
typedef struct qk_coarse_face_args {
  qk_lattice_t lat;
  qk_coarse_links_t ahead;
  int32_t mu;
  double *to;
} qk_coarse_face_args_t;

/* inverse = diag^-1 (both ndir 1, any precisions but half for diag; computed in double with
 * pivoting). Synchronous. singular: sites whose matrix could not be inverted. */
typedef struct qk_coarse_invert_args {
  qk_lattice_t lat;
  qk_coarse_links_t diag, inverse;
  int64_t *singular;
} qk_coarse_invert_args_t;

/* out = left in for all directions of in, left of ndir 1; left.data NULL: out = in + i twist G5, in
 * another precision (in of ndir 1 if twist is not 0). Products in fp32 or better. */
typedef struct qk_coarse_times_args {
  qk_lattice_t lat;
  qk_coarse_links_t left, in, out;
  double twist;
} qk_coarse_times_args_t;

/* out = links in eight bits: each row of a matrix as whole numbers, -127 to 127, times a 127th of
 * its largest part. links: not QK_DOUBLE, n % 16 == 0. Bytes: coarse_eight_bytes of the table.
 * QK_UNSUPPORTED on the CPU. */
typedef struct qk_coarse_eight_args {
  qk_lattice_t lat;
  qk_coarse_links_t links;
  void *out;
} qk_coarse_eight_args_t;

/* Sites first .. first+n-1 (even sites first) of `links` to or from plain matrices: complex double
 * [site][dir][row][column], device memory. For tests, checkpoints, exchange. */
typedef struct qk_coarse_copy_args {
  qk_lattice_t lat;
  qk_coarse_links_t links;
  double *plain;
  int64_t first, n;
} qk_coarse_copy_args_t;

#ifdef __cplusplus
}
#endif
#endif
