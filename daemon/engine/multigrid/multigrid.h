/*
 * multigrid.h: adaptive geometric multigrid (arXiv:1612.07873; adaptive setup: arXiv:1005.3043,
 * arXiv:1303.1377) for blocks of right-hand sides.
 *
 * A qk_mg_t is the hierarchy: operator and prolongator of each level. A cycle (cycle.h) applies it
 * to a number of RHS. Level 0 is the finest and borrows the operator of the caller; its prolongator
 * leads to level 1, and so on; the last level has none.
 *
 * A small coarsest level is on every rank as a whole (qk_mg_params_t.whole). Its device knows one
 * rank, so all that works there does the same work on the same numbers on each; statuses are agreed
 * on by the communicator of level 0.
 *
 * All calls are collective. Errors, the same on all ranks: QK_BAD_ARGUMENT and QK_BAD_GEOMETRY for
 * parameters (field, value, limit), QK_DEVICE_MEMORY, QK_BREAKDOWN if a setup fails its checks in
 * all attempts.
 */
#ifndef QK_ENGINE_MULTIGRID_H
#define QK_ENGINE_MULTIGRID_H

#include "daemon/base/progress.h"
#include "daemon/engine/operator/galerkin.h"
#include "daemon/engine/smoother/smoother.h"

enum {
  QK_MG_LEVELS_MAX = 5,
  QK_MG_VECTORS_FEW = 24,  /* where memory or time is short */
  QK_MG_DEFLATE_MAX = 256, /* vectors of the coarsest level */
  QK_MG_ORIGIN = 1024      /* bytes of a text with its end */
};

/* One level. 0 in a member: its default. */
typedef struct qk_mg_level_params {
  /* to the next coarser level (not of the last one) */
  int block[4]; /* aggregates; 0: chosen, near 4^4 on level 0 and 2^4 below */
  int nvec;     /* 24 on the CPU, 32 on the GPU */
  int ntest;    /* null vectors that these are condensed from: on each aggregate and chirality the
                leading singular vectors of so many; nvec: all of them. GPU: 64 */
  int setup_iterations;  /* relaxation of the homogeneous system, each vector */
  double setup_tol;      /* ... which ends at this fall of |Mhat v| / |v| */
  int setup_passes;      /* refinements by the multigrid built so far; < 0: none. 1 with more test
                            vectors than vectors: a second one makes them more alike */
  qk_prec_t prolongator; /* QK_SINGLE or QK_HALF */
  qk_prec_t setup_prec;  /* of the relaxation, level 0 */
  /* smoothing on this level (not of the last one) */
  qk_smoother_params_t smoother;
  int pre, post;           /* steps; < 0: none */
  qk_prec_t smoother_prec; /* level 0: QK_SINGLE or QK_HALF; below: single */
  qk_prec_t smoother_sums; /* of its hops in half: QK_SINGLE or QK_HALF, for blocks on a GPU */
  /* how this level is solved when a finer one asks (not of level 0) */
  int iterations; /* of GCR at most; 1 on all levels but the last: V-cycle */
  double tol; /* > 0: GCR also ends at this residual, for which the host has to wait; < 0: never */
  qk_prec_t store; /* matrices: QK_SINGLE or QK_HALF */
  /* Of matrices that smooth a right-hand side alone: 8; < 0: as stored. Not made with a twist. */
  int smoother_bits;
  double twist; /* factor of the operator's twist on this level (not of level 0); 1 */
} qk_mg_level_params_t;

