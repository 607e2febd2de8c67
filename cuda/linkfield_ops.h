/*
 * linkfield_ops.h: arguments of the table's entries that work on links in double with their halo
 * (qk_linkfield_t): conversion, exchange, sums, and Markov chain updates. Included by ops.h.
 *
 * All run on queue 0; sums are synchronous. Not collective. Errors: those of ops.h.
 */
#ifndef QK_CUDA_LINKFIELD_OPS_H
#define QK_CUDA_LINKFIELD_OPS_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Local sites first .. first+n-1 of the lexicographic order (x fastest, then y, z, t) against
 * device memory `sites`, [n][mu][3][3] complex double. */
typedef struct qk_link_copy_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  double *sites;
  int64_t first, n;
} qk_link_copy_args_t;

/* out = the local links of u, 18 reals in double. Its memory: links_bytes. */
typedef struct qk_links_from_field_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  qk_links_t out;
} qk_links_from_field_args_t;

/* The box lo <= x' < hi of the extended lattice against `dense`, device memory
 * [mu of mask][9][sites of the box, lexicographic] complex double. */
typedef struct qk_link_box_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t lo[4], hi[4];
  uint32_t mask; /* bit mu: U_mu is copied */
  double *dense;
} qk_link_box_args_t;

enum { QK_LINK_SUMS = 7 };

/* Sums over local sites of Re tr / 3: plaquettes by plane xy, xz, xt, yz, yt, zt, and, if
 * rectangles, the 1x2 rectangles of all twelve orientations (else 0). */
typedef struct qk_link_sums_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t rectangles; /* needs halo 2 where split */
  double *sum;        /* [QK_LINK_SUMS] of the host */
} qk_link_sums_args_t;

/* One stage of smearing of the local links U_mu with bit mu of mask set:
 *
 *   C = own U_mu(x) + weight sum_nu [ S_nu(x) T_mu(x+nu) S_nu(x+mu)^+
 *                                     + S_nu(x-nu)^+ T_mu(x-nu) S_nu(x-nu+mu) ]
 *   out = the matrix V of SU(3) that maximises Re tr (V^+ C), or, if stout,
 *         exp(traceless anti-hermitian part of C U_mu(x)^+) U_mu(x)
 *
 * over the nu for which there is side[mu][nu], the data of the field S; top[mu][nu] is that of T.
 * All fields have the shape of u, and their halos hold. out may be u, but neither side nor top. */
typedef struct qk_link_smear_args {
  qk_lattice_t lat;
  qk_linkfield_t u, out;
  uint32_t mask;
  int32_t stout;
  double own, weight;
  const double *side[4][4], *top[4][4];
} qk_link_smear_args_t;

/* Local links, where the lattice is not split the whole field: unit matrices, or drawn from the
 * Haar measure. */
typedef struct qk_link_start_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t hot;
  uint64_t seed;
} qk_link_start_args_t;

/* One update of the links U_mu of one colour: pseudo-heatbath, or overrelaxation, of three SU(2)
 * subgroups in turn, then projection to SU(3). Weight exp(-S), S as in
 * daemon/engine/gauge/evolve.h. Links of one colour do not see each other. Colours, with x the
 * global coordinates and s the sum of those other than x_mu: c1 == 0: (x_mu + s) mod 2; else
 * (2 x_mu + s) mod 4, for global extents that are multiples of 4. The halo must hold; the updated
 * links of the halo are left as they were.
 *
 * Random numbers: Philox4x32-10 with key = seed and counter (global lexicographic site; mu,
 * subgroup, trial, block; sweep, low and high word). Only + - * / and square roots of IEEE doubles
 * in a fixed order: the same bits on every backend. */
typedef struct qk_link_update_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t mu, colour;
  int32_t heatbath; /* 0: overrelaxation */
  double beta, c1;
  uint64_t seed;
  int64_t sweep;
} qk_link_update_args_t;

#ifdef __cplusplus
}
#endif
#endif
