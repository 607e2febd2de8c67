#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>

#include "daemon/engine/lattice/gamma_basis.h"

/* The published gammas as 2x2 blocks ((0, upper), (lower, 0)) or ((1, 0), (0, -1)):
 * see gamma_basis.h. */
typedef struct published {
  double complex g[4][4][4]; /* x, y, z, t */
} published_t;

static const double complex pauli[3][2][2] = {
    {{0, 1}, {1, 0}}, {{0, -I}, {I, 0}}, {{1, 0}, {0, -1}}};

/* gamma_k = ((0, sign i s_k), (-sign i s_k, 0)) */
static void set_space(published_t *p, int k, int sign) {
  for (int a = 0; a < 2; a++) {
    for (int b = 0; b < 2; b++) {
      p->g[k][a][2 + b] = sign * I * pauli[k][a][b];
      p->g[k][2 + a][b] = -sign * I * pauli[k][a][b];
    }
  }
}

static void set_time_offdiagonal(published_t *p, int sign) {
  for (int a = 0; a < 4; a++) p->g[3][a][(a + 2) % 4] = sign;
}

static void set_time_diagonal(published_t *p) {
  for (int a = 0; a < 4; a++) p->g[3][a][a] = a < 2 ? 1 : -1;
}

static published_t published(qk_gamma_basis_t basis) {
  published_t p = {0};
  switch (basis) {
  case QK_BASIS_DEGRAND_ROSSI:
    set_space(&p, 0, 1);
    set_space(&p, 1, -1);
    set_space(&p, 2, 1);
    set_time_offdiagonal(&p, 1);
    break;
  case QK_BASIS_UKQCD:
    for (int k = 0; k < 3; k++) set_space(&p, k, 1);
    set_time_diagonal(&p);
    break;
  case QK_BASIS_DIRAC_PAULI:
    for (int k = 0; k < 3; k++) set_space(&p, k, -1);
    set_time_diagonal(&p);
    break;
  default:
    for (int k = 0; k < 3; k++) set_space(&p, k, -1);
    set_time_offdiagonal(&p, -1);
  }
  return p;
}

static void to_complex(double m[4][4][2], double complex z[4][4]) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) z[i][j] = m[i][j][0] + I * m[i][j][1];
}

static void multiply(double complex a[4][4], double complex b[4][4], double complex c[4][4]) {
  for (int i = 0; i < 4; i++) {
    for (int j = 0; j < 4; j++) {
      c[i][j] = 0;
      for (int k = 0; k < 4; k++) c[i][j] += a[i][k] * b[k][j];
    }
  }
}

static double distance(double complex a[4][4], double complex b[4][4]) {
  double most = 0;
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) most = fmax(most, cabs(a[i][j] - b[i][j]));
  return most;
}

static void matrices(qk_gamma_basis_t basis, double complex import[4][4],
                     double complex export[4][4]) {
  double m[4][4][2];
  qk_gamma_basis_import(basis, m);
  to_complex(m, import);
  qk_gamma_basis_export(basis, m);
  to_complex(m, export);
}

Test(gamma_basis, import_and_export_are_inverse_and_unitary) {
  for (int b = 0; b < QK_BASIS_COUNT; b++) {
    double complex in[4][4], out[4][4], product[4][4], adjoint[4][4], one[4][4] = {{0}};
    matrices((qk_gamma_basis_t)b, in, out);
    for (int i = 0; i < 4; i++) {
      one[i][i] = 1;
      for (int j = 0; j < 4; j++) adjoint[i][j] = conj(in[j][i]);
    }
    multiply(in, out, product);
    cr_expect(distance(product, one) < 1e-15, "%s", qk_gamma_basis_name((qk_gamma_basis_t)b));
    cr_expect(distance(adjoint, out) == 0, "%s", qk_gamma_basis_name((qk_gamma_basis_t)b));
  }
}

Test(gamma_basis, takes_the_gammas_of_degrand_rossi_to_those_published) {
  published_t dr = published(QK_BASIS_DEGRAND_ROSSI);
  for (int b = 0; b < QK_BASIS_COUNT; b++) {
    published_t want = published((qk_gamma_basis_t)b);
    double complex in[4][4], out[4][4], left[4][4], got[4][4];
    matrices((qk_gamma_basis_t)b, in, out);
    for (int mu = 0; mu < 4; mu++) {
      multiply(out, dr.g[mu], left);
      multiply(left, in, got);
      cr_expect(distance(got, want.g[mu]) < 1e-15, "%s, gamma %d",
                qk_gamma_basis_name((qk_gamma_basis_t)b), mu);
    }
  }
}

/* openQCD's gamma_5 = gamma_0 gamma_1 gamma_2 gamma_3 with time as 0 is diag(1, 1, -1, -1). */
Test(gamma_basis, openqcd_has_time_first_in_gamma5) {
  published_t p = published(QK_BASIS_OPENQCD);
  double complex a[4][4], b[4][4], g5[4][4], want[4][4] = {{0}};
  multiply(p.g[3], p.g[0], a);
  multiply(a, p.g[1], b);
  multiply(b, p.g[2], g5);
  for (int i = 0; i < 4; i++) want[i][i] = i < 2 ? 1 : -1;
  cr_expect(distance(g5, want) < 1e-15);
}
