/* When a multigrid that has become slow is refreshed. */
#include <criterion/criterion.h>

#include "daemon/engine/mg_service/mg_health.h"

/* n solves of so many iterations a digit: what the last of them, or the first that
 * asks for more, asks for. */
static qk_mg_refresh_t solves(qk_mg_health_t *w, int n, double rate) {
  qk_mg_refresh_t refresh = QK_MG_REFRESH_NONE;
  for (int i = 0; i < n && refresh == QK_MG_REFRESH_NONE; i++)
    refresh = qk_mg_health_add(w, QK_OK, (int64_t)(rate * 10), 2e-10, 1e-10);
  return refresh;
}

Test(mg_health, steady_solves_need_nothing) {
  qk_mg_health_t w = {0};
  cr_expect_eq(solves(&w, 1000, 1.5), QK_MG_REFRESH_NONE);
  cr_expect_float_eq(w.first, 1.5, 1e-12);
  cr_expect_float_eq(w.lately, 1.5, 1e-12);
  cr_expect_eq(solves(&w, 1000, 2.9), QK_MG_REFRESH_NONE);
  cr_expect_float_eq(w.lately, 2.9, 1e-6);
}

Test(mg_health, slow_solves_are_refined_then_rebuilt_then_taken_as_they_are) {
  qk_mg_health_t w = {0};
  cr_assert_eq(solves(&w, 100, 1.5), QK_MG_REFRESH_NONE);
  cr_assert_eq(solves(&w, 2, 4.5), QK_MG_REFRESH_NONE, "one or two are chance");
  cr_assert_eq(solves(&w, 100, 4.5), QK_MG_REFINE);
  qk_mg_health_refreshed(&w, QK_MG_REFINE);
  cr_assert_eq(solves(&w, QK_MG_HEALTH_SPAN - 1, 4.5), QK_MG_REFRESH_NONE,
               "a fresh look after the refresh");
  cr_assert_eq(solves(&w, 1, 4.5), QK_MG_REBUILD);
  qk_mg_health_refreshed(&w, QK_MG_REBUILD);
  cr_assert_eq(solves(&w, 1000, 4.5), QK_MG_REFRESH_NONE, "nothing has helped: this is how it is");
  cr_expect_float_eq(w.first, 4.5, 1e-6);
  cr_assert_eq(solves(&w, 100, 12), QK_MG_REFINE);
}

Test(mg_health, a_refresh_that_helps_is_the_only_one) {
  qk_mg_health_t w = {0};
  solves(&w, 100, 1.5);
  cr_assert_eq(solves(&w, 100, 6), QK_MG_REFINE);
  qk_mg_health_refreshed(&w, QK_MG_REFINE);
  cr_assert_eq(solves(&w, 1000, 1.6), QK_MG_REFRESH_NONE);
}

Test(mg_health, failures_count_and_hopeless_demands_do_not) {
  qk_mg_health_t w = {0};
  solves(&w, 100, 1.5);
  qk_mg_refresh_t refresh = QK_MG_REFRESH_NONE;
  for (int i = 0; i < 100; i++) {
    refresh = qk_mg_health_add(&w, QK_NOT_CONVERGED, 2, 1e-12, 0.4); /* a small max_iter */
    cr_assert_eq(refresh, QK_MG_REFRESH_NONE);
    refresh = qk_mg_health_add(&w, QK_NOT_CONVERGED, 1000, 1e-100, 1e-15);
    cr_assert_eq(refresh, QK_MG_REFRESH_NONE);
    cr_assert_eq(qk_mg_health_add(&w, QK_CANCELLED, 1000, 1e-8, 1), QK_MG_REFRESH_NONE);
    cr_assert_eq(qk_mg_health_add(&w, QK_OK, 0, 1e-8, 0), QK_MG_REFRESH_NONE);
  }
  for (int i = 0; i < QK_MG_HEALTH_SPAN && refresh == QK_MG_REFRESH_NONE; i++)
    refresh = qk_mg_health_add(&w, QK_NOT_CONVERGED, 1000, 1e-10, 0.2);
  cr_expect_eq(refresh, QK_MG_REFINE);
}
