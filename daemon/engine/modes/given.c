#include "daemon/engine/modes/given.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/links/vectors.h"
#include "daemon/base/mem.h"

/* Numbers of a site of a block; sums over sites are made in so many pieces, whatever the threads,
 * so that they are the same bits each time. */
enum { B = QK_EIGEN_BLOCK, COLOURS = 3, SITE = B * COLOURS * 2, PIECES = 64 };

struct qk_given {
  const qk_geom_t *geom;
  qk_kept_t *made;
  int bits;
  const uint8_t *data; /* of all vectors; NULL: they have been read */
  size_t bytes;
  qk_vectors_sum_t sum; /* of this rank */
  int block, t;         /* that is read next, or compared on slice t */
  double *gram;         /* [B][count][re, im]: rows of V^+ V */
};

static const char *number_of_digest(const qk_given_t *g) {
  return g->made->h.problem.links + strlen("digest:");
}

/* ---- the object ------------------------------------------------------------------------------ */

static bool read_text(const char *memory, char name[QK_SHM_NAME_MAX + 1], int *bits) {
  char form[4] = "";
  _Static_assert(QK_SHM_NAME_MAX == 64, "as below");
  if (sscanf(memory, "memory:%64[^:]:%3s", name, form) != 2) return false;
  *bits = strcmp(form, "f32") == 0 ? 32 : strcmp(form, "f64") == 0 ? 64 : 0;
  return *bits > 0;
}

int qk_given_bits(const char *memory) {
  char name[QK_SHM_NAME_MAX + 1];
  int bits = 0;
  return read_text(memory, name, &bits) ? bits : 0;
}

