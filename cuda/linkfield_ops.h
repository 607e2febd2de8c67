/*
 * linkfield_ops.h: arguments of the table's entries that work on links in double with their halo
 * (qk_linkfield_t): conversion, exchange, sums, Markov chain updates, gauge fixing. Included by
 * ops.h.
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
 * device memory `sites`, [n][directions][3][3] complex double. directions: 4, or 1 where u has
 * memory for the first direction alone: a matrix a site. */
typedef struct qk_link_copy_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t directions;
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

/* One stage of fat links: sums over paths from x to x + mu.
 *
 *   out(x) = own U_mu(x) + weight [ sum_nu staples_nu(T_nu) + straight sum_{nu != mu} P_nu ]
 *   staples_nu(T) = U_nu(x) T(x+nu) U_nu(x+mu)^+  +  U_nu(x-nu)^+ T(x-nu) U_nu(x-nu+mu)
 *   P_nu = U_nu(x) U_nu(x+nu) U_mu(x+2nu) U_nu(x+nu+mu)^+ U_nu(x+mu)^+  +  the same with -nu
 *
 * over the nu for which top[nu] has data. top[nu] and out have a matrix a site, as the first
 * direction of a field; the data of direction mu of a field u are such, from u.data + mu * 36 n
 * (n: cuda/types.h). They may have another halo than u. Halos of u, which are 2 wide for P_nu, and
 * of top must hold; that of out is left. out is neither in u nor a top. */
typedef struct qk_link_paths_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t mu;
  double own, weight, straight;
  qk_linkfield_t top[4], out;
} qk_link_paths_args_t;

/* out_mu(x) = factor U_mu(x) U_mu(x+mu) U_mu(x+2mu), local links, all four directions. The halo of
 * u, which must be 2 wide where split, must hold; out is not u and may have another halo. */
typedef struct qk_link_long_args {
  qk_lattice_t lat;
  qk_linkfield_t u, out;
  double factor;
} qk_link_long_args_t;

/* out = A (A^+ A)^(-1/2) of each local link A of u: the matrix of U(3) next to it. out may be u,
 * and may have another halo. Synchronous. *singular: the first link, as 4 s + mu with s the
 * lexicographic index of its local site, whose smallest singular value is below 1e-14 of the
 * largest or that is not finite, or -1; such links become NaN. */
typedef struct qk_link_project_args {
  qk_lattice_t lat;
  qk_linkfield_t u, out;
  int64_t *singular; /* of the host */
} qk_link_project_args_t;

/* Local links of the first so many directions, where the lattice is not split the whole field: unit
 * matrices, or drawn from the Haar measure. */
typedef struct qk_link_start_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  int32_t directions; /* 1 to 4 */
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

/* Gauge fixing. g(x) is the transformation, `g` its data: as the first direction of u, with the
 * same halo. The transformed links are W_mu(x) = g(x) U_mu(x) g(x+mu)^+, and
 *
 *   w(x) = sum_mu [ W_mu(x) + W_mu(x-mu)^+ ]   over the first `directions` mu: 4 (Landau), 3
 *                                              (Coulomb)
 *
 * The halos of u and g must hold. All but sums do the same operations on every backend, as
 * link_update does. */

/* One step on the sites of one parity: for each SU(2) subgroup in turn the h with the largest
 * Re tr (h w), overrelaxed to (1 - omega) + omega h times a number that brings it back to SU(2);
 * then g <- h g, projected to SU(3). omega = 1 is the maximum itself. The halo of g is left. */
typedef struct qk_fix_relax_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  double *g;
  int32_t directions, parity;
  int32_t first; /* subgroup, 0 to 2: rows 0 1, 0 2, 1 2; the others follow in turn */
  double omega;  /* 1 <= omega < 2 */
} qk_fix_relax_args_t;

/* Of each local time slice, summed over its sites: Re tr w, and tr D D^+ with D the traceless part
 * of w - w^+. */
typedef struct qk_fix_sums_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  const double *g;
  int32_t directions;
  double *sum; /* [lat.l[3]][2] of the host */
} qk_fix_sums_args_t;

/* U_mu(x) <- W_mu(x), local links, all four directions. The halo of u is left. */
typedef struct qk_fix_rotate_args {
  qk_lattice_t lat;
  qk_linkfield_t u;
  const double *g;
} qk_fix_rotate_args_t;

#ifdef __cplusplus
}
#endif
#endif
