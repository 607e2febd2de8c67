/*
 * links.h: what callers put into links, undone. Called by all ranks together; nothing but bricks
 * differs between them, and results do not depend on the grid, to the last bit.
 */
#ifndef QUARK_QUDA_LINKS_H
#define QUARK_QUDA_LINKS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/layout.h"

/* SU(3) links of a whole lattice, of which each rank has its part, [site][mu][row][column], and
 * what was on them. The operator of the caller's links is that of these, with hops weighted by
 * `hop` and a phase at the boundary, between fields that are multiplied by `twist` at each
 * coordinate. */
typedef struct qk_quda_links {
  int dims[4]; /* of the lattice */
  qk_quda_shape_t shape;
  double *u;    /* the part of this rank */
  bool single;  /* 32 bits hold all of it */
  bool rounded; /* a scale or a phase was undone, which changes last bits */
  double hop[4];
  double complex boundary[4];
  double complex *twist[4]; /* [dims[mu]]; all NULL: none */
  uint64_t digest;
} qk_quda_links_t;

/* Links of the caller: bricks [site][row][column], one of a direction, or [site][mu][row][column].
 */
typedef struct qk_quda_given {
  bool milc; /* the latter */
  bool single;
  bool device;       /* they are in the memory of a GPU */
  const void *links; /* brick, or four pointers */
  double anisotropy; /* a scale that is meant */
  bool antiperiodic; /* in t, says the caller */
} qk_quda_given_t;

/* NULL, with a sentence in why: they are not an SU(3) field but for a scale of each direction and
 * phases by coordinate. */
qk_quda_links_t *qk_quda_links_take(const qk_quda_shape_t *shape, const qk_quda_given_t *given,
                                    char why[256]);
void qk_quda_links_free(qk_quda_links_t *links); /* NULL-safe */
/* Whether two fields are the same, to the last bit or, where something was undone, to rounding. */
bool qk_quda_links_same(const qk_quda_links_t *a, const qk_quda_links_t *b);

#endif
