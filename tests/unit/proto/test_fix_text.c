/* The setting "fix-gauge": what it means, its text, what it refuses. */
#include <criterion/criterion.h>
#include <string.h>

#include "proto/action/fix_text.h"

Test(fix_text, reads_a_gauge_and_its_tolerance) {
  static const struct {
    const char *text;
    bool landau, coulomb;
    double theta;
    const char *back;
  } row[] = {{NULL, false, false, 1e-12, "none"},
             {"none", false, false, 1e-12, "none"},
             {"landau", true, false, 1e-12, "landau:1e-12"},
             {"coulomb:1e-26", false, true, 1e-26, "coulomb:1e-26"},
             {"coulomb:1", false, true, 1, "coulomb:1"},
             {"landau:0.00012207031250000001", true, false, 0x1p-13, "landau:0.0001220703125"}};
  for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
    char why[QK_WHY] = "", text[QK_FIX_TEXT_MAX + 1];
    qk_fix_recipe_t r;
    cr_assert(qk_fix_read(row[i].text, &r, why), "%s", why);
    cr_expect(r.landau == row[i].landau && r.coulomb == row[i].coulomb);
    cr_expect(r.theta == row[i].theta, "%s: %g", row[i].text, r.theta);
    cr_expect_str_eq(qk_fix_text(&r, text), row[i].back);
  }
}

Test(fix_text, any_tolerance_fits_its_text) {
  const qk_fix_recipe_t r = {.coulomb = true, .theta = 1.2345678901234567e-26};
  qk_fix_recipe_t back;
  char why[QK_WHY] = "", text[QK_FIX_TEXT_MAX + 1];
  cr_assert(qk_fix_read(qk_fix_text(&r, text), &back, why), "%s: %s", text, why);
  cr_expect(back.theta == r.theta && back.coulomb && !back.landau);
}

Test(fix_text, refuses_with_a_reason_and_changes_nothing) {
  static const char *const bad[] = {
      "",          "Landau",        "axial",
      "none:1e-3", "landau:",       "landau:0",
      "landau:-1", "coulomb:1e-27", "coulomb:1.1",
      "coulomb:x", "coulomb:nan",   "landau:1e-3:2",
      "landau ",   "landau:1e-12 ", "coulomb:1e-12000000000000000000000000000000"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    qk_fix_recipe_t r = {.theta = 7};
    char why[QK_WHY] = "";
    cr_expect_not(qk_fix_read(bad[i], &r, why), "%s", bad[i]);
    cr_expect(strstr(why, "fix-gauge") == why, "%s: %s", bad[i], why);
    cr_expect(r.theta == 7 && !r.landau && !r.coulomb);
  }
}
