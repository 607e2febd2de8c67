#include <limits.h>
#include <string.h>

#include "daemon/comm/comm.h"

typedef struct search {
  const int *dims, *want;
  qk_comm_misfit_fn *misfit; /* NULL: all fit alike */
  const void *arg;
  int grid[4], best[4];
  int64_t fit, least; /* misfit and surface of best; least INT64_MAX: none found */
} search_t;

static int legal(int dim, int parts) {
  if (dim % parts != 0) return 0;
  int l = dim / parts;
  return l % 2 == 0 && l >= (parts > 1 ? 4 : 2);
}

/* Sites on the faces that a rank shares with others. */
static int64_t surface(const int dims[4], const int grid[4]) {
  int64_t volume = 1, faces = 0;
  for (int mu = 0; mu < 4; mu++) volume *= dims[mu] / grid[mu];
  for (int mu = 0; mu < 4; mu++)
    if (grid[mu] > 1) faces += 2 * (volume / (dims[mu] / grid[mu]));
  return faces;
}

/* The better one stays; of equals the first, which splits t before x. */
static void try_grid(search_t *s) {
  const int64_t fit = s->misfit != NULL ? s->misfit(s->arg, s->grid) : 0;
  const int64_t faces = surface(s->dims, s->grid);
  if (s->least != INT64_MAX && (fit > s->fit || (fit == s->fit && faces >= s->least))) return;
  s->fit = fit;
  s->least = faces;
  memcpy(s->best, s->grid, sizeof s->best);
}

/* All ways to write `left` as the product of the extents of directions mu, mu - 1, .. 0. */
static void try_grids(search_t *s, int mu, int left) {
  if (mu < 0) {
    if (left == 1) try_grid(s);
    return;
  }
  for (int parts = left; parts >= 1; parts--) {
    if (left % parts != 0 || !legal(s->dims[mu], parts)) continue;
    if (s->want[mu] != 0 && s->want[mu] != parts) continue;
    s->grid[mu] = parts;
    try_grids(s, mu - 1, left / parts);
  }
}

static search_t find_grid(int size, const int dims[4], const int want[4], qk_comm_misfit_fn *misfit,
                          const void *arg) {
  search_t s = {.dims = dims, .want = want, .misfit = misfit, .arg = arg, .least = INT64_MAX};
  try_grids(&s, 3, size);
  return s;
}

static qk_status_t check_wanted(int size, const int dims[4], const int grid[4], qk_err_t *err) {
  if (size < 1) return qk_fail(err, QK_BAD_GEOMETRY, "%d ranks: at least 1", size);
  for (int mu = 0; mu < 4; mu++) {
    if (dims[mu] < 2 || dims[mu] % 2 != 0)
      return qk_fail(err, QK_BAD_GEOMETRY, "dims[%d] = %d: extents must be even and at least 2", mu,
                     dims[mu]);
    if (grid[mu] < 0)
      return qk_fail(err, QK_BAD_GEOMETRY, "grid[%d] = %d: must be positive, or 0 to be chosen", mu,
                     grid[mu]);
    if (grid[mu] > 0 && !legal(dims[mu], grid[mu]))
      return qk_fail(err, QK_BAD_GEOMETRY,
                     "grid[%d] = %d does not cut extent %d into even parts of at least 4", mu,
                     grid[mu], dims[mu]);
  }
  return QK_OK;
}

qk_status_t qk_comm_choose_grid(int size, const int dims[4], qk_comm_misfit_fn *misfit,
                                const void *arg, int grid[4], qk_err_t *err) {
  const qk_status_t status = check_wanted(size, dims, grid, err);
  if (status != QK_OK) return status;
  search_t s = find_grid(size, dims, grid, misfit, arg);
  if (s.least != INT64_MAX) {
    memcpy(grid, s.best, sizeof s.best);
    return QK_OK;
  }
  int fits = size;
  do s = find_grid(--fits, dims, grid, NULL, NULL);
  while (fits > 1 && s.least == INT64_MAX);
  if (s.least == INT64_MAX)
    return qk_fail(err, QK_BAD_GEOMETRY, "grid %dx%dx%dx%d needs more than %d ranks", grid[0],
                   grid[1], grid[2], grid[3], size);
  return qk_fail(err, QK_BAD_GEOMETRY,
                 "%d ranks do not fit %dx%dx%dx%d (parts even and at least 4): %d would, as "
                 "%dx%dx%dx%d",
                 size, dims[0], dims[1], dims[2], dims[3], fits, s.best[0], s.best[1], s.best[2],
                 s.best[3]);
}
