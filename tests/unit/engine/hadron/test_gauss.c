/* Gaussian smearing against the oracle, published numbers, and exact results. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/mem.h"
#include "tests/support/smear_kit.h"

/* What one step may be off by, relative, where it does not enlarge. */
static double tolerance(qk_prec_t prec) {
  return prec == QK_DOUBLE ? 1e-15 : prec == QK_SINGLE ? 3e-7 : 1e-3;
}

static qk_field_t *random_block(const qk_rig_t *rig, qk_prec_t prec, int nrhs) {
  qk_field_t *f = NULL;
  double *v = rig_vector(rig);
  rig_must(qk_field_create(&rig->dev, prec, nrhs, QK_FULL, &f), "field", NULL);
  for (int i = 0; i < nrhs; i++) {
    rig_random(rig, 40 + (uint64_t)i, v);
    rig_import(rig, f, i, v);
  }
  qk_free(v);
  return f;
}

static void check_oracle(const qk_rig_t *rig, qk_gauss_t *gauss, double alpha, int steps) {
  char spec[64];
  snprintf(spec, sizeof spec, "gauss:%.17g,%d", alpha, steps);
  double *v = rig_vector(rig), *got = rig_vector(rig);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int nrhs = 1; nrhs <= 12; nrhs += nrhs == 1 ? 2 : 9) {
      qk_field_t *f = random_block(rig, (qk_prec_t)prec, nrhs);
      rig_must(qk_gauss_apply(gauss, f, alpha, steps), "apply", NULL);
      for (int i = 0; i<nrhs; i += nrhs - 1> 0 ? nrhs - 1 : 1) {
        rig_random(rig, 40 + (uint64_t)i, v);
        double *want = smear_oracle(rig, spec, rig->links, v, rig_reals(rig));
        rig_export(rig, f, i, got);
        const double off = rig_distance(rig, got, want);
        cr_expect(off < steps * tolerance((qk_prec_t)prec),
                  "alpha %g, %d steps, precision %d, column %d of %d: off by %g", alpha, steps,
                  prec, i, nrhs, off);
        qk_free(want);
      }
      qk_field_destroy(f);
    }
  qk_free(got);
  qk_free(v);
}

Test(gauss, agrees_with_the_oracle) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x6x8x4:17", NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  check_oracle(&rig, gauss, 0.3, 4);
  check_oracle(&rig, gauss, -1, 5); /* Chroma's width 2 in 5 steps */
  qk_gauss_destroy(gauss);
  rig_close(&rig);
}

Test(gauss, agrees_with_the_oracle_on_the_smallest_lattice) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:2x2x2x2:3", NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  check_oracle(&rig, gauss, 2, 3);
  qk_gauss_destroy(gauss);
  rig_close(&rig);
}

/* exp(i p x) is multiplied by ((1 + 2 alpha sum cos p_j) / (1 + 6 alpha))^N. */
static void check_wave(const qk_rig_t *rig, qk_gauss_t *gauss, const int p[4]) {
  const int *l = rig->geom.global, steps = 7;
  const double alpha = 0.37;
  double *v = rig_vector(rig), *got = rig_vector(rig), cosines = 0;
  qk_field_t *f;
  rig_must(qk_field_create(&rig->dev, QK_DOUBLE, 1, QK_FULL, &f), "field", NULL);
  for (int j = 0; j < 3; j++) cosines += cos(2 * M_PI * p[j] / l[j]);
  const double factor = pow((1 + 2 * alpha * cosines) / (1 + 6 * alpha), steps);
  for (int64_t n = 0; n < rig->geom.volume; n++) {
    double angle = 0;
    for (int64_t mu = 0, rest = n; mu < 4; rest /= l[mu++])
      angle += 2 * M_PI * p[mu] * (double)(rest % l[mu]) / l[mu];
    for (int c = 0; c < 12; c++) {
      v[24 * n + 2 * c] = (1 + c) * cos(angle + c);
      v[24 * n + 2 * c + 1] = (1 + c) * sin(angle + c);
    }
  }
  rig_import(rig, f, 0, v);
  rig_must(qk_gauss_apply(gauss, f, alpha, steps), "apply", NULL);
  rig_export(rig, f, 0, got);
  for (size_t i = 0; i < rig_reals(rig); i++) v[i] *= factor;
  const double off = rig_distance(rig, got, v) * fabs(factor); /* of the wave before */
  cr_expect(off < steps * tolerance(QK_DOUBLE), "p = %d, %d, %d: off by %g", p[0], p[1], p[2], off);
  qk_field_destroy(f);
  qk_free(got);
  qk_free(v);
}

