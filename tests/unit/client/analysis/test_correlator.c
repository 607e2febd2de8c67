#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/analysis/correlator.h"

enum { LX = 2, LY = 2, LZ = 4, LT = 8, SPACE = LX * LY * LZ, REALS = SPACE * LT * 24 };

static char path[64];

static void setup(void) {
  snprintf(path, sizeof path, "/tmp/qk-corr-%ld.h5", (long)getpid());
}
static void teardown(void) {
  unlink(path);
}

TestSuite(correlator, .init = setup, .fini = teardown);

/* Column r is a + r on all components of time slice t = a, so that |x|^2 sums are known numbers. */
static qk_fieldfile_t *write_columns(int n, const qk_h5column_t *column) {
  qk_h5meta_t meta;
  qk_h5meta_init(&meta);
  const int dims[4] = {LX, LY, LZ, LT};
  memcpy(meta.dims, dims, sizeof dims);
  qk_fieldfile_t *f = NULL;
  cr_assert_eq(qk_fieldfile_create(path, QK_FIELD_HDF5, &meta, 64, n, &f, NULL), QK_OK);
  double x[REALS];
  for (int r = 0; r < n; r++) {
    for (int i = 0; i < REALS; i++) x[i] = i / (SPACE * 24) + r;
    qk_fieldfile_write(f, r, x, false, NULL);
    qk_fieldfile_set_column(f, r, &column[r], NULL);
  }
  cr_assert_eq(qk_fieldfile_commit(f, NULL), QK_OK);
  qk_fieldfile_close(f);
  cr_assert_eq(qk_fieldfile_open(path, NULL, &f, NULL), QK_OK);
  return f;
}

static void point_columns(qk_h5column_t column[12], int t0) {
  for (int r = 0; r < 12; r++) {
    qk_h5column_init(&column[r]);
    strcpy(column[r].source, "point");
    const int site[4] = {1, 0, 3, t0};
    memcpy(column[r].site, site, sizeof site);
    column[r].spin = r / 3;
    column[r].colour = r % 3;
  }
}

Test(correlator, pion_sums_squares_and_counts_t_from_the_source) {
  qk_h5column_t column[12];
  point_columns(column, 5);
  qk_fieldfile_t *f = write_columns(12, column);
  qk_correlator_t corr;
  cr_assert_eq(qk_correlator_compute(f, "pion", &corr, NULL), QK_OK);
  cr_assert_eq(corr.nt, LT);
  cr_assert_eq(corr.t0, 5);
  for (int t = 0; t < LT; t++) {
    double want = 0;
    for (int r = 0; r < 12; r++) want += SPACE * 24.0 * pow((5 + t) % LT + r, 2);
    cr_expect_float_eq(corr.c[t], want, 1e-12 * want);
  }
  qk_correlator_fini(&corr);
  qk_fieldfile_close(f);
}

Test(correlator, noise_is_averaged_over_sources_and_sites_of_the_slice) {
  qk_h5column_t column[2];
  for (int r = 0; r < 2; r++) {
    qk_h5column_init(&column[r]);
    strcpy(column[r].source, "z4");
    column[r].site[3] = 2;
  }
  qk_fieldfile_t *f = write_columns(2, column);
  qk_correlator_t corr;
  cr_assert_eq(qk_correlator_compute(f, "pion", &corr, NULL), QK_OK);
  cr_expect_float_eq(corr.c[0], 24.0 * (2 * 2 + 3 * 3) / 2, 1e-12);
  qk_correlator_fini(&corr);
  qk_fieldfile_close(f);
}

static void expect_refused(qk_fieldfile_t *f, const char *channel, qk_status_t code,
                           const char *word) {
  qk_err_t err = {0};
  qk_correlator_t corr;
  cr_expect_eq(qk_correlator_compute(f, channel, &corr, &err), code);
  cr_expect_not_null(strstr(err.text, word), "\"%s\" has no \"%s\"", err.text, word);
  qk_fieldfile_close(f);
}

