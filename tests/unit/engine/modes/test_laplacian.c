/* Lowest modes of the Laplacian of a time slice against a dense matrix. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/eigen/hermitian.h"
#include "daemon/engine/eigen/lanczos.h"
#include "daemon/engine/modes/laplacian.h"
#include "tests/support/rig.h"

static int sites_of(const qk_rig_t *rig) {
  const int *l = rig->geom.global;
  return l[0] * l[1] * l[2];
}

/* Of site n of a slice the one ahead in direction j. */
static int ahead(const qk_rig_t *rig, int n, int j) {
  const int *l = rig->geom.global;
  int stride = 1;
  for (int i = 0; i < j; i++) stride *= l[i];
  const int x = n / stride % l[j];
  return n + ((x + 1) % l[j] - x) * stride;
}

/* Column by column, of slice t; to be freed. */
static double complex *dense(const qk_rig_t *rig, int t) {
  const int sites = sites_of(rig), n = 3 * sites;
  double complex *a = calloc((size_t)n * (size_t)n, sizeof *a);
  for (int i = 0; i < n; i++) a[i * n + i] = 6;
  for (int x = 0; x < sites; x++)
    for (int j = 0; j < 3; j++) {
      const double *u = rig->links + (((int64_t)t * sites + x) * 4 + j) * 18;
      const int y = ahead(rig, x, j);
      for (int k = 0; k < 9; k++) {
        const int row = 3 * x + k / 3, column = 3 * y + k % 3;
        const double complex z = u[2 * k] + I * u[2 * k + 1];
        a[column * n + row] -= z;
        a[row * n + column] -= conj(z);
      }
    }
  return a;
}

/* |A v - value v| of a column of a block as qk_laplacian_get has it. */
static double residual(const double complex *a, int n, const double *block, int column,
                       double value) {
  double sum = 0;
  for (int i = 0; i < n; i++) {
    double complex z = 0;
    for (int j = -1; j < n; j++) {
      const int k = j < 0 ? i : j;
      const double *at = block + ((k / 3 * 8 + column) * 3 + k % 3) * 2;
      z += (j < 0 ? -value : a[k * n + i]) * (at[0] + I * at[1]);
    }
    sum += creal(z * conj(z));
  }
  return sqrt(sum);
}

static void check_slice(const qk_rig_t *rig, qk_laplacian_t *l, int t, qk_lanczos_params_t p) {
  const int sites = sites_of(rig), n = 3 * sites;
  qk_err_t err = {0};
  qk_eigen_t *e = NULL;
  double complex *a = dense(rig, t), *copy = malloc((size_t)n * (size_t)n * sizeof *copy);
  double *w = malloc((size_t)n * sizeof *w), *v = malloc((size_t)sites * 48 * sizeof *v);
  const double unit = p.prec == QK_DOUBLE ? 1e-12 : 2e-6;
  memcpy(copy, a, (size_t)n * (size_t)n * sizeof *copy);
  cr_assert_eq(qk_hermitian_eigen(rig->comm, n, copy, w), QK_OK);
  rig_must(qk_laplacian_go(l, t, p.prec, &err), "go", &err);
  qk_operator_t *op = qk_laplacian_operator(l);
  rig_must(qk_lanczos(op, op->work, &p, NULL, NULL, &e, &err), "lanczos", &err);
  cr_assert_eq(e->n, p.n);
  cr_assert_eq(qk_laplacian_sites(l), sites);
  for (int i = 0; i < e->n; i++) {
    if (i % 8 == 0) rig_must(qk_laplacian_get(l, e->block[i / 8], v), "get", NULL);
    const double off = residual(a, n, v, i % 8, w[i]);
    cr_expect(fabs(e->value[i] - w[i]) < 12 * unit, "t = %d: value %d is %.14g, not %.14g", t, i,
              e->value[i], w[i]);
    cr_expect(off < 12 * p.tol + 24 * unit, "t = %d, vector %d: residual %g", t, i, off);
  }
  qk_eigen_destroy(e);
  free(v);
  free(w);
  free(copy);
  free(a);
}

static void check(const char *gauge, int slices, qk_lanczos_params_t p) {
  qk_rig_t rig;
  qk_laplacian_t *l = NULL;
  qk_err_t err = {0};
  rig_open(&rig, NULL, gauge, NULL);
  rig_must(qk_laplacian_create(&rig.dev, rig.links, &l, &err), "create", &err);
  const qk_geom_t geom = qk_laplacian_geom(&rig.geom, 1);
  cr_expect_eq(geom.lat.l[3], slices, "%s: %d slices", gauge, geom.lat.l[3]);
  for (int t = 0; t < rig.geom.global[3]; t++) check_slice(&rig, l, t, p);
  qk_laplacian_destroy(l);
  rig_close(&rig);
}

Test(laplacian, has_the_lowest_modes_of_each_slice) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check("random:4x6x4x4:5", 1,
        (qk_lanczos_params_t){.kind = QK_LANCZOS_LAPLACIAN,
                              .n = 20,
                              .tol = 1e-11,
                              .prec = QK_DOUBLE,
                              .seed = 1,
                              .restrict_noise = qk_laplacian_restrict});
}

/* 72 sites of a slice, 36 of one parity. */
Test(laplacian, has_slices_that_are_no_multiple_of_sixteen_sites) {
  if (!rig_backend_present()) cr_skip_test("no device");
  check("random:6x2x6x4:7", 2,
        (qk_lanczos_params_t){.kind = QK_LANCZOS_LAPLACIAN,
                              .n = 12,
                              .tol = 1e-5,
                              .prec = QK_SINGLE,
                              .seed = 1,
                              .restrict_noise = qk_laplacian_restrict});
}

/* Three constant vectors with eigenvalue 0, then those of momentum 1: 2 - 2 cos(pi/2). */
Test(laplacian, has_plane_waves_on_unit_links) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  qk_laplacian_t *l = NULL;
  qk_err_t err = {0};
  qk_eigen_t *e = NULL;
  const qk_lanczos_params_t p = {.kind = QK_LANCZOS_LAPLACIAN,
                                 .n = 21,
                                 .tol = 1e-11,
                                 .prec = QK_DOUBLE,
                                 .seed = 3,
                                 .restrict_noise = qk_laplacian_restrict};
  rig_open(&rig, NULL, "builtin:unit:4x4x4x2", NULL);
  rig_must(qk_laplacian_create(&rig.dev, rig.links, &l, &err), "create", &err);
  rig_must(qk_laplacian_go(l, 1, QK_DOUBLE, &err), "go", &err);
  qk_operator_t *op = qk_laplacian_operator(l);
  rig_must(qk_lanczos(op, op->work, &p, NULL, NULL, &e, &err), "lanczos", &err);
  for (int i = 0; i < 21; i++)
    cr_expect(fabs(e->value[i] - (i < 3 ? 0 : 2)) < 1e-10, "value %d is %.15g after %d", i,
              e->value[i], e->restarts);
  qk_eigen_destroy(e);
  qk_laplacian_destroy(l);
  rig_close(&rig);
}
