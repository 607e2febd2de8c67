#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "daemon/engine/tune/search.h"

/* A lattice of 16^3 x 32 and complete parameters of three levels. */
static qk_geom_t geom = {.lat = {.l = {16, 16, 16, 32}}};
static qk_mg_params_t start_point(void) {
  qk_mg_params_t p = {.nlevel = 3, .deflate = 32};
  for (int l = 0; l < 2; l++) {
    p.level[l].nvec = 24;
    p.level[l].pre = -1;
    p.level[l].post = 8;
    p.level[l].ntest = 24;
    p.level[l].smoother.kind = l ? QK_SMOOTHER_CAGCR : QK_SMOOTHER_POLYNOMIAL;
    p.level[l].smoother.omega = 0.85;
    p.level[l].smoother_prec = QK_SINGLE;
    p.level[l].setup_iterations = 100;
    p.level[l].setup_passes = 1;
    p.level[l + 1].iterations = l ? 16 : 8;
    for (int mu = 0; mu < 4; mu++) p.level[l].block[mu] = l ? 2 : 4;
  }
  return p;
}

/* What depends on another choice, as qk_mg_params_complete would do it. */
static void complete(qk_mg_params_t *p) {
  const qk_mg_params_t whole = start_point();
  if (p->deflate == 0) p->deflate = 32;
  for (int l = 0; l + 1 < p->nlevel; l++) {
    if (p->level[l].nvec == 0) p->level[l] = whole.level[1];
    if (p->level[l].ntest == 0) p->level[l].ntest = p->level[l].nvec;
    if (p->level[l].setup_passes == 0) p->level[l].setup_passes = 1;
    if (p->level[l + 1].iterations == 0) p->level[l + 1].iterations = 8;
    for (int mu = 0; mu < 4; mu++)
      if (p->level[l].block[mu] == 0) p->level[l].block[mu] = 2;
  }
}

typedef struct count {
  int calls, left;
  double noise; /* amplitude of what is added, as a part of the cost */
  uint64_t random;
} count_t;

static bool time_left(void *arg) {
  return ((count_t *)arg)->calls < ((count_t *)arg)->left;
}

/* -1 .. 1 */
static double draw(count_t *c) {
  c->random = c->random * 6364136223846793005u + 1442695040888963407u;
  return (double)(int32_t)(c->random >> 32) / 2147483648.0;
}

/* Least at post 4 on level 0, iterations 4 and 12, 32 vectors; what two
 * parameters do is coupled. */
static double shape(const qk_mg_params_t *p) {
  double a = p->level[0].post - 4, b = p->level[1].iterations - 4, c = p->level[2].iterations - 12;
  return 10 + a * a + b * b + c * c / 4 + 0.5 * a * b + fabs(p->level[0].nvec - 32.0) / 8 +
         5 * abs(p->nlevel - 3);
}

static double bowl(void *arg, qk_mg_params_t *p, const char *what, double least) {
  count_t *c = arg;
  (void)what;
  (void)least;
  c->calls++;
  complete(p);
  return shape(p) * (1 + c->noise * draw(c));
}

static double bowl_again(void *arg, const qk_mg_params_t *best) {
  qk_mg_params_t p = *best;
  return bowl(arg, &p, "", INFINITY);
}

static qk_tune_search_t search_of(count_t *count) {
  return (qk_tune_search_t){.arg = count,
                            .geom = &geom,
                            .margin = 0.01,
                            .cost = bowl,
                            .again = bowl_again,
                            .time_left = time_left};
}

Test(tune, search_finds_the_least_cost) {
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  const qk_tune_search_t s = search_of(&count);
  const double cost = qk_tune_run(&s, &p, shape(&p));
  cr_assert_float_eq(cost, 10, 1e-12);
  cr_assert_eq(p.level[0].post, 4);
  cr_assert_eq(p.level[1].iterations, 4);
  cr_assert_eq(p.level[2].iterations, 12);
  cr_assert_eq(p.level[0].nvec, 32);
  cr_assert_eq(p.nlevel, 3);
  cr_assert_eq(p.level[1].post, 8, "what does not matter stays");
}

