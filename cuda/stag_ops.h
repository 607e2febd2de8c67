/*
 * stag_ops.h: arguments of the entries for staggered fermions: the hop of colour vectors over fat
 * and long links, its halo, and its links. Included by ops.h.
 *
 * Colour vectors are spinor fields of 3 complex components. All run on queue 0. Not collective.
 * Errors: those of ops.h.
 */
#ifndef QK_CUDA_STAG_OPS_H
#define QK_CUDA_STAG_OPS_H

#include <stddef.h>

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { QK_STAG_REACH = 3 };

/* Links of the hop: fat ones join n to n+mu, long ones to n+3mu (data NULL: there are none), 18
 * reals each. The signs eta and the boundary factor, once also for a hop of three sites, are in
 * them. In directions that are split, behind[mu] has those which begin on the last slice of the
 * rank behind, and behind_long[mu] those on its last three: device memory of
 * qk_stag_behind_bytes, tiles of 8 sites as of links, with one direction; sites by parity, slice
 * and face index, faces padded to a multiple of 8. */
typedef struct qk_stag_links {
  qk_links_t fat, naik;
  const void *behind[4], *behind_long[4];
} qk_stag_links_t;

static inline int qk_stag_depth(const qk_stag_links_t *links) {
  return links->naik.data ? QK_STAG_REACH : 1;
}

/* reach: 1 or 3 slices. */
static inline size_t qk_stag_behind_bytes(const qk_lattice_t *lat, qk_prec_t prec, int mu,
                                          int reach) {
  const size_t padded = ((size_t)lat->face[mu] + QK_TILE - 1) / QK_TILE * QK_TILE;
  return 2 * (size_t)reach * padded * 18 * (size_t)qk_prec_bytes(prec);
}

/* ---- hopping: out = c_hop*hop + c_x*x + c_y*y ---------------------------------------------------
 *
 *   hop(n) = - sum_mu [ F_mu(n) in(n+mu)  - F_mu(n-mu)^+  in(n-mu)
 *                     + L_mu(n) in(n+3mu) - L_mu(n-3mu)^+ in(n-3mu) ]
 *
 * c_hop == 0 leaves the hop out (in is not read). out_parity, absent fields, precisions and shapes
 * as in qk_hop_args_t; x and y may be the same as out, in never.
 * ghost: in split directions the colour vectors of the slices behind ([0], in the order of their
 * coordinate) and ahead ([1]): 3 of them, or 1 without long links. For QK_FULL out_parity those of
 * even input sites first, then the odd ones; sites by slice and face index, each face padded to a
 * multiple of 8. Not read where block[mu] is not 0.
 * num, den: a step of conjugate gradients, out = y - ratio(num, den) (c_hop*hop + c_x*x), by real
 * numbers [nrhs][2] on the device; c_y is then 1. A column whose ratio is 0, or mask, has y in out.
 * red: [nrhs][2], |out|^2 on this rank, of out or what it was rounded from, + c_more more; and 0.
 * Work: 570 flop a site, 1146 with long links.
 */
typedef struct qk_stag_args {
  qk_lattice_t lat;
  qk_subset_t out_parity;
  uint32_t hops;    /* bit 2*mu + (0: from ahead, 1: from behind), of both reaches; 0: all */
  int32_t block[4]; /* as in qk_hop_args_t */
  double c_hop, c_x, c_y;
  qk_stag_links_t links;
  qk_spinor_t in, x, y, out;
  qk_spinor_t ghost[4][2];
  qk_turns_t turns;
  const double *num, *den; /* NULL: c_y is all that y is multiplied by */
  double *red;             /* NULL: not wanted */
  const double *more;      /* [nrhs][2], real numbers; NULL: none */
  double c_more;
  const uint8_t *mask; /* device bytes [nrhs] for num and red; NULL for all ones */
} qk_stag_args_t;

/* Fills the send buffers that a neighbour reads as ghosts: the first `depth` slices of direction mu
 * for the rank behind (to[mu][0]), the last ones for that ahead. Layout: qk_stag_args_t.ghost. */
typedef struct qk_stag_pack_args {
  qk_lattice_t lat;
  qk_subset_t in_parity;
  int32_t depth; /* 1 or 3 */
  qk_spinor_t in;
  qk_spinor_t to[4][2]; /* data NULL where not split */
  qk_turns_t turns;
} qk_stag_pack_args_t;

/* out = eta phase in: the links of the hop. eta_mu is (-1)^(sum of the coordinates before mu), from
 * x on; phase[mu] stands in links that lead across the global edge. in: double, without signs; out:
 * any precision, may be in; both 18 reals. */
typedef struct qk_stag_links_args {
  qk_lattice_t lat;
  int32_t reach; /* 1 or 3 sites */
  double phase[4][2];
  qk_links_t in, out;
} qk_stag_links_args_t;

/* The links of the last `reach` slices in direction mu, for the rank ahead, to which they are
 * qk_stag_links_t.behind. */
typedef struct qk_stag_behind_args {
  qk_lattice_t lat;
  int32_t mu, reach;
  qk_links_t in;
  void *out;
} qk_stag_behind_args_t;

#ifdef __cplusplus
}
#endif
#endif
