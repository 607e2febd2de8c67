/* Local staggered mesons against traces of naive quarks, with gamma matrices written out, and the
 * nucleon against its sum over colours. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/hadron/local_nucleon.h"
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

/* 1/4 tr[W(y)^+ G_n W(y + d) G_m^+] with d = n xor m, y = x - x0 from 0 on. */
static double complex operator_at(int n, int m, const int y[4]) {
  gammas_t w, back, g, one, two;
  double complex sum = 0;
  for (int side = 0; side < 2; side++) { /* factor by factor, y + d is not modulo 2 */
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) w[i][j] = i == j;
    for (int mu = 0; mu < 4; mu++)
      for (int k = 0; k < y[mu] + side * ((n ^ m) >> mu & 1); k++) {
        gammas_get(1 << mu, g);
        gammas_times(w, g, one);
        memcpy(w, one, sizeof w);
      }
    if (side == 0) adjoint(w, back);
  }
  gammas_get(n, g);
  gammas_times(back, g, one);
  gammas_times(one, w, two);
  gammas_get(m, g);
  adjoint(g, one);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) sum += two[i][j] * one[j][i];
  return sum / 4;
}

/* The sign of O(x) O^+(x0) with that of the antiquark, times G_n^2. */
static double complex taste_sign(int n, int m, const int x[4]) {
  const int zero[4] = {0};
  int y[4], sum = 0;
  gammas_t g, square;
  for (int mu = 0; mu < 4; mu++) {
    y[mu] = (x[mu] - ORIGIN[mu] + 2 * DIMS[mu]) % DIMS[mu];
    sum += y[mu];
  }
  gammas_get(n, g);
  gammas_times(g, g, square);
  return square[0][0] * operator_at(n, m, y) * conj(operator_at(n, m, zero)) * (sum % 2 ? -1 : 1);
}

