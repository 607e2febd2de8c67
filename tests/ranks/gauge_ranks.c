/*
 * Gauge files read and written by several ranks: every grid must find what one rank finds, and
 * write what one rank writes. Run under mpirun with any number of ranks; exits 0 when every
 * check held on every rank.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/gauge_load.h"
#include "tests/support/gauge_make.h"

static int failures;

#define CHECK(comm, expr)                                                                          \
  do {                                                                                             \
    if (!(expr)) {                                                                                 \
      failures++;                                                                                  \
      fprintf(stderr, "%s:%d: %s: failed on rank %d\n", __FILE__, __LINE__, #expr,                 \
              qk_comm_rank(comm));                                                                 \
    }                                                                                              \
  } while (0)

enum { SITE = 72 };
static const int dims[4] = {8, 12, 8, 8};
static char path[] = "/tmp/qk-ranks-XXXXXX";

/* All ranks come here before one goes on. */
static void meet(qk_comm_t *comm) {
  CHECK(comm, qk_comm_agree(comm, QK_OK, NULL) == QK_OK);
}

static const double *link_at(const double *links, const int d[4], const int x[4]) {
  int64_t site = 0;
  for (int mu = 3; mu >= 0; mu--) site = site * d[mu] + (x[mu] + d[mu]) % d[mu];
  return links + SITE * site;
}

/* The extended field, corners and all, is the whole field seen through a window. */
static void compare_extended(const qk_geom_t *geom, const double *links, const double *whole) {
  double *ext = NULL;
  int e[4], differ = 0, x[4], g[4];
  CHECK(geom->comm, qk_gauge_extend(geom, links, &ext, e, NULL) == QK_OK);
  for (x[3] = 0; x[3] < e[3]; x[3]++)
    for (x[2] = 0; x[2] < e[2]; x[2]++)
      for (x[1] = 0; x[1] < e[1]; x[1]++)
        for (x[0] = 0; x[0] < e[0]; x[0]++) {
          for (int mu = 0; mu < 4; mu++) g[mu] = geom->lat.offset[mu] + x[mu] - geom->lat.split[mu];
          differ += memcmp(link_at(ext, e, x), link_at(whole, geom->global, g),
                           SITE * sizeof(double)) != 0;
        }
  CHECK(geom->comm, differ == 0);
  qk_free(ext);
}

static void compare(const qk_geom_t *geom, const char *name, const gauge_load_t *one) {
  size_t reals = (size_t)geom->local_volume * SITE;
  double *links = qk_malloc(reals * sizeof *links);
  qk_gauge_check_t check;
  qk_err_t err = {0};
  qk_status_t status = qk_gauge_read(name, &one->info, geom, links, &check, NULL, NULL, &err);
  if (status != QK_OK) fprintf(stderr, "%s\n", err.text);
  CHECK(geom->comm, status == QK_OK);
  CHECK(geom->comm, check.digest == one->check.digest);
  CHECK(geom->comm, check.checksum_ok == one->check.checksum_ok);
  CHECK(geom->comm, fabs(check.plaquette - one->check.plaquette) < 1e-14);
  CHECK(geom->comm, fabs(check.link_trace - one->check.link_trace) < 1e-14);
  CHECK(geom->comm, check.unitarity == one->check.unitarity);
  CHECK(geom->comm, check.determinant == one->check.determinant);
  compare_extended(geom, links, one->links);
  qk_free(links);
}

/* Damage that only one rank can see must be seen by all, and the first cause be told by all. */
static void damage_is_agreed(const qk_geom_t *geom, const gauge_load_t *one) {
  size_t reals = (size_t)geom->local_volume * SITE;
  double *links = qk_malloc(reals * sizeof *links);
  int64_t last = one->info.data_offset + one->info.data_bytes - 1;
  for (int cut = 0; cut < 2; cut++) {
    qk_gauge_check_t check;
    qk_err_t err = {0};
    if (qk_comm_rank(geom->comm) == 0) {
      FILE *f = fopen(path, "r+b");
      CHECK(geom->comm, f != NULL && fseek(f, last, SEEK_SET) == 0 && fputc(cut, f) != EOF);
      CHECK(geom->comm, f != NULL && fclose(f) == 0);
      if (cut) CHECK(geom->comm, truncate(path, last) == 0);
    }
    meet(geom->comm);
    qk_status_t status = qk_gauge_read(path, &one->info, geom, links, &check, NULL, NULL, &err);
    CHECK(geom->comm, status == (cut ? QK_TRUNCATED : QK_BAD_CHECKSUM));
    CHECK(geom->comm, err.code == status && strstr(err.text, path) != NULL);
    meet(geom->comm);
  }
  qk_free(links);
}

static bool same_files(const char *a, const char *b) {
  FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
  int c = 0, d = 0;
  while (f != NULL && g != NULL && c == d && c != EOF) {
    c = fgetc(f);
    d = fgetc(g);
  }
  bool same = f != NULL && g != NULL && c == d;
  if (f != NULL) fclose(f);
  if (g != NULL) fclose(g);
  return same;
}

