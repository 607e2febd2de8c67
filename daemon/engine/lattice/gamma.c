#include "daemon/engine/lattice/gamma.h"

#include <string.h>

#include "daemon/base/assert.h"

/* gx, gy, gz, gt (gamma_basis.h): row r holds i^power[r] in column[r]. */
static const struct {
  int column[4], power[4];
} direction[4] = {
    {{3, 2, 1, 0}, {1, 1, 3, 3}},
    {{3, 2, 1, 0}, {2, 0, 0, 2}},
    {{2, 3, 0, 1}, {1, 3, 3, 1}},
    {{2, 3, 0, 1}, {0, 0, 0, 0}},
};

void qk_gamma_matrix(int n, double matrix[4][4][2]) {
  static const double unit[4][2] = {{1, 0}, {0, 1}, {-1, 0}, {0, -1}};
  QK_ASSERT(n >= 0 && n < QK_GAMMAS);
  memset(matrix, 0, 16 * sizeof matrix[0][0]);
  for (int r = 0; r < 4; r++) {
    int column = r, power = 0;
    for (int mu = 0; mu < 4; mu++)
      if (n >> mu & 1) {
        power += direction[mu].power[column];
        column = direction[mu].column[column];
      }
    memcpy(matrix[r][column], unit[power % 4], sizeof unit[0]);
  }
}
