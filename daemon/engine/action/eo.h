/*
 * eo.h: the operator M = T - 1/2 hop and its even-odd form, of whatever links and local terms.
 *
 *   hop   Wilson's, with a weight for each direction (cuda/ops.h: qk_hop_args_t)
 *   T     (A + Q) B of cuda/types.h; it need not be hermitian
 *   Mhat = 1 - 1/4 T_ee^-1 hop T_oo^-1 hop,  Mhat^+ = 1 - 1/4 hop^+ T_oo^-1+ hop^+ T_ee^-1+
 *
 * Each application is one or two passes of the hop kernel, which fuses T or T^-1. The calls are
 * those of operator.h.
 */
#ifndef QK_ENGINE_EO_H
#define QK_ENGINE_EO_H

#include "daemon/engine/operator/operator.h"

/* What an operator is made of. Members of a precision that is not wanted are zero. T and T^-1 may
 * share A; then neither is given back before the operator is. */
typedef struct qk_eo_parts {
  bool want[QK_PRECS];
  qk_links_t links[QK_PRECS];
  qk_local_t t[QK_PRECS], inverse[QK_PRECS]; /* T, T^-1 */
  double phase[4][2];                        /* boundary phases; 0: no hop across that edge */
  double weight[4];                          /* of the hops of a direction; 0 says 1 */
  double scale;                              /* typical |T v| / |v| */
  double twist;                              /* of T: T = H + i twist gamma_5 */
  int flops;                                 /* of T per site and right-hand side */
} qk_eo_parts_t;

/* An operator of these parts, which it takes, also after an error. description: action, adjoint and
 * chirality of the result; the rest of it is not read. dev and work are borrowed. Not collective.
 * QK_NO_MEMORY, QK_DEVICE_MEMORY. */
qk_status_t qk_eo_create(const qk_device_t *dev, qk_work_t *work, const qk_operator_t *description,
                         qk_eo_parts_t *parts, qk_operator_t **op, qk_err_t *err);
/* Frees device memory of parts that no operator has taken. */
void qk_eo_parts_free(const qk_device_t *dev, qk_eo_parts_t *parts);

#endif