Test(gauss, multiplies_plane_waves_on_unit_links_by_the_exact_factor) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "builtin:unit:8x4x6x4", NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  const int p[4][4] = {{0, 0, 0, 0}, {1, 0, 0, 2}, {1, 1, 1, 0}, {3, 1, 2, 1}};
  for (int i = 0; i < 4; i++) check_wave(&rig, gauss, p[i]);
  qk_gauss_destroy(gauss);
  rig_close(&rig);
}

/* Chroma's source: Gaussian of width 2 in 5 steps on its WEAK_FIELD, at the origin of time slice 4
 * (published.json). */
Test(gauss, gives_the_norms_of_published_sources) {
  if (!rig_backend_present()) cr_skip_test("no device");
  static const double norm[3] = {0.7424587151247802, 0.7450534249841905, 0.744864599792813};
  const char *data = getenv("QK_DATA");
  char path[512];
  snprintf(path, sizeof path, "%s/pyquda_weak_field.lime", data ? data : "");
  if (access(path, R_OK) != 0) cr_skip_test("%s is not there", path);
  qk_rig_t rig;
  rig_open(&rig, NULL, path, NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  qk_field_t *f;
  rig_must(qk_field_create(&rig.dev, QK_DOUBLE, 12, QK_FULL, &f), "field", NULL);
  double *v = rig_vector(&rig);
  const size_t slice = rig_reals(&rig) / 8; /* T = 8 */
  for (int c = 0; c < 12; c++) {
    memset(v, 0, 8 * slice * sizeof *v);
    v[4 * slice + (size_t)(2 * c)] = 1;
    rig_import(&rig, f, c, v);
  }
  const double a = 2.0 * 2.0 / (4 * 5);
  rig_must(qk_gauss_apply(gauss, f, a / (1 - 6 * a), 5), "apply", NULL);
  for (int c = 0; c < 12; c++) {
    rig_export(&rig, f, c, v);
    const double got = sqrt(rig_norm2(&rig, v));
    cr_expect(fabs(got - norm[c % 3]) < 1e-13, "column %d: %.16g, published %.16g", c, got,
              norm[c % 3]);
    for (size_t i = 0; i < 8 * slice; i++)
      cr_assert(v[i] == 0 || (i >= 4 * slice && i < 5 * slice), "column %d leaves its slice", c);
  }
  qk_free(v);
  qk_field_destroy(f);
  qk_gauss_destroy(gauss);
  rig_close(&rig);
}

Test(gauss, of_a_block_is_that_of_its_columns) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x4x6x2:8", NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  const size_t bytes = rig_reals(&rig) * sizeof(double);
  double *a = rig_vector(&rig), *b = rig_vector(&rig), *v = rig_vector(&rig);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    qk_field_t *block = random_block(&rig, (qk_prec_t)prec, 13), *pair, *single_rhs;
    rig_must(qk_field_create(&rig.dev, (qk_prec_t)prec, 2, QK_FULL, &pair), "field", NULL);
    rig_must(qk_field_create(&rig.dev, (qk_prec_t)prec, 1, QK_FULL, &single_rhs), "field", NULL);
    rig_must(qk_gauss_apply(gauss, block, 0.4, 3), "apply", NULL);
    for (int i = 0; i < 13; i += 4) {
      rig_random(&rig, 40 + (uint64_t)i, v);
      rig_import(&rig, pair, 1, v);
      rig_import(&rig, single_rhs, 0, v);
      rig_must(qk_gauss_apply(gauss, pair, 0.4, 3), "apply", NULL);
      rig_must(qk_gauss_apply(gauss, single_rhs, 0.4, 3), "apply", NULL);
      rig_export(&rig, block, i, a);
      rig_export(&rig, pair, 1, b);
      cr_expect_eq(memcmp(a, b, bytes), 0, "precision %d, column %d: other bits", prec, i);
      rig_export(&rig, single_rhs, 0, b);
      cr_expect(rig_distance(&rig, b, a) < 3 * tolerance((qk_prec_t)prec),
                "precision %d, column %d alone", prec, i);
    }
    qk_field_destroy(single_rhs);
    qk_field_destroy(pair);
    qk_field_destroy(block);
  }
  qk_free(v);
  qk_free(b);
  qk_free(a);
  qk_gauss_destroy(gauss);
  rig_close(&rig);
}

