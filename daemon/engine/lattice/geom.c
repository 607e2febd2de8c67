#include "daemon/engine/lattice/geom.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/assert.h"

static const char axis[4] = {'x', 'y', 'z', 't'};

static qk_status_t check_dims(const int dims[4], qk_err_t *err) {
  int64_t volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 2 || dims[mu] % 2)
      return qk_fail(err, QK_BAD_GEOMETRY, "extent %c = %d: extents must be even and at least 2",
                     axis[mu], dims[mu]);
    if (volume > INT32_MAX / dims[mu])
      return qk_fail(err, QK_BAD_GEOMETRY, "lattice %dx%dx%dx%d: more than 2^31 - 1 sites", dims[0],
                     dims[1], dims[2], dims[3]);
    volume *= dims[mu];
  }
  return QK_OK;
}

qk_status_t qk_geom_part(const int global[4], const int grid[4], const int coord[4],
                         qk_geom_t *geom, qk_err_t *err) {
  qk_status_t status = check_dims(global, err);
  if (status) return status;

  qk_geom_t g = {.volume = 1, .local_volume = 1, .ncomp = 12};
  for (int mu = 0; mu < 4; mu++) {
    int n = grid[mu], l = global[mu] / n;
    g.grid[mu] = n;
    g.coord[mu] = coord[mu];
    if (l * n != global[mu] || l % 2 || (n > 1 && l < 4))
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "extent %c = %d over %d ranks: local extents must be even%s", axis[mu],
                     global[mu], n, n > 1 ? " and at least 4 where split" : "");
    g.global[mu] = g.lat.global[mu] = global[mu];
    g.lat.l[mu] = l;
    g.lat.split[mu] = n > 1;
    g.lat.offset[mu] = g.coord[mu] * l;
    g.lat.at_lo[mu] = g.coord[mu] == 0;
    g.lat.at_hi[mu] = g.coord[mu] == n - 1;
    g.volume *= global[mu];
    g.local_volume *= l;
  }
  g.lat.vcb = (int32_t)(g.local_volume / 2);
  for (int mu = 0; mu < 4; mu++) g.lat.face[mu] = g.lat.vcb / g.lat.l[mu];
  *geom = g;
  return QK_OK;
}

/* Cuts the lattice from itself, where there is one rank: in the directions of `axes`. */
static void loop(qk_geom_t *g, const char *axes) {
  for (int mu = 0; axes && mu < 4; mu++)
    if (g->grid[mu] == 1 && g->lat.l[mu] >= 4 && strchr(axes, axis[mu])) g->lat.split[mu] = 1;
}

qk_status_t qk_geom_init(qk_geom_t *geom, qk_comm_t *comm, const int global[4], qk_err_t *err) {
  int grid[4], coord[4];
  qk_geom_t g;
  qk_comm_grid(comm, grid, coord);
  qk_status_t status = qk_geom_part(global, grid, coord, &g, err);
  if (status) return status;
  g.comm = comm;
  loop(&g, getenv("QK_LOOP"));
  *geom = g;
  return QK_OK;
}

/* "2, 3, 6": the blocks that cut an extent into an even number of aggregates. */
static const char *blocks_that_fit(int extent, char text[64]) {
  size_t n = 0;
  text[0] = '\0';
  for (int b = 2; b <= extent / 2 && n < 48; b++)
    if (extent % (2 * b) == 0) n += (size_t)snprintf(text + n, 64 - n, n ? ", %d" : "%d", b);
  return text[0] ? text : "none";
}

qk_status_t qk_geom_coarsen(const qk_geom_t *fine, const int block[4], int nvec, qk_geom_t *coarse,
                            qk_err_t *err) {
  char fit[64];
  if (nvec < 2 || nvec > QK_MG_VECTORS_MAX || nvec % 2)
    return qk_fail(err, QK_BAD_GEOMETRY, "%d null vectors: an even number from 2 to %d", nvec,
                   QK_MG_VECTORS_MAX);
  qk_geom_t g = *fine;
  g.ncomp = 2 * nvec;
  g.volume = g.local_volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    int b = block[mu], l = fine->lat.l[mu];
    if (b < 1 || l % (2 * b))
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "block %c = %d: it must cut the local extent %d into an even number of "
                     "aggregates (blocks that do: %s)",
                     axis[mu], b, l, blocks_that_fit(l, fit));
    g.global[mu] = g.lat.global[mu] = fine->global[mu] / b;
    g.lat.l[mu] = l / b;
    g.lat.offset[mu] = fine->lat.offset[mu] / b;
    g.volume *= g.global[mu];
    g.local_volume *= g.lat.l[mu];
  }
  g.lat.vcb = (int32_t)(g.local_volume / 2);
  for (int mu = 0; mu < 4; mu++) g.lat.face[mu] = g.lat.vcb / g.lat.l[mu];
  *coarse = g;
  return QK_OK;
}

void qk_geom_whole(const qk_geom_t *part, qk_comm_t *self, qk_geom_t *whole) {
  static const int one[4] = {1, 1, 1, 1}, origin[4] = {0, 0, 0, 0};
  qk_geom_t g;
  const qk_status_t status = qk_geom_part(part->global, one, origin, &g, NULL);
  QK_ASSERT(status == QK_OK); /* the ranks have parts of it */
  g.ncomp = part->ncomp;
  g.inner = part->inner;
  g.ls = part->ls;
  g.whole = true;
  g.comm = self;
  *whole = g;
}

int64_t qk_geom_site_of_whole(const qk_lattice_t *part, const qk_lattice_t *whole, int64_t n) {
  const int parity = n >= part->vcb;
  int64_t at = 2 * (n - parity * (int64_t)part->vcb), place = 0;
  int x[4];
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(at % part->l[mu]) + part->offset[mu];
    at /= part->l[mu];
  }
  for (int mu = 3; mu >= 0; mu--) place = place * whole->l[mu] + x[mu];
  return place / 2 + parity * (int64_t)whole->vcb;
}

qk_lattice_t qk_geom_part_of(const qk_geom_t *geom, int rank) {
  qk_lattice_t lat = geom->lat;
  int coord[4];
  qk_comm_coord_of(geom->comm, rank, coord);
  for (int mu = 0; mu < 4; mu++) lat.offset[mu] = coord[mu] * lat.l[mu];
  return lat;
}

qk_status_t qk_geom_parse_dims(const char *text, int dims[4], qk_err_t *err) {
  int d[4];
  const char *p = text;
  for (int mu = 0; mu < 4; mu++) {
    char *end;
    bool digit = *p >= '0' && *p <= '9';
    long v = digit ? strtol(p, &end, 10) : 0;
    if (!digit || v > INT32_MAX || *end != (mu < 3 ? 'x' : '\0'))
      return qk_fail(err, QK_BAD_GEOMETRY, "dims \"%.64s\": four extents like 8x8x8x16 are wanted",
                     text);
    d[mu] = (int)v;
    p = end + 1;
  }
  qk_status_t status = check_dims(d, err);
  if (status) return status;
  memcpy(dims, d, sizeof d);
  return QK_OK;
}
