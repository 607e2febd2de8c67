/*
 * mg_vectors.h: null vectors of a level, from noise or from those that there are, and what becomes
 * of them. Private to mg_setup.c and mg_check.c. Collective.
 */
#ifndef QK_ENGINE_MG_VECTORS_H
#define QK_ENGINE_MG_VECTORS_H

#include "daemon/engine/multigrid/mg_setup.h"

/* A prolongator, and the vectors that it was made of in terms of it. */
typedef struct qk_mg_vectors {
  qk_prolongator_t *down;
  qk_field_t *null;
  double residual; /* mean |M v| / |v| */
} qk_mg_vectors_t;

typedef enum qk_mg_from {
  QK_MG_NOISE,   /* random vectors, relaxed */
  QK_MG_GIVEN,   /* those of the making */
  QK_MG_RESUMED, /* those of the level, relaxed with part of the iterations */
  QK_MG_REFINED  /* those of the level, by one application of the multigrid that there is */
} qk_mg_from_t;

/* For level l. The level is left as it is; but where all of its vectors are resumed at a time, what
 * leads down from it goes, to save memory. */
qk_status_t qk_mg_make_vectors(const qk_mg_making_t *making, int l, qk_mg_from_t from,
                               qk_mg_vectors_t *made, qk_err_t *err);

/* Mean |M v| / |v| of the null vectors of level l. */
qk_status_t qk_mg_null_residual(qk_mg_t *mg, int l, double *residual, qk_err_t *err);

/* Relaxed vectors in the columns of v (full, single), a field of level l: the vectors from `first`
 * on. */
qk_status_t qk_mg_relax(const qk_mg_making_t *making, int l, int first, qk_field_t *v,
                        qk_err_t *err);

/* |f|^2 of each column. Waits. A call of an iteration (device.h). */
void qk_mg_norm2(const qk_field_t *f, double *norm2);

#endif
