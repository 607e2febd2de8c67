/*
 * local.h: local terms T and their inverses, in all precisions that are wanted.
 *
 * They are made in double and then converted. `parts` gets t, inverse, scale and flops. Errors:
 * those of the device; what was allocated is then the caller's. Not collective.
 */
#ifndef QK_ENGINE_LOCAL_H
#define QK_ENGINE_LOCAL_H

#include "daemon/engine/action/action.h"

/* T = a, a number that is not 0. */
void qk_local_number(double a, qk_eo_parts_t *parts);

/* T = a + C, C the clover term -1/2 sum_{mu<nu} csw plane_mu,nu gamma_mu gamma_nu F_mu,nu of
 * in->clover (docs/physics.md). */
typedef struct qk_clover {
  double a, csw;
  double plane[QK_PLANES];
} qk_clover_t;

/* QK_BAD_ARGUMENT, with the number of sites, if T is singular on some. */
qk_status_t qk_local_clover(const qk_action_in_t *in, const qk_clover_t *clover,
                            qk_eo_parts_t *parts, qk_err_t *err);
/* Its device memory; making: beside it, while it is made. */
int64_t qk_local_clover_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                              const qk_action_params_t *params, bool making);

#endif
