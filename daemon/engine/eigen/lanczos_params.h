/* lanczos_params.h: parameters of Lanczos, and what they take. For those that run it, or choose
 * them before. */
#ifndef QK_ENGINE_LANCZOS_PARAMS_H
#define QK_ENGINE_LANCZOS_PARAMS_H

#include "daemon/engine/eigen/lanczos.h"

/* Blocks kept at a restart beyond those that are wanted. */
enum { QK_LANCZOS_EXTRA = 2, QK_LANCZOS_ORDER_MAX = 1000 };

/* Sets the members that are 0, but those that are found on the way. QK_BAD_ARGUMENT names field,
 * value and limit. Pure. */
qk_status_t qk_lanczos_complete(const qk_geom_t *geom, qk_lanczos_params_t *params, qk_err_t *err);
/* n, as whole blocks. */
int qk_lanczos_round_up(int n);
/* Order of the polynomial for a window. */
int qk_lanczos_order(double window, double top);

#endif
