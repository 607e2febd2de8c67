/* Local staggered mesons against traces of naive quarks, with gamma matrices written out. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "daemon/engine/hadron/local_mesons.h"
#include "tests/unit/engine/lattice/gammas.h"

enum { X = 2, Y = 4, Z = 6, T = 8, SITES = X * Y * Z * T, COLUMNS = 3 };

static const int DIMS[4] = {X, Y, Z, T}, ORIGIN[4] = {1, 2, 3, 5};
static const int MOM[2][3] = {{0, 0, 0}, {1, -1, 2}};

static void adjoint(const gammas_t a, gammas_t out) {
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) out[i][j] = conj(a[j][i]);
}

/* A quarter of tr[g5 W^+ g5 G W G] with W = gx^x gy^y gz^z gt^t at x - x0. */
static double complex spin_trace(int n, const int x[4]) {
  gammas_t w, back, g, g5, one, two;
  int bits = 0;
  for (int mu = 0; mu < 4; mu++) bits |= ((x[mu] - ORIGIN[mu]) & 1) << mu;
  gammas_get(bits, w);
  gammas_get(n, g);
  gammas_get(QK_GAMMA5, g5);
  adjoint(w, back);
  gammas_times(g5, back, one);
  gammas_times(one, g5, two);
  gammas_times(two, g, one);
  gammas_times(one, w, two);
  gammas_times(two, g, one);
  double complex sum = 0;
  for (int i = 0; i < 4; i++) sum += one[i][i];
  return sum / 4;
}

static double complex plain(const double complex *a, const double complex *b, int n,
                            const int mom[3], int time) {
  double complex sum = 0;
  for (int site = 0; site < SITES; site++) {
    const int x[4] = {site % X, site / X % Y, site / (X * Y) % Z, site / (X * Y * Z)};
    double angle = 0;
    double complex density = 0;
    if ((x[3] - ORIGIN[3] + T) % T != time) continue;
    for (int j = 0; j < 3; j++) angle -= 2 * M_PI * mom[j] * (x[j] - ORIGIN[j]) / DIMS[j];
    for (int k = 0; k < COLUMNS; k++)
      for (int c = 0; c < 3; c++)
        density += conj(b[(k * SITES + site) * 3 + c]) * a[(k * SITES + site) * 3 + c];
    sum += density * spin_trace(n, x) * cexp(I * angle);
  }
  return sum;
}

static double complex *random_columns(unsigned seed) {
  double complex *v = malloc(COLUMNS * SITES * 3 * sizeof *v);
  cr_assert_not_null(v);
  for (int i = 0; i < COLUMNS * SITES * 3; i++) {
    seed = seed * 1664525u + 1013904223u;
    const double re = seed * 0x1p-32 - 0.5;
    seed = seed * 1664525u + 1013904223u;
    v[i] = re + I * (seed * 0x1p-32 - 0.5);
  }
  return v;
}

static void one_rank(qk_geom_t *geom, qk_comm_t **comm) {
  const int grid[4] = {1, 1, 1, 1};
  qk_err_t err = {0};
  cr_assert_eq(qk_comm_self_create(comm, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_comm_set_grid(*comm, grid, &err), QK_OK, "%s", err.text);
  cr_assert_eq(qk_geom_init(geom, *comm, DIMS, &err), QK_OK, "%s", err.text);
  geom->ncomp = QK_COLOUR_COMPONENTS;
}

Test(local_mesons, are_those_of_naive_quarks) {
  int gamma[QK_GAMMAS];
  double complex out[QK_GAMMAS][2][T];
  double complex *a = random_columns(1), *b = random_columns(2);
  qk_local_mesons_t *m = NULL;
  qk_comm_t *comm;
  qk_geom_t geom;
  one_rank(&geom, &comm);
  for (int n = 0; n < QK_GAMMAS; n++) gamma[n] = n;
  cr_assert_eq(qk_local_mesons_create(&geom, 2, MOM, ORIGIN, &m), QK_OK);
  for (int k = 0; k < COLUMNS; k++)
    qk_local_mesons_add(m, (qk_colour_part_t){a + (size_t)k * SITES * 3, true},
                        (qk_colour_part_t){b + (size_t)k * SITES * 3, true});
  cr_assert_eq(qk_local_mesons_end(m, QK_GAMMAS, gamma, (double *)out), QK_OK);
  for (int n = 0; n < QK_GAMMAS; n++)
    for (int p = 0; p < 2; p++)
      for (int t = 0; t < T; t++)
        cr_expect_lt(cabs(out[n][p][t] - plain(a, b, n, MOM[p], t)), 1e-12, "%d, %d, %d", n, p, t);
  qk_local_mesons_destroy(m);
  qk_comm_destroy(comm);
  free(a);
  free(b);
}

/* In float the same numbers, to its rounding; of one propagator the pion is a norm. */
Test(local_mesons, pion_is_the_norm_of_each_time_slice) {
  const int gamma[1] = {QK_GAMMA5};
  double out[T][2];
  double complex *a = random_columns(3);
  float complex *f = malloc(COLUMNS * SITES * 3 * sizeof *f);
  qk_local_mesons_t *m = NULL;
  qk_comm_t *comm;
  qk_geom_t geom;
  cr_assert_not_null(f);
  for (int i = 0; i < COLUMNS * SITES * 3; i++) f[i] = (float complex)a[i];
  one_rank(&geom, &comm);
  cr_assert_eq(qk_local_mesons_create(&geom, 1, MOM, ORIGIN, &m), QK_OK);
  for (int k = 0; k < COLUMNS; k++) {
    const qk_colour_part_t part = {f + (size_t)k * SITES * 3, false};
    qk_local_mesons_add(m, part, part);
  }
  cr_assert_eq(qk_local_mesons_end(m, 1, gamma, out[0]), QK_OK);
  for (int t = 0; t < T; t++) {
    double norm2 = 0;
    const int slice = (t + ORIGIN[3]) % T, n = SITES / T * 3;
    for (int k = 0; k < COLUMNS; k++)
      for (int i = 0; i < n; i++) {
        const double complex z = a[k * SITES * 3 + slice * n + i];
        norm2 += creal(z) * creal(z) + cimag(z) * cimag(z);
      }
    cr_expect_lt(fabs(out[t][0] / norm2 - 1), 1e-6, "%d", t);
    cr_expect_lt(fabs(out[t][1]), 1e-12 * norm2);
  }
  qk_local_mesons_destroy(m);
  qk_comm_destroy(comm);
  free(f);
  free(a);
}
