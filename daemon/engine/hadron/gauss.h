/*
 * gauss.h: Gaussian (Wuppertal) smearing of blocks of spinors or colour vectors in space.
 *
 *   psi(x) <- (psi(x) + alpha sum_j [U_j(x) psi(x+j) + U_j(x-j)^+ psi(x-j)]) / (1 + 6 alpha)
 *
 * with j = x, y, z; `steps` times, over the whole block at once (Guesken et al., Phys. Lett. B 227
 * (1989) 266). Chroma's form (1 + w^2/(4N) Delta)^N is the same with alpha = a / (1 - 6 a),
 * a = w^2 / (4 N); alpha may be negative. Periodic in space: the operator's boundary phases are not
 * used.
 *
 * Fields: full, any precision and block shape, on the device; links in the precision of the field.
 * Colour vectors, which are those of dev->geom then, in double alone.
 * Collective. Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR, QK_BAD_ARGUMENT.
 */
#ifndef QK_ENGINE_GAUSS_H
#define QK_ENGINE_GAUSS_H

#include "daemon/engine/gauge/gaugefield.h"

typedef struct qk_gauss qk_gauss_t;

/* alpha must be finite and not -1/6; steps 0..QK_SMEAR_STEPS_MAX. QK_BAD_ARGUMENT names
 * parameter, value and limit. Pure. */
qk_status_t qk_gauss_check(double alpha, int64_t steps, qk_err_t *err);

/* Copies the links of `links` (already smeared, if wanted), which are read only during the call:
 * 576 bytes a site, and 192 more after the first field in single; for colour vectors also those of
 * the last slices of the ranks behind. work: one field like those smeared. */
qk_status_t qk_gauss_create(const qk_device_t *dev, qk_work_t *work, const qk_gaugefield_t *links,
                            qk_gauss_t **gauss, qk_err_t *err);
void qk_gauss_destroy(qk_gauss_t *gauss); /* NULL-safe */

/* In place, all columns. A failure leaves the field undefined. */
qk_status_t qk_gauss_apply(qk_gauss_t *gauss, qk_field_t *field, double alpha, int steps);

/* Of colour vectors, in place, all columns: shifted once in each of the directions (bits 1, 2, 4
 * for x, y, z), to both sides,
 *   D_j psi(x) = 1/2 [U_j(x) psi(x+j) + U_j(x-j)^+ psi(x-j)]
 * of several the mean of their products in all orders. Work: a field for each direction. */
qk_status_t qk_gauss_shift(qk_gauss_t *gauss, qk_field_t *field, unsigned directions);

/* out = minus the Laplacian in space of in:
 *   6 in(x) - sum_j [U_j(x) in(x+j) + U_j(x-j)^+ in(x-j)]
 * of two fields of one shape. prepare, for fields like `field`, takes what memory that needs. */
qk_status_t qk_gauss_prepare(qk_gauss_t *gauss, const qk_field_t *field);
qk_status_t qk_gauss_laplacian(qk_gauss_t *gauss, const qk_field_t *out, const qk_field_t *in);

#endif
