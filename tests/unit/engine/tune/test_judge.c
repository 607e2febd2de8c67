#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>

#include "daemon/engine/tune/judge.h"

static uint64_t state;
/* -1 .. 1 */
static double draw(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int32_t)(state >> 32) / 2147483648.0;
}

/* Turns of `cost` on a clock with noise, which drifts by `drift` from one turn to the next. */
static void take(int n, double a, double b, double noise, double drift, qk_tune_turns_t *ta,
                 qk_tune_turns_t *tb) {
  *ta = *tb = (qk_tune_turns_t){.n = n};
  for (int i = 0; i < n; i++) {
    const double slow = 1 + drift * i;
    ta->seconds[i] = a * slow * (1 + noise * draw());
    tb->seconds[i] = b * slow * (1 + noise * draw());
    ta->setup[i] = tb->setup[i] = 1;
    ta->alone[i] = tb->alone[i] = 1;
  }
}

Test(judge, median_is_that_of_any_order) {
  const double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2}, one[] = {7};
  cr_assert_eq(qk_tune_median(odd, 3), 2);
  cr_assert_eq(qk_tune_median(even, 4), 2.5);
  cr_assert_eq(qk_tune_median(one, 1), 7);
}

/* The same settings twice: what they say of a gain is noise, and rarely called one. */
Test(judge, equals_are_not_told_apart) {
  int better = 0;
  enum { TIMES = 2000 };
  for (state = 1; state <= TIMES; state++) {
    const uint64_t seed = state;
    qk_tune_turns_t a, b;
    qk_tune_verdict_t v;
    state = seed * 7919;
    take(QK_TUNE_TURNS, 1, 1, 0.03, 0, &a, &b);
    qk_tune_judge(&a, &b, 0.05, 1e9, &v);
    better += v.better;
    state = seed;
  }
  cr_assert_leq(better, TIMES / 100);
}

/* Whether settings that take `b` where the defaults take 1 are called better. */
static qk_tune_verdict_t judge(double b, double clock, double noise) {
  qk_tune_turns_t ta, tb;
  qk_tune_verdict_t v;
  take(3, 1, b, clock, 0, &ta, &tb);
  qk_tune_judge(&ta, &tb, noise, 1e9, &v);
  return v;
}

Test(judge, a_gain_above_the_noise_is_seen_and_one_below_is_not) {
  for (uint64_t seed = 1; seed <= 200; seed++) {
    state = seed;
    const qk_tune_verdict_t clear = judge(0.85, 0.02, 0.03);
    cr_assert(clear.better, "seed %d: %g, noise %g", (int)seed, clear.gain, clear.noise);
    cr_assert_float_eq(clear.gain, 0.15, 0.05);
    cr_assert_not(judge(0.98, 0.02, 0.06).better);
    cr_assert_not(judge(1.2, 0.02, 0).better);
    cr_assert_lt(judge(1.2, 0.02, 0).gain, 0);
  }
}

/* A machine that gets slower does so to both. */
Test(judge, drift_is_not_a_gain) {
  qk_tune_turns_t a, b;
  qk_tune_verdict_t v;
  take(5, 1, 1, 0, 0.05, &a, &b);
  qk_tune_judge(&a, &b, 0, 1e9, &v);
  cr_assert_not(v.better);
  cr_assert_float_eq(v.gain, 0, 1e-12);
  cr_assert_gt(v.noise, 0.15);
}

Test(judge, a_gain_of_less_than_a_per_cent_is_none) {
  cr_assert_not(judge(0.995, 0, 0).better);
  cr_assert(judge(0.98, 0, 0).better);
}

static qk_tune_turns_t turns(double seconds, double setup) {
  qk_tune_turns_t t = {.n = 2};
  for (int i = 0; i < 2; i++) {
    t.seconds[i] = seconds;
    t.setup[i] = setup;
    t.alone[i] = -1;
  }
  return t;
}

/* The same two: which is better depends on how many solves a setup serves. */
Test(judge, the_setup_counts_as_often_as_it_is_made) {
  const qk_tune_turns_t quick = turns(1.0, 10), thorough = turns(0.9, 100);
  qk_tune_verdict_t v;
  qk_tune_judge(&quick, &thorough, 0, 10000, &v);
  cr_assert(v.better);
  cr_assert_eq(v.by, QK_TUNE_BY_SOLVES);
  qk_tune_judge(&quick, &thorough, 0, 100, &v);
  cr_assert_not(v.better);
  cr_assert_eq(v.by, QK_TUNE_BY_SETUP);
  qk_tune_judge(&thorough, &quick, 0, 100, &v);
  cr_assert(v.better);
  cr_assert_eq(v.by, QK_TUNE_BY_SETUP);
  cr_assert_float_eq(v.settings.cost, 1.1, 1e-12);
  cr_assert_float_eq(v.gain, 1 - 1.1 / 1.9, 1e-12);
  const qk_tune_turns_t both = turns(0.9, 2);
  qk_tune_judge(&quick, &both, 0, 100, &v);
  cr_assert_eq(v.by, QK_TUNE_BY_BOTH);
}
