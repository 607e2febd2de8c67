/* All-mode averaging: what is asked for, places of sources, means and errors. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "client/analysis/ama.h"

Test(ama, a_number_of_sources_and_a_tolerance_are_read) {
  static const char *const bad[] = {"",          "32",       "32:",     ":1e-4",    "0:1e-4",
                                    "4097:1e-4", "32:1",     "32:0",    "32:-1e-4", "32:nan",
                                    "32:1e-17",  "32:1e-4x", "32 1e-4", "-1:1e-4",  "32:1e-4:2",
                                    "x:1e-4",    "32:1e400"};
  qk_ama_part_t part = {.n = 7, .tol = 0.5};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    cr_expect_eq(qk_ama_parse(bad[i], &part, &err), QK_BAD_ARGUMENT, "%s", bad[i]);
    cr_expect(part.n == 7 && part.tol == 0.5 && *err.text, "%s", bad[i]);
  }
  cr_expect_eq(qk_ama_parse("32:1e-4", &part, NULL), QK_OK);
  cr_expect(part.n == 32 && part.tol == 1e-4);
  cr_expect_eq(qk_ama_parse("4096:0.999", &part, NULL), QK_OK);
}

/* ---- places ---------------------------------------------------------------------------------- */

static int apart(const qk_ama_grid_t *g, const int32_t a[4], const int32_t b[4]) {
  int most = 0;
  for (int mu = 0; mu < 4; mu++) {
    int d = abs(a[mu] - b[mu]);
    if (g->dims[mu] - d < d) d = g->dims[mu] - d;
    if (d > most) most = d;
  }
  return most;
}

static int least_apart(const qk_ama_grid_t *g, int32_t n, int32_t (*site)[4]) {
  int least = 1 << 20;
  for (int32_t i = 0; i < n; i++)
    for (int32_t k = 0; k < i; k++) {
      const int d = apart(g, site[i], site[k]);
      if (d < least) least = d;
    }
  return least;
}

Test(ama, sources_are_far_from_each_other_and_move_with_the_seed) {
  qk_ama_grid_t g = {
      .dims = {8, 8, 8, 16}, .first = {1, 2, 3, 4}, .is_free = {true, true, true, true}, .seed = 5};
  static int32_t site[4096][4], again[4096][4], other[4096][4];
  int32_t offset[4], moved[4];
  cr_assert_eq(qk_ama_place(&g, 32, offset, site, NULL), QK_OK);
  cr_expect_eq(least_apart(&g, 32, site), 4, "32 of 8192 sites: 4 in each direction");
  for (int mu = 0; mu < 4; mu++) cr_expect_eq(site[0][mu], (g.first[mu] + offset[mu]) % g.dims[mu]);
  cr_assert_eq(qk_ama_place(&g, 32, moved, again, NULL), QK_OK);
  cr_expect_arr_eq(site, again, 32 * sizeof *site);
  g.seed = 6;
  cr_assert_eq(qk_ama_place(&g, 32, moved, other, NULL), QK_OK);
  cr_expect(memcmp(offset, moved, sizeof moved) != 0);
  for (int k = 0; k < 32; k++)
    for (int mu = 0; mu < 4; mu++)
      cr_expect_eq((other[k][mu] - moved[mu] - site[k][mu] + offset[mu]) % g.dims[mu], 0,
                   "the same grid");
  for (int32_t n = 1; n <= 4096; n = n * 3 + 1) {
    cr_assert_eq(qk_ama_place(&g, n, moved, other, NULL), QK_OK);
    cr_expect_geq(n < 2 ? 1 : least_apart(&g, n, other), 1, "%d sources are different", n);
  }
}

/* The numbers are the same everywhere and in later versions: files name seeds. */
Test(ama, a_seed_is_a_place) {
  const qk_ama_grid_t g = {.dims = {4, 6, 8, 10}, .is_free = {true, true, true, true}, .seed = 0};
  int32_t offset[4], site[1][4];
  cr_assert_eq(qk_ama_place(&g, 1, offset, site, NULL), QK_OK);
  /* the first numbers of splitmix64 from 0: e220a8397b1dcdaf 6e789e6aa1b965f4 06c45d188009454f
   * f88bb8a8724c81ec, their upper halves times the extents over 2^32 */
  const int32_t want[4] = {3, 2, 0, 9};
  cr_expect_arr_eq(offset, want, sizeof want);
}

