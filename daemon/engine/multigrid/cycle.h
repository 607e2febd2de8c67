/*
 * cycle.h: one application of multigrid to a block of right-hand sides, as a preconditioner of
 * solver.h.
 *
 *   B_l(r):  z = 0;  pre smoothing steps on (z, r);  b = R A_ee r;  e = S_{l+1}(b);  z += P e;
 *            r = r_0 - Mhat z;  post smoothing steps on (z, r)
 *   S_l(b):  bhat = prepare(b);  `iterations` of GCR with preconditioner B_l (on the last level
 *            none; deflated if there is a qk_mg_t.deflation);  reconstruct
 *
 * After even-odd smoothing the full residual is (A_ee rhat, 0), and only the even sites of P e are
 * needed: transfers use only even fine sites. Every RHS has its own scalars, on the device. If no
 * level has tol > 0, on one rank or on ranks that share memory, nothing waits for the device;
 * backends that can record graphs then run the whole application as one graph.
 *
 * create reserves the memory; the work stacks must not be trimmed while a cycle exists. A cycle
 * serves one nrhs; several may share a hierarchy (one at a time). Collective.
 */
#ifndef QK_ENGINE_CYCLE_H
#define QK_ENGINE_CYCLE_H

#include "daemon/engine/krylov/solver.h"
#include "daemon/engine/multigrid/multigrid.h"

typedef struct qk_cycle qk_cycle_t;

/* prec: of the outer iteration. */
qk_status_t qk_cycle_create(qk_mg_t *mg, qk_prec_t prec, int nrhs, qk_cycle_t **cycle,
                            qk_err_t *err);
void qk_cycle_destroy(qk_cycle_t *cycle); /* NULL-safe */

/* z = B_0 r on even fields of level 0; z may be r. room (NULL: none) and mask as in qk_precond_t.
 * No memory is taken where r, which then is not z, has the precision of the smoother on level 0, or
 * there is room. */
qk_status_t qk_cycle_apply(void *cycle, qk_field_t *z, const qk_field_t *r, qk_field_t *room,
                           const uint8_t *mask);
/* For solver.h; borrows the cycle. */
qk_precond_t qk_cycle_precond(qk_cycle_t *cycle);

/* The smoother of level 0 learns from the residuals that it is given (qk_smoother_learn), in a
 * cycle without graphs (qk_mg_params_t). NULL: no longer. Not collective. */
qk_status_t qk_cycle_learn(qk_cycle_t *cycle, qk_learning_t *to);

/* Seconds spent on each level since the last call. It waits for the device before and after a
 * level, so an application is slower while on. For benchmarks (paper, Fig. 4). */
void qk_cycle_time(qk_cycle_t *cycle, bool on, double seconds[QK_MG_LEVELS_MAX]);
int64_t qk_cycle_bytes(const qk_cycle_t *cycle);

#endif
