/*
 * masses.h: fills that have a mass, solved together from one Krylov space for each source
 * (masses/masses.h), beside the slots.
 *
 * There is one block at a time. It begins with the first fill that waits and those of its block
 * that are there, once no more of them come soon, or at `blocks_go`. Each fill is a right-hand side
 * of its own, with its entry, mass, result and end; if one is cancelled the others go on. Its
 * fields are on the device until all have left, beside what was planned: without room for all
 * sources it has fewer, and the others follow; a single one without room ends with DEVICE_MEMORY.
 *
 * All are collective but the queries; a status other than QK_OK means that the process cannot go
 * on.
 */
#ifndef QK_ENGINE_SERVE_MASSES_H
#define QK_ENGINE_SERVE_MASSES_H

#include "daemon/engine/serve/entries.h"

/* A fill that is about to wait: whether another one that waits has its source. */
void qk_mass_block_follow(qk_inflight_t *inflight, int entry);
/* One of a family does not wait any more: the source is read for the first that does. */
void qk_mass_block_lead(qk_inflight_t *inflight, uint64_t family);

/* A block begins, if there is none, and fills that are ready for one. */
qk_status_t qk_mass_block_begin(qk_inflight_t *inflight, qk_err_t *err);
qk_status_t qk_mass_block_step(qk_inflight_t *inflight, qk_err_t *err);
/* Solutions leave, as far as there is room; then the block ends. */
qk_status_t qk_mass_block_leave(qk_inflight_t *inflight, qk_err_t *err);
/* NULL-safe: there may be none. Not collective. */
void qk_mass_block_drop(qk_inflight_t *inflight);

bool qk_mass_block_runs(const qk_inflight_t *inflight); /* the next step iterates */

#endif
