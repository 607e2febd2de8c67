/*
 * mg_setup.h: makes the levels of a hierarchy, from fine to coarse. Private to multigrid.c and
 * mg_*.c here.
 *
 * Level l has null vectors v: relaxed random ones, those of a checkpoint, those of another
 * hierarchy, or v refined by the existing multigrid. From v follow the prolongator and the operator
 * of level l+1, and so on downwards. Vectors are freed when the prolongator has them,
 * qk_mg_params_t.together of them at a time. Peak memory, besides what stays: about three blocks of
 * these columns of level 0 in single if relaxation is in half, five if it is in single; while
 * vectors are refined there are two prolongators. Collective.
 */
#ifndef QK_ENGINE_MG_SETUP_H
#define QK_ENGINE_MG_SETUP_H

#include "daemon/base/progress.h"
#include "daemon/engine/multigrid/mg_levels.h"

typedef struct qk_mg_making {
  qk_mg_t *mg;
  qk_progress_fn *progress; /* may be NULL */
  void *arg;
  qk_mg_vectors_fn *vectors; /* NULL: relaxed */
  void *vectors_arg;
  const qk_mg_start_t *start; /* of an evolved setup, instead of vectors; else NULL */
  uint64_t seed;
  int effort; /* factor of the iterations of relaxation; of a check, 0: none */
} qk_mg_making_t;

/* Everything below the operator of level 0. On failure some of it stands. */
qk_status_t qk_mg_make_levels(const qk_mg_making_t *making, qk_err_t *err);
/* The vectors of level 0 relaxed on, then refined, and everything below made again: where those
 * that an evolved setup has kept will not do. */
qk_status_t qk_mg_resume(const qk_mg_making_t *making, qk_err_t *err);
/* Refines the vectors of level l by one application of multigrid, then rebuilds the levels
 * below. */
qk_status_t qk_mg_refine_level(const qk_mg_making_t *making, int l, qk_err_t *err);

#endif
