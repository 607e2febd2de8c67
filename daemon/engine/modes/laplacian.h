/*
 * laplacian.h: minus the covariant Laplacian in space on one time slice after the other, as an
 * operator for Lanczos (lanczos.h: QK_LANCZOS_LAPLACIAN).
 *
 *   A v(x) = 6 v(x) - sum_j [U_j(x) v(x+j) + U_j(x-j)^+ v(x-j)],  j = x, y, z; spectrum in [0, 12]
 *
 * (distillation: Peardon et al., arXiv:0905.2160, eq. 1). Periodic in space, whatever the boundary
 * of the operator is.
 *
 * Fields are spinors on a lattice of one time slice of which spin 0 is used alone, the others are
 * zero: the kernels of Gaussian smearing do the work (docs/decisions.md). Ranks that do not have
 * the slice hold zeros. If the slice of a rank is no multiple of 16 sites the lattice has the slice
 * beside it as well, with zeros: sites of one parity come in tiles of eight.
 *
 * Collective.
 */
#ifndef QK_ENGINE_LAPLACIAN_H
#define QK_ENGINE_LAPLACIAN_H

#include "daemon/engine/operator/operator.h"

typedef struct qk_laplacian qk_laplacian_t;

/* On the lattice of dev (four-dimensional). Borrows dev and links (host memory, local lattice,
 * order of gauge.h) until destroy. QK_NO_MEMORY. */
qk_status_t qk_laplacian_create(const qk_device_t *dev, const double *links,
                                qk_laplacian_t **laplacian, qk_err_t *err);
void qk_laplacian_destroy(qk_laplacian_t *laplacian); /* NULL-safe */

/* To time slice t, 0 .. T-1, for blocks of eight vectors of this precision; while nothing stands on
 * the operator. QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_laplacian_go(qk_laplacian_t *laplacian, int t, qk_prec_t prec, qk_err_t *err);
/* Its apply and apply_system are A; work: its work fields. */
qk_operator_t *qk_laplacian_operator(qk_laplacian_t *laplacian);

/* Spin 0 of the slice stays in all columns of a full field of the operator; a call of an iteration
 * (device.h). */
void qk_laplacian_restrict(const qk_operator_t *op, const qk_field_t *field);

/* Sites of the slice that this rank has; 0: none. */
int64_t qk_laplacian_sites(const qk_laplacian_t *laplacian);
/* The vectors of a block of eight, on this rank: [site][column 0..7][colour][re, im], sites in
 * lexicographic order; nothing where it has no sites. */
qk_status_t qk_laplacian_get(qk_laplacian_t *laplacian, const qk_field_t *block, double *to);

/* The lattice of a slice, as fields of the operator have it. Pure. */
qk_geom_t qk_laplacian_geom(const qk_geom_t *whole, int t);
/* Device memory that is needed beside fields. Pure. */
int64_t qk_laplacian_bytes(const qk_geom_t *whole, qk_prec_t prec);

#endif
