/*
 * coarsest.h: the solver of the coarsest level. That level has no smoother and no level below, so
 * this solver stands alone: GCR without preconditioner, begun by the low modes if there are any
 * (qk_mg_t.deflation). Its cost is `iterations` (mg_params.c) applications of Mhat.
 *
 * It is called in each application of the cycle, which a device may record as a graph and then
 * replay without running this code again (cycle.h). What may be recorded
 *   - does not wait for the device and reads nothing back from it;
 *   - does not call qk_scalars_fill, which copies from the host and waits: constants are filled in
 *     when the cycle is created;
 *   - takes no decision on the host by what has been computed: the number of iterations is fixed,
 *     and every RHS has its scalars on the device;
 *   - allocates nothing: fields are taken from the work stack, in the same order each time, and
 *     scalars are those of the level (QK_CYCLE_SCALARS in cycle_impl.h).
 * An end by tolerance (tol > 0 on this level) breaks the second and third of these. A cycle with
 * such a level is never recorded: cycle.c sees that by qk_cycle_level_t.running.
 *
 * The solver need not be linear: GCR on the level above is flexible. An RHS that is not finite must
 * not disturb the others. An exact zero on the right gives zero.
 */
#ifndef QK_ENGINE_COARSEST_H
#define QK_ENGINE_COARSEST_H

#include "daemon/engine/multigrid/cycle.h"

/* x with Mhat x = r approximately, fields of the last level's system in its precision; x is set,
 * r is lost. A call of an iteration (lattice/device.h). Collective. */
void qk_coarsest_solve(qk_cycle_t *c, qk_field_t *x, qk_field_t *r);

#endif
