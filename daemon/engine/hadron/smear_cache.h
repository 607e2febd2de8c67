/*
 * smear_cache.h: Gaussian smearing of sources and sinks. Smeared links are computed when they are
 * first needed; the last few kinds of link smearing are cached.
 *
 * The gauge links stay in host memory (576 bytes a local site). Device memory of cached links is
 * freed if another kind finds no room; work fields are freed after each call. Collective.
 */
#ifndef QK_ENGINE_SMEAR_CACHE_H
#define QK_ENGINE_SMEAR_CACHE_H

#include "daemon/engine/gauge/link_smear.h"
#include "daemon/engine/hadron/gauss.h"

typedef struct qk_smearing {
  double alpha;
  int32_t steps; /* 0: none */
  qk_link_smear_t links;
  unsigned shift; /* of colour vectors: directions of qk_gauss_shift, before they are smeared */
} qk_smearing_t;

/* Whether it changes a field. Pure. */
bool qk_smearing_any(const qk_smearing_t *smearing);

/* Pure. Kinds of link smearing that give the same links are the same. */
bool qk_smearing_equal(const qk_smearing_t *a, const qk_smearing_t *b);

typedef struct qk_smear_cache qk_smear_cache_t;

/* Takes links (host memory of qk_malloc, local lattice, order of gauge.h), on success only. Errors:
 * QK_NO_MEMORY. */
qk_status_t qk_smear_cache_create(const qk_device_t *dev, double *links, qk_smear_cache_t **cache,
                                  qk_err_t *err);
void qk_smear_cache_destroy(qk_smear_cache_t *cache); /* NULL-safe */

/* Shifts and smears all columns of a full field in place.
 * Errors, the same on all ranks: QK_DEVICE_MEMORY,
 * QK_NO_MEMORY (the field is lost, nothing else), QK_DEVICE_ERROR, QK_COMM_ERROR. */
qk_status_t qk_smear_cache_apply(qk_smear_cache_t *cache, const qk_smearing_t *smearing,
                                 qk_field_t *field, qk_err_t *err);

/* The smeared links themselves, in host memory in the order of gauge.h, to be freed by qk_free.
 * Errors as above; QK_BAD_ARGUMENT names a parameter of the smearing. */
qk_status_t qk_smear_cache_links(qk_smear_cache_t *cache, const qk_link_smear_t *kind,
                                 double **links, qk_err_t *err);

#endif
