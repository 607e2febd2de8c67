/*
 * coherent.h: a few vectors, cut into aggregates, as a basis of many (local coherence,
 * arXiv:1710.06884). Low modes look alike in a small volume: what is left of one after the others
 * is projected out in each aggregate is little.
 *
 * Vectors of the system are written as coefficients: fields of `dev` below, eight columns of
 * QK_EVEN, of a number for each aggregate, chirality and vector of the basis. All slices and
 * flavours of an aggregate belong together. Sums of the fine lattice are sums of coefficients, as
 * the basis is orthonormal; what depends on others in an aggregate is zero there.
 *
 * Memory: n vectors. Aggregates do not cross ranks. Device work on queue 0. Errors:
 * QK_BAD_GEOMETRY, QK_DEVICE_MEMORY, QK_DEVICE_ERROR, QK_NO_MEMORY, QK_COMM_ERROR.
 */
#ifndef QK_ENGINE_COHERENT_H
#define QK_ENGINE_COHERENT_H

#include <complex.h>
#include <stdbool.h>

#include "daemon/engine/eigen/flat.h"

enum { QK_COHERENT_MAX = QK_BASIS_BLOCKS * QK_TILE }; /* vectors of a basis */

/* How the lattice is cut. */
typedef struct qk_coherent_cut {
  int n;        /* vectors of the basis, a multiple of eight; 0: there is none */
  int block[4]; /* extents of an aggregate; block[0] is even */
} qk_coherent_cut_t;

typedef struct qk_coherent {
  qk_coherent_cut_t cut;
  qk_flat_t flat; /* of the basis */
  qk_geom_t geom; /* of coefficients: sites are aggregates */
  qk_device_t dev;
  int aggregates; /* of this rank */
  int nblock;
  qk_field_t *v[QK_BASIS_BLOCKS]; /* flat blocks of eight */
} qk_coherent_t;

/* Whether the cut suits the part of a rank. Pure. */
qk_status_t qk_coherent_check(const qk_geom_t *geom, const qk_coherent_cut_t *cut, qk_err_t *err);
/* Aggregates and coefficients of a vector: of this rank, and of all. */
int64_t qk_coherent_aggregates(const qk_geom_t *geom, const qk_coherent_cut_t *cut);
int64_t qk_coherent_numbers(const qk_geom_t *geom, const qk_coherent_cut_t *cut);
/* The lattice of coefficients, of which qk_field_bytes(.., QK_EVEN) are the bytes of a block. */
qk_geom_t qk_coherent_geom(const qk_geom_t *geom, const qk_coherent_cut_t *cut);

/* For vectors of the operator on dev and its system: room for a basis of zeros. Not collective. */
qk_status_t qk_coherent_create(const qk_device_t *dev, qk_subset_t system, qk_prec_t prec,
                               const qk_coherent_cut_t *cut, qk_coherent_t **coherent);
/* The same of flat blocks of eight that are there: it takes them, on success. */
qk_status_t qk_coherent_create_from(const qk_device_t *dev, const qk_coherent_cut_t *cut,
                                    qk_field_t **block, qk_coherent_t **coherent);
void qk_coherent_destroy(qk_coherent_t *coherent); /* NULL-safe */
/* The vectors become orthonormal on each aggregate and chirality, in steps of eight of them and of
 * one pass over those before: it is borrowed until destroy. Double or single. Memory beside it: two
 * blocks of eight. Collective but for destroy. */
typedef struct qk_coherent_pass qk_coherent_pass_t;
qk_status_t qk_coherent_pass_create(qk_coherent_t *coherent, qk_coherent_pass_t **pass,
                                    qk_err_t *err);
qk_status_t qk_coherent_pass_step(qk_coherent_pass_t *pass, bool *over, qk_err_t *err);
void qk_coherent_pass_destroy(qk_coherent_pass_t *pass); /* NULL-safe */
/* Another precision, for use alone. Not collective. */
qk_status_t qk_coherent_convert(qk_coherent_t *coherent, qk_prec_t prec);

/* Calls of an iteration (device.h): c = V^+ y; y = V c. y: a flat block of eight columns. */
void qk_coherent_restrict(const qk_coherent_t *coherent, const qk_field_t *c, const qk_field_t *y);
void qk_coherent_prolong(const qk_coherent_t *coherent, const qk_field_t *y, const qk_field_t *c);

/* Eight columns of coefficients, or any field of one tile, to or from plain numbers in host memory,
 * [site][column][component]; plane 0: rounded to single; plane 1: what is left in double. Not
 * collective. */
qk_status_t qk_coherent_get(const qk_field_t *field, int plane, float *plain);
qk_status_t qk_coherent_set(qk_field_t *field, int planes, float *const plain[2]);

#endif
