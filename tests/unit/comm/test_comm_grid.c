#include <criterion/criterion.h>
#include <string.h>

#include "daemon/comm/comm.h"

static void expect(int size, const int dims[4], const int given[4], const int want[4]) {
  int grid[4];
  qk_err_t err = {0};
  memcpy(grid, given, sizeof grid);
  cr_assert(qk_comm_choose_grid(size, dims, grid, &err) == QK_OK, "%s", err.text);
  for (int mu = 0; mu < 4; mu++)
    cr_expect(grid[mu] == want[mu], "%d ranks: grid[%d] = %d, not %d", size, mu, grid[mu],
              want[mu]);
}

static void expect_refusal(int size, const int dims[4], const int given[4], const char *says) {
  int grid[4];
  qk_err_t err = {0};
  memcpy(grid, given, sizeof grid);
  cr_expect(qk_comm_choose_grid(size, dims, grid, &err) == QK_BAD_GEOMETRY);
  cr_expect(strstr(err.text, says) != NULL, "'%s' does not say '%s'", err.text, says);
  cr_expect(memcmp(grid, given, sizeof grid) == 0, "the grid was touched");
}

static const int any[4];

Test(comm_grid, splits_the_longest_direction_first) {
  expect(1, (int[]){8, 8, 8, 16}, any, (int[]){1, 1, 1, 1});
  expect(2, (int[]){8, 8, 8, 16}, any, (int[]){1, 1, 1, 2});
  expect(2, (int[]){16, 8, 8, 8}, any, (int[]){2, 1, 1, 1});
  expect(4, (int[]){8, 8, 8, 32}, any, (int[]){1, 1, 1, 4});
  expect(8, (int[]){32, 32, 32, 32}, any, (int[]){1, 1, 2, 4});
}

Test(comm_grid, prefers_t_among_equals) {
  expect(2, (int[]){8, 8, 8, 8}, any, (int[]){1, 1, 1, 2});
  expect(16, (int[]){8, 8, 8, 8}, any, (int[]){2, 2, 2, 2});
}

Test(comm_grid, works_with_any_factors) {
  expect(3, (int[]){4, 4, 12, 6}, any, (int[]){1, 1, 3, 1});
  expect(6, (int[]){12, 4, 4, 8}, any, (int[]){3, 1, 1, 2});
}

Test(comm_grid, keeps_what_is_given) {
  expect(4, (int[]){16, 16, 16, 16}, (int[]){4, 0, 0, 0}, (int[]){4, 1, 1, 1});
  expect(8, (int[]){16, 16, 16, 16}, (int[]){0, 4, 0, 0}, (int[]){1, 4, 1, 2});
}

Test(comm_grid, keeps_parts_even_and_at_least_4) {
  expect_refusal(2, (int[]){4, 4, 4, 4}, any, "2 ranks do not fit 4x4x4x4");
  expect_refusal(2, (int[]){6, 6, 6, 6}, any, "1 would, as 1x1x1x1");
  expect_refusal(3, (int[]){8, 8, 8, 8}, any, "2 would, as 1x1x1x2");
  expect_refusal(2, (int[]){8, 8, 8, 12}, (int[]){0, 0, 0, 6}, "grid[3] = 6");
}

Test(comm_grid, refuses_nonsense) {
  expect_refusal(0, (int[]){8, 8, 8, 8}, any, "0 ranks");
  expect_refusal(1, (int[]){8, 7, 8, 8}, any, "dims[1] = 7");
  expect_refusal(1, (int[]){8, 8, 0, 8}, any, "dims[2] = 0");
  expect_refusal(1, (int[]){8, 8, 8, 8}, (int[]){0, -1, 0, 0}, "grid[1] = -1");
  expect_refusal(1, (int[]){8, 8, 8, 8}, (int[]){2, 0, 0, 0}, "needs more than 1 ranks");
}
