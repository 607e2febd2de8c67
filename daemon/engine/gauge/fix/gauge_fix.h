/*
 * gauge_fix.h: Landau and Coulomb gauge.
 *
 * Maximises, over transformations g(x) of SU(3), the functional
 *
 *   F = 1/(3 n V) sum_x sum_{mu < n} Re tr W_mu(x),   W_mu(x) = g(x) U_mu(x) g(x+mu)^+
 *
 * with n = 4 (Landau) or 3 (Coulomb: each time slice by itself); F = 1 for unit links. How far it
 * is from stationary (arXiv:1206.0675):
 *
 *   theta = 1/(3 V) sum_x tr D(x) D(x)^+,
 *   D(x) = sum_{mu < n} [W_mu(x-mu) - W_mu(x) - h.c. - trace]
 *
 * What is compared with the tolerance is theta in Landau gauge; in Coulomb gauge the largest of the
 * theta of single time slices, whose V is that of a slice.
 *
 * An iteration visits the even sites, then the odd ones: three SU(2) subgroups, each overrelaxed
 * (Mandula, Ogilvie, Phys. Lett. B 248 (1990) 156). Each iteration begins with another subgroup:
 * on the two diagonal generators, which all three share, three reflections in always the same
 * order leave one direction nearly as it is (docs/decisions.md). The links are left as they are
 * until apply, which computes W once, so that rounding does not pile up. All backends do the same
 * arithmetic, operation by operation: so many iterations give the same bits on any backend and
 * grid of ranks. theta and F are the same to rounding.
 *
 * g is a field of qk_gaugefield_create_sites with the halo of the links. All calls are collective.
 * Errors: those of gaugefield.h; QK_NO_MEMORY.
 */
#ifndef QK_ENGINE_GAUGE_FIX_H
#define QK_ENGINE_GAUGE_FIX_H

#include "daemon/engine/gauge/gaugefield.h"

typedef enum qk_fix_gauge { QK_FIX_LANDAU, QK_FIX_COULOMB } qk_fix_gauge_t;

/* theta below this is rounding. */
#define QK_FIX_TOL_MIN 1e-26

typedef struct qk_fix_params {
  qk_fix_gauge_t gauge;
  double tol;             /* of theta, at least QK_FIX_TOL_MIN */
  double omega;           /* overrelaxation, 1 <= omega < 2; 1: none */
  int64_t max_iterations; /* >= 0 */
  int64_t check_every;    /* iterations between two looks at theta, >= 1 */
} qk_fix_params_t;

typedef struct qk_fix_point {
  int64_t iteration;
  double functional, theta; /* theta: what is compared with the tolerance */
} qk_fix_point_t;

/* What suits a lattice: 2 / (1 + 0.42 / L), as of successive overrelaxation, with L the fourth root
 * of the volume (third root of that of a time slice in Coulomb gauge). 0.42: docs/decisions.md. */
double qk_fix_omega(const qk_geom_t *geom, qk_fix_gauge_t gauge);

/* Called before the first iteration and with each look at theta, on all ranks, with the same
 * numbers. *stop: to end here, the same on all ranks. */
typedef qk_status_t qk_fix_watch_fn(void *arg, const qk_fix_point_t *point, bool *stop);

/* g = 1; or drawn from the Haar measure, to come to another maximum. */
qk_status_t qk_fix_start(qk_gaugefield_t *g, bool random, uint64_t seed);

/* Where the gauge of W stands; iteration is set to 0. */
qk_status_t qk_fix_measure(const qk_gaugefield_t *u, const qk_gaugefield_t *g, qk_fix_gauge_t gauge,
                           qk_fix_point_t *point);

/* Iterates on g until theta <= tol, max_iterations are done or watch says stop; *point: the last
 * look. Ends all the same where theta is no number. watch may be NULL. */
qk_status_t qk_fix_run(const qk_gaugefield_t *u, qk_gaugefield_t *g, const qk_fix_params_t *params,
                       qk_fix_watch_fn *watch, void *arg, qk_fix_point_t *point);

/* u = W, with its halo. */
qk_status_t qk_fix_apply(qk_gaugefield_t *u, const qk_gaugefield_t *g);

#endif