static double complex plain(const double complex *a, const double complex *b, int n, int m,
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
    const double complex sign = taste_sign(n, m, x);
    cr_expect(n != m || cabs(sign - spin_trace(n, x)) < 1e-14);
    sum += density * sign * cexp(I * angle);
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

/* Each spin with each taste; time slices in two parts. */
Test(local_mesons, are_those_of_naive_quarks) {
  enum { ALL = QK_GAMMAS * QK_GAMMAS };
  static double complex out[ALL][2][T];
  int spin[ALL], taste[ALL];
  double complex *a = random_columns(1), *b = random_columns(2);
  qk_local_mesons_t *m = NULL;
  qk_comm_t *comm;
  qk_geom_t geom;
  one_rank(&geom, &comm);
  for (int n = 0; n < ALL; n++) {
    spin[n] = n / QK_GAMMAS;
    taste[n] = n % QK_GAMMAS;
  }
  cr_assert_eq(qk_local_mesons_create(&geom, 2, MOM, ORIGIN, &m), QK_OK);
  for (int k = 0; k < COLUMNS; k++)
    for (int part = 0; part < 2; part++)
      qk_local_mesons_add(m, (qk_colour_part_t){a + (size_t)k * SITES * 3, true},
                          (qk_colour_part_t){b + (size_t)k * SITES * 3, true}, part ? 3 : 0,
                          part ? T : 3);
  cr_assert_eq(qk_local_mesons_end(m, ALL, spin, taste, (double *)out), QK_OK);
  for (int n = 0; n < ALL; n++)
    for (int p = 0; p < 2; p++)
      for (int t = 0; t < T; t++)
        cr_expect_lt(cabs(out[n][p][t] - plain(a, b, spin[n], taste[n], MOM[p], t)), 1e-12,
                     "%d, %d, %d", n, p, t);
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
    qk_local_mesons_add(m, part, part, 0, T);
  }
  cr_assert_eq(qk_local_mesons_end(m, 1, gamma, gamma, out[0]), QK_OK);
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

/* ---- the nucleon ---- */

static const int CORNER[4] = {1, 2, 4, 5};
static const double complex PHASE = 0.6 + 0.8 * I; /* of a fermion across the edge in t */

static int epsilon(int a, int b, int c) {
  return (a - b) * (b - c) * (c - a) / 2;
}

/* 1/6 e_abc e_a'b'c' a_aa' a_bb' b_cc' at a site. */
static double complex density(const double complex *a, const double complex *b, int site) {
  double complex sum = 0;
  for (int n = 0; n < 27; n++)
    for (int m = 0; m < 27; m++) {
      const int c[3] = {n % 3, n / 3 % 3, n / 9}, k[3] = {m % 3, m / 3 % 3, m / 9};
      const int sign = epsilon(c[0], c[1], c[2]) * epsilon(k[0], k[1], k[2]);
      if (sign != 0)
        sum += sign * a[(k[0] * SITES + site) * 3 + c[0]] * a[(k[1] * SITES + site) * 3 + c[1]] *
               b[(k[2] * SITES + site) * 3 + c[2]];
    }
  return sum / 6;
}

static double complex nucleon(const double complex *a, const double complex *b, const int mom[3],
                              int time) {
  double complex sum = 0;
  for (int site = 0; site < SITES; site++) {
    const int x[4] = {site % X, site / X % Y, site / (X * Y) % Z, site / (X * Y * Z)};
    double angle = 0;
    bool corner = (x[3] - CORNER[3] + T) % T == time;
    for (int j = 0; j < 3; j++) {
      angle -= 2 * M_PI * mom[j] * (x[j] - CORNER[j]) / DIMS[j];
      corner = corner && (x[j] - CORNER[j]) % 2 == 0;
    }
    if (corner) sum += density(a, b, site) * cexp(I * angle);
  }
  const int sign = (CORNER[0] + CORNER[1] + CORNER[2]) * time % 2 ? -1 : 1;
  return sign * sum * (time >= T - CORNER[3] ? PHASE * PHASE * PHASE : 1);
}

static void check(const qk_geom_t *geom, const double complex *a, const double complex *b) {
  const double phase[2] = {creal(PHASE), cimag(PHASE)};
  double complex out[2][T];
  qk_local_nucleon_t *n = NULL;
  cr_assert_eq(qk_local_nucleon_create(geom, 2, MOM, CORNER, a != b, &n), QK_OK);
  for (int k = COLUMNS - 1; k >= 0; k--)
    qk_local_nucleon_add(n, k, (qk_colour_part_t){a + (size_t)k * SITES * 3, true},
                         (qk_colour_part_t){b + (size_t)k * SITES * 3, true});
  qk_local_nucleon_sum(n, 0, 5);
  qk_local_nucleon_sum(n, 5, T);
  cr_assert_eq(qk_local_nucleon_end(n, phase, (double *)out), QK_OK);
  for (int p = 0; p < 2; p++)
    for (int t = 0; t < T; t++)
      cr_expect_lt(cabs(out[p][t] - nucleon(a, b, MOM[p], t)), 1e-12, "%d, %d", p, t);
  qk_local_nucleon_destroy(n);
}

Test(local_nucleon, is_the_sum_over_all_orders_of_colours) {
  double complex *a = random_columns(1), *b = random_columns(2);
  qk_comm_t *comm;
  qk_geom_t geom;
  one_rank(&geom, &comm);
  check(&geom, a, b);
  check(&geom, a, a);
  qk_comm_destroy(comm);
  free(a);
  free(b);
}

/* Each allocation fails once, and nothing stays. */
Test(local_nucleon, comes_back_without_memory) {
  qk_comm_t *comm;
  qk_geom_t geom;
  one_rank(&geom, &comm);
  const int64_t before = qk_mem_bytes();
  qk_status_t status = QK_NO_MEMORY;
  for (int k = 1; status != QK_OK; k++) {
    char fault[32];
    qk_local_nucleon_t *n = NULL;
    snprintf(fault, sizeof fault, "alloc:%d", k);
    cr_assert_eq(qk_fault_set(fault), 0);
    status = qk_local_nucleon_create(&geom, 2, MOM, CORNER, true, &n);
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_assert(status == QK_OK ? k == 6 : status == QK_NO_MEMORY && k < 6, "%d", k);
    qk_local_nucleon_destroy(n);
    cr_assert_eq(qk_mem_bytes(), before);
  }
  qk_comm_destroy(comm);
}
