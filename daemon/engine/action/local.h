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
 * in->clover (docs/physics.md); exponential: T = a exp(C / a). open: of the number a, but not of
 * that in the exponent. */
typedef struct qk_clover {
  double a, csw;
  double plane[QK_PLANES];
  bool exponential;
  qk_open_t open;
} qk_clover_t;

/* T = a + i mu gamma_5 for flavour +1; a or mu is not 0. */
void qk_local_twisted_number(double a, double mu, qk_eo_parts_t *parts);

/* T = a + C + i mu gamma_5, T^-1 = (a + C - i mu gamma_5) ((a + C)^2 + mu^2)^-1, which shares a + C
 * with T (Frezzotti et al., hep-lat/0101001). QK_BAD_ARGUMENT as below. */
qk_status_t qk_local_twisted_clover(const qk_action_in_t *in, const qk_clover_t *clover, double mu,
                                    qk_eo_parts_t *parts, qk_err_t *err);

/* The same for an operator that the one of a doublet is composed of, and in parts->more the number
 * or field B = (A^2 + mu^2 - epsilon^2)^-1 of its T^-1 (twisted/doublet.c); that number is
 * positive. QK_BAD_ARGUMENT as below, and if it is not positive on some site. */
void qk_local_doublet_number(double a, double mu, double epsilon, qk_eo_parts_t *parts);
qk_status_t qk_local_doublet_clover(const qk_action_in_t *in, const qk_clover_t *clover, double mu,
                                    double epsilon, qk_eo_parts_t *parts, qk_err_t *err);

/* T of params->term. QK_BAD_ARGUMENT: there is none; a number is too large for a precision, or T
 * singular on some sites: the text names one of them. */
qk_status_t qk_local_given(const qk_action_in_t *in, qk_eo_parts_t *parts, qk_err_t *err);

/* QK_BAD_ARGUMENT, with the number of sites, if T is singular on some, or if elements of an
 * exponential are beyond a precision that is wanted. T^-1 is made of T as it is held, so that one
 * can be had of the other again (eo.c). */
qk_status_t qk_local_clover(const qk_action_in_t *in, const qk_clover_t *clover,
                            qk_eo_parts_t *parts, qk_err_t *err);
/* Device memory of either; making: beside it, while it is made. */
int64_t qk_local_clover_bytes(const qk_ops_t *ops, const qk_lattice_t *lat,
                              const qk_action_params_t *params, bool making);

#endif
