/*
 * outgoing.h: checks whether a solution can be represented in the requested type: f32 holds 1e-38
 * to 1e38, and a converged solution could come out as zeros or Inf.
 */
#ifndef QK_ENGINE_OUTGOING_H
#define QK_ENGINE_OUTGOING_H

#include "daemon/engine/lattice/extent.h"
#include "daemon/engine/serve/round.h"

/* x: of a fill that has ended, norm2 its |x|^2, as far as a double holds that. *norm_x: |x|.
 * *verdict: BAD_ARGUMENT with the number, its place in the basis of the fill and what to do, where
 * factor * x is to be written and does not fit. Collective; the same on all ranks. Errors: those of
 * extent.h. */
qk_status_t qk_outgoing_check(qk_work_t *work, const qk_fill_t *fill, const qk_field_t *x,
                              double norm2, double *norm_x, qk_err_t *verdict);

#endif
