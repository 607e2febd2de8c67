/*
 * mg_polynomial.h: the polynomial that smooths level 0 (smoother.h), learned from the residuals
 * that the hierarchy's own corrections leave.
 */
#ifndef QK_ENGINE_MG_POLYNOMIAL_H
#define QK_ENGINE_MG_POLYNOMIAL_H

#include "daemon/engine/multigrid/multigrid.h"

/* Sets level[0].polynomial of a complete hierarchy, if level 0 is to be smoothed by one after the
 * coarse correction, in 2 to QK_POLYNOMIAL_MAX steps; if nothing can be learned there is none, and
 * ca-gcr smooths. *rate, set if there is one: log of what an outer iteration with ca-gcr leaves of
 * the residual of a random source. Solves two, with up to eight iterations each. Collective.
 * Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_mg_learn_polynomial(qk_mg_t *mg, double *rate, qk_progress_fn *progress, void *arg,
                                   qk_err_t *err);

#endif
