/*
 * chain.h: a Markov chain of the quenched theory that writes configurations and can be resumed
 * after any interruption. Its results do not depend on interruptions.
 *
 * Files, in the folder of the configurations: <stem>.state is the state of the chain (state.h). If
 * the last configuration written does not have all 64 bits, <stem>.state-<sweep>.lime holds the
 * links. A new state is complete on disk before the old one is removed. <stem>: pattern.h.
 *
 * All calls are collective unless they say otherwise. Error texts are complete sentences.
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

/* Checks the files on disk before anything is computed or changed. Refuses an output that
 * exists, a state without resume, and a folder that cannot be written to (QK_IO_ERROR;
 * QK_BAD_ARGUMENT). With force, files of an earlier chain may exist. resume without a state
 * begins at the start. Fills in chain from params; chain->saved is the sweep to continue from.
 * After a failure chain needs no end. */
qk_status_t qk_chain_look(qk_tool_t *tool, const qk_chain_params_t *params, int64_t sweeps,
                          bool resume, bool force, qk_chain_t *chain, qk_err_t *err);

/* Puts the links of the start or of the state on the open device. Removes files of an earlier
 * chain unless this one continues it. */
qk_status_t qk_chain_start(qk_chain_t *chain, qk_err_t *err);

/* The next sweep; its plaquette. QK_INTERNAL where that is not a number. */
qk_status_t qk_chain_sweep(qk_chain_t *chain, double *plaquette, qk_err_t *err);

/* Whether the configuration of the last sweep is one to be written. Not collective. */
bool qk_chain_due(const qk_chain_t *chain);

/* The configuration, where it is due, and the state. After a failure the earlier ones stand. */
qk_status_t qk_chain_save(qk_chain_t *chain, qk_err_t *err);

void qk_chain_end(qk_chain_t *chain); /* after look; not collective */

#endif
