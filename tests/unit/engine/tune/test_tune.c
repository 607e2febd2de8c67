#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/tune/search.h"

/* A lattice of 16^3 x 32 and complete parameters of three levels. */
static qk_geom_t geom = {.lat = {.l = {16, 16, 16, 32}}};
static qk_mg_params_t start_point(void) {
  qk_mg_params_t p = {.nlevel = 3};
  for (int l = 0; l < 2; l++) {
    p.level[l].nvec = 24;
    p.level[l].pre = -1;
    p.level[l].post = 8;
    p.level[l].smoother.omega = 0.85;
    p.level[l].setup_iterations = 100;
    p.level[l].setup_passes = 1;
    p.level[l + 1].iterations = l ? 16 : 8;
    for (int mu = 0; mu < 4; mu++) p.level[l].block[mu] = l ? 2 : 4;
  }
  return p;
}

typedef struct count {
  int calls, left;
} count_t;

static bool time_left(void *arg) {
  return ((count_t *)arg)->calls < ((count_t *)arg)->left;
}

/* Least at post 4 on level 0, iterations 4 and 12, 32 vectors; what two
 * parameters do is coupled. */
static double bowl(void *arg, const qk_mg_params_t *p, const qk_tune_axis_t *axis, int word) {
  (void)axis;
  (void)word;
  ((count_t *)arg)->calls++;
  double a = p->level[0].post - 4, b = p->level[1].iterations - 4, c = p->level[2].iterations - 12;
  return 10 + a * a + b * b + c * c / 4 + 0.5 * a * b + fabs(p->level[0].nvec - 32.0) / 8;
}

Test(tune, search_finds_the_least_cost) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  int n = qk_tune_axes(&geom, &p, false, axis);
  cr_assert_leq(n, QK_TUNE_AXES);
  const qk_tune_search_t s = {&count, bowl, time_left};
  double cost = qk_tune_run(&s, axis, n, &p);
  cr_assert_float_eq(cost, 10, 1e-12);
  cr_assert_eq(p.level[0].post, 4);
  cr_assert_eq(p.level[1].iterations, 4);
  cr_assert_eq(p.level[2].iterations, 12);
  cr_assert_eq(p.level[0].nvec, 32);
  cr_assert_eq(p.level[1].post, 8, "what does not matter stays");
}

Test(tune, search_ends_when_the_time_is_up_with_the_best_so_far) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  for (int left = 1; left < 40; left++) {
    qk_mg_params_t p = start_point();
    count_t count = {.left = left};
    int n = qk_tune_axes(&geom, &p, false, axis);
    const qk_tune_search_t s = {&count, bowl, time_left};
    double cost = qk_tune_run(&s, axis, n, &p);
    cr_assert_leq(count.calls, left);
    cr_assert_float_eq(cost, bowl(&count, &p, NULL, 0), 1e-12, "the cost is that of the result");
  }
}

static double fails(void *arg, const qk_mg_params_t *p, const qk_tune_axis_t *axis, int word) {
  double cost = bowl(arg, p, axis, word);
  return p->level[0].post == 8 ? cost : INFINITY;
}

Test(tune, points_that_do_not_work_are_not_taken) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  int n = qk_tune_axes(&geom, &p, false, axis);
  const qk_tune_search_t s = {&count, fails, time_left};
  cr_assert(isfinite(qk_tune_run(&s, axis, n, &p)));
  cr_assert_eq(p.level[0].post, 8);
}

/* Every word of every axis is a parameter that can be set, and sets that level alone. */
Test(tune, words_set_their_level) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t start = start_point();
  int n = qk_tune_axes(&geom, &start, true, axis);
  for (int i = 0; i < n; i++)
    for (int w = 0; w < axis[i].nword; w++) {
      qk_mg_params_t p = start;
      qk_err_t err = {0};
      cr_assert_eq(qk_tune_put(&axis[i], w, &p, &err), QK_OK, "%s", err.text);
      for (int l = 0; l < QK_MG_LEVELS_MAX; l++) {
        bool blocks = strcmp(axis[i].key, "mg-blocks") == 0 && l > axis[i].level;
        const bool iterations = strcmp(axis[i].key, "mg-levels") == 0 && l > 0;
        if (l == axis[i].level || blocks || iterations) continue;
        cr_assert_eq(memcmp(&p.level[l], &start.level[l], sizeof p.level[l]), 0,
                     "%s = %s, level %d", axis[i].key, axis[i].word[w], l);
      }
    }
}

Test(tune, factors_of_mu_are_tried_where_there_is_a_twist) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  const qk_mg_params_t start = start_point();
  for (int twisted = 0; twisted < 2; twisted++) {
    const int n = qk_tune_axes(&geom, &start, twisted, axis);
    int seen = 0;
    for (int i = 0; i < n; i++) seen += strcmp(axis[i].key, "mg-twist") == 0;
    cr_expect_eq(seen, twisted);
  }
}

Test(tune, blocks_cut_the_lattice_evenly) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_geom_t odd = {.lat = {.l = {24, 12, 6, 48}}};
  qk_mg_params_t start = start_point();
  int n = qk_tune_axes(&odd, &start, false, axis), seen = 0;
  for (int i = 0; i < n; i++) {
    if (strcmp(axis[i].key, "mg-blocks") != 0 || axis[i].level != 0) continue;
    for (int w = 0; w < axis[i].nword; w++, seen++) {
      qk_mg_params_t p = start;
      qk_err_t err = {0};
      cr_assert_eq(qk_tune_put(&axis[i], w, &p, &err), QK_OK);
      for (int mu = 0; mu < 4; mu++)
        cr_assert_eq(odd.lat.l[mu] % (2 * p.level[0].block[mu]), 0, "%s", axis[i].word[w]);
    }
  }
  cr_assert_geq(seen, 2);
}
