#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>

#include "tests/unit/engine/lattice/gammas.h"

/* The DeGrand-Rossi matrices of docs/physics.md. */
static const gammas_t published[4] = {
    {{0, 0, 0, I}, {0, 0, I, 0}, {0, -I, 0, 0}, {-I, 0, 0, 0}},
    {{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}},
    {{0, 0, I, 0}, {0, 0, 0, -I}, {-I, 0, 0, 0}, {0, I, 0, 0}},
    {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}},
};

static double distance(const gammas_t a, const gammas_t b) {
  double most = 0;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) most = fmax(most, cabs(a[i][j] - b[i][j]));
  return most;
}

Test(gamma, numbers_are_ordered_products) {
  for (int n = 0; n < QK_GAMMAS; n++) {
    gammas_t want = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}, next, got;
    for (int mu = 0; mu < 4; mu++) {
      if (!(n >> mu & 1)) continue;
      gammas_times(want, published[mu], next);
      for (int i = 0; i < 16; i++) (&want[0][0])[i] = (&next[0][0])[i];
    }
    gammas_get(n, got);
    cr_expect(distance(got, want) == 0, "number %d", n);
  }
}

Test(gamma, last_one_is_gamma5) {
  const gammas_t want = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1}};
  gammas_t got;
  gammas_get(QK_GAMMA5, got);
  cr_expect(distance(got, want) == 0);
}
