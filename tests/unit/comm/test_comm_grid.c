#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/comm/comm.h"

static const char any[] = "0x0x0x0";

/* XxYxZxT */
static void scan(const char *text, int x[4]) {
  cr_assert_eq(sscanf(text, "%dx%dx%dx%d", &x[0], &x[1], &x[2], &x[3]), 4, "%s", text);
}

static qk_status_t choose(int size, const char *dims, int grid[4], qk_err_t *err) {
  int d[4];
  scan(dims, d);
  return qk_comm_choose_grid(size, d, NULL, NULL, grid, err);
}

static void expect(int size, const char *dims, const char *given, const char *want) {
  int grid[4];
  char got[64];
  qk_err_t err = {0};
  scan(given, grid);
  cr_assert_eq(choose(size, dims, grid, &err), QK_OK, "%s", err.text);
  snprintf(got, sizeof got, "%dx%dx%dx%d", grid[0], grid[1], grid[2], grid[3]);
  cr_expect_str_eq(got, want, "%d ranks of %s: %s, not %s", size, dims, got, want);
}

static void expect_refusal(int size, const char *dims, const char *given, const char *says) {
  int grid[4], before[4];
  qk_err_t err = {0};
  scan(given, grid);
  memcpy(before, grid, sizeof grid);
  cr_expect_eq(choose(size, dims, grid, &err), QK_BAD_GEOMETRY);
  cr_expect(strstr(err.text, says) != NULL, "'%s' does not say '%s'", err.text, says);
  cr_expect_arr_eq(grid, before, sizeof grid, "the grid was touched");
}

Test(comm_grid, splits_the_longest_direction_first) {
  expect(1, "8x8x8x16", any, "1x1x1x1");
  expect(2, "8x8x8x16", any, "1x1x1x2");
  expect(2, "16x8x8x8", any, "2x1x1x1");
  expect(4, "8x8x8x32", any, "1x1x1x4");
  expect(8, "32x32x32x32", any, "1x1x2x4");
}

Test(comm_grid, prefers_t_among_equals) {
  expect(2, "8x8x8x8", any, "1x1x1x2");
  expect(16, "8x8x8x8", any, "2x2x2x2");
}

Test(comm_grid, works_with_any_factors) {
  expect(3, "4x4x12x6", any, "1x1x3x1");
  expect(6, "12x4x4x8", any, "3x1x1x2");
}

Test(comm_grid, keeps_what_is_given) {
  expect(4, "16x16x16x16", "4x0x0x0", "4x1x1x1");
  expect(8, "16x16x16x16", "0x4x0x0", "1x4x1x2");
}

Test(comm_grid, keeps_parts_even_and_at_least_4) {
  expect_refusal(2, "4x4x4x4", any, "2 ranks do not fit 4x4x4x4");
  expect_refusal(2, "6x6x6x6", any, "1 would, as 1x1x1x1");
  expect_refusal(3, "8x8x8x8", any, "2 would, as 1x1x1x2");
  expect_refusal(2, "8x8x8x12", "0x0x0x6", "grid[3] = 6");
}

Test(comm_grid, refuses_nonsense) {
  expect_refusal(0, "8x8x8x8", any, "0 ranks");
  expect_refusal(1, "8x7x8x8", any, "dims[1] = 7");
  expect_refusal(1, "8x8x0x8", any, "dims[2] = 0");
  expect_refusal(1, "8x8x8x8", "0x-1x0x0", "grid[1] = -1");
  expect_refusal(1, "8x8x8x8", "2x0x0x0", "needs more than 1 ranks");
}
