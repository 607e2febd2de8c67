/*
 * chain.h: a Markov chain of the quenched theory that leaves configurations and goes on after any
 * interruption with the same stream: what it makes does not depend on where it was interrupted.
 *
 * Files, all beside the configurations: <stem>.state says where the chain stands (state.h). Where the
 * last configuration written is not one that holds all 64 bits, <stem>.state-<sweep>.lime holds the
 * links. A new state is complete on disk before the old one goes. <stem>: pattern.h.
 *
 * All calls are collective but those that say otherwise. Errors are said in full.
 */
#ifndef QK_GAUGE_TOOL_CHAIN_H
#define QK_GAUGE_TOOL_CHAIN_H

#include "daemon/engine/gauge_tool/pattern.h"
#include "daemon/engine/gauge_tool/state.h"
#include "daemon/engine/tool/tool.h"

typedef struct qk_chain {
  qk_tool_t *tool;
  qk_chain_params_t params;
  qk_pattern_t pattern;
  int64_t sweeps;         /* to do in all */
  qk_chain_state_t state; /* of the last sweep; plaquettes [sweeps], on rank 0 */
  int64_t saved;          /* sweep of the state on disk; 0: none */
  qk_gaugefield_t *field;
  double *links; /* host, for what is read and written */
} qk_chain_t;

/* Looks at what is on disk before anything is computed or changed: an output that exists, a state that
 * is not asked for by resume, and a folder that cannot be written to are refused (QK_IO_ERROR;
 * QK_BAD_ARGUMENT). With force, files of an earlier chain may be there. resume without a state begins
 * at the start. Fills in chain from params, with chain->saved the sweep to go on from. chain needs no
 * end after a failure. */
qk_status_t qk_chain_look(qk_tool_t *tool, const qk_chain_params_t *params, int64_t sweeps,
                          bool resume, bool force, qk_chain_t *chain, qk_err_t *err);

/* The links of the start, or of the state, on the device, which is open. Ends what an earlier chain left
 * unless it goes on. */
qk_status_t qk_chain_start(qk_chain_t *chain, qk_err_t *err);

/* The next sweep; its plaquette. QK_INTERNAL where that is not a number. */
qk_status_t qk_chain_sweep(qk_chain_t *chain, double *plaquette, qk_err_t *err);

/* Whether the configuration of the last sweep is one to be written. Not collective. */
bool qk_chain_due(const qk_chain_t *chain);

/* The configuration, where it is due, and the state. After a failure the earlier ones stand. */
qk_status_t qk_chain_save(qk_chain_t *chain, qk_err_t *err);

void qk_chain_end(qk_chain_t *chain); /* after look; not collective */

#endif
