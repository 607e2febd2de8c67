/*
 * plan.h: how much device memory a setup will take on one rank, before any of it is allocated.
 *
 * Counted is what is held while the engine serves, by what it is for, and the most that is held
 * while it sets up; on the CPU what is beside it in host memory, too. Not counted: what sources,
 * smearing and contractions take for a while, and the backend's own needs. Pure but for the sizes
 * that the kernel table tells.
 */
#ifndef QK_ENGINE_PLAN_H
#define QK_ENGINE_PLAN_H

#include "daemon/engine/action/action.h"
#include "daemon/engine/eigen/coherent.h"
#include "daemon/engine/multigrid/multigrid.h"

typedef enum qk_plan_share {
  QK_PLAN_OPERATOR,     /* links and diagonal terms of all precisions, halos */
  QK_PLAN_PROLONGATORS, /* null vectors */
  QK_PLAN_MATRICES,     /* of coarse operators */
  QK_PLAN_DEFLATION,    /* low modes: of the coarsest level, or those that solves begin with */
  QK_PLAN_CYCLE,        /* fields of one application of multigrid */
  QK_PLAN_SOLVER,       /* sources, solutions, directions, and work fields */
  QK_PLAN_SINGLE_RHS,   /* both once more for a right-hand side that is alone */
  QK_PLAN_TRANSFER,     /* right-hand sides on their way in or out */
  QK_PLAN_SHARES
} qk_plan_share_t;

typedef struct qk_plan_input {
  const qk_ops_t *ops;
  const qk_geom_t *geom; /* of one vector */
  int vectors;           /* of a right-hand side; 0 says 1 */
  const qk_action_t *action;
  const qk_action_params_t *params;
  qk_solver_choice_t method; /* of the outer solver: bicgstab, cg or gcr */
  qk_prec_t inner;
  int nslot, gcr_keep; /* gcr_keep: of gcr, not 0 */
  bool compact;        /* the solver of several slots: solver.h */
  bool single_rhs;     /* with several slots, a solver of one column beside them */
  int staging;         /* sources that come beside the slots; twice as many solutions leave */
  bool on_host;        /* the device's memory is the host's */
  int deflate;         /* vectors that plain solvers begin with, of each flavour; 0: none */
  qk_coherent_cut_t deflate_cut; /* how they are compressed; n 0: they are not */
  bool deflate_half;             /* they are in half */
  bool no_parts;                 /* without room for parts of the operator (serve/works.c) */
  const qk_mg_params_t *mg;      /* complete; NULL: no multigrid */
} qk_plan_input_t;

typedef struct qk_plan {
  int nslot;
  int staging, leaving; /* sources that come, and solutions that leave, beside the slots */
  bool single_rhs, compact;
  qk_prec_t deflate_store; /* of the vectors that solvers begin with */
  /* Room of work fields, part of the shares: of both solvers, and of a cycle on level 0. They are
   * the same room, but for right-hand sides of several vectors. */
  int64_t work, cycle_work;
  int64_t share[QK_PLAN_SHARES];
  int64_t serving; /* sum of the shares */
  int64_t parts;   /* beside it while parts of the operator are applied */
  int64_t setup;   /* the most during setup */
  int64_t host;    /* beside it, where the device is the host: links, a block of sources, fields on
                      their way to and from shared memory */
} qk_plan_t;

/* All that has to be free for it. */
static inline int64_t qk_plan_needed(const qk_plan_t *plan) {
  const int64_t work = plan->serving + plan->parts;
  return (plan->setup > work ? plan->setup : work) + plan->host;
}

const char *qk_plan_name(qk_plan_share_t share);

void qk_plan_make(const qk_plan_input_t *input, qk_plan_t *plan);

/* Once links are known: those in double have 12 reals, in params and in the plan, which had 18. */
void qk_plan_short_links(const qk_ops_t *ops, const qk_lattice_t *lat, qk_action_params_t *params,
                         qk_plan_t *plan);

/* The plan for input->nslot, or where that is 0 for the most slots up to QK_SLOTS_CHOSEN that fit
 * into `free` bytes. If it does not fit: with vectors
 * of deflation in half, without room for parts of the operator, which then may end
 * for want of memory, with a compact solver, then with fewer staging buffers,
 * then without the single-RHS solver, then without staging. QK_DEVICE_MEMORY tells what is needed,
 * what there is, and what would fit. */
qk_status_t qk_plan_fit(const qk_plan_input_t *input, int64_t free, qk_plan_t *plan, qk_err_t *err);
/* The same with multigrid, whose parameters `mg` (input->mg points there) were completed from
 * `given`: where they do not fit and `given` leaves it open, with null vectors in turns, then with
 * QK_MG_VECTORS_FEW of them, then with both. */
qk_status_t qk_plan_fit_vectors(const qk_plan_input_t *input, const qk_mg_params_t *given,
                                const qk_tuning_t *tuning, int64_t free, qk_mg_params_t *mg,
                                qk_plan_t *plan, qk_err_t *err);

/* What would fit into `free` bytes on each device where the plan for input->nslot slots (0: one) on
 * `ranks` devices does not: fewer vectors, half precision, more devices; "" where none of them
 * does. given as above; without multigrid it is not looked at. Pure. */
void qk_plan_advise(const qk_plan_input_t *input, const qk_mg_params_t *given,
                    const qk_tuning_t *tuning, int64_t free, int ranks, char *text, size_t size);

#endif
