/* When a data thread reads nothing. */
#include <criterion/criterion.h>

#include "daemon/front/wire/rest.h"

static const uint64_t MS = 1000000;

/* For how long it rests, from `now` on. */
static uint64_t rested(qk_rest_t *rest, uint64_t now) {
  uint64_t n = 0;
  while (qk_rest_is_on(rest, now + n * MS)) n++;
  return n;
}

Test(rest, lasts_as_long_as_what_is_owed) {
  qk_rest_t rest = {0};
  cr_expect_eq(rested(&rest, 5 * MS), 0);
  qk_rest_owe(&rest, 7 * MS);
  cr_expect_eq(rested(&rest, 5 * MS), 7);
  qk_rest_owe(&rest, 350 * MS); /* more than there is in one rest */
  cr_expect_eq(rested(&rest, 100 * MS), 350);
  cr_expect_eq(rested(&rest, 1000 * MS), 0);
}

/* Whoever sends junk during a rest pays for that, too. */
Test(rest, is_longer_for_what_comes_meanwhile) {
  qk_rest_t rest = {0};
  qk_rest_owe(&rest, 50 * MS);
  cr_assert(qk_rest_is_on(&rest, 0));
  qk_rest_owe(&rest, 20 * MS);
  cr_assert(qk_rest_is_on(&rest, 10 * MS));
  qk_rest_owe(&rest, 5 * MS);
  cr_expect_eq(rested(&rest, 10 * MS), 65);
}

Test(rest, begins_without_memory) {
  qk_rest_t rest = {0};
  qk_rest_begin(&rest, 3 * MS, 10 * MS);
  cr_expect_eq(rested(&rest, 3 * MS), 10);
  qk_rest_begin(&rest, 20 * MS, 10 * MS);
  qk_rest_begin(&rest, 21 * MS, 2 * MS); /* no shorter than it was */
  qk_rest_owe(&rest, 6 * MS);
  cr_expect_eq(rested(&rest, 20 * MS), 16);
}
