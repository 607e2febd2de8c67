/*
 * mg_setup.h: makes the levels of a hierarchy, from fine to coarse. Private to multigrid.c,
 * mg_setup.c and mg_check.c.
 *
 * Level l has null vectors v: relaxed random ones, those of a checkpoint, or v refined by the
 * existing multigrid. From v follow the prolongator and the operator of level l+1, and so on
 * downwards; the old ones are freed before. Vectors are freed when the prolongator has them. Peak
 * memory, besides what stays: about three blocks of nvec columns of level 0 in single if relaxation
 * is in half, five if it is in single. Collective.
 */
#ifndef QK_ENGINE_MG_SETUP_H
#define QK_ENGINE_MG_SETUP_H

#include "daemon/base/progress.h"
#include "daemon/engine/multigrid/multigrid.h"

typedef struct qk_mg_making {
  qk_mg_t *mg;
  qk_progress_fn *progress; /* may be NULL */
  void *arg;
  qk_field_t *(*vectors)(void *arg, int level, const qk_device_t *dev); /* NULL: relaxed */
  void *vectors_arg;
  uint64_t seed;
  int effort; /* factor of the iterations of relaxation; of a check, 0: none */
} qk_mg_making_t;

/* Everything below the operator of level 0. On failure some of it stands. */
qk_status_t qk_mg_make_levels(const qk_mg_making_t *making, qk_err_t *err);
/* Refines the vectors of level l by one application of multigrid, then rebuilds the levels
 * below. */
qk_status_t qk_mg_refine_level(const qk_mg_making_t *making, int l, qk_err_t *err);
/* The prolongator of level l and everything below it. */
void qk_mg_drop_levels(qk_mg_t *mg, int l);

/* Relaxed vectors in the columns of v (full, single), a field of level l. */
qk_status_t qk_mg_relax(const qk_mg_making_t *making, int l, qk_field_t *v, qk_err_t *err);

/* |f|^2 of each column. Waits. A call of an iteration (device.h). */
void qk_mg_norm2(const qk_field_t *f, double *norm2);

#endif
