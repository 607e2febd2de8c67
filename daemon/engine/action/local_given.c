#include "daemon/engine/action/local_given.h"

#include <math.h>

#include "daemon/base/links/clover_term.h"
#include "daemon/base/mem.h"

enum {
  TILES = 512, /* are copied at a time */
  BLOCK_REALS = QK_CLOVER_TERM_SITE / 2,
  TILE_REALS = QK_CLOVER_TERM_SITE * QK_TILE
};

static void coordinates(const qk_lattice_t *lat, int64_t n, int x[4]) {
  for (int mu = 0; mu < 4; mu++, n /= lat->l[mu - 1]) x[mu] = (int)(n % lat->l[mu]);
}

/* The local site that stands at a place of the device's order (cuda/README.md): even sites first,
 * and of two neighbours in x the one of that parity. */
static int64_t site_at(const qk_lattice_t *lat, int64_t place) {
  const int odd = place >= lat->vcb;
  const int64_t left = 2 * (place - (int64_t)odd * lat->vcb);
  int x[4], sum = 0;
  coordinates(lat, left, x);
  for (int mu = 0; mu < 4; mu++) sum += x[mu] + lat->offset[mu];
  return left + ((sum ^ odd) & 1);
}

/* The tile of the eight sites from place `first` on. */
static void fill_tile(const qk_lattice_t *lat, const double *term, int64_t first, int piece,
                      double *tile) {
  for (int lane = 0; lane < QK_TILE; lane++) {
    const double *site = term + site_at(lat, first + lane) * QK_CLOVER_TERM_SITE;
    for (int k = 0; k < QK_CLOVER_TERM_SITE; k++) {
      const int block = k / BLOCK_REALS, c = k % BLOCK_REALS;
      const int at = (c / piece * QK_TILE + lane) * piece + c % piece;
      tile[block * BLOCK_REALS * QK_TILE + at] = site[k];
    }
  }
}

static qk_status_t upload(const qk_device_t *dev, const double *term, double *buffer, double *to) {
  const int64_t tiles = dev->geom->local_volume / QK_TILE;
  for (int64_t k = 0; k < tiles; k += TILES) {
    const int64_t n = tiles - k < TILES ? tiles - k : TILES;
    for (int64_t i = 0; i < n; i++)
      fill_tile(&dev->geom->lat, term, (k + i) * QK_TILE, dev->ops->piece, buffer + i * TILE_REALS);
    qk_dev_copy(dev, to + k * TILE_REALS, buffer, (size_t)n * TILE_REALS * sizeof *to,
                QK_COPY_TO_DEVICE);
    qk_dev_sync(dev);
  }
  return qk_dev_status(dev);
}

qk_status_t qk_given_upload(const qk_device_t *dev, const double *term, const qk_local_t *to,
                            qk_err_t *err) {
  double *buffer = qk_malloc((size_t)TILES * TILE_REALS * sizeof *buffer);
  if (buffer == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for a clover term");
  const qk_status_t status = upload(dev, term, buffer, (double *)(uintptr_t)to->data);
  qk_free(buffer);
  return status;
}

/* Global coordinates. */
static void find_site(const qk_device_t *dev, int64_t n, int x[4]) {
  coordinates(&dev->geom->lat, n, x);
  for (int mu = 0; mu < 4; mu++) x[mu] += dev->geom->lat.offset[mu];
}

qk_status_t qk_given_check(const qk_device_t *dev, const double *term, double most, qk_err_t *err) {
  int x[4];
  for (int64_t k = 0; k < dev->geom->local_volume * QK_CLOVER_TERM_SITE; k++) {
    if (fabs(term[k]) <= most) continue;
    find_site(dev, k / QK_CLOVER_TERM_SITE, x);
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "the clover term has %g at x y z t = %d %d %d %d: the largest number of the "
                   "precision is %g",
                   term[k], x[0], x[1], x[2], x[3], most);
  }
  return QK_OK;
}

qk_status_t qk_given_refuse(const qk_device_t *dev, const double *term, int64_t sites,
                            qk_err_t *err) {
  int64_t worst = 0;
  double least = INFINITY;
  int x[4];
  for (int64_t n = 0; n < dev->geom->local_volume; n++) {
    const double pivot = qk_clover_term_pivot(term + n * QK_CLOVER_TERM_SITE);
    if (pivot >= least) continue;
    least = pivot;
    worst = n;
  }
  find_site(dev, worst, x);
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "the clover term is singular on %lld sites, or has an inverse too large for the "
                 "precision: at x y z t = %d %d %d %d its smallest pivot is %.2g of its largest "
                 "element",
                 (long long)sites, x[0], x[1], x[2], x[3], least);
}
