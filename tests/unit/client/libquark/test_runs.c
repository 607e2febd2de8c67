/* Runs of zeros: the list of them, and how they are found. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "client/libquark/memory/runs.h"

enum { BYTES = 12 * QUARK_RUN };

static uint8_t data[BYTES];

static void expect_run(size_t bytes, size_t begin, size_t end) {
  size_t b = 0, e = 0;
  cr_expect(quark__find_run(data, bytes, &b, &e));
  cr_expect(b == begin && e == end, "%zu to %zu, not %zu to %zu", b, e, begin, end);
}

Test(runs, are_found_wherever_they_begin) {
  for (size_t begin = 0; begin < 3 * QUARK_RUN; begin += 4099)
    for (size_t n = QUARK_RUN; n < 3 * QUARK_RUN; n += 30011) {
      memset(data, 1, BYTES);
      memset(data + begin, 0, n);
      expect_run(BYTES, begin, begin + n);
      expect_run(begin + QUARK_RUN, begin, begin + QUARK_RUN);
    }
}

Test(runs, shorter_ones_are_none) {
  size_t b, e;
  for (size_t begin = 0; begin < 3 * QUARK_RUN; begin += 4099) {
    memset(data, 1, BYTES);
    memset(data + begin, 0, QUARK_RUN - 1);
    cr_expect_not(quark__find_run(data, BYTES, &b, &e), "from %zu on", begin);
    memset(data + 9 * QUARK_RUN, 0, QUARK_RUN);
    expect_run(BYTES, 9 * QUARK_RUN, 10 * QUARK_RUN);
  }
  memset(data, 0, BYTES);
  cr_expect_not(quark__find_run(data, QUARK_RUN - 1, &b, &e));
  cr_expect_not(quark__find_run(data, 0, &b, &e));
  expect_run(BYTES, 0, BYTES);
}

Test(runs, the_first_of_several_is_found) {
  memset(data, 1, BYTES);
  memset(data + 77, 0, QUARK_RUN - 1);
  memset(data + 77 + QUARK_RUN, 0, QUARK_RUN + 5);
  memset(data + 5 * QUARK_RUN, 0, 2 * QUARK_RUN);
  expect_run(BYTES, 77 + QUARK_RUN, 77 + 2 * QUARK_RUN + 5);
}

Test(runs, zeros_are_counted_to_the_byte) {
  for (size_t n = 0; n < 9000; n += 127) {
    memset(data, 0, sizeof data);
    data[n] = 0x80; /* as -0.0 has */
    cr_expect_eq(quark__zeros(data, BYTES), n);
    cr_expect_eq(quark__zeros(data, n), n);
  }
}

/* Against a walk over the stream. */
Test(runs, positions_are_counted_without_zeros) {
  enum { LENGTH = 20000, FIELD = 1000 };
  static uint8_t is_zero[LENGTH];
  runs_t runs = {0};
  srand(5);
  for (size_t at = 0, n; at < LENGTH; at += n) {
    const size_t left = FIELD - at % FIELD;
    n = 1 + (size_t)rand() % 60;
    if (n > left) n = left;
    if (rand() % 2) continue;
    memset(is_zero + at, 1, n);
    cr_assert(quark__runs_add(&runs, at, at + n, at % FIELD > 0));
  }
  for (size_t forget = 0; forget < LENGTH; forget += 1777) {
    quark__runs_forget(&runs, forget);
    uint64_t zeros = 0;
    for (size_t p = 0; p < LENGTH; zeros += is_zero[p++]) {
      if (p < forget) continue;
      cr_assert_eq(quark__runs_before(&runs, p), zeros, "at %zu", p);
      const run_t *run = quark__runs_next(&runs, p);
      if (is_zero[p]) cr_assert(run && run->begin <= p && p < run->end);
      if (!is_zero[p]) cr_assert(!run || run->begin > p);
      if (run) cr_assert(run->begin / FIELD == (run->end - 1) / FIELD, "none crosses fields");
    }
    cr_assert_eq(runs.all, zeros);
  }
  quark__runs_fini(&runs);
}

/* As many as are remembered at a time, however many there were. */
Test(runs, those_that_are_forgotten_give_their_room) {
  runs_t runs = {0};
  for (uint64_t i = 0; i < 100000; i++) {
    cr_assert(quark__runs_add(&runs, 10 * i, 10 * i + 5, true));
    quark__runs_forget(&runs, i > 8 ? 10 * (i - 8) : 0);
  }
  cr_expect_leq(runs.room, 64);
  cr_expect_eq(runs.all, 500000);
  cr_expect_eq(quark__runs_before(&runs, 999993), 499998);
  quark__runs_fini(&runs);
}
