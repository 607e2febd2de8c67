#include <criterion/criterion.h>
#include <math.h>

#include "client/analysis/ensemble.h"

enum { NT = 16 };

static qk_ensemble_t compute(int n, const double *sample, bool cosh) {
  qk_ensemble_t e;
  cr_assert_eq(qk_ensemble_compute(n, NT, sample, (qk_mass_form_t){.cosh = cosh}, &e, NULL), QK_OK);
  return e;
}

Test(ensemble, error_of_the_mean_is_the_standard_one) {
  enum { N = 7 };
  double sample[N * NT];
  for (int i = 0; i < N * NT; i++) sample[i] = 10 + sin(1.0 + 12.9898 * i);
  qk_ensemble_t e = compute(N, sample, true);
  for (int t = 0; t < NT; t++) {
    double mean = 0, square = 0;
    for (int j = 0; j < N; j++) mean += sample[j * NT + t] / N;
    for (int j = 0; j < N; j++) square += pow(sample[j * NT + t] - mean, 2);
    cr_expect_float_eq(e.c[t], mean, 1e-13);
    cr_expect_float_eq(e.dc[t], sqrt(square / (N - 1) / N), 1e-13);
  }
  qk_ensemble_fini(&e);
}

/* Configurations differ by a factor, which masses do not see, and by their
 * masses, which they do. */
Test(ensemble, masses_are_those_of_the_mean_with_errors_to_first_order) {
  enum { N = 40 };
  const double m = 0.4;
  double sample[N * NT];
  for (int j = 0; j < N; j++)
    for (int t = 0; t < NT; t++) sample[j * NT + t] = (1 + 0.3 * j) * cosh(m * (t - NT / 2));
  qk_ensemble_t e = compute(N, sample, true);
  for (int t = 0; t < NT; t++) {
    cr_expect_float_eq(e.mass[t], m, 1e-10);
    cr_expect_lt(e.dmass[t], 1e-9);
    cr_expect_gt(e.dc[t], 1e-3);
  }
  qk_ensemble_fini(&e);
  double spread = 0;
  for (int j = 0; j < N; j++) {
    const double mj = m + 1e-5 * sin(2.0 + 78.233 * j);
    spread += pow(mj - m, 2);
    for (int t = 0; t < NT; t++) sample[j * NT + t] = exp(-mj * t);
  }
  e = compute(N, sample, false);
  const double error = sqrt(spread / (N - 1) / N);
  cr_expect_float_eq(e.mass[0], m, 1e-5);
  cr_expect_float_eq(e.dmass[0], error, 0.1 * error, "%g, not %g", e.dmass[0], error);
  qk_ensemble_fini(&e);
}

Test(ensemble, one_configuration_has_no_errors) {
  double sample[NT];
  for (int t = 0; t < NT; t++) sample[t] = cosh(0.3 * (t - NT / 2));
  qk_ensemble_t e = compute(1, sample, true);
  for (int t = 0; t < NT; t++) {
    cr_expect(isnan(e.dc[t]) && isnan(e.dmass[t]));
    cr_expect_float_eq(e.mass[t], 0.3, 1e-10);
  }
  qk_ensemble_fini(&e);
}

Test(ensemble, a_mass_that_one_sample_lacks_has_no_error) {
  double sample[3 * NT];
  for (int i = 0; i < 3 * NT; i++) sample[i] = exp(-0.2 * (i % NT));
  sample[2 * NT + 5] = -3; /* the mean at 5 is negative without the others, too */
  qk_ensemble_t e = compute(3, sample, false);
  cr_expect(isnan(e.dmass[5]) && isnan(e.dmass[4]) && isfinite(e.dmass[3]));
  qk_ensemble_fini(&e);
}