static qk_status_t map(qk_given_t *g, const char *memory, qk_err_t *err) {
  char name[QK_SHM_NAME_MAX + 1];
  struct stat st;
  if (!read_text(memory, name, &g->bits))
    return qk_fail(err, QK_BAD_ARGUMENT, "vectors in memory are memory:/NAME:f32|f64");
  g->bytes = (size_t)g->geom->volume * (size_t)g->made->h.problem.count * QK_VECTORS_SITE *
             (size_t)g->bits / 8;
  const int fd = shm_open(name, O_RDONLY | O_CLOEXEC, 0);
  qk_status_t status = QK_OK;
  if (fd < 0 || fstat(fd, &st) != 0)
    status = qk_fail(err, QK_IO_ERROR, "vectors: cannot open: %s", strerror(errno));
  else if ((uint64_t)st.st_size != g->bytes)
    status = qk_fail(err, QK_BAD_GEOMETRY, "vectors of %lld bytes: %zu are needed",
                     (long long)st.st_size, g->bytes);
  void *data = status == QK_OK ? mmap(NULL, g->bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (status == QK_OK && data == MAP_FAILED)
    status = qk_fail(err, QK_IO_ERROR, "vectors: cannot map: %s", strerror(errno));
  if (data != MAP_FAILED) g->data = data;
  if (fd >= 0) close(fd);
  return status;
}

static void unmap(qk_given_t *g) {
  if (g->data) munmap((void *)(uintptr_t)g->data, g->bytes);
  g->data = NULL;
}

qk_status_t qk_given_create(const qk_geom_t *geom, const char *memory, qk_kept_t *made,
                            qk_given_t **given, qk_err_t *err) {
  const size_t columns = (size_t)made->h.nblock * B;
  qk_given_t *g = qk_calloc(1, sizeof *g);
  qk_status_t status = QK_NO_MEMORY;
  if (g) {
    *g = (qk_given_t){.geom = geom, .made = made};
    g->gram = qk_malloc(2 * B * columns * sizeof *g->gram);
    status = g->gram ? map(g, memory, err) : QK_NO_MEMORY;
  }
  status = qk_comm_agree(geom->comm, status, err);
  if (status == QK_OK)
    *given = g;
  else
    qk_given_destroy(g);
  return status;
}

void qk_given_destroy(qk_given_t *g) {
  if (!g) return;
  unmap(g);
  qk_free(g->gram);
  qk_free(g);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Of a local site: its time slice, and its number among the sites of that. */
static int64_t place_of(const qk_lattice_t *lat, int64_t local, int *t) {
  int64_t x[4];
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = lat->offset[mu] + local % lat->l[mu];
    local /= lat->l[mu];
  }
  *t = (int)x[3];
  return (x[2] * lat->global[1] + x[1]) * lat->global[0] + x[0];
}

/* As one float, or as a float and what is left. */
static void put(const qk_given_t *g, float *to, const double site[QK_VECTORS_SITE]) {
  const int64_t plane = g->geom->local_volume * SITE;
  for (int k = 0; k < QK_VECTORS_SITE; k++) {
    to[k] = (float)site[k];
    if (g->made->h.planes == 2) to[plane + k] = (float)(site[k] - (double)to[k]);
  }
}

static void read_sites(qk_given_t *g, int64_t first, int64_t until, qk_vectors_sum_t *sum) {
  const int count = g->made->h.problem.count, n0 = g->block * B;
  const int64_t slice = g->geom->volume / g->geom->global[3];
  const size_t bytes = QK_VECTORS_SITE * (size_t)g->bits / 8;
  for (int64_t local = first; local < until; local++) {
    int t;
    const int64_t at = place_of(&g->geom->lat, local, &t);
    for (int i = 0; i < B && n0 + i < count; i++) {
      const int64_t global = ((int64_t)t * count + n0 + i) * slice + at;
      double site[QK_VECTORS_SITE];
      qk_vectors_widen(g->data + (size_t)global * bytes, g->bits, site);
      qk_vectors_add(site, (uint64_t)global, sum);
      put(g, g->made->part[g->block] + local * SITE + i * QK_VECTORS_SITE, site);
    }
  }
}

/* Columns beyond the last vector are zeros. */
static void read_block(qk_given_t *g) {
  const int64_t sites = g->geom->local_volume;
  qk_vectors_sum_t sum[PIECES] = {{0}};
  memset(g->made->part[g->block], 0,
         (size_t)(g->made->h.planes * sites * SITE) * sizeof *g->made->part[0]);
#pragma omp parallel for schedule(static)
  for (int p = 0; p < PIECES; p++)
    read_sites(g, sites * p / PIECES, sites * (p + 1) / PIECES, &sum[p]);
  for (int p = 0; p < PIECES; p++) qk_vectors_join(&g->sum, &sum[p]);
  g->block++;
}

/* All blocks are there. */
static qk_status_t check_digest(qk_given_t *g, qk_err_t *err) {
  uint64_t found[2] = {g->sum.digest, g->sum.bad};
  unmap(g);
  g->block = 0;
  const qk_status_t status = qk_comm_sum_u64(g->geom->comm, found, 2);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not add up vectors");
  if (found[1] > 0)
    return qk_fail(err, QK_BAD_ARGUMENT, "%" PRIu64 " numbers of the vectors are NaN or Inf",
                   found[1]);
  if (found[0] == strtoull(number_of_digest(g), NULL, 16)) return QK_OK;
  return qk_fail(err, QK_BAD_CHECKSUM, "the vectors have the digest %016" PRIx64 ", not %s",
                 found[0], number_of_digest(g));
}

/* ---- orthonormality -------------------------------------------------------------------------- */

/* Some sites of a block in double: a row a site and colour. */
enum { RUN = 32, ROWS = RUN * COLOURS };
typedef struct rows {
  double re[ROWS][B], im[ROWS][B];
} rows_t;

static void widen(const qk_given_t *g, int block, int64_t first, int64_t sites, rows_t *rows) {
  const float *from = g->made->part[block] + first * SITE;
  const int64_t rest = g->made->h.planes == 2 ? g->geom->local_volume * SITE : -1;
  for (int64_t n = 0; n < sites; n++, from += SITE)
    for (int i = 0; i < B; i++)
      for (int c = 0; c < COLOURS; c++) {
        const float *z = from + (i * COLOURS + c) * 2;
        rows->re[n * COLOURS + c][i] = rest < 0 ? z[0] : (double)z[0] + z[rest];
        rows->im[n * COLOURS + c][i] = rest < 0 ? z[1] : (double)z[1] + z[rest + 1];
      }
}

/* Sums over the sites [first, until) of the products of blocks b and c: [i][re, im][j]. */
static void multiply(const qk_given_t *g, int b, int c, int64_t first, int64_t until,
                     double sum[B][2][B]) {
  rows_t left, right;
  memset(sum, 0, sizeof(double[B][2][B]));
  for (int64_t at = first; at < until; at += RUN) {
    const int64_t sites = until - at < RUN ? until - at : RUN;
    widen(g, b, at, sites, &left);
    widen(g, c, at, sites, &right);
    for (int i = 0; i < B; i++) { /* sums of one row of the product stay in registers */
      double re[B], im[B];
      memcpy(re, sum[i][0], sizeof re);
      memcpy(im, sum[i][1], sizeof im);
      for (int64_t k = 0; k < sites * COLOURS; k++)
        for (int j = 0; j < B; j++) {
          re[j] += left.re[k][i] * right.re[k][j] + left.im[k][i] * right.im[k][j];
          im[j] += left.re[k][i] * right.im[k][j] - left.im[k][i] * right.re[k][j];
        }
      memcpy(sum[i][0], re, sizeof re);
      memcpy(sum[i][1], im, sizeof im);
    }
  }
}

/* This rank's sums of block b with itself and those before, on slice t; zeros where it has none. */
static void add_up(qk_given_t *g, int columns) {
  const qk_lattice_t *lat = &g->geom->lat;
  const int64_t sites = g->geom->local_volume / lat->l[3], at = (g->t - lat->offset[3]) * sites;
  const bool here = g->t >= lat->offset[3] && g->t < lat->offset[3] + lat->l[3];
  memset(g->gram, 0, 2 * B * (size_t)columns * sizeof *g->gram);
  for (int c = 0; c <= g->block && here; c++) {
    double sum[PIECES][B][2][B];
#pragma omp parallel for schedule(static)
    for (int p = 0; p < PIECES; p++)
      multiply(g, g->block, c, at + sites * p / PIECES, at + sites * (p + 1) / PIECES, sum[p]);
    for (int p = 0; p < PIECES; p++)
      for (int i = 0; i < B; i++)
        for (int j = 0; j < B; j++)
          for (int k = 0; k < 2; k++) g->gram[2 * (i * columns + c * B + j) + k] += sum[p][i][k][j];
  }
}

/* Of vector n with m: the residual of both; the worst pair so far. */
static void note(qk_given_t *g, int n, int m, double off, double *worst, int pair[2]) {
  double *number = g->made->number + 2 * (size_t)g->t * (size_t)g->made->h.problem.count;
  if (!(off <= number[2 * n + 1])) number[2 * n + 1] = off;
  if (!(off <= number[2 * m + 1])) number[2 * m + 1] = off;
  if (off <= *worst) return;
  *worst = off;
  pair[0] = n;
  pair[1] = m;
}

static qk_status_t compare_block(qk_given_t *g, qk_err_t *err) {
  const int count = g->made->h.problem.count, columns = (g->block + 1) * B;
  const double limit = g->made->h.problem.tol;
  double worst = -1;
  int pair[2] = {0, 0};
  add_up(g, columns);
  const qk_status_t status = qk_comm_sum(g->geom->comm, g->gram, 2 * B * columns);
  if (status != QK_OK) return qk_fail(err, status, "the ranks could not add up vectors");
  for (int i = 0; i < B && g->block * B + i < count; i++)
    for (int m = 0; m <= g->block * B + i; m++) {
      const int n = g->block * B + i;
      const double *z = g->gram + 2 * (i * columns + m);
      note(g, n, m, hypot(z[0] - (n == m), z[1]), &worst, pair);
    }
  if (!(worst <= limit))
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "time slice %d: the vectors are not orthonormal: V^+ V - 1 of vectors %d and %d "
                   "is %.3g, the limit is %g (tol)",
                   g->t, pair[1], pair[0], worst, limit);
  g->block++;
  return QK_OK;
}

qk_status_t qk_given_step(qk_given_t *g, bool *over, qk_err_t *err) {
  const int nblock = g->made->h.nblock;
  qk_status_t status = QK_OK;
  if (g->data && g->block < nblock)
    read_block(g);
  else if (g->data)
    status = check_digest(g, err);
  else
    status = compare_block(g, err);
  if (!g->data && g->block == nblock) {
    g->block = 0;
    g->t++;
  }
  *over = !g->data && g->t == g->geom->global[3];
  return status;
}
