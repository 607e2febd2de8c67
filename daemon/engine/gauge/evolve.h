/*
 * evolve.h: Markov chain Monte Carlo of the quenched SU(3) theory.
 *
 *   S = beta [ (1 - 8 c1) sum_P (1 - Re tr P / 3) + c1 sum_R (1 - Re tr R / 3) ]
 *
 * over all plaquettes P and 1x2 rectangles R of both orientations. c1 = 0: Wilson; -1/12:
 * tree-level Luescher-Weisz (Luescher, Weisz, Commun. Math. Phys. 97 (1985) 59); -0.331: Iwasaki
 * (Y. Iwasaki, UTHEP-118 (1983), arXiv:1111.7054); -1.4088: DBW2.
 *
 * A sweep is one pseudo-heatbath over all links (Cabibbo, Marinari, Phys. Lett. B 119 (1982) 387;
 * SU(2) by Kennedy, Pendleton, Phys. Lett. B 156 (1985) 393) and or_per_hb overrelaxations (the
 * same three SU(2) subgroups, reflected). It goes direction by direction and colour by colour of a
 * checkerboard (2 colours; 4 with rectangles). Links are projected back to SU(3).
 *
 * Random numbers: Philox4x32-10 with key = seed and a counter made of sweep, global site,
 * direction, subgroup and trial. A rejected trial of the SU(2) heatbath is repeated up to 128
 * times. Then the link keeps its value, which is also valid, and hardly ever happens unless beta is
 * far below 1. All backends do the same arithmetic, operation by operation: the same parameters and
 * start give the same bits on any backend and any grid of ranks.
 *
 * Sweeps run on queue 0 and may return before the work is done; later calls do not change their
 * result. All calls except check and halo are collective. Errors: those of gaugefield.h.
 */
#ifndef QK_ENGINE_EVOLVE_H
#define QK_ENGINE_EVOLVE_H

#include "daemon/engine/gauge/gaugefield.h"

enum { QK_EVOLVE_MAX_OR = 1000 };

typedef struct qk_evolve_params {
  double beta;   /* > 0, at most 1000 */
  double c1;     /* -2 .. 0 */
  int or_per_hb; /* 0 .. QK_EVOLVE_MAX_OR */
  uint64_t seed;
} qk_evolve_params_t;

/* QK_BAD_ARGUMENT names parameter, value and limit; QK_BAD_GEOMETRY: rectangles need global extents
 * that are multiples of 4. Pure. */
qk_status_t qk_evolve_check(const qk_evolve_params_t *params, const int global[4], qk_err_t *err);
/* Width of the halo that the field must have, in sites. */
int qk_evolve_halo(const qk_evolve_params_t *params);

/* Unit links; and links drawn from the Haar measure (of the seed, before sweep 0). */
qk_status_t qk_evolve_cold(qk_gaugefield_t *field);
qk_status_t qk_evolve_hot(qk_gaugefield_t *field, uint64_t seed);

/* Sweep number `sweep` (0, 1, ...) of the stream. */
qk_status_t qk_evolve_sweep(qk_gaugefield_t *field, const qk_evolve_params_t *params,
                            int64_t sweep);

#endif
