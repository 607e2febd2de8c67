/*
 * chebyshev.h: a fixed Chebyshev polynomial of A = Mhat^+ Mhat, which is small on [window, top] and
 * large below.
 *
 * Shapes: fields of the system, of any precision that the operator holds and any number of columns.
 * Cost: 2 order applications of Mhat. Collective but for create and destroy. A twist is that of the
 * flavours that are set.
 */
#ifndef QK_ENGINE_CHEBYSHEV_H
#define QK_ENGINE_CHEBYSHEV_H

#include "daemon/engine/operator/operator.h"

typedef struct qk_chebyshev_params {
  int order;
  double window, top;
} qk_chebyshev_params_t;

typedef struct qk_chebyshev qk_chebyshev_t;
/* op, work: borrowed. QK_NO_MEMORY, QK_DEVICE_MEMORY. */
qk_status_t qk_chebyshev_create(qk_operator_t *op, qk_work_t *work, const qk_chebyshev_params_t *p,
                                qk_chebyshev_t **chebyshev);
void qk_chebyshev_destroy(qk_chebyshev_t *chebyshev); /* NULL-safe */

/* out = T_order((2 A - top - window) / (top - window)) in, or A in; calls of an iteration
 * (device.h). out is not in. */
void qk_chebyshev_apply(const qk_chebyshev_t *chebyshev, qk_field_t *out, const qk_field_t *in);
void qk_chebyshev_image(const qk_chebyshev_t *chebyshev, qk_field_t *out, const qk_field_t *in);

/* The argument below window at which the polynomial is `value` >= 1; at a smaller value: window. */
double qk_chebyshev_inverse(const qk_chebyshev_params_t *p, double value);

#endif