typedef struct qk_mg_params {
  int nlevel; /* 2 .. QK_MG_LEVELS_MAX; 0: as many of 3 as the lattice allows; GPU: 2 if level 1 has
                 128 to 1024 sites, deflated as the last of three is */
  qk_mg_level_params_t level[QK_MG_LEVELS_MAX];
  /* Vectors of the coarsest level; < 0: none; 0: 32 (GPU: 128) beyond two levels, see nlevel. */
  int deflate;
  /* Null vectors of level 0 that a setup works on at a time, a multiple of QK_TILE; 0, or < 0 if
   * that is not to change: all. Fewer take less memory, and have other bits; no more of them are
   * tested then than kept. */
  int together;
  /* Sites that the coarsest level may have at most to be on every rank as a whole, where ranks have
   * parts of the others: no exchange and no sum is made there then; 0: 1024 (CPU: no); < 0: no.
   * Vectors, matrices and iterations are the same but for rounding. */
  int whole;
  bool no_graphs; /* cycles are launched kernel by kernel */
  uint64_t seed;  /* of the random vectors */
} qk_mg_params_t;

/* Fills in all defaults for this lattice and backend; checks ranges and geometry. Pure. */
qk_status_t qk_mg_params_complete(const qk_geom_t *geom, const qk_tuning_t *tuning,
                                  qk_mg_params_t *params, qk_err_t *err);
/* What the operator (level 0) leaves to choose: where there are no adjoints nothing is deflated.
 * QK_BAD_ARGUMENT if it is asked for. Before complete. Pure. */
qk_status_t qk_mg_params_for(const qk_operator_t *op, qk_mg_params_t *params, qk_err_t *err);
/* Whether two levels with few vectors fit at all (QK_OK), or why not. */
qk_status_t qk_mg_possible(const qk_geom_t *geom, const qk_tuning_t *tuning, qk_err_t *err);

/* The lattice of level l + 1 with these complete parameters: what a rank has of it, or all. self: a
 * communicator of one rank, which it then has; may be NULL for plans. Errors: qk_geom_coarsen.
 * Pure. */
qk_status_t qk_mg_lay_level(const qk_mg_params_t *params, int l, const qk_geom_t *fine,
                            qk_comm_t *self, qk_geom_t *coarse, qk_err_t *err);

/* What was measured of a level by qk_mg_check. */
typedef struct qk_mg_level_health {
  double orthonormality; /* max |P^+ P phi - phi| / |phi|, random phi */
  double galerkin;       /* |P^+ M P phi - M_c phi| / |M_c phi| */
  double representation; /* |v - P P^+ v| / |v| of a freshly relaxed vector v (0: not measured) */
  double null_residual;  /* mean |M v| / |v| of the null vectors */
} qk_mg_level_health_t;

typedef struct qk_mg_level {
  qk_geom_t geom; /* dev.geom points here, but on level 0 */
  qk_device_t dev;
  qk_work_t *work;
  qk_operator_t *op;
  qk_prolongator_t *down; /* NULL on the last */
  /* The null vectors v as vectors of the next level: v = P null, or nearly where more were tested
   * than kept; NULL on the last. */
  qk_field_t *null;
  qk_polynomial_t polynomial; /* of the smoother, where it has learned one */
  qk_mg_level_health_t health;
  double setup_seconds;
} qk_mg_level_t;

typedef struct qk_deflation qk_deflation_t; /* deflation.h */

/* What became of the null vectors that an evolved setup started from. */
typedef enum qk_mg_evolved { QK_MG_FROM_NOISE, QK_MG_KEPT, QK_MG_RELAXED } qk_mg_evolved_t;

typedef struct qk_mg {
  qk_mg_params_t params; /* complete */
  int nlevel;
  qk_mg_level_t level[QK_MG_LEVELS_MAX];
  qk_comm_t *self;                 /* of a level that every rank has whole; NULL: there is none */
  qk_deflation_t *deflation;       /* of the last level; NULL: none */
  qk_deflation_t *deflation_minus; /* the same of flavour -1; NULL: there is no twist */
  double convergence; /* residual factor of one outer iteration on a random RHS; 0: not measured */
  double setup_seconds;
  bool restored; /* from a checkpoint */
  int attempts;  /* of the setup */
  qk_mg_evolved_t evolved;
  /* Of the last setup from noise among those that the vectors come from, which is this one where
   * it did not evolve: null_residual of level 0, and convergence. 0: not known. */
  double fresh_residual, fresh_convergence;
  char origin[QK_MG_ORIGIN]; /* of an evolved setup, for its readers; "": from noise */
} qk_mg_t;

