/*
 * state.h: the state of a Markov chain: its parameters, the number of sweeps done, the file with
 * the links after them, and the plaquette of every sweep. It is JSON with a checksum (XXH3 of
 * everything else), so that a chain either continues exactly, or says why it cannot.
 *
 * Not collective: for rank 0.
 */
#ifndef QK_GAUGE_TOOL_STATE_H
#define QK_GAUGE_TOOL_STATE_H

#include "daemon/engine/gauge/evolve.h"

enum { QK_STATE_SWEEPS = 1000000, QK_STATE_NAME = 256 };

/* What must be the same for a chain to go on, with its output. */
typedef struct qk_chain_params {
  int dims[4];
  qk_evolve_params_t evolve; /* seed below 2^63 */
  const char *start;         /* "cold", "hot" or a file; UTF-8 */
  const char *out;           /* pattern; UTF-8 */
  const char *format;        /* "ildg", "nersc" */
  int bits;
  int64_t every;
} qk_chain_params_t;

typedef struct qk_chain_state {
  int64_t sweep;                     /* done: 1 .. QK_STATE_SWEEPS */
  char configuration[QK_STATE_NAME]; /* file beside the state that holds the links, 64 bit */
  uint64_t digest;                   /* of these links */
  double *plaquettes;                /* [sweep], of sweeps 1, 2, ...; of qk_malloc */
} qk_chain_state_t;

/* Replaces the file at path. QK_IO_ERROR, QK_NO_MEMORY, QK_BAD_ARGUMENT (a name is not UTF-8);
 * the existing file is then unchanged. */
qk_status_t qk_state_save(const char *path, const qk_chain_params_t *params,
                          const qk_chain_state_t *state, qk_err_t *err);

/* Sets *state on success only; the caller frees state->plaquettes. QK_NOT_FOUND: no such file.
 * QK_IO_ERROR, QK_NO_MEMORY. QK_BAD_FORMAT, QK_BAD_CHECKSUM, QK_TOO_LARGE: the file is damaged
 * or not a state file. QK_BAD_ARGUMENT: a parameter differs from params; the text has both
 * values (params NULL: any value is accepted). */
qk_status_t qk_state_load(const char *path, const qk_chain_params_t *params,
                          qk_chain_state_t *state, qk_err_t *err);

#endif
