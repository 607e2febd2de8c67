/* How long work is expected to take. */
#include <criterion/criterion.h>

#include "daemon/front/measure/pace.h"

Test(pace, expects_nothing_of_what_was_never_measured) {
  qk_pace_t pace = {0};
  cr_expect_eq(qk_pace_expect(&pace, 1e9, 1e9, 16), 0);
  qk_pace_add(&pace, 0, 5);
  qk_pace_add(&pace, 100, 0);
  cr_expect_eq(qk_pace_expect(&pace, 1e9, 1e9, 16), 0);
  qk_pace_add(&pace, 100, 5);
  cr_expect_eq(qk_pace_expect(&pace, 1e9, 1e9, 0), 0, "no slots: no engine");
}

Test(pace, shares_work_among_slots) {
  qk_pace_t pace = {0};
  for (int i = 0; i < 7; i++) qk_pace_add(&pace, 100, 5); /* 20 a second */
  cr_expect_float_eq(qk_pace_expect(&pace, 3200, 100, 16), 10, 1e-12);
  cr_expect_float_eq(qk_pace_expect(&pace, 3200, 100, 1), 160, 1e-12);
}

Test(pace, takes_no_less_than_the_longest_right_hand_side) {
  qk_pace_t pace = {0};
  qk_pace_add(&pace, 100, 5);
  cr_expect_float_eq(qk_pace_expect(&pace, 400, 400, 16), 20, 1e-12);
}

Test(pace, follows_what_becomes_slower) {
  qk_pace_t pace = {0};
  for (int i = 0; i < 1000; i++) qk_pace_add(&pace, 100, 1);
  double before = qk_pace_expect(&pace, 100, 100, 1);
  cr_expect_float_eq(before, 1, 1e-12);
  for (int i = 0; i < 60; i++) {
    qk_pace_add(&pace, 100, 4);
    const double now = qk_pace_expect(&pace, 100, 100, 1);
    cr_expect_gt(now, before);
    before = now;
  }
  cr_expect_float_eq(before, 4, 0.2);
}
