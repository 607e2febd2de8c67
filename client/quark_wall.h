/*
 * quark_wall.h: the part of quark.h about what a daemon measures of solves for domain wall
 * fermions: quark, mid-point and conserved axial current, summed over time slices.
 *
 * Programs include quark.h. What its top says of threads, errors and loss holds here too.
 */
#ifndef QUARK_WALL_H
#define QUARK_WALL_H

#include "quark.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Formulas and signs: docs/physics.md. */
typedef enum quark_wall {
  QUARK_WALL_QUARK,    /* sum_x |q|^2, q the solution */
  QUARK_WALL_MIDPOINT, /* sum_x |mid|^2; its ratio to the first is the residual mass */
  QUARK_WALL_AXIAL     /* sum_x A_t, the conserved axial current */
} quark_wall_t;

/* What came with the result of an RHS that has ended, for the time slices t = 0 .. T-1: the first
 * `room` numbers into sum. *count: how many there are, T, or 0: none came. That is so for other
 * actions, without a solution, of an older daemon, where T is over 512, and if Ls is odd or, of the
 * current, b and c are not real and the same on all slices. They are those of M x = b before any
 * factor, in the units of the source. Until quark_release. Errors: QUARK_NOT_FOUND (no such
 * request), QUARK_BAD_ARGUMENT (rhs, which). */
QUARK_API quark_code_t quark_wall_sums(quark_connection_t *conn, uint64_t request, uint32_t rhs,
                                       quark_wall_t which, double *sum, uint32_t room,
                                       uint32_t *count, quark_error_t *err);

#ifdef __cplusplus
}
#endif
#endif