Test(gauss, is_gauge_covariant) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x2x6x4:5", NULL);
  double *g = smear_rotation(&rig, 12), *turned = qk_malloc(smear_reals(&rig) * sizeof *turned);
  double *v = rig_vector(&rig), *w = rig_vector(&rig);
  memcpy(turned, rig.links, smear_reals(&rig) * sizeof *turned);
  smear_rotate_links(&rig, g, turned);
  qk_gauss_t *here = smear_gauss(&rig, NULL), *there = smear_gauss(&rig, turned);
  qk_field_t *f = random_block(&rig, QK_DOUBLE, 1);
  rig_export(&rig, f, 0, w);
  rig_must(qk_gauss_apply(here, f, 0.2, 4), "apply", NULL);
  rig_export(&rig, f, 0, v);
  smear_rotate_spinor(&rig, g, v);
  smear_rotate_spinor(&rig, g, w);
  rig_import(&rig, f, 0, w);
  rig_must(qk_gauss_apply(there, f, 0.2, 4), "apply", NULL);
  rig_export(&rig, f, 0, w);
  cr_expect(rig_distance(&rig, w, v) < 1e-14, "off by %g", rig_distance(&rig, w, v));
  qk_field_destroy(f);
  qk_gauss_destroy(there);
  qk_gauss_destroy(here);
  qk_free(w);
  qk_free(v);
  qk_free(turned);
  qk_free(g);
  rig_close(&rig);
}

Test(gauss, of_no_steps_changes_nothing_and_bad_numbers_are_refused) {
  if (!rig_backend_present()) cr_skip_test("no device");
  qk_rig_t rig;
  rig_open(&rig, NULL, "random:4x2x2x4:5", NULL);
  qk_gauss_t *gauss = smear_gauss(&rig, NULL);
  qk_field_t *f = random_block(&rig, QK_SINGLE, 3), *even;
  double *v = rig_vector(&rig), *w = rig_vector(&rig);
  rig_export(&rig, f, 2, v);
  cr_expect_eq(qk_gauss_apply(gauss, f, 0.2, 0), QK_OK);
  cr_expect_eq(qk_gauss_apply(gauss, f, -1.0 / 6, 3), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauss_apply(gauss, f, NAN, 3), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauss_apply(gauss, f, INFINITY, 3), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauss_apply(gauss, f, 0.2, -1), QK_BAD_ARGUMENT);
  cr_expect_eq(qk_gauss_apply(gauss, f, 0.2, 1001), QK_BAD_ARGUMENT);
  rig_export(&rig, f, 2, w);
  cr_expect_eq(memcmp(v, w, rig_reals(&rig) * sizeof *v), 0);
  rig_must(qk_field_create(&rig.dev, QK_SINGLE, 3, QK_EVEN, &even), "field", NULL);
  cr_expect_eq(qk_gauss_apply(gauss, even, 0.2, 1), QK_BAD_ARGUMENT);
  qk_err_t err = {0};
  cr_expect_eq(qk_gauss_check(0.2, 1001, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "steps = 1001: must be 0 to 1000") != NULL, "%s", err.text);
  qk_field_destroy(even);
  qk_field_destroy(f);
  qk_gauss_destroy(gauss);
  qk_free(w);
  qk_free(v);
  rig_close(&rig);
}