/* The file of any grid is that of one rank, byte by byte; a disk that is full on rank 0 is told to
 * all and changes nothing. */
static void compare_written(const qk_geom_t *geom, const gauge_load_t *one, const char *format,
                            int bits) {
  char alone[64], many[64];
  bool root = qk_comm_rank(geom->comm) == 0;
  double *links = qk_malloc((size_t)geom->local_volume * SITE * sizeof *links);
  qk_gauge_check_t check;
  qk_err_t err = {0};
  snprintf(alone, sizeof alone, "%s.one", path);
  snprintf(many, sizeof many, "%s.many", path);
  CHECK(geom->comm, qk_gauge_read("", &one->info, geom, links, &check, NULL, NULL, NULL) == QK_OK);
  if (root)
    CHECK(geom->comm, qk_gauge_write(alone, format, bits, &one->geom, one->links, NULL) == QK_OK);
  CHECK(geom->comm, qk_gauge_write(many, format, bits, geom, links, NULL) == QK_OK);
  if (root) CHECK(geom->comm, same_files(alone, many));
  if (root) CHECK(geom->comm, qk_fault_set("write:4") == 0);
  CHECK(geom->comm, qk_gauge_write(many, format, bits, geom, links, &err) == QK_IO_ERROR);
  CHECK(geom->comm, strstr(err.text, "No space left") != NULL);
  if (root) CHECK(geom->comm, qk_fault_set(NULL) == 0 && same_files(alone, many));
  if (root) CHECK(geom->comm, unlink(alone) == 0 && unlink(many) == 0);
  err = (qk_err_t){0};
  CHECK(geom->comm,
        qk_gauge_write("/nonexistent/x.lime", format, bits, geom, links, &err) == QK_IO_ERROR);
  CHECK(geom->comm, strstr(err.text, "/nonexistent/x.lime") != NULL);
  qk_free(links);
}

/* All ways to split each direction at most in two. */
static void on_all_grids(qk_comm_t *comm, const char *name, bool damage) {
  gauge_load_t one;
  int tried = 0;
  CHECK(comm, gauge_load(name, NULL, &one) == QK_OK);
  for (int split = 0; split < 16; split++) {
    const int grid[4] = {1 + split % 2, 1 + split / 2 % 2, 1 + split / 4 % 2, 1 + split / 8};
    qk_geom_t geom;
    if (grid[0] * grid[1] * grid[2] * grid[3] != qk_comm_size(comm)) continue;
    CHECK(comm, qk_comm_set_grid(comm, grid, NULL) == QK_OK);
    CHECK(comm, qk_geom_init(&geom, comm, dims, NULL) == QK_OK);
    compare(&geom, name, &one);
    if (damage && tried == 0) damage_is_agreed(&geom, &one);
    if (one.info.layout.order == QK_GAUGE_WEAK) {
      compare_written(&geom, &one, "ildg", 64);
      compare_written(&geom, &one, "nersc", 32);
    }
    tried++;
    if (damage) break;
  }
  CHECK(comm, tried > 0);
  gauge_unload(&one);
}

static void on_all_formats(qk_comm_t *comm) {
  static const gauge_make_t makes[] = {{MAKE_NERSC, 32, 2, false},
                                       {MAKE_MILC, 32, 3, true},
                                       {MAKE_OPENQCD, 64, 3, false},
                                       {MAKE_DDALPHAAMG, 64, 3, false},
                                       {MAKE_ILDG, 64, 3, true}};
  const size_t n = sizeof makes / sizeof *makes;
  double *links = gauge_random(dims, 0.4, 5), plaquette, trace;
  gauge_sums(dims, links, &plaquette, &trace);
  for (size_t i = 0; i <= n; i++) {
    if (qk_comm_rank(comm) == 0 && i < n) {
      gauge_bytes_t b = gauge_make(&makes[i], dims, links, plaquette, trace);
      gauge_save(path, b.p, b.n);
      free(b.p);
    }
    meet(comm);
    on_all_grids(comm, path, i == n);
    meet(comm);
  }
  on_all_grids(comm, "builtin:weak:8x12x8x8:3", false);
  free(links);
}

int main(int argc, char **argv) {
  qk_comm_t *comm;
  qk_err_t err = {0};
  qk_status_t status = qk_comm_mpi_create(&argc, &argv, &comm, &err);
  if (status != QK_OK) {
    fprintf(stderr, "%s: %s\n", qk_status_name(status), err.text);
    return status == QK_UNSUPPORTED ? 77 : 1;
  }
  if (qk_comm_rank(comm) == 0) {
    int fd = mkstemp(path);
    if (fd < 0 || close(fd) != 0) failures++;
  }
  qk_comm_bcast(comm, path, sizeof path, 0);
  on_all_formats(comm);
  double total = failures;
  if (qk_comm_sum(comm, &total, 1) != QK_OK) total = 1;
  if (qk_comm_rank(comm) == 0) unlink(path);
  qk_comm_destroy(comm);
  return total > 0;
}
