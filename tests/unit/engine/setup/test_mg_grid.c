/* Grids are checked against a search of their own over hierarchies that were worked out by hand. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/setup/mg_grid.h"

enum { RANKS = 16 };

typedef struct lattice {
  int dims[4], nblock, block[2][4]; /* aggregates of the whole lattice */
} lattice_t;

static const lattice_t LATTICES[] = {
    {{32, 32, 32, 64}, 2, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
    {{48, 48, 48, 96}, 2, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
    {{64, 64, 64, 128}, 2, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
    {{24, 24, 24, 48}, 2, {{4, 4, 4, 4}, {3, 3, 3, 2}}},
    {{12, 12, 12, 24}, 2, {{3, 3, 3, 4}, {2, 2, 2, 3}}},
    {{20, 20, 20, 40}, 2, {{5, 5, 5, 4}, {2, 2, 2, 1}}},
    {{16, 16, 16, 32}, 2, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
    {{32, 16, 16, 48}, 2, {{4, 4, 4, 4}, {2, 2, 2, 2}}},
    {{6, 6, 6, 12}, 1, {{3, 3, 3, 3}}},
    {{8, 8, 8, 16}, 1, {{4, 4, 4, 4}}},
    {{4, 4, 4, 8}, 1, {{2, 2, 2, 4}}},
};
enum { N_LATTICES = sizeof LATTICES / sizeof *LATTICES };

static const qk_mg_params_t DEFAULTS;

static int64_t surface(const int dims[4], const int grid[4]) {
  int64_t faces = 0;
  for (int mu = 0; mu < 4; mu++) {
    int64_t face = 2;
    for (int nu = 0; nu < 4; nu++) face *= nu == mu ? 1 : dims[nu] / grid[nu];
    faces += grid[mu] > 1 ? face : 0;
  }
  return faces;
}

static bool carries(const lattice_t *a, const int grid[4]) {
  for (int mu = 0; mu < 4; mu++) {
    int unit = 2;
    for (int l = 0; l < a->nblock; l++) unit *= a->block[l][mu];
    if (a->dims[mu] % (grid[mu] * unit) != 0) return false;
  }
  return true;
}

/* The least surface of n ranks that carry it; -1: none do. Parts are even by the unit. */
static int64_t least_surface(const lattice_t *a, int n) {
  int64_t least = -1;
  int g[4];
  for (g[0] = 1; g[0] <= n; g[0]++)
    for (g[1] = 1; g[0] * g[1] <= n; g[1]++)
      for (g[2] = 1; g[0] * g[1] * g[2] <= n; g[2]++) {
        g[3] = n / (g[0] * g[1] * g[2]);
        if (g[0] * g[1] * g[2] * g[3] != n || !carries(a, g)) continue;
        const int64_t faces = surface(a->dims, g);
        if (least < 0 || faces < least) least = faces;
      }
  return least;
}

static const char *text_of(const int x[4], char text[48]) {
  snprintf(text, 48, "%dx%dx%dx%d", x[0], x[1], x[2], x[3]);
  return text;
}

static void complete_on(const int dims[4], const int grid[4], const qk_tuning_t *tuning,
                        qk_mg_params_t *p) {
  qk_geom_t geom;
  qk_err_t err = {0};
  cr_assert_eq(qk_geom_part(dims, grid, (int[4]){0}, &geom, &err), QK_OK, "%s", err.text);
  *p = (qk_mg_params_t){0};
  cr_assert_eq(qk_mg_params_complete(&geom, tuning, p, &err), QK_OK, "%s", err.text);
}

static void check_lattice(const lattice_t *a, int n) {
  static const int one[4] = {1, 1, 1, 1};
  char g[48], d[48], why[QK_MG_GRID_WHY];
  int grid[4] = {0}, plain[4] = {0};
  qk_mg_grid_fit_t fit;
  qk_mg_params_t here, whole;
  qk_err_t err = {0};
  if (qk_comm_choose_grid(n, a->dims, NULL, NULL, plain, NULL) != QK_OK) return;
  cr_assert_eq(qk_mg_choose_grid(n, a->dims, &DEFAULTS, &qk_tuning_cpu, grid, &fit, why, &err),
               QK_OK, "%s", err.text);
  const int64_t least = least_surface(a, n);
  text_of(grid, g);
  text_of(a->dims, d);
  cr_expect_eq(fit == QK_MG_GRID_CARRIES, least >= 0, "%s on %d ranks: %s", d, n, g);
  cr_expect_eq(why[0] != '\0', n > 1);
  if (fit == QK_MG_GRID_NONE) {
    cr_expect_arr_eq(grid, plain, sizeof grid, "%s on %d ranks: %s", d, n, g);
    return;
  }
  complete_on(a->dims, grid, &qk_tuning_cpu, &here);
  if (fit == QK_MG_GRID_NEAR) {
    cr_expect(strstr(why, " in place of ") && strstr(why, " would have them"), "%s", why);
    return;
  }
  cr_expect(carries(a, grid), "%s on %d ranks: %s", d, n, g);
  cr_expect_eq(surface(a->dims, grid), least, "%s on %d ranks: %s", d, n, g);
  complete_on(a->dims, one, &qk_tuning_cpu, &whole);
  cr_expect(memcmp(&here, &whole, sizeof here) == 0, "%s on %d ranks: other parameters", d, n);
}

Test(mg_grid, carries_the_hierarchy_of_one_rank_with_least_surface) {
  for (int k = 0; k < N_LATTICES; k++)
    for (int n = 1; n <= RANKS; n++) check_lattice(&LATTICES[k], n);
}

Test(mg_grid, hierarchies_of_the_whole_lattice_are_those_worked_out_by_hand) {
  static const int one[4] = {1, 1, 1, 1};
  for (int k = 0; k < N_LATTICES; k++) {
    qk_mg_params_t p;
    complete_on(LATTICES[k].dims, one, &qk_tuning_cpu, &p);
    cr_assert_eq(p.nlevel, LATTICES[k].nblock + 1, "lattice %d", k);
    for (int l = 0; l + 1 < p.nlevel; l++)
      cr_expect_arr_eq(p.level[l].block, LATTICES[k].block[l], sizeof p.level[l].block,
                       "lattice %d level %d", k, l);
  }
}

/* given: entries of the grid, 0: chosen. */
static void expect(const int dims[4], int n, const int given[4], const char *wanted,
                   qk_mg_grid_fit_t fit, const char *says) {
  int grid[4];
  char g[48], why[QK_MG_GRID_WHY];
  qk_mg_grid_fit_t got;
  qk_err_t err = {0};
  memcpy(grid, given, sizeof grid);
  cr_assert_eq(qk_mg_choose_grid(n, dims, &DEFAULTS, &qk_tuning_gpu, grid, &got, why, &err), QK_OK,
               "%s", err.text);
  cr_expect_str_eq(text_of(grid, g), wanted, "%d ranks: %s, not %s", n, g, wanted);
  cr_expect_eq(got, fit, "%s: %d", g, got);
  cr_expect(strstr(why, says) != NULL, "\"%s\" does not say \"%s\"", why, says);
}

static const int any[4] = {0, 0, 0, 0};

Test(mg_grid, of_eight_devices_lets_level_1_be_coarsened) {
  const int small[4] = {32, 32, 32, 64}, large[4] = {64, 64, 64, 128}, mid[4] = {48, 48, 48, 96};
  const int few[4] = {16, 16, 16, 32};
  const char *says = "least surface, aggregates of the whole lattice";
  expect(small, 1, any, "1x1x1x1", QK_MG_GRID_CARRIES, "");
  expect(small, 2, any, "1x1x1x2", QK_MG_GRID_CARRIES, says);
  expect(small, 4, any, "1x1x1x4", QK_MG_GRID_CARRIES, says);
  expect(small, 8, any, "1x1x2x4", QK_MG_GRID_CARRIES, says);
  expect(small, 16, any, "1x2x2x4", QK_MG_GRID_CARRIES, says);
  expect(large, 8, any, "1x1x1x8", QK_MG_GRID_CARRIES, says);
  expect(mid, 2, any, "1x1x1x2", QK_MG_GRID_CARRIES, says);
  expect(mid, 3, any, "1x1x1x3", QK_MG_GRID_CARRIES, says);
  expect(mid, 6, any, "1x1x1x6", QK_MG_GRID_CARRIES, says);
  expect(few, 8, any, "1x1x2x4", QK_MG_GRID_CARRIES, says); /* two levels */
}

Test(mg_grid, where_nothing_carries_it_the_nearest_hierarchy_is_taken) {
  const int mid[4] = {48, 48, 48, 96}, dims[4] = {24, 24, 24, 48};
  expect(mid, 8, any, "1x1x1x8", QK_MG_GRID_NEAR,
         "for aggregates, not those of the whole lattice: level 0 4x4x4x3 in place of 4x4x4x4; 6 "
         "ranks as 1x1x1x6 would have them");
  expect(dims, 2, any, "1x1x1x2", QK_MG_GRID_NEAR,
         "level 1 3x3x3x3 in place of 3x3x3x2; one rank would have them");
}

Test(mg_grid, entries_that_are_given_stay) {
  const int dims[4] = {32, 32, 32, 64}, tiny[4] = {8, 8, 8, 16};
  expect(dims, 8, (int[4]){2, 0, 0, 0}, "2x1x1x4", QK_MG_GRID_CARRIES,
         "as given, aggregates of the whole lattice");
  expect(
      dims, 8, (int[4]){1, 1, 1, 8}, "1x1x1x8", QK_MG_GRID_NEAR,
      "as given, not those of the whole lattice: level 1 2x2x2x1 in place of 2x2x2x2; 8 ranks as "
      "1x1x2x4 would have them");
  expect(tiny, 4, (int[4]){1, 2, 2, 1}, "1x2x2x1", QK_MG_GRID_NEAR,
         "level 0 4x2x2x4 in place of 4x4x4x4; 2 ranks as 1x1x1x2 would have them");
}

/* With blocks that are asked for, and on a lattice that has none at all. */
Test(mg_grid, without_multigrid_the_surface_decides) {
  const int dims[4] = {8, 8, 8, 16}, thin[4] = {2, 2, 4, 16};
  const qk_mg_params_t given = {.level = {{.block = {4, 4, 4, 4}}}};
  char why[QK_MG_GRID_WHY], advice[QK_MG_GRID_ADVICE];
  int grid[4] = {0};
  qk_mg_grid_fit_t fit;
  cr_assert_eq(qk_mg_choose_grid(8, dims, &given, &qk_tuning_cpu, grid, &fit, why, NULL), QK_OK);
  cr_expect_eq(fit, QK_MG_GRID_NONE);
  cr_expect_str_eq(why, "least surface");
  cr_expect_eq(qk_mg_grid_misfit(dims, grid, &given, &qk_tuning_cpu), INT64_MAX);
  qk_mg_grid_advise(8, dims, &given, &qk_tuning_cpu, advice);
  cr_expect_str_eq(advice, "2 ranks as 1x1x1x2");
  qk_mg_grid_advise(8, thin, &(qk_mg_params_t){.nlevel = 5}, &qk_tuning_cpu, advice);
  cr_expect_str_eq(advice, "");
  cr_expect_eq(qk_mg_grid_misfit(dims, (int[4]){1, 1, 1, 2}, &given, &qk_tuning_cpu), 0);
}

/* Schwarz blocks divide what a rank has on their level. */
Test(mg_grid, knows_blocks_of_smoothers) {
  const int dims[4] = {16, 16, 16, 48};
  const qk_mg_params_t given = {
      .nlevel = 2, .level = {{.block = {4, 4, 4, 4}, .smoother = {.block = {4, 4, 4, 6}}}}};
  int grid[4] = {0};
  char why[QK_MG_GRID_WHY];
  qk_mg_grid_fit_t fit;
  cr_assert_eq(qk_mg_choose_grid(3, dims, &given, &qk_tuning_cpu, grid, &fit, why, NULL), QK_OK);
  cr_expect_eq(fit, QK_MG_GRID_NONE, "16 sites in t hold no blocks of 6");
  memset(grid, 0, sizeof grid);
  cr_assert_eq(qk_mg_choose_grid(2, dims, &given, &qk_tuning_cpu, grid, &fit, why, NULL), QK_OK);
  cr_expect(fit == QK_MG_GRID_CARRIES && grid[3] == 2, "24 do");
}

Test(mg_grid, refuses_what_cannot_be_divided) {
  const int dims[4] = {4, 4, 4, 4};
  int grid[4] = {0};
  char why[QK_MG_GRID_WHY];
  qk_mg_grid_fit_t fit;
  qk_err_t err = {0};
  cr_expect_eq(qk_mg_choose_grid(2, dims, &DEFAULTS, &qk_tuning_cpu, grid, &fit, why, &err),
               QK_BAD_GEOMETRY);
  cr_expect(strstr(err.text, "2 ranks do not fit 4x4x4x4"), "%s", err.text);
}