/* op, work: level 0, borrowed. create, refine and check free the unused fields of `work` and of
 * the levels' own stacks, so no cycle may exist meanwhile. progress: phases "null vectors",
 * "coarse operator", ... with done of total. */
qk_status_t qk_mg_create(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                         qk_progress_fn *progress, void *arg, qk_mg_t **mg, qk_err_t *err);
/* The same from existing null vectors (checkpoint): those of a level from `first` on, n columns in
 * single precision, orthonormal or not. It takes them, also on failure. NULL on all or some ranks:
 * QK_IO_ERROR. */
typedef qk_field_t *qk_mg_vectors_fn(void *arg, int level, int first, int n,
                                     const qk_device_t *dev);
qk_status_t qk_mg_create_from(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                              qk_mg_vectors_fn *vectors, void *arg, qk_mg_t **mg, qk_err_t *err);
void qk_mg_destroy(qk_mg_t *mg); /* NULL-safe */

/* Null vectors of another hierarchy with the same levels, aggregates and numbers of vectors. */
typedef struct qk_mg_start {
  qk_mg_vectors_fn *vectors; /* the orthonormal ones of its prolongators */
  /* The vectors that these were made of in terms of them, `most` at most: of level `level`, as a
   * field of the next one, dev, in single. NULL on all or some ranks: QK_IO_ERROR. */
  qk_field_t *(*null)(void *arg, int level, int most, const qk_device_t *dev);
  void *arg;
  double residual, convergence; /* fresh_residual and fresh_convergence of it */
} qk_mg_start_t;

/* A setup that starts from null vectors of another mass, action, boundary or configuration. Where
 * they are null vectors of this operator too (|M v| / |v|) they are kept; else they are relaxed
 * with a part of the iterations of a setup from noise, and refined with its passes; vectors of the
 * levels below are then made from noise, with the same part of the iterations and half of the
 * passes. Kept vectors are relaxed after all if the rate of convergence is
 * less than 9/10 of that of the last setup from noise. QK_BREAKDOWN: with relaxed ones it is less
 * than 7/10, or a check fails: nothing is left, and a setup from noise is due. */
qk_status_t qk_mg_evolve(qk_operator_t *op, qk_work_t *work, const qk_mg_params_t *params,
                         const qk_mg_start_t *start, qk_progress_fn *progress, void *arg,
                         qk_mg_t **mg, qk_err_t *err);
/* Iterations of the relaxation of an evolved setup, of those of one from noise. */
static inline int qk_mg_resumed_iterations(int iterations) {
  return (3 * iterations + 9) / 10;
}

/* One more adaptive pass: refines the vectors of level 0 by the existing multigrid, then
 * rebuilds the lower levels and the deflation. */
qk_status_t qk_mg_refine(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err);
/* Measures health and convergence. QK_BREAKDOWN says which figure is beyond its limit. */
qk_status_t qk_mg_check(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err);
/* The same of vectors that were measured when they were made, and are the same by their checksums:
 * without `representation`, for which a vector would have to be relaxed on each level. */
qk_status_t qk_mg_check_restored(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err);

/* How many null vectors of level l are worked on at a time. */
static inline int qk_mg_together(const qk_mg_t *mg, int l) {
  const int nvec = mg->params.level[l].nvec, together = mg->params.together;
  return l == 0 && together > 0 && together < nvec ? together : nvec;
}

/* The deflation that the parameters want, of an hierarchy that has none. A setup does it by itself,
 * and so does whoever restores one with a twist: a checkpoint holds that of one flavour, and of
 * factors of the twist that may have been others. */
qk_status_t qk_mg_deflate(qk_mg_t *mg, qk_progress_fn *progress, void *arg, qk_err_t *err);

int64_t qk_mg_bytes(const qk_mg_t *mg); /* device memory of the hierarchy on this rank */

#endif
