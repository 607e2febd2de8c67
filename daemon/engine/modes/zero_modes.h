/*
 * zero_modes.h: zero modes of overlap fermions, from eigenvalues h of gamma_5 D(m), m != 0
 * (kind GAMMA5).
 *
 * A zero mode of D(0) has a chirality, gamma_5 v = s v, and h = s m. All other vectors have
 * h^2 = m^2 + (1 - m^2) |l|^2 > m^2 with l the eigenvalue of D(0), and come as pairs of h and -h
 * (|l| = 1: those alone have s h = 1). So plus - minus is the index of D(0), also where some of the
 * pairs are as low as zero modes.
 *
 * Host memory; pure.
 */
#ifndef QK_ENGINE_ZERO_MODES_H
#define QK_ENGINE_ZERO_MODES_H

#include <stdbool.h>

typedef struct qk_zero_modes {
  bool known;      /* there is a vector above them: all are here */
  int plus, minus; /* of chirality +1, -1 */
} qk_zero_modes_t;

/* number: n eigenvalues and residuals |H v - h v|, [n][2], ascending by modulus. error: of H, in
 * norm. Not known: m = 0, all n are zero modes, or vectors are not good enough to tell, or to tell
 * whether the first one above is of a pair that was counted by half. */
qk_zero_modes_t qk_zero_modes_find(const double *number, int n, double mass, double error);

#endif
