#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>

#include "daemon/engine/lattice/gamma.h"

typedef double complex matrix_t[4][4];

/* The DeGrand-Rossi matrices of docs/physics.md. */
static const matrix_t published[4] = {
    {{0, 0, 0, I}, {0, 0, I, 0}, {0, -I, 0, 0}, {-I, 0, 0, 0}},
    {{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}},
    {{0, 0, I, 0}, {0, 0, 0, -I}, {-I, 0, 0, 0}, {0, I, 0, 0}},
    {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}},
};

static void get(int n, matrix_t z) {
  double m[4][4][2];
  qk_gamma_matrix(n, m);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) z[i][j] = m[i][j][0] + I * m[i][j][1];
}

static void multiply(const matrix_t a, const matrix_t b, matrix_t c) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) {
      c[i][j] = 0;
      for (int k = 0; k < 4; k++) c[i][j] += a[i][k] * b[k][j];
    }
}

static double distance(const matrix_t a, const matrix_t b) {
  double most = 0;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) most = fmax(most, cabs(a[i][j] - b[i][j]));
  return most;
}

Test(gamma, numbers_are_ordered_products) {
  for (int n = 0; n < QK_GAMMAS; n++) {
    matrix_t want = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}, next, got;
    for (int mu = 0; mu < 4; mu++) {
      if (!(n >> mu & 1)) continue;
      multiply(want, published[mu], next);
      for (int i = 0; i < 16; i++) (&want[0][0])[i] = (&next[0][0])[i];
    }
    get(n, got);
    cr_expect(distance(got, want) == 0, "number %d", n);
  }
}

Test(gamma, last_one_is_gamma5) {
  const matrix_t want = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1}};
  matrix_t got;
  get(QK_GAMMA5, got);
  cr_expect(distance(got, want) == 0);
}
