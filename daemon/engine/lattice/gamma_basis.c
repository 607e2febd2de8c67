#include "daemon/engine/lattice/gamma_basis.h"

#include <math.h>

#include "daemon/base/assert.h"

/* The T of gamma_basis.h; all of them are real. With e = i s2 = ((0, 1), (-1, 0)):
 * UKQCD ((-e, -e), (-e, e)) / sqrt2, Dirac-Pauli ((e, -e), (e, e)) / sqrt2, openQCD ((0, -e), (e,
 * 0)). */
static const struct {
  const char *name;
  double norm2; /* of a row as listed */
  int t[4][4];
} table[QK_BASIS_COUNT] = {
    [QK_BASIS_DEGRAND_ROSSI] = {"degrand-rossi",
                                1,
                                {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}},
    [QK_BASIS_UKQCD] = {"ukqcd", 2, {{0, -1, 0, -1}, {1, 0, 1, 0}, {0, -1, 0, 1}, {1, 0, -1, 0}}},
    [QK_BASIS_DIRAC_PAULI] = {"dirac-pauli",
                              2,
                              {{0, 1, 0, -1}, {-1, 0, 1, 0}, {0, 1, 0, 1}, {-1, 0, -1, 0}}},
    [QK_BASIS_OPENQCD] = {"openqcd", 1, {{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}}},
};

const char *qk_gamma_basis_name(qk_gamma_basis_t basis) {
  QK_ASSERT((unsigned)basis < QK_BASIS_COUNT);
  return table[basis].name;
}

void qk_gamma_basis_import(qk_gamma_basis_t basis, double matrix[4][4][2]) {
  QK_ASSERT((unsigned)basis < QK_BASIS_COUNT);
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      matrix[i][j][0] = table[basis].t[i][j] / sqrt(table[basis].norm2);
      matrix[i][j][1] = 0;
    }
  }
}

void qk_gamma_basis_export(qk_gamma_basis_t basis, double matrix[4][4][2]) {
  double t[4][4][2];
  qk_gamma_basis_import(basis, t);
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      matrix[i][j][0] = t[j][i][0];
      matrix[i][j][1] = -t[j][i][1];
    }
  }
}
