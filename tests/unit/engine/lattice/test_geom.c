#include <criterion/criterion.h>
#include <string.h>

#include "daemon/engine/lattice/geom.h"

static qk_comm_t *self(void) {
  qk_comm_t *comm;
  cr_assert(qk_comm_self_create(&comm, NULL) == QK_OK);
  return comm;
}

Test(geom, half_of_the_sites_fills_whole_tiles) {
  qk_comm_t *comm = self();
  const int dims[][4] = {{2, 2, 2, 2}, {4, 6, 8, 10}, {10, 2, 6, 4}};
  for (int d = 0; d < 3; d++) {
    qk_geom_t g;
    cr_assert(qk_geom_init(&g, comm, dims[d], NULL) == QK_OK);
    cr_assert(g.lat.vcb * 2 == g.volume && g.lat.vcb % QK_TILE == 0);
  }
  qk_comm_destroy(comm);
}

Test(geom, knows_faces_and_edges_of_one_rank) {
  qk_comm_t *comm = self();
  qk_geom_t g;
  cr_assert(qk_geom_init(&g, comm, (int[]){4, 6, 8, 10}, NULL) == QK_OK);
  cr_expect(g.volume == 1920 && g.local_volume == 1920);
  for (int mu = 0; mu < 4; mu++) {
    cr_expect(g.lat.at_lo[mu] == 1 && g.lat.at_hi[mu] == 1 && g.lat.split[mu] == 0);
    cr_expect(g.lat.offset[mu] == 0 && g.lat.face[mu] == 960 / g.lat.l[mu]);
  }
  qk_comm_destroy(comm);
}

Test(geom, refuses_extents_that_are_odd_small_or_too_many) {
  qk_comm_t *comm = self();
  const struct {
    int dims[4];
    const char *says;
  } bad[] = {{{3, 4, 4, 4}, "extent x = 3"},
             {{4, 0, 4, 4}, "extent y = 0"},
             {{4, 4, -2, 4}, "extent z = -2"},
             {{4, 4, 4, 7}, "extent t = 7"},
             {{2048, 2048, 2048, 2}, "2^31 - 1"}};
  for (int i = 0; i < 5; i++) {
    qk_geom_t g;
    qk_err_t err = {0};
    memset(&g, 0x55, sizeof g);
    cr_expect(qk_geom_init(&g, comm, bad[i].dims, &err) == QK_BAD_GEOMETRY);
    cr_expect(strstr(err.text, bad[i].says), "\"%s\" does not say \"%s\"", err.text, bad[i].says);
    cr_expect(g.volume == 0x5555555555555555, "outputs are set only on success");
  }
  qk_comm_destroy(comm);
}

Test(geom, parses_dims) {
  int d[4];
  cr_assert(qk_geom_parse_dims("4x6x8x10", d, NULL) == QK_OK);
  cr_expect(d[0] == 4 && d[1] == 6 && d[2] == 8 && d[3] == 10);
  const char *bad[] = {
      "",         "4x4x4",     "4x4x4x4x4", "4x4x4x4 ",  " 4x4x4x4",
      "4x4x4x-4", "4x4x4x+4",  "4,4,4,4",   "4x4x4x5",   "0x4x4x4",
      "4x4x4xa",  "4x4x4x0x4", "4x4x4x4.0", "4x4x4x1e1", "99999999999999999999x4x4x4"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_err_t err = {0};
    cr_expect(qk_geom_parse_dims(bad[i], d, &err) == QK_BAD_GEOMETRY, "\"%s\" was taken", bad[i]);
    cr_expect(err.text[0] != '\0');
  }
  cr_expect(d[0] == 4 && d[3] == 10, "outputs are set only on success");
}

