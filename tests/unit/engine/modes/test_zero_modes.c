/* Zero modes from eigenvalues of gamma_5 D(m). */
#include <criterion/criterion.h>

#include "daemon/engine/modes/zero_modes.h"

static const double m = 0.1, h = 0.23, good = 1e-9;

Test(zero_modes, are_counted_by_their_signs) {
  const double number[] = {-0.1, good, 0.1, good, -0.1, good, h, good, -h, good};
  qk_zero_modes_t z = qk_zero_modes_find(number, 5, m, 1e-10);
  cr_expect(z.known && z.plus == 1 && z.minus == 2, "%d %d", z.plus, z.minus);
  z = qk_zero_modes_find(number, 5, -m, 1e-10); /* h = s m */
  cr_expect(z.known && z.plus == 2 && z.minus == 1, "%d %d", z.plus, z.minus);
}

Test(zero_modes, there_may_be_none) {
  const double number[] = {h, good, -h, good};
  const qk_zero_modes_t z = qk_zero_modes_find(number, 2, m, 1e-10);
  cr_expect(z.known && z.plus == 0 && z.minus == 0);
}

/* All vectors are zero modes: there may be more. */
Test(zero_modes, are_not_known_where_some_may_be_missing) {
  const double number[] = {0.1, good, 0.1, good};
  cr_expect_not(qk_zero_modes_find(number, 2, m, 1e-10).known);
  cr_expect_not(qk_zero_modes_find(number, 0, m, 1e-10).known);
}

Test(zero_modes, are_not_known_where_errors_are_too_large) {
  const double coarse[] = {0.1, 0.02, h, 0.02}, below[] = {0.09, good, h, good},
               massless[] = {1e-12, good, -1e-12, good, h, good}, fine[] = {0.1, good, h, good};
  cr_expect_not(qk_zero_modes_find(coarse, 2, m, 1e-10).known);
  cr_expect_not(qk_zero_modes_find(below, 2, m, 1e-10).known, "|h| < |m| is no eigenvalue");
  cr_expect_not(qk_zero_modes_find(massless, 3, 0, 1e-10).known);
  cr_expect_not(qk_zero_modes_find(fine, 2, m, 0.02).known);
  cr_expect(qk_zero_modes_find(fine, 2, m, 1e-10).known);
}

/* One vector of a pair may be a zero mode by its error, the other one not. */
Test(zero_modes, are_not_known_where_they_end_within_a_pair) {
  const double close[] = {0.1039, 0.002, -0.1041, 0.002, h, 0.002},
               apart[] = {0.1039, 0.002, -0.1121, 0.002, h, 0.002},
               both[] = {0.1039, 0.002, -0.1039, 0.002, h, 0.002};
  cr_expect_not(qk_zero_modes_find(close, 3, m, 1e-10).known);
  cr_expect(qk_zero_modes_find(apart, 3, m, 1e-10).known);
  const qk_zero_modes_t z = qk_zero_modes_find(both, 3, m, 1e-10);
  cr_expect(z.known && z.plus == 1 && z.minus == 1, "%d %d", z.plus, z.minus);
}