Test(ama, offsets_reach_every_place) {
  qk_ama_grid_t g = {.dims = {2, 2, 2, 4}, .is_free = {true, true, true, true}};
  int32_t offset[4], site[1][4];
  bool seen[32] = {0};
  for (g.seed = 0; g.seed < 1000; g.seed++) {
    cr_assert_eq(qk_ama_place(&g, 1, offset, site, NULL), QK_OK);
    seen[((site[0][3] * 2 + site[0][2]) * 2 + site[0][1]) * 2 + site[0][0]] = true;
  }
  for (int i = 0; i < 32; i++) cr_expect(seen[i], "%d", i);
}

Test(ama, directions_that_are_not_free_keep_their_coordinate) {
  const qk_ama_grid_t g = {.dims = {6, 6, 6, 12},
                           .first = {1, 2, 3, 4},
                           .is_free = {true, false, true, false},
                           .seed = 9};
  int32_t offset[4], site[37][4];
  qk_err_t err = {0};
  cr_assert_eq(qk_ama_place(&g, 36, offset, site, NULL), QK_OK, "each place once");
  cr_expect_geq(least_apart(&g, 36, site), 1);
  cr_expect(offset[1] == 0 && offset[3] == 0);
  for (int k = 0; k < 36; k++) cr_expect(site[k][1] == 2 && site[k][3] == 4);
  cr_expect_eq(qk_ama_place(&g, 37, offset, site, &err), QK_BAD_ARGUMENT);
  cr_expect(strstr(err.text, "37 sources") && strstr(err.text, "36 places"), "%s", err.text);
}

Test(ama, exact_sources_are_as_many_as_asked_for_and_spread) {
  for (int32_t n = 1; n <= 40; n++)
    for (int32_t m = 1; m <= n; m++) {
      int found = 0;
      for (int32_t k = 0; k < n; k++) found += qk_ama_is_exact(k, n, m);
      cr_expect_eq(found, m, "%d of %d", m, n);
      cr_expect(qk_ama_is_exact(0, n, m));
    }
  cr_expect(qk_ama_is_exact(16, 32, 2) && !qk_ama_is_exact(15, 32, 2));
}

/* ---- means ----------------------------------------------------------------------------------- */

Test(ama, the_combination_is_mean_plus_mean_correction) {
  const qk_corrpiece_t shape = {.nmom = 1, .n = 1, .meta.dims = {1, 1, 1, 2}};
  const double complex sloppy[3][2] = {
      {1 + 2 * I, 1e3}, {2 - 1 * I, 1e3 + 1e-9}, {6 + 5 * I, 1e3 - 1e-9}};
  const double complex exact[2][2] = {{1.5 + 2 * I, 1e3}, {6.25 + 5 * I, 1e3}};
  qk_ama_sum_t s, c;
  double complex mean[2], error[2];
  cr_assert_eq(qk_ama_sum_init(&s, &shape, NULL), QK_OK);
  cr_assert_eq(qk_ama_sum_init(&c, &shape, NULL), QK_OK);
  qk_ama_sum_add(&s, sloppy[0], NULL);
  qk_ama_sum_add(&c, exact[0], sloppy[0]);
  qk_ama_combine(&s, &c, mean, error);
  cr_expect(mean[0] == exact[0][0] && isnan(creal(error[0])), "one source has no error");
  for (int k = 1; k < 3; k++) qk_ama_sum_add(&s, sloppy[k], NULL);
  qk_ama_combine(&s, &c, mean, error);
  /* variances of 1, 2, 6 and 2, -1, 5: 7 and 9 */
  cr_expect_float_eq(creal(error[0]), sqrt(7. / 3), 1e-14);
  cr_expect_float_eq(cimag(error[0]), sqrt(9. / 3), 1e-14);
  qk_ama_sum_add(&c, exact[1], sloppy[2]);
  qk_ama_combine(&s, &c, mean, error);
  cr_expect_float_eq(creal(mean[0]), 3 + 0.375, 1e-14);
  cr_expect_float_eq(cimag(mean[0]), 2, 1e-14);
  /* of 0.5, 0.25: 1/32 */
  cr_expect_float_eq(creal(error[0]), sqrt(7. / 3 + 1. / 64), 1e-14);
  cr_expect_float_eq(creal(error[1]) * 1e9, sqrt(1. / 3 + 1. / 4), 1e-3, "small beside the mean");
  qk_ama_sum_fini(&s);
  qk_ama_sum_fini(&c);
}
