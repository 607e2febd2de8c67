/*
 * loaded.h: the result of LOAD: device, lattice, operator and solver for one gauge configuration.
 *
 * A process may load one after the other: the next one takes the device over from the one before,
 * and the pinned memory if that serves it.
 *
 * Collective. Errors, the same on all ranks, leave nothing behind: those of gauge.h for the file,
 * QK_BAD_GEOMETRY for extents and grid, QK_NO_DEVICE, QK_DEVICE_MEMORY, QK_BAD_ARGUMENT for
 * parameters. After QK_DEVICE_ERROR or QK_COMM_ERROR the process cannot continue.
 */
#ifndef QK_ENGINE_LOADED_H
#define QK_ENGINE_LOADED_H

#include "daemon/base/progress.h"
#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/hadron/smear_cache.h"
#include "daemon/engine/krylov/solver.h"
#include "daemon/engine/lattice/pinned.h"
#include "daemon/engine/mg_service/mg_service.h"
#include "daemon/engine/setup/clocks.h"
#include "daemon/engine/setup/deflate.h"
#include "daemon/engine/setup/load.h"
#include "daemon/engine/setup/mg_grid.h"
#include "daemon/engine/setup/plan.h"

enum { QK_PINNED_STAGING = 1 };

typedef struct qk_loaded {
  const qk_ops_t *ops;
  qk_ops_ctx_t *ctx;
  qk_geom_t geom;
  char grid_why[QK_MG_GRID_WHY]; /* the grid of ranks is what it is; "" for one rank */
  qk_device_t dev;
  qk_work_t *work;
  qk_operator_t *op;
  qk_mg_service_t *mg; /* NULL: a solver without multigrid */
  int ndeflate;        /* vectors of them that were asked for */
  qk_coherent_cut_t deflate_cut;
  qk_deflate_t *deflate;   /* low modes that plain solvers begin with; NULL: none */
  qk_solver_t *solver;     /* of nslot columns */
  qk_solver_t *single_rhs; /* single-RHS solver (one slot costs as much as the batch); NULL: none */
  qk_smear_cache_t *smear;
  struct qk_eigens *eigens; /* that sources may be (modes/eigens.h); borrowed, NULL: none */
  qk_pinned_t *pinned; /* a local vector in double each: number 0 for fields that are waited for,
                          from QK_PINNED_STAGING on those of the plan's staging buffers */
  qk_device_info_t device; /* of this rank */
  qk_gauge_info_t info;
  qk_gauge_check_t check;
  qk_solver_choice_t method; /* the one that is used: not auto */
  qk_mg_params_t mg_params;  /* complete, where it is mg */
  qk_prec_t inner;
  int nslot, link_reals;
  qk_plan_t plan;
  int64_t memory_free;  /* before the load, less 3 %, the least of all ranks; on the CPU a share */
  qk_clocks_t clocks;   /* of its creation, on this rank */
  double phase_t[2];    /* boundary factor of the operator in t */
  qk_backend_t backend; /* as it was asked for */
  qk_mg_identity_t identity;        /* links, boundary, operator: what files are bound to */
  uint64_t fingerprint;             /* of the LOAD */
  int replicas;                     /* engines that serve the setup */
  const qk_action_row_t *action;    /* its row */
  double mass;                      /* of an operator that is dense (overlap) */
  int vectors;                      /* of a right-hand side (actions.h): 1 or more */
  int64_t device_bytes, host_bytes; /* sums over the ranks, by qk_loaded_count_memory */
} qk_loaded_t;

/* progress is called on every rank that was given one, with phases "device", "read", "check",
 * "upload", "clover" or "links", "multigrid", "solver" (and those of qk_gauge_read and
 * qk_mg_create).
 * before: of this comm, which nothing uses any more; it ends, whatever this returns. NULL: none. */
qk_status_t qk_loaded_create(qk_comm_t *comm, const qk_load_t *load, qk_loaded_t *before,
                             qk_progress_fn *progress, void *arg, qk_loaded_t **setup,
                             qk_err_t *err);
void qk_loaded_destroy(qk_loaded_t *setup); /* NULL-safe */

/* Device and geometry of the fields of its solvers: with all vectors of a right-hand side. */
static inline const qk_device_t *qk_loaded_fields(const qk_loaded_t *setup) {
  return setup->op->dev;
}

/* Right-hand sides that it takes at a time: those in slots, and those on their way; or those of
 * several masses that are solved together, beside slots. */
static inline int qk_loaded_inflight(const qk_loaded_t *setup) {
  const int beside = setup->plan.staging + setup->plan.leaving;
  const bool more = setup->action->has_masses && beside < QK_MASSES_TOGETHER;
  return setup->nslot + (more ? QK_MASSES_TOGETHER : beside);
}

/* Multigrid is refined or made anew, and solvers on it. No slot may be in use. Errors: the process
 * cannot go on. */
qk_status_t qk_loaded_refresh(qk_loaded_t *setup, qk_mg_order_t order, qk_progress_fn *progress,
                              void *arg, qk_err_t *err);

/* Collective. */
qk_status_t qk_loaded_count_memory(qk_loaded_t *setup);

#endif