Test(tune, search_ends_when_the_time_is_up_with_the_best_so_far) {
  for (int left = 1; left < 40; left++) {
    qk_mg_params_t p = start_point();
    count_t count = {.left = left};
    const qk_tune_search_t s = search_of(&count);
    const double cost = qk_tune_run(&s, &p, shape(&p));
    cr_assert_leq(count.calls, left + 2, "it may have to measure the best again");
    cr_assert_float_eq(cost, shape(&p), 1e-12, "the cost is that of the result");
  }
}

static double fails(void *arg, qk_mg_params_t *p, const char *what, double least) {
  const double cost = bowl(arg, p, what, least);
  return p->level[0].post == 8 ? cost : INFINITY;
}

Test(tune, points_that_do_not_work_are_not_taken) {
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  qk_tune_search_t s = search_of(&count);
  s.cost = fails;
  cr_assert(isfinite(qk_tune_run(&s, &p, shape(&p))));
  cr_assert_eq(p.level[0].post, 8);
}

/* The defaults do not work. */
Test(tune, search_leaves_a_start_that_does_not_work) {
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  const qk_tune_search_t s = search_of(&count);
  cr_assert_float_eq(qk_tune_run(&s, &p, INFINITY), 10, 1e-12);
}

/* Where everything costs the same, all gains are noise. The margin is the spread of noise. */
static double flat(void *arg, qk_mg_params_t *p, const char *what, double least) {
  count_t *c = arg;
  (void)what;
  (void)least;
  c->calls++;
  complete(p);
  return 1 + c->noise * draw(c);
}

static double flat_again(void *arg, const qk_mg_params_t *best) {
  qk_mg_params_t p = *best;
  return flat(arg, &p, "", INFINITY);
}

Test(tune, noise_is_no_reason_to_move) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    const qk_mg_params_t start = start_point();
    qk_mg_params_t p = start;
    count_t count = {.left = 100000, .noise = 0.02, .random = seed};
    qk_tune_search_t s = search_of(&count);
    s.cost = flat;
    s.again = flat_again;
    s.margin = 0.04;
    cr_assert_float_eq(qk_tune_run(&s, &p, 1), 1, 0.021);
    cr_assert_eq(memcmp(&p, &start, sizeof p), 0, "seed %d", (int)seed);
    cr_assert_gt(count.calls, 40);
  }
}

Test(tune, a_gain_is_found_below_noise) {
  for (uint64_t seed = 1; seed <= 50; seed++) {
    qk_mg_params_t p = start_point();
    count_t count = {.left = 100000, .noise = 0.02, .random = seed};
    qk_tune_search_t s = search_of(&count);
    s.margin = 0.04;
    qk_tune_run(&s, &p, shape(&p));
    cr_assert_leq(shape(&p), 1.1 * 10, "seed %d", (int)seed);
  }
}

/* A machine that gets faster all the time: what is tried last is fastest. */
static double faster(void *arg, qk_mg_params_t *p, const char *what, double least) {
  return flat(arg, p, what, least) * pow(0.99, ((count_t *)arg)->calls);
}
static double faster_again(void *arg, const qk_mg_params_t *best) {
  qk_mg_params_t p = *best;
  return faster(arg, &p, "", INFINITY);
}

Test(tune, a_machine_that_gets_faster_is_no_gain) {
  const qk_mg_params_t start = start_point();
  qk_mg_params_t p = start;
  count_t count = {.left = 300};
  qk_tune_search_t s = search_of(&count);
  s.cost = faster;
  s.again = faster_again;
  s.margin = 0.02;
  qk_tune_run(&s, &p, 1);
  cr_assert_eq(memcmp(&p, &start, sizeof p), 0);
}

/* A machine that becomes five times slower after the defaults were measured. What is slower than
 * the best by half ends early. */
static double slower(void *arg, qk_mg_params_t *p, const char *what, double least) {
  return fmin(5 * bowl(arg, p, what, least), 1.5 * least);
}
static double slower_again(void *arg, const qk_mg_params_t *best) {
  return 5 * bowl_again(arg, best);
}

