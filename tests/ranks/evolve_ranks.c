/*
 * The Markov chain and fat links on several ranks: every grid must give the bits that one rank
 * gives, and a halo that is the neighbours' links. Run under mpirun with any number of ranks;
 * exits 0 when every check held on every rank. The backend is QK_BACKEND (default cpu); ranks share
 * a GPU where there are too few.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/evolve.h"
#include "daemon/engine/gauge/fat/fat_links.h"
#include "daemon/engine/gauge/gauge.h"
#include "daemon/engine/lattice/peers.h"

static int failures;

#define CHECK(expr, ...)                                                                           \
  do {                                                                                             \
    if (!(expr)) {                                                                                 \
      failures++;                                                                                  \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #expr);                                   \
      fprintf(stderr, __VA_ARGS__);                                                                \
      fputc('\n', stderr);                                                                         \
    }                                                                                              \
  } while (0)

enum { SITE = 72 };

/* With local extents that are no multiples of 4 on two ranks in x; the halo of rectangles is as
 * wide as half of a local extent of 4. */
static const struct chain {
  int dims[4];
  double beta, c1;
} chains[] = {{{12, 8, 8, 8}, 6, 0}, {{12, 8, 8, 8}, 2.6, -0.331}};

static const double *link_at(const double *links, const int d[4], const int x[4]) {
  int64_t site = 0;
  for (int mu = 3; mu >= 0; mu--) site = site * d[mu] + (x[mu] + 4 * d[mu]) % d[mu];
  return links + SITE * site;
}

static void must(qk_status_t status, const char *what) {
  if (status == QK_OK) return;
  fprintf(stderr, "%s: %s\n", what, qk_status_text(status));
  abort();
}

/* The links of `whole` as the field, halo and all, must hold them. */
static void compare_halo(const qk_gaugefield_t *f, const double *whole) {
  const qk_device_t *dev = f->dev;
  const qk_geom_t *geom = dev->geom;
  double *held = qk_malloc(f->bytes);
  must(dev->ops->copy(dev->ctx, held, f->v.data, f->bytes, QK_COPY_TO_HOST, 0), "copy");
  must(dev->ops->queue_sync(dev->ctx, 0), "copy");
  const int32_t *e = f->v.e;
  const int64_t n = (int64_t)e[0] * e[1] * e[2] * e[3] / 2;
  int differ = 0;
  for (int64_t site = 0; site < 2 * n; site++) {
    int x[4], parity = 0;
    int64_t rest = site;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = geom->lat.offset[mu] + (int)(rest % e[mu]) - f->v.halo * geom->lat.split[mu];
      rest /= e[mu];
      parity += x[mu] + geom->global[mu];
    }
    const double *want = link_at(whole, geom->global, x);
    for (int64_t k = 0; k < 36; k++) {
      const int64_t at = 2 * (((k / 9 * 2 + parity % 2) * 9 + k % 9) * n + site / 2);
      differ += memcmp(held + at, want + 2 * k, 2 * sizeof(double)) != 0;
    }
  }
  CHECK(differ == 0, "%d numbers differ", differ);
  qk_free(held);
}

/* Local links must be those of `whole`. */
static void compare_local(const qk_geom_t *geom, const double *links, const double *whole) {
  const int *l = geom->lat.l;
  int differ = 0;
  for (int64_t site = 0; site < geom->local_volume; site++) {
    int x[4];
    int64_t rest = site;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = geom->lat.offset[mu] + (int)(rest % l[mu]);
      rest /= l[mu];
    }
    differ += memcmp(links + SITE * site, link_at(whole, geom->global, x), SITE * 8) != 0;
  }
  CHECK(differ == 0, "links of %d sites differ", differ);
}

/* whole: fat and long links of asqtad, then of HISQ, of all sites; as in evolve. */
static void fatten(const qk_gaugefield_t *f, bool compare, double *whole[4]) {
  const qk_fat_recipe_t recipe[2] = {{.kind = QK_FAT_ASQTAD, .u0 = 0.9},
                                     {.kind = QK_FAT_HISQ, .epsilon = -0.1}};
  const qk_geom_t *geom = f->dev->geom;
  double *links = qk_malloc((size_t)geom->local_volume * SITE * sizeof *links);
  for (int i = 0; i < 4; i += 2) {
    qk_gaugefield_t *wide, *made[2];
    must(qk_gaugefield_create(f->dev, QK_FAT_HALO, &wide), "create");
    must(qk_gaugefield_copy(wide, f), "copy");
    must(qk_fat_links(wide, &recipe[i / 2], &made[0], &made[1], NULL), "fat links");
    for (int k = 0; k < 2; k++) {
      must(qk_gaugefield_export(made[k], compare ? links : whole[i + k]), "export");
      if (compare) compare_local(geom, links, whole[i + k]);
      qk_gaugefield_destroy(made[k]);
    }
    qk_gaugefield_destroy(wide);
  }
  qk_free(links);
}

