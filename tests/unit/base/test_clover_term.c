/* clover_term.c: digest, numbers that are not finite, singular blocks. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/base/links/clover_term.h"

/* Numbers near 4 on the diagonal, small ones beside it. */
static void make_site(int seed, double site[QK_CLOVER_TERM_SITE]) {
  for (int k = 0; k < QK_CLOVER_TERM_SITE; k++)
    site[k] = 0.3 * sin(1.7 * k + seed) + (k % 36 < 6 ? 4 : 0);
}

Test(clover_term, parts_in_any_order_make_the_sum_of_the_whole) {
  qk_clover_term_sum_t whole = {0}, part[2] = {{0}, {0}};
  double site[QK_CLOVER_TERM_SITE];
  for (int n = 0; n < 10; n++) {
    make_site(n, site);
    qk_clover_term_add(site, (uint64_t)n, &whole);
  }
  for (int n = 9; n >= 0; n--) {
    make_site(n, site);
    qk_clover_term_add(site, (uint64_t)n, &part[n % 2]);
  }
  qk_clover_term_join(&part[0], &part[1]);
  cr_expect_eq(part[0].digest, whole.digest);
  cr_expect_eq(part[0].bad, 0);
  cr_expect_float_eq(part[0].squares, whole.squares, 1e-10);
  cr_expect_eq(part[0].largest, whole.largest);
  cr_expect(whole.largest > 4 && whole.largest <= 4.3);
}

Test(clover_term, the_first_number_that_is_not_finite_is_named_whatever_the_order) {
  static const double values[] = {NAN, INFINITY, -INFINITY};
  for (int order = 0; order < 2; order++) {
    qk_clover_term_sum_t part[2] = {{0}, {0}};
    double site[QK_CLOVER_TERM_SITE];
    for (int i = 0; i < 6; i++) {
      const int n = order ? 5 - i : i;
      make_site(n, site);
      if (n >= 2 && n < 5) site[10 * n] = values[n - 2];
      qk_clover_term_add(site, (uint64_t)n, &part[n % 2]);
    }
    qk_clover_term_join(&part[order], &part[1 - order]);
    cr_expect_eq(part[order].bad, 3);
    cr_expect_eq(part[order].site, 2);
    cr_expect_eq(part[order].number, 20);
    cr_expect(isfinite(part[order].squares) && part[order].largest < 5);
  }
}

Test(clover_term, numbers_of_32_bits_are_widened) {
  float raw[QK_CLOVER_TERM_SITE];
  double site[QK_CLOVER_TERM_SITE], wide[QK_CLOVER_TERM_SITE];
  make_site(1, site);
  for (int k = 0; k < QK_CLOVER_TERM_SITE; k++) raw[k] = (float)site[k];
  qk_clover_term_widen(raw, 32, wide);
  for (int k = 0; k < QK_CLOVER_TERM_SITE; k++) cr_expect_eq(wide[k], (double)raw[k]);
  qk_clover_term_widen(site, 64, wide);
  cr_expect_eq(memcmp(wide, site, sizeof site), 0);
}

/* A block of numbers d[i] on the diagonal and v v^+ beside them. */
static void set_block(const double *d, double factor, double *block) {
  const double re[6] = {1, 0.5, -0.25, 2, 1.5, -1}, im[6] = {0, 1, 0.5, -1, 0.25, 2};
  double *below = block + 6;
  for (int j = 0; j < 6; j++) {
    block[j] = d[j] + factor * (re[j] * re[j] + im[j] * im[j]);
    for (int i = j + 1; i < 6; i++) {
      *below++ = factor * (re[i] * re[j] + im[i] * im[j]);
      *below++ = factor * (im[i] * re[j] - re[i] * im[j]);
    }
  }
}

Test(clover_term, pivots_tell_singular_blocks_from_others) {
  const double ones[6] = {1, 1, 1, 1, 1, 1}, zeros[6] = {0}, mixed[6] = {1, -1, 1, -1, 1, -1};
  double site[QK_CLOVER_TERM_SITE];
  set_block(ones, 0, site);
  set_block(ones, 0, site + 36);
  cr_expect_eq(qk_clover_term_pivot(site), 1);
  set_block(mixed, 0.7, site); /* indefinite, but regular */
  cr_expect_gt(qk_clover_term_pivot(site), 0.01);
  set_block(zeros, 1, site + 36); /* of rank one */
  cr_expect_lt(qk_clover_term_pivot(site), 1e-15);
  set_block(ones, -1 / 14.875, site + 36); /* 1 - v v^+ / |v|^2 */
  cr_expect_lt(qk_clover_term_pivot(site), 1e-14);
  memset(site, 0, sizeof site);
  cr_expect_eq(qk_clover_term_pivot(site), 0);
}
