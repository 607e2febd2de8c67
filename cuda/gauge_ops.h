/*
 * gauge_ops.h: arguments of the table's entries that make links and site-diagonal terms of a
 * configuration, and of its checks. Included by ops.h.
 *
 * All run on queue 0; what returns numbers (plaquette, unitarity, diag_exp, diag_invert) is
 * synchronous. Not collective. Errors: those of ops.h; results are set only on success.
 */
#ifndef QK_CUDA_GAUGE_OPS_H
#define QK_CUDA_GAUGE_OPS_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_gauge_args {
  qk_lattice_t lat;
  qk_gauge_ext_t u;
} qk_gauge_args_t;

/* Sums over local sites of Re tr P / 3 for the planes xy, xz, xt, yz, yt, zt. */
typedef struct qk_plaquette_args {
  qk_gauge_args_t gauge;
  double *plaq; /* [6] of the host */
} qk_plaquette_args_t;

/* Of the local links: the largest |U^+U - 1| and |det U - 1|, and the sum of Re tr U / 3. */
typedef struct qk_unitarity_args {
  qk_gauge_args_t gauge;
  double *dev, *det, *link_trace;
} qk_unitarity_args_t;

/* Open boundary in t (docs/physics.md): the fields that an operator acts on are 0 on the outer
 * slices, the first and the last one of the lattice. T is 1 there, and its number has `edge` added
 * on the slices next to them. */
typedef struct qk_open {
  int32_t is; /* 0: t has another boundary, and edge says nothing */
  double edge;
} qk_open_t;

/* out = the local links, compressed. Its memory: links_bytes. open: links that begin or end on an
 * outer slice are 0, which 8 reals cannot hold. */
typedef struct qk_links_set_args {
  qk_gauge_args_t gauge;
  qk_links_t out;
  int32_t open;
} qk_links_set_args_t;

/* out = in in another precision: in is double; neither has 8 reals, and out no more than in. */
typedef struct qk_links_convert_args {
  qk_lattice_t lat;
  qk_links_t in, out;
} qk_links_convert_args_t;

/* Planes of two directions. */
typedef enum qk_plane { QK_XY, QK_XZ, QK_YZ, QK_XT, QK_YT, QK_ZT, QK_PLANES } qk_plane_t;

/* out = diag + csw * clover term (physics.md), in double. Its memory: diag_bytes. */
typedef struct qk_clover_set_args {
  qk_gauge_args_t gauge;
  double csw, diag;
  double plane[QK_PLANES]; /* factors of csw by plane */
  qk_open_t open;
  qk_local_t out;
} qk_clover_set_args_t;

/* out = number exp(factor in), both fields in double, of A alone; in may be out. A = V L V^+ by
 * Jacobi rotations, so that the error is a few eps (1 + |factor A|) of the largest eigenvalue of
 * the result, however large that is; traces are kept. beyond: sites where an element is not finite,
 * or larger than `most`. */
typedef struct qk_diag_exp_args {
  qk_lattice_t lat;
  double factor, number, most;
  qk_open_t open;
  qk_local_t in, *out;
  int64_t *beyond;
} qk_diag_exp_args_t;

/* out = in^-1, or (in^2 + shift)^-1 if `square`, both in double, of A alone (no Q, no B); in may be
 * out, and a number gives a number. singular: sites whose matrix could not be inverted, or has an
 * inverse with elements larger than `most` (0: any size), or, if `positive`, is not
 * positive; 0 on success. */
typedef struct qk_diag_invert_args {
  qk_lattice_t lat;
  qk_local_t in, *out;
  int32_t square, positive;
  double shift; /* 0 without `square` */
  double most;
  int64_t *singular;
} qk_diag_invert_args_t;

/* out = in in the precision of out; in is double, A alone. A number gives a number. */
typedef struct qk_diag_convert_args {
  qk_lattice_t lat;
  qk_local_t in, *out;
} qk_diag_convert_args_t;

#ifdef __cplusplus
}
#endif
#endif
