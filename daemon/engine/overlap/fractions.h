/*
 * fractions.h: 1 / sqrt(D^+ D) by the partial fractions of zolotarev.h, all by one multi-shift CG:
 *
 *   out = sum_j r_j (D^+ D + q_j)^-1 in
 *
 * Right-hand sides are solved one after the other, in double: shifts need many fields.
 *
 * Shapes: full fields, blocks of up to QK_MAX_RHS right-hand sides, double or single. Memory: about
 * three fields of one right-hand side in double for each pole. Collective but for bytes.
 */
#ifndef QK_ENGINE_OVERLAP_FRACTIONS_H
#define QK_ENGINE_OVERLAP_FRACTIONS_H

#include "daemon/engine/operator/operator.h"
#include "daemon/engine/overlap/zolotarev.h"

typedef struct qk_fractions qk_fractions_t;

/* d: borrowed, holds double. QK_NO_MEMORY, QK_DEVICE_MEMORY. */
qk_status_t qk_fractions_create(qk_operator_t *d, const qk_zolotarev_t *z, qk_fractions_t **f,
                                qk_err_t *err);
void qk_fractions_destroy(qk_fractions_t *f); /* NULL-safe */

int qk_fractions_count(const qk_fractions_t *f);

/* Each inverse of right-hand side k to a residual of tol[k]. out is not in. A call of an iteration
 * (device.h), which waits. QK_BREAKDOWN: an inverse did not converge. */
void qk_fractions_apply(const qk_fractions_t *f, const double *tol, qk_field_t *out,
                        const qk_field_t *in);

/* Device bytes on this rank of as many poles; beside them two work fields in double of one
 * right-hand side are taken. */
int64_t qk_fractions_bytes(const qk_geom_t *geom, int poles);

#endif
