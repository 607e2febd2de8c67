/* The local staggered nucleon against its sum over colours, written out. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "daemon/engine/hadron/local_nucleon.h"

enum { X = 2, Y = 4, Z = 6, T = 8, SITES = X * Y * Z * T, COLUMNS = 3 };

static const int DIMS[4] = {X, Y, Z, T}, ORIGIN[4] = {1, 2, 4, 5};
static const int MOM[2][3] = {{0, 0, 0}, {1, -1, 2}};
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

static double complex plain(const double complex *a, const double complex *b, const int mom[3],
                            int time) {
  double complex sum = 0;
  for (int site = 0; site < SITES; site++) {
    const int x[4] = {site % X, site / X % Y, site / (X * Y) % Z, site / (X * Y * Z)};
    double angle = 0;
    bool corner = (x[3] - ORIGIN[3] + T) % T == time;
    for (int j = 0; j < 3; j++) {
      angle -= 2 * M_PI * mom[j] * (x[j] - ORIGIN[j]) / DIMS[j];
      corner = corner && (x[j] - ORIGIN[j]) % 2 == 0;
    }
    if (corner) sum += density(a, b, site) * cexp(I * angle);
  }
  const int sign = (ORIGIN[0] + ORIGIN[1] + ORIGIN[2]) * time % 2 ? -1 : 1;
  return sign * sum * (time >= T - ORIGIN[3] ? PHASE * PHASE * PHASE : 1);
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

static void check(const qk_geom_t *geom, const double complex *a, const double complex *b) {
  const double phase[2] = {creal(PHASE), cimag(PHASE)};
  double complex out[2][T];
  qk_local_nucleon_t *n = NULL;
  cr_assert_eq(qk_local_nucleon_create(geom, 2, MOM, ORIGIN, a != b, &n), QK_OK);
  for (int k = COLUMNS - 1; k >= 0; k--)
    qk_local_nucleon_add(n, k, (qk_colour_part_t){a + (size_t)k * SITES * 3, true},
                         (qk_colour_part_t){b + (size_t)k * SITES * 3, true});
  cr_assert_eq(qk_local_nucleon_end(n, phase, (double *)out), QK_OK);
  for (int p = 0; p < 2; p++)
    for (int t = 0; t < T; t++)
      cr_expect_lt(cabs(out[p][t] - plain(a, b, MOM[p], t)), 1e-12, "%d, %d", p, t);
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
    status = qk_local_nucleon_create(&geom, 2, MOM, ORIGIN, true, &n);
    cr_assert_eq(qk_fault_set(NULL), 0);
    cr_assert(status == QK_OK ? k == 6 : status == QK_NO_MEMORY && k < 6, "%d", k);
    qk_local_nucleon_destroy(n);
    cr_assert_eq(qk_mem_bytes(), before);
  }
  qk_comm_destroy(comm);
}
