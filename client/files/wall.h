/*
 * wall.h: sums over time slices of the solves of a propagator of domain wall fermions, and the
 * residual mass that they give (docs/physics.md).
 */
#ifndef QK_CLIENT_WALL_H
#define QK_CLIENT_WALL_H

#include <stdbool.h>
#include <stdint.h>

enum { QK_WALL_QUARK, QK_WALL_MIDPOINT, QK_WALL_AXIAL, QK_WALL_KINDS }; /* as quark_wall_t */

typedef struct qk_wall {
  int nt; /* time slices; 0: there are no sums */
  int t0; /* of the source; -1: it has none */
  int64_t nrhs;
  double *sum[QK_WALL_KINDS]; /* [nrhs][nt], NaN where a right-hand side has none; NULL: none has */
} qk_wall_t;

/* The mean of R(t) over times from the source of T/4 to 3T/4, as far as it can be. */
typedef struct qk_plateau {
  int first, last; /* of these distances */
  double mean, least, most;
} qk_plateau_t;

void qk_wall_init(qk_wall_t *wall, int64_t nrhs, int nt, int t0);
void qk_wall_fini(qk_wall_t *wall);
/* Takes a sum of right-hand side rhs, [nt]. False: no memory. */
bool qk_wall_set(qk_wall_t *wall, int64_t rhs, int kind, const double *sum);
bool qk_wall_has(const qk_wall_t *wall, int kind);
/* Over the right-hand sides that have it; NaN: none has. */
double qk_wall_total(const qk_wall_t *wall, int kind, int t);
/* R(t) = sum |mid|^2 / sum |q|^2 over sites and right-hand sides; NaN where it is none. */
double qk_wall_ratio(const qk_wall_t *wall, int t);
/* False: the source has no time, or R is not known there. */
bool qk_wall_plateau(const qk_wall_t *wall, qk_plateau_t *plateau);

#endif
