#include <criterion/criterion.h>

#include "daemon/base/fault.h"

static int failures_in(qk_fault_point_t point, int passages) {
  int n = 0;
  for (int i = 0; i < passages; i++) n += qk_fault(point);
  return n;
}

Test(fault, is_silent_when_nothing_is_set) {
  cr_assert_eq(qk_fault_set(NULL), 0);
  for (int p = 0; p < QK_FAULT_COUNT; p++) cr_expect_eq(failures_in((qk_fault_point_t)p, 100), 0);
}

Test(fault, hits_the_nth_passage_once) {
  cr_assert_eq(qk_fault_set("alloc:3,send:1"), 0);
  cr_expect_not(qk_fault(QK_FAULT_ALLOC));
  cr_expect_not(qk_fault(QK_FAULT_ALLOC));
  cr_expect(qk_fault(QK_FAULT_ALLOC));
  cr_expect_eq(failures_in(QK_FAULT_ALLOC, 50), 0);
  cr_expect(qk_fault(QK_FAULT_SEND));
  cr_expect_eq(failures_in(QK_FAULT_READ, 50), 0);
}

Test(fault, plus_means_every_later_one_too) {
  cr_assert_eq(qk_fault_set("device-call:4+"), 0);
  cr_expect_eq(failures_in(QK_FAULT_DEVICE_CALL, 10), 7);
  cr_expect_eq(failures_in(QK_FAULT_DEVICE_ALLOC, 10), 0);
}

Test(fault, set_starts_counting_anew) {
  cr_assert_eq(qk_fault_set("write:2"), 0);
  cr_expect_eq(failures_in(QK_FAULT_WRITE, 5), 1);
  cr_assert_eq(qk_fault_set("write:2"), 0);
  cr_expect_eq(failures_in(QK_FAULT_WRITE, 5), 1);
}

Test(fault, malformed_text_is_refused_and_changes_nothing) {
  static const char *const bad[] = {"alloc",     "alloc:",    "alloc:0",  "alloc:-1",
                                    "alloc:x",   "nothing:1", "alloc:1,", "alloc:1;2",
                                    "alloc:1++", "al:1",      "alloc: 1", ":1"};
  cr_assert_eq(qk_fault_set("read:1+"), 0);
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    cr_expect_eq(qk_fault_set(bad[i]), -1, "%s was taken", bad[i]);
  }
  cr_expect(qk_fault(QK_FAULT_READ));
}
