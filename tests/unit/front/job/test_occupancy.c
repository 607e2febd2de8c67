/* What slots do while work waits: slot-seconds told apart. */
#include <criterion/criterion.h>

#include "daemon/front/measure/occupancy.h"

static void expect(const qk_occupancy_t *o, double saturated, double solving, double moving,
                   double idle) {
  cr_expect_float_eq(o->saturated, saturated, 1e-12, "saturated %g", o->saturated);
  cr_expect_float_eq(o->solving, solving, 1e-12, "solving %g", o->solving);
  cr_expect_float_eq(o->moving, moving, 1e-12, "moving %g", o->moving);
  cr_expect_float_eq(o->idle, idle, 1e-12, "idle %g", o->idle);
}

Test(occupancy, counts_nothing_while_nothing_waits) {
  qk_occupancy_t o = {0};
  qk_occupancy_set(&o, 100, false, 4, 0);
  const qk_occupancy_mark_t came = qk_occupancy_mark(&o, 101);
  qk_occupancy_leave(&o, 105, came, 4, 3.5);
  qk_occupancy_set(&o, 110, false, 4, 0);
  expect(&o, 0, 0, 0, 0);
}

Test(occupancy, tells_solving_from_moving_and_idle) {
  qk_occupancy_t o = {0};
  qk_occupancy_mark_t filled[2];
  for (int k = 0; k < 2; k++) filled[k] = qk_occupancy_mark(&o, 10);
  qk_occupancy_set(&o, 10, true, 3, 2); /* three slots: one is empty and something waits */
  qk_occupancy_leave(&o, 14, filled[0], 4, 3);
  qk_occupancy_set(&o, 14, true, 3, 1);
  qk_occupancy_leave(&o, 15, filled[1], 5, 5);
  qk_occupancy_set(&o, 15, false, 3, 0);
  qk_occupancy_mark(&o, 50);
  expect(&o, 5, 8, 1, 4 * 1 + 1 * 2);
}

Test(occupancy, what_was_saturated_for_a_part_counts_by_that_part) {
  qk_occupancy_t o = {0};
  const qk_occupancy_mark_t came = qk_occupancy_mark(&o, 0);
  qk_occupancy_set(&o, 6, true, 1, 1);
  qk_occupancy_leave(&o, 8, came, 8,
                     4); /* 8 s in the slot, 2 of them saturated, half of them solving */
  qk_occupancy_set(&o, 8, true, 1, 0);
  expect(&o, 2, 1, 1, 0);
}

Test(occupancy, an_engine_whose_clock_runs_fast_makes_no_more_than_all) {
  qk_occupancy_t o = {0};
  qk_occupancy_set(&o, 0, true, 1, 1);
  qk_occupancy_leave(&o, 2, (qk_occupancy_mark_t){0}, 2, 2.001);
  qk_occupancy_leave(&o, 2, (qk_occupancy_mark_t){0}, 0,
                     0.01); /* left in the millisecond in which it was filled */
  expect(&o, 2, 2, 2, 0);
}

/* Two slots, three right-hand sides: each has two thirds of a slot. */
Test(occupancy, what_waits_beside_full_slots_takes_nothing_from_them) {
  qk_occupancy_t o = {0};
  qk_occupancy_mark_t came[3];
  for (int k = 0; k < 3; k++) came[k] = qk_occupancy_mark(&o, 0);
  qk_occupancy_set(&o, 0, true, 2, 3);
  for (int k = 0; k < 3; k++) qk_occupancy_leave(&o, 6, came[k], 6, k < 2 ? 6 : 0);
  qk_occupancy_set(&o, 6, false, 2, 0);
  expect(&o, 6, 12, 0, 0);

  o = (qk_occupancy_t){0};
  qk_occupancy_set(&o, 0, true, 2, 3);
  for (int k = 0; k < 3; k++) qk_occupancy_leave(&o, 6, (qk_occupancy_mark_t){0}, 6, 3);
  expect(&o, 6, 9, 3, 0);
}
