/* vectors.c: norms, digest, numbers that are not finite, of vectors that clients send. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#include "daemon/base/links/vectors.h"

enum { SITES = 5, VECTORS = 6 };

/* Of norm 1 but for `off` more of vector 3. */
static void make_site(int vector, int site, double off, double to[QK_VECTORS_SITE]) {
  const double size = sqrt((vector == 3 ? 1 + off : 1) / (SITES * QK_VECTORS_SITE));
  for (int k = 0; k < QK_VECTORS_SITE; k++) to[k] = (k + site + vector) % 2 ? size : -size;
}

static void add_vector(int vector, double off, qk_vectors_sum_t *sum) {
  double site[QK_VECTORS_SITE];
  for (int n = 0; n < SITES; n++) {
    make_site(vector, n, off, site);
    qk_vectors_add(site, (uint64_t)vector * SITES + (uint64_t)n, sum);
  }
  qk_vectors_end((uint64_t)vector, sum);
}

Test(vectors, parts_in_any_order_make_the_sum_of_the_whole) {
  qk_vectors_sum_t whole = {0}, part[2] = {{0}, {0}};
  uint64_t digest = 0;
  for (int v = 0; v < VECTORS; v++) add_vector(v, 1e-3, &whole);
  for (int v = VECTORS - 1; v >= 0; v--) add_vector(v, 1e-3, &part[v % 2]);
  for (int n = 0; n < SITES * VECTORS; n++) {
    double site[QK_VECTORS_SITE];
    make_site(n / SITES, n % SITES, 1e-3, site);
    digest += XXH3_64bits_withSeed(site, sizeof site, (XXH64_hash_t)n);
  }
  qk_vectors_join(&part[0], &part[1]);
  cr_expect_eq(whole.digest, digest);
  cr_expect_eq(part[0].digest, digest);
  cr_expect_eq(whole.worst, 3);
  cr_expect_eq(part[0].worst, 3);
  cr_expect_float_eq(whole.deviation, 1e-3, 1e-12);
  cr_expect_eq(part[0].deviation, whole.deviation);
  cr_expect_eq(whole.bad, 0);
}

Test(vectors, the_first_number_that_is_not_finite_is_named_whatever_the_order) {
  static const double values[] = {NAN, INFINITY, -INFINITY};
  for (int order = 0; order < 2; order++) {
    qk_vectors_sum_t part[2] = {{0}, {0}};
    for (int i = 0; i < VECTORS; i++) {
      const int v = order ? VECTORS - 1 - i : i;
      for (int n = 0; n < SITES; n++) {
        double site[QK_VECTORS_SITE];
        make_site(v, n, 0, site);
        if (v >= 2 && n == 4) site[v] = site[5] = values[v % 3];
        qk_vectors_add(site, (uint64_t)v * SITES + (uint64_t)n, &part[v % 2]);
      }
      qk_vectors_end((uint64_t)v, &part[v % 2]);
    }
    qk_vectors_join(&part[0], &part[1]);
    cr_expect_eq(part[0].bad, 7); /* of vector 5 it is one number */
    cr_expect_eq(part[0].site, 2 * SITES + 4);
    cr_expect_eq(part[0].number, 2);
  }
}

Test(vectors, finite_numbers_whose_squares_are_not_have_no_norm) {
  qk_vectors_sum_t sum = {0};
  const double site[QK_VECTORS_SITE] = {1e200};
  qk_vectors_add(site, 0, &sum);
  qk_vectors_end(0, &sum);
  add_vector(1, 0, &sum);
  cr_expect_eq(sum.bad, 0);
  cr_expect(isinf(sum.deviation));
  cr_expect_eq(sum.worst, 0);
}

Test(vectors, single_precision_is_widened) {
  const float raw[QK_VECTORS_SITE] = {0.1F, -0.2F, 0, 1, 2, 3};
  double site[QK_VECTORS_SITE], same[QK_VECTORS_SITE];
  qk_vectors_widen(raw, 32, site);
  for (int k = 0; k < QK_VECTORS_SITE; k++) cr_expect_eq(site[k], (double)raw[k]);
  qk_vectors_widen(site, 64, same);
  cr_expect_arr_eq(same, site, sizeof site);
}
