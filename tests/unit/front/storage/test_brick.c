/* Parts of fields: where each of their bytes is, against a walk over all sites. */
#include <criterion/criterion.h>
#include <string.h>

#include "daemon/front/storage/brick.h"

enum { SITE = 24 };

static const uint32_t DIMS[4] = {4, 2, 6, 3};

/* Of byte `offset` of a part, site by site. */
static uint64_t walk(const uint32_t grid[4], uint32_t part, uint32_t vectors, uint64_t offset) {
  uint64_t site = offset / SITE, index = 0, step = 1;
  for (int mu = 0; mu < 4; mu++) {
    const uint32_t extent = DIMS[mu] / grid[mu];
    index += step * (part % grid[mu] * extent + site % extent);
    part /= grid[mu];
    site /= extent;
    step *= DIMS[mu];
  }
  cr_assert(site < vectors);
  return (index + site * step) * SITE + offset % SITE;
}

static void check_part(const uint32_t grid[4], uint32_t part, uint32_t vectors, uint8_t *seen) {
  qk_brick_t b;
  uint64_t at, all = vectors * SITE;
  for (int mu = 0; mu < 4; mu++) all *= DIMS[mu] / grid[mu];
  qk_brick_make(DIMS, grid, part, SITE, vectors, &b);
  cr_expect_eq(b.bytes, all);
  for (uint64_t offset = 0; offset < all; offset++) {
    uint64_t left = qk_brick_find(&b, offset, &at);
    cr_assert_eq(at, walk(grid, part, vectors, offset), "part %u, byte %lu", part,
                 (unsigned long)offset);
    cr_assert(left >= 1 && offset + left <= all);
    cr_assert_eq(walk(grid, part, vectors, offset + left - 1), at + left - 1);
    seen[at]++;
  }
}

Test(brick, parts_are_the_whole_once) {
  static const uint32_t grids[][4] = {{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 2, 1, 1}, {1, 1, 3, 1},
                                      {1, 1, 1, 3}, {4, 2, 6, 3}, {2, 1, 2, 3}, {1, 2, 3, 1}};
  static uint8_t seen[2 * SITE * 4 * 2 * 6 * 3];
  for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
    for (uint32_t vectors = 1; vectors <= 2; vectors++) {
      const uint32_t *grid = grids[g], parts = grid[0] * grid[1] * grid[2] * grid[3];
      memset(seen, 0, sizeof seen);
      for (uint32_t p = 0; p < parts; p++) check_part(grid, p, vectors, seen);
      for (size_t i = 0; i < sizeof seen; i++)
        cr_assert_eq(seen[i], i < vectors * sizeof seen / 2, "byte %zu", i);
    }
}

Test(brick, runs_are_as_long_as_they_can_be) {
  qk_brick_t b;
  uint64_t at;
  qk_brick_make(DIMS, (uint32_t[4]){1, 1, 1, 3}, 1, SITE, 1, &b);
  cr_expect_eq(qk_brick_find(&b, 0, &at), SITE * 48);
  cr_expect_eq(at, SITE * 48);
  qk_brick_make(DIMS, (uint32_t[4]){1, 1, 2, 1}, 1, SITE, 1, &b);
  cr_expect_eq(qk_brick_find(&b, 10, &at), SITE * 24 - 10);
  const qk_brick_t whole = {0};
  cr_expect_eq(qk_brick_find(&whole, 77, &at), UINT64_MAX);
  cr_expect_eq(at, 77);
}
