/*
 * tuning.h: what multigrid is fastest with on a backend, where nothing else is asked for
 * (docs/performance.md). The engine fills in its parameters by it
 * (daemon/engine/multigrid/mg_params.c); no kernel looks at it.
 */
#ifndef QK_CUDA_TUNING_H
#define QK_CUDA_TUNING_H

#include "cuda/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_tuning {
  qk_prec_t narrow;        /* of level 0 and of all matrices: half where 16 bits gain */
  qk_prec_t sums;          /* of the hops that smooth level 0, where that is half */
  int nvec;                /* null vectors of a level */
  int ntest;               /* they are condensed from so many; 0: from nvec */
  int setup_iterations;    /* of their relaxation */
  int setup_passes;        /* of refinement with two levels and nvec of them; -1: none */
  int post;                /* smoothing steps of levels below level 0 */
  int iterations;          /* of GCR, on a level between */
  int last_iterations;     /* on the coarsest level ... */
  int deflated_iterations; /* ... and where it is deflated */
  int deflate;             /* vectors of that, beyond two levels */
  /* Where the number of levels is chosen, a coarse lattice of last_least .. last_most sites is the
   * last and deflated, also as the second: launches of a third would cost more than it saves. */
  int last_least, last_most;
  int smoother_bits; /* of matrices that smooth one RHS on levels between; -1: as stored */
  int whole; /* sites that a coarsest level may have that every rank has whole; -1: none is */
} qk_tuning_t;

extern const qk_tuning_t qk_tuning_cpu, qk_tuning_gpu;

#ifdef __cplusplus
}
#endif
#endif
