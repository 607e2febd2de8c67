/*
 * gammas.h: matrices of spin, [row][column], for tests that write them out.
 */
#ifndef QK_TESTS_GAMMAS_H
#define QK_TESTS_GAMMAS_H

#include <complex.h>

#include "daemon/engine/lattice/gamma.h"

typedef double complex gammas_t[4][4];

/* Gamma matrix number n of gamma.h. */
static inline void gammas_get(int n, gammas_t out) {
  double m[4][4][2];
  qk_gamma_matrix(n, m);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) out[i][j] = m[i][j][0] + I * m[i][j][1];
}

/* out = a b, which are not out. */
static inline void gammas_times(const gammas_t a, const gammas_t b, gammas_t out) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      out[i][j] = 0;
      for (int k = 0; k < 4; k++) out[i][j] += a[i][k] * b[k][j];
    }
}

#endif