static void open_device(qk_comm_t *comm, const qk_geom_t *geom, qk_device_t *dev) {
  const char *name = getenv("QK_BACKEND");
  const qk_ops_t *ops = qk_ops_by_name(name ? name : "cpu");
  qk_ops_ctx_t *ctx = NULL;
  if (ops->open(qk_comm_local_rank(comm), &ctx, NULL) != QK_OK)
    must(ops->open(0, &ctx, NULL), "device");
  must(qk_device_init(dev, ops, ctx, geom), "device");
}

/* Two sweeps from a hot start. `whole`: links of all sites, given where compare, else filled; fat:
 * of fatten. */
static void evolve(qk_comm_t *comm, const struct chain *c, bool compare, double *whole,
                   double *fat[4], double plane[7], uint64_t *digest) {
  const qk_evolve_params_t p = {.beta = c->beta, .c1 = c->c1, .or_per_hb = 1, .seed = 12};
  qk_geom_t geom;
  qk_gaugefield_t *f, *narrow;
  qk_gauge_check_t check;
  qk_device_t dev;
  must(qk_geom_init(&geom, comm, c->dims, NULL), "geometry");
  open_device(comm, &geom, &dev);
  must(qk_peers_create(&dev, NULL), "peers");
  must(qk_gaugefield_create(&dev, qk_evolve_halo(&p), &f), "create");
  must(qk_gaugefield_share(f), "share"); /* the field `narrow` has messages */
  must(qk_evolve_hot(f, p.seed), "hot start");
  for (int sweep = 0; sweep < 2; sweep++) must(qk_evolve_sweep(f, &p, sweep), "sweep");
  must(qk_gaugefield_measure(f, plane, c->c1 == 0 ? NULL : &plane[6]), "measure");
  double *links = qk_malloc((size_t)geom.local_volume * SITE * sizeof *links);
  must(qk_gaugefield_export(f, links), "export");
  must(qk_gauge_measure(&geom, links, &check, NULL), "measure");
  *digest = check.digest;
  if (compare) {
    compare_halo(f, whole);
    must(qk_gaugefield_create(&dev, 3 - f->v.halo, &narrow), "create");
    must(qk_gaugefield_copy(narrow, f), "copy");
    compare_halo(narrow, whole);
    must(qk_gaugefield_import(narrow, links), "import");
    compare_halo(narrow, whole);
    qk_gaugefield_destroy(narrow);
  } else {
    memcpy(whole, links, (size_t)geom.volume * SITE * sizeof *whole);
  }
  qk_free(links);
  fatten(f, compare, fat);
  qk_gaugefield_destroy(f);
  qk_peers_destroy(&dev);
  qk_device_fini(&dev);
  dev.ops->close(dev.ctx);
}

/* All ways to split each direction at most in two. */
static void on_all_grids(qk_comm_t *comm, qk_comm_t *self, const struct chain *c) {
  const int *d = c->dims;
  const size_t bytes = (size_t)d[0] * d[1] * d[2] * d[3] * SITE * sizeof(double);
  double *whole = qk_malloc(bytes), *fat[4];
  for (int i = 0; i < 4; i++) fat[i] = qk_malloc(bytes);
  double want[7] = {0}, got[7] = {0};
  uint64_t one, many;
  int tried = 0;
  evolve(self, c, false, whole, fat, want, &one);
  for (int split = 0; split < 16; split++) {
    const int grid[4] = {1 + split % 2, 1 + split / 2 % 2, 1 + split / 4 % 2, 1 + split / 8};
    if (grid[0] * grid[1] * grid[2] * grid[3] != qk_comm_size(comm)) continue;
    must(qk_comm_set_grid(comm, grid, NULL), "grid");
    evolve(comm, c, true, whole, fat, got, &many);
    CHECK(many == one, "c1 %g, grid %dx%dx%dx%d: %016lx and %016lx", c->c1, grid[0], grid[1],
          grid[2], grid[3], (unsigned long)many, (unsigned long)one);
    for (int k = 0; k < 7; k++)
      CHECK(got[k] - want[k] < 1e-14 && want[k] - got[k] < 1e-14, "average %d: %.17g and %.17g", k,
            got[k], want[k]);
    tried++;
  }
  CHECK(tried > 0, "no grid for %d ranks", qk_comm_size(comm));
  for (int i = 0; i < 4; i++) qk_free(fat[i]);
  qk_free(whole);
}

int main(int argc, char **argv) {
  qk_comm_t *comm, *self;
  qk_err_t err = {0};
  qk_status_t status = qk_comm_mpi_create(&argc, &argv, &comm, &err);
  if (status != QK_OK) {
    fprintf(stderr, "%s: %s\n", qk_status_name(status), err.text);
    return status == QK_UNSUPPORTED ? 77 : 1;
  }
  must(qk_comm_self_create(&self, &err), "self");
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) on_all_grids(comm, self, &chains[i]);
  double total = failures;
  if (qk_comm_sum(comm, &total, 1) != QK_OK) total = 1;
  qk_comm_destroy(self);
  qk_comm_destroy(comm);
  return total > 0;
}
