/*
 * mg_rig.h: multigrid and a solver on top of it in a test or benchmark.
 * What fails ends the process.
 */
#ifndef QK_TESTS_MG_RIG_H
#define QK_TESTS_MG_RIG_H

#include "daemon/engine/multigrid/cycle_vectors.h"
#include "tests/support/rig.h"

typedef struct mg_rig {
  qk_mg_t *mg;
  qk_cycle_t *cycle;
  qk_cycle_vectors_t *vectors; /* of rig->op, or NULL */
  qk_solver_t *solver;         /* gcr of nslot slots, one outer iteration a step */
} mg_rig_t;

/* Two levels of builtin:weak:4x4x8x8, or three, with little work in them. */
qk_mg_params_t mg_rig_small_params(int nlevel);

/* Under mpirun: all ranks, on the grid that quarkd takes for this lattice and the defaults of
 * multigrid; rank 0 says so, what the others print is dropped. Else NULL: one rank. */
qk_comm_t *mg_rig_ranks(int *argc, char ***argv, const char *gauge);

/* params NULL: all defaults. outer: precision of the outer iteration. */
void mg_rig_open(qk_rig_t *rig, const qk_mg_params_t *params, qk_prec_t outer, int nslot,
                 mg_rig_t *m);
/* Other slots on the same hierarchy. keep: directions of the outer iteration; 0: default. */
void mg_rig_slots(qk_rig_t *rig, mg_rig_t *m, qk_prec_t outer, int nslot, int keep);
void mg_rig_close(mg_rig_t *m);

/* Solves once more for what stands in the first n slots, none of which runs, and prints what it
 * spends on passes in double over one right-hand side at a time, beside the iteration over the
 * block: ms a right-hand side to begin, to update and to end, and applications. The clock waits for
 * the device around each part. A step in which some slots end and others are updated counts as an
 * end. The inner precision is not double. */
void mg_rig_show_double(qk_rig_t *rig, qk_solver_t *solver, int n, double tol);

#endif