Test(geom, coarsens_by_aggregates) {
  qk_comm_t *comm = self();
  qk_geom_t fine, g;
  cr_assert(qk_geom_init(&fine, comm, (int[]){6, 4, 8, 12}, NULL) == QK_OK);
  cr_assert(qk_geom_coarsen(&fine, (int[]){3, 2, 1, 3}, 24, &g, NULL) == QK_OK);
  const int wanted[4] = {2, 2, 8, 4};
  cr_expect(g.ncomp == 48 && g.volume == 128 && g.local_volume == 128 && g.lat.vcb == 64);
  for (int mu = 0; mu < 4; mu++) {
    cr_expect(g.global[mu] == wanted[mu] && g.lat.global[mu] == wanted[mu]);
    cr_expect(g.lat.l[mu] == wanted[mu] && g.lat.face[mu] == 64 / wanted[mu]);
    cr_expect(g.lat.at_lo[mu] == 1 && g.lat.at_hi[mu] == 1 && g.lat.split[mu] == 0);
  }
  qk_comm_destroy(comm);
}

Test(geom, refuses_aggregates_that_do_not_fit) {
  qk_comm_t *comm = self();
  qk_geom_t fine;
  cr_assert(qk_geom_init(&fine, comm, (int[]){24, 4, 8, 12}, NULL) == QK_OK);
  const struct {
    int block[4], nvec;
    const char *says;
  } bad[] = {{{8, 2, 2, 2}, 24, "block x = 8"},
             {{2, 4, 2, 2}, 24, "(blocks that do: 2)"},
             {{5, 2, 2, 2}, 24, "(blocks that do: 2, 3, 4, 6, 12)"},
             {{2, 2, 0, 2}, 24, "block z = 0"},
             {{2, 2, 2, -2}, 24, "block t = -2"},
             {{2, 2, 2, 2}, 0, "0 null vectors"},
             {{2, 2, 2, 2}, 7, "7 null vectors"},
             {{2, 2, 2, 2}, 66, "2 to 64"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    qk_geom_t g;
    qk_err_t err = {0};
    memset(&g, 0x55, sizeof g);
    cr_expect(qk_geom_coarsen(&fine, bad[i].block, bad[i].nvec, &g, &err) == QK_BAD_GEOMETRY);
    cr_expect(strstr(err.text, bad[i].says), "\"%s\" does not say \"%s\"", err.text, bad[i].says);
    cr_expect(g.volume == 0x5555555555555555, "outputs are set only on success");
  }
  qk_comm_destroy(comm);
}

/* Where the sites of a lattice stand: even ones in lexicographic order, then odd ones. */
static void number_sites(const int l[4], const int offset[4], const int global[4], int64_t *site) {
  const int64_t half = (int64_t)l[0] * l[1] * l[2] * l[3] / 2;
  int64_t n[2] = {0, half};
  for (int t = offset[3]; t < offset[3] + l[3]; t++)
    for (int z = offset[2]; z < offset[2] + l[2]; z++)
      for (int y = offset[1]; y < offset[1] + l[1]; y++)
        for (int x = offset[0]; x < offset[0] + l[0]; x++)
          site[((t * global[2] + z) * global[1] + y) * global[0] + x] = n[(x + y + z + t) % 2]++;
}

Test(geom, sites_of_parts_are_found_in_the_whole) {
  static const int dims[4] = {8, 4, 4, 12}, grid[4] = {2, 1, 1, 3}, origin[4] = {0};
  enum { VOLUME = 8 * 4 * 4 * 12 };
  static int64_t in_whole[VOLUME], in_part[VOLUME];
  qk_geom_t part, whole;
  number_sites(dims, origin, dims, in_whole);
  for (int rank = 0; rank < 6; rank++) {
    const int coord[4] = {rank % 2, 0, 0, rank / 2};
    cr_assert_eq(qk_geom_part(dims, grid, coord, &part, NULL), QK_OK);
    part.ncomp = 16;
    qk_geom_whole(&part, NULL, &whole);
    cr_expect(whole.whole && whole.local_volume == VOLUME && whole.ncomp == 16);
    cr_expect(!part.whole && !whole.lat.split[0] && !whole.lat.split[3]);
    for (int i = 0; i < VOLUME; i++) in_part[i] = -1;
    number_sites(part.lat.l, part.lat.offset, dims, in_part);
    for (int i = 0; i < VOLUME; i++)
      if (in_part[i] >= 0)
        cr_expect_eq(qk_geom_site_of_whole(&part.lat, &whole.lat, in_part[i]), in_whole[i]);
  }
}
