#include "client/analysis/ama.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/scan.h"

/* ---- what is asked for ----------------------------------------------------------------------- */

qk_status_t qk_ama_parse(const char *text, qk_ama_part_t *part, qk_err_t *err) {
  const char *p = text;
  int64_t n;
  double tol;
  if (!qk_scan_int(&p, 1, QK_AMA_SOURCES, &n))
    return qk_fail(err, QK_BAD_ARGUMENT, "must be N:TOL with 1 to %d sources, as 32:1e-4",
                   QK_AMA_SOURCES);
  if (!qk_scan_word(&p, ":") || !qk_scan_real(&p, &tol) || *p)
    return qk_fail(err, QK_BAD_ARGUMENT, "must be N:TOL, as 32:1e-4");
  if (!(tol >= 1e-16 && tol <= 0.999))
    return qk_fail(err, QK_BAD_ARGUMENT, "the tolerance %g is outside 1e-16 to 0.999", tol);
  *part = (qk_ama_part_t){.n = (int32_t)n, .tol = tol};
  return QK_OK;
}

/* ---- positions ------------------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood, OOPSLA 2014) */
static uint64_t draw(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static int32_t least_factor(int32_t n) {
  for (int32_t p = 2; p * p <= n; p++)
    if (n % p == 0) return p;
  return n;
}

/* Cuts of the lattice, the widest spacing first (t before z before y before x), until there are as
 * many cells as sources, or a cell a site. */
static int64_t cut(const qk_ama_grid_t *grid, int32_t n, int32_t cells[4]) {
  int64_t all = 1;
  for (int mu = 0; mu < 4; mu++) cells[mu] = 1;
  while (all < n) {
    int widest = -1;
    for (int mu = 3; mu >= 0; mu--) {
      if (!grid->is_free[mu] || cells[mu] == grid->dims[mu]) continue;
      if (widest < 0 || grid->dims[mu] / cells[mu] > grid->dims[widest] / cells[widest])
        widest = mu;
    }
    if (widest < 0) break;
    const int32_t p = least_factor(grid->dims[widest] / cells[widest]);
    cells[widest] *= p;
    all *= p;
  }
  return all;
}

qk_status_t qk_ama_place(const qk_ama_grid_t *grid, int32_t n, int32_t offset[4],
                         int32_t (*site)[4], qk_err_t *err) {
  int32_t cells[4];
  uint64_t state = grid->seed;
  const int64_t all = cut(grid, n, cells);
  if (all < n)
    return qk_fail(err, QK_BAD_ARGUMENT,
                   "%d sources: this source can stand at %lld places of the lattice only", n,
                   (long long)all);
  for (int mu = 0; mu < 4; mu++) {
    const uint64_t random = draw(&state) >> 32; /* drawn in any case: a seed is a place */
    offset[mu] = grid->is_free[mu] ? (int32_t)(random * (uint64_t)grid->dims[mu] >> 32) : 0;
  }
  for (int32_t k = 0; k < n; k++) {
    int64_t cell = k * all / n;
    for (int mu = 3; mu >= 0; mu--) {
      const int64_t step = cell % cells[mu] * (grid->dims[mu] / cells[mu]);
      site[k][mu] = (int32_t)((grid->first[mu] + offset[mu] + step) % grid->dims[mu]);
      cell /= cells[mu];
    }
  }
  return QK_OK;
}

bool qk_ama_is_exact(int32_t k, int32_t n, int32_t m) {
  /* the j-th is source floor(j n / m) */
  const int64_t j = ((int64_t)k * m + n - 1) / n;
  return j < m && j * n / m == k;
}

/* ---- means ----------------------------------------------------------------------------------- */

qk_status_t qk_ama_sum_init(qk_ama_sum_t *sum, const qk_corrpiece_t *shape, qk_err_t *err) {
  const size_t size = (size_t)shape->n * shape->nmom * (size_t)shape->meta.dims[3];
  *sum = (qk_ama_sum_t){.size = size, .mean = calloc(2 * size, sizeof *sum->mean)};
  if (!sum->mean) return qk_fail(err, QK_NO_MEMORY, "no memory for the means of %zu numbers", size);
  sum->square = sum->mean + size;
  return QK_OK;
}

void qk_ama_sum_fini(qk_ama_sum_t *sum) {
  free(sum->mean);
  *sum = (qk_ama_sum_t){0};
}

void qk_ama_sum_add(qk_ama_sum_t *sum, const double complex *c, const double complex *less) {
  sum->n++;
  for (size_t i = 0; i < sum->size; i++) {
    const double complex x = less ? c[i] - less[i] : c[i], before = x - sum->mean[i];
    sum->mean[i] += before / (double)sum->n;
    const double complex after = x - sum->mean[i];
    sum->square[i] += CMPLX(creal(before) * creal(after), cimag(before) * cimag(after));
  }
}

/* Of the mean: its variance, real and imaginary part. */
static double complex variance(const qk_ama_sum_t *sum, size_t i) {
  const double n = (double)sum->n;
  return n > 1 ? sum->square[i] / (n * (n - 1)) : 0;
}

void qk_ama_combine(const qk_ama_sum_t *sloppy, const qk_ama_sum_t *correction,
                    double complex *mean, double complex *error) {
  for (size_t i = 0; i < sloppy->size; i++) {
    const double complex v = variance(sloppy, i) + variance(correction, i);
    mean[i] = sloppy->mean[i] + correction->mean[i];
    error[i] = sloppy->n > 1 ? CMPLX(sqrt(creal(v)), sqrt(cimag(v))) : CMPLX(NAN, NAN);
  }
}
