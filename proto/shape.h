/*
 * shape.h: the fields of a setup: extents of the lattice, real numbers of a field at a site, and
 * right-hand sides that make a propagator. Pure.
 */
#ifndef QK_PROTO_SHAPE_H
#define QK_PROTO_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/action/actions.h"
#include "proto/limits.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qk_shape {
  uint32_t dims[4]; /* x, y, z, t; zeros: not known */
  uint32_t site_reals, columns;
} qk_shape_t;

/* [spin][colour], on a lattice that is not known. */
qk_shape_t qk_shape_usual(void);
/* Fields of four dimensions of an action, likewise. */
qk_shape_t qk_shape_of(const qk_action_row_t *action);
/* Whether its fields are [spin][colour]. */
bool qk_shape_is_usual(const qk_shape_t *shape);
/* Whether they are [colour] alone: those of staggered fermions. */
bool qk_shape_is_colour(const qk_shape_t *shape);
/* Fields of [spin][colour] that a right-hand side has, one after the other: 2 for a doublet, whose
 * upper flavour is the first; else 1. */
int qk_shape_vectors(const qk_shape_t *shape);
bool qk_shape_same(const qk_shape_t *a, const qk_shape_t *b);
/* NULL, or what is wrong: the volume is 1 to 2^31 - 1, a site has an even number of reals up to
 * QK_SITE_REALS_MAX, and there are no more columns than complex numbers at a site. */
const char *qk_shape_check(const qk_shape_t *shape);

uint64_t qk_shape_sites(const qk_shape_t *shape);

#ifdef __cplusplus
}
#endif
#endif
