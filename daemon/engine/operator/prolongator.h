/*
 * prolongator.h: P and R = P^+ between a level and the next coarser one (formulas: cuda/mg_ops.h).
 *
 * The coarse level may be one that every rank has whole (geom.h): restrict then brings together
 * what the ranks have, and prolong takes of it what this rank needs.
 *
 * Memory: the vectors, single or half. Device work on queue 0. Collective but for destroy and
 * vectors; vectors, restrict and prolong are calls of an iteration (device.h).
 * Errors: QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_BAD_ARGUMENT.
 */
#ifndef QK_ENGINE_PROLONGATOR_H
#define QK_ENGINE_PROLONGATOR_H

#include "daemon/engine/operator/gather.h"

typedef struct qk_prolongator {
  const qk_device_t *fine, *coarse; /* borrowed */
  qk_transfer_t t;
  /* The ranks' aggregates: `coarse`, or where every rank has that whole a lattice of its own. */
  const qk_device_t *cut;
  qk_gather_t *gather; /* NULL: the same */
  qk_geom_t cut_geom;
  qk_device_t cut_dev;
} qk_prolongator_t;

/* v: null vectors, full field of `fine` in single precision, one column each. create
 * orthonormalises it on aggregates in place; it may be freed afterwards. coarse->geom: of
 * qk_geom_coarsen with `block` and the number of columns. Collective. QK_BREAKDOWN: dependent
 * vectors (err says on how many aggregates). */
qk_status_t qk_prolongator_create(const qk_device_t *fine, const qk_device_t *coarse,
                                  const int block[4], qk_prec_t prec, qk_field_t *v,
                                  qk_prolongator_t **p, qk_err_t *err);
/* The same with vectors that come in turns: all are 0 at first. Collective. */
qk_status_t qk_prolongator_reserve(const qk_device_t *fine, const qk_device_t *coarse,
                                   const int block[4], qk_prec_t prec, qk_prolongator_t **p,
                                   qk_err_t *err);
/* v: the null vectors from `first` on (cuda/mg_ops.h: transfer_set), while those before are there
 * and later ones are 0. v becomes orthonormal to those before and in itself, and the next vectors.
 * null: full field of `coarse`, a column each; v as it was is what the prolongator makes of these
 * columns. Memory: another block like v. Collective. QK_BREAKDOWN as create. */
qk_status_t qk_prolongator_join(qk_prolongator_t *p, int first, qk_field_t *v, qk_field_t *null,
                                qk_err_t *err);
/* All vectors at once, from more test vectors v of about equal length than there are vectors: the
 * leading singular vectors of v on each aggregate and chirality (arXiv:2505.14399). Overwrites v.
 * Where the backend cannot make them of so many, the first of v. null: as for join, but that the
 * prolongator only comes near v. Memory: two more blocks like v.
 * Collective. Errors as join. */
qk_status_t qk_prolongator_condense(qk_prolongator_t *p, qk_field_t *v, qk_field_t *null,
                                    qk_err_t *err);
void qk_prolongator_destroy(qk_prolongator_t *p); /* NULL-safe */
/* v = the orthonormal vectors from `first` on, as many as it has columns (transfer_get). */
void qk_prolongator_vectors(const qk_prolongator_t *p, int first, qk_field_t *v);

/* coarse = R fine, from all sites of `fine` (full field, or even sites with zeros on the odd
 * ones). */
void qk_prolongator_restrict(const qk_prolongator_t *p, qk_field_t *coarse, const qk_field_t *fine);
/* fine = P coarse, or += with add; on the sites that `fine` has. */
void qk_prolongator_prolong(const qk_prolongator_t *p, qk_field_t *fine, const qk_field_t *coarse,
                            bool add);

#endif
