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

/* For level l, from relaxed vectors or those of the making; refine: from those of the level, by one
 * application of the multigrid that there is. The level is left as it is. */
qk_status_t qk_mg_make_vectors(const qk_mg_making_t *making, int l, bool refine,
                               qk_mg_vectors_t *made, qk_err_t *err);

/* Relaxed vectors in the columns of v (full, single), a field of level l: the vectors from `first`
 * on. */
qk_status_t qk_mg_relax(const qk_mg_making_t *making, int l, int first, qk_field_t *v,
                        qk_err_t *err);

/* |f|^2 of each column. Waits. A call of an iteration (device.h). */
void qk_mg_norm2(const qk_field_t *f, double *norm2);

#endif
