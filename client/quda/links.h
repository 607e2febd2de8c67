/*
 * links.h: what callers put into links, undone; pure.
 */
#ifndef QUARK_QUDA_LINKS_H
#define QUARK_QUDA_LINKS_H

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>

/* SU(3) links [site][mu][row][column] of a whole lattice, x fastest, and what was on them. The
 * operator of the caller's links is that of these, with hops weighted by `hop` and a phase at the
 * boundary, between fields that are multiplied by `twist` at each coordinate. */
typedef struct qk_quda_links {
  int dims[4];
  double *u;
  bool single;  /* 32 bits hold all of it */
  bool rounded; /* a scale or a phase was undone, which changes last bits */
  double hop[4];
  double complex boundary[4];
  double complex *twist[4]; /* [dims[mu]]; all NULL: none */
  uint64_t digest;
} qk_quda_links_t;

/* Takes the links apart in place: `u` has the caller's on entry, `single` says how exact they were
 * given, `dims` is set. Refuses (returns false, with a sentence in why) what is no SU(3) field but
 * for a scale of each direction and phases by coordinate. sign_expected: the caller says
 * antiperiodic in t. anisotropy: a scale that is meant. */
bool qk_quda_links_undo(qk_quda_links_t *links, double anisotropy, bool sign_expected,
                        char why[256]);
void qk_quda_links_free(qk_quda_links_t *links); /* NULL-safe */
/* Whether two fields are the same, to the last bit or, where something was undone, to rounding. */
bool qk_quda_links_same(const qk_quda_links_t *a, const qk_quda_links_t *b);

#endif
