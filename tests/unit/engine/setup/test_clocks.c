/* The clocks of a start. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"
#include "daemon/engine/setup/clocks.h"

Test(clocks, phases_are_counted_once_and_fill_the_time) {
  qk_clocks_t c = {0};
  char text[200];
  const double start = qk_clock_now();
  qk_clocks_enter(&c, "read");
  qk_clocks_enter(&c, "check");
  while (qk_clock_now() < start + 0.02) {
  }
  qk_clocks_enter(&c, "read");
  qk_clocks_beside(&c, "file", 1.25);
  qk_clocks_beside(&c, "read", 2);
  qk_clocks_enter(&c, NULL);
  const double whole = qk_clock_now() - start;
  cr_assert_eq(c.n, 4);
  cr_expect_str_eq(c.clock[0].name, "read");
  cr_expect(!c.clock[1].beside && c.clock[2].beside && c.clock[3].beside);
  cr_expect(c.clock[1].seconds > 0.01 && c.clock[3].seconds == 2);
  cr_expect(c.clock[0].seconds + c.clock[1].seconds <= whole);
  c.clock[0].seconds = 0.5;
  c.clock[1].seconds = 3;
  qk_clocks_text(&c, text, sizeof text);
  cr_expect_str_eq(text, "read 0.50 s, check 3.00 s (beside them file 1.25 s, read 2.00 s)");
  qk_clocks_text(&c, text, 12);
  cr_expect_eq(strlen(text), 11);
}

Test(clocks, more_phases_than_there_is_room_for_are_the_last) {
  qk_clocks_t c = {0};
  for (int i = 0; i < 2 * QK_CLOCKS_MAX; i++) {
    char name[40];
    snprintf(name, sizeof name, "a phase with a long name, %d", i);
    qk_clocks_enter(&c, i % 2 == 0 ? name + 10 : name);
    qk_clocks_beside(&c, name + 12, 0.5);
  }
  cr_expect(c.n == QK_CLOCKS_MAX && c.now <= c.n);
}