Test(correlator, what_is_not_a_propagator_is_refused) {
  qk_h5column_t column[12];
  point_columns(column, 0);
  expect_refused(write_columns(12, column), "rho", QK_UNSUPPORTED, "rho");
  expect_refused(write_columns(11, column), "pion", QK_BAD_ARGUMENT, "11 columns");
  column[7].status = QK_NOT_CONVERGED;
  expect_refused(write_columns(12, column), "pion", QK_BAD_ARGUMENT,
                 "column 7 has status NOT_CONVERGED");
  point_columns(column, 0);
  column[3].site[0] = 0;
  expect_refused(write_columns(12, column), "pion", QK_BAD_ARGUMENT, "column 3");
  point_columns(column, 0);
  column[3].spin = 0;
  expect_refused(write_columns(12, column), "pion", QK_BAD_ARGUMENT, "12 components");
  point_columns(column, -1);
  expect_refused(write_columns(12, column), "pion", QK_BAD_ARGUMENT, "time slice");
}

Test(correlator, cosh_mass_is_exact_on_a_cosh) {
  const double masses[] = {0.01, 0.3, 1, 3, 12};
  for (int k = 0; k < 5; k++)
    for (int t = 0; t < 32; t++) {
      const double m = masses[k], c0 = cosh(m * (t - 16)), c1 = cosh(m * (t - 15));
      cr_expect_float_eq(qk_correlator_cosh_mass(c0, c1, t, 32), m, 1e-9 * m, "m = %g, t = %d", m,
                         t);
    }
}

/* Smooth masses are exact where nothing alternates, and nearer to the mass where a partner does. */
Test(correlator, smooth_masses_see_little_of_a_partner) {
  enum { NT = 32 };
  const double m = 0.5, partner = 0.9;
  double one[NT], both[NT], smooth[NT], rough[NT];
  for (int t = 0; t < NT; t++) {
    one[t] = cosh(m * (t - NT / 2));
    both[t] = one[t] + 0.2 * (t % 2 ? -1 : 1) * cosh(partner * (t - NT / 2));
  }
  qk_correlator_masses(one, NT, (qk_mass_form_t){.cosh = true, .smooth = true}, smooth);
  for (int t = 1; t < NT / 2 - 1; t++) cr_expect_float_eq(smooth[t], m, 1e-9, "%d", t);
  qk_correlator_masses(both, NT, (qk_mass_form_t){.cosh = true, .smooth = true}, smooth);
  qk_correlator_masses(both, NT, (qk_mass_form_t){.cosh = true}, rough);
  for (int t = 4; t < 12; t++)
    cr_expect(fabs(smooth[t] - m) < 0.3 * fabs(rough[t] - m) || isnan(rough[t]), "%d: %g %g", t,
              smooth[t], rough[t]);
  for (int t = 0; t < NT; t++) one[t] = exp(-m * t);
  qk_correlator_masses(one, NT, (qk_mass_form_t){.smooth = true}, smooth);
  for (int t = 0; t < NT; t++)
    cr_expect(t < 1 || t > NT - 3 ? isnan(smooth[t]) : fabs(smooth[t] - m) < 1e-9, "%d", t);
  cr_expect(qk_mass_form("rho", true).smooth && qk_mass_form("pioni", true).cosh);
  cr_expect(!qk_mass_form("rho", false).smooth && !qk_mass_form("pion", true).smooth);
  cr_expect(!qk_mass_form("nucleon_corner", true).cosh && qk_mass_form("g5-gx", true).smooth);
}

Test(correlator, cosh_mass_has_no_value_where_there_is_no_solution) {
  cr_expect(isnan(qk_correlator_cosh_mass(1, 2, 3, 32)), "growing before the middle");
  cr_expect(isnan(qk_correlator_cosh_mass(2, 1, 20, 32)), "falling behind the middle");
  cr_expect(isnan(qk_correlator_cosh_mass(1, 1, 3, 32)));
  cr_expect(isnan(qk_correlator_cosh_mass(1, -1, 3, 32)));
  cr_expect(isnan(qk_correlator_cosh_mass(NAN, 1, 3, 32)));
  cr_expect(isnan(qk_correlator_cosh_mass(1, 0, 3, 32)));
}