Test(tune, a_machine_that_gets_slower_does_not_hide_the_best) {
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  qk_tune_search_t s = search_of(&count);
  s.cost = slower;
  s.again = slower_again;
  qk_tune_run(&s, &p, shape(&p));
  cr_assert_float_eq(shape(&p), 10, 1e-12);
  cr_assert_lt(count.calls, 500, "it ends");
}

static bool saw_many;
static double rises(void *arg, qk_mg_params_t *p, const char *what, double least) {
  ((count_t *)arg)->calls++;
  (void)least;
  complete(p);
  saw_many |= strstr(what, "mg-vectors = 48 on level 0") != NULL;
  return 10 + p->level[0].nvec;
}

Test(tune, an_axis_is_left_where_it_gets_worse) {
  qk_mg_params_t p = start_point();
  count_t count = {.left = 100000};
  qk_tune_search_t s = search_of(&count);
  s.cost = rises;
  saw_many = false;
  qk_tune_run(&s, &p, 34);
  cr_assert_eq(p.level[0].nvec, 16);
  cr_assert_not(saw_many, "32 was worse than 24: there is no need of 48");
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
        const bool finest = axis[i].level < 0 && l == 0;
        if (l == axis[i].level || blocks || iterations || finest) continue;
        cr_assert_eq(memcmp(&p.level[l], &start.level[l], sizeof p.level[l]), 0,
                     "%s = %s, level %d", axis[i].key, axis[i].word[w], l);
      }
    }
}

/* The word that is there already changes nothing, not even what depends on it. */
Test(tune, the_present_word_changes_nothing) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  const qk_mg_params_t start = start_point();
  const int n = qk_tune_axes(&geom, &start, false, axis);
  int seen = 0;
  for (int i = 0; i < n; i++)
    for (int w = 0; w < axis[i].nword; w++) {
      const bool levels = !strcmp(axis[i].key, "mg-levels") && !strcmp(axis[i].word[w], "3");
      const bool blocks = !strcmp(axis[i].key, "mg-blocks") && axis[i].level == 0 &&
                          !strcmp(axis[i].word[w], "4x4x4x4");
      qk_mg_params_t p = start;
      qk_err_t err = {0};
      if (!levels && !blocks) continue;
      cr_assert_eq(qk_tune_put(&axis[i], w, &p, &err), QK_OK);
      cr_assert_eq(memcmp(&p, &start, sizeof p), 0, "%s", axis[i].key);
      seen++;
    }
  cr_assert_eq(seen, 2);
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

Test(tune, relaxation_factors_are_tried_of_smoothers_that_have_one) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t p = start_point();
  for (int relaxed = 0; relaxed < 2; relaxed++) {
    if (relaxed) p.level[1].smoother.kind = QK_SMOOTHER_MR;
    const int n = qk_tune_axes(&geom, &p, false, axis);
    int seen = 0;
    for (int i = 0; i < n; i++) seen += strcmp(axis[i].key, "mg-omega") == 0 && axis[i].level == 1;
    cr_expect_eq(seen, relaxed);
  }
}

/* As many test vectors as before may be fewer than vectors. */
Test(tune, test_vectors_are_chosen_anew_for_other_vectors) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  const qk_mg_params_t start = start_point();
  const int n = qk_tune_axes(&geom, &start, false, axis);
  for (int i = 0; i < n; i++) {
    qk_mg_params_t p = start;
    qk_err_t err = {0};
    if (strcmp(axis[i].key, "mg-vectors") != 0) continue;
    cr_assert_eq(qk_tune_put(&axis[i], axis[i].nword - 1, &p, &err), QK_OK);
    cr_expect_eq(p.level[axis[i].level].ntest, 0);
    cr_expect_eq(p.level[axis[i].level].nvec, 48);
  }
}

Test(tune, there_is_room_for_the_axes_of_all_levels) {
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t p = start_point();
  p.nlevel = QK_MG_LEVELS_MAX;
  for (int l = 0; l < p.nlevel; l++)
    for (int mu = 0; mu < 4; mu++) p.level[l].block[mu] = 2;
  cr_assert_leq(qk_tune_axes(&geom, &p, true, axis), QK_TUNE_AXES);
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
