/* The exponential of local terms, against Taylor's series in long double; and what an open boundary
 * makes of local terms and links. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

static const int dims[4] = {4, 2, 2, 6};
static const int whole[4] = {0, 0, 0, 0};
static const double periodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};

enum { N = 6, C = 12 };

/* ---- matrices of a term ---------------------------------------------------------------------- */

/* [site][row][column], 12x12; malloc'd. */
static double complex *matrices(const kit_t *kit, const qk_local_t *term) {
  double complex *m = malloc(sizeof *m * (size_t)kit->volume * C * C);
  double complex *v = kit_vector(kit), *w = kit_vector(kit);
  qk_hop_args_t a = kit_dirac(kit, false, periodic);
  a.c_hop = 0;
  a.diag = *term;
  for (int c = 0; c < C; c++) {
    memset(v, 0, kit_components(kit) * sizeof *v);
    for (int64_t n = 0; n < kit->volume; n++) v[n * C + c] = 1;
    kit_part(kit, a, QK_DOUBLE, v, w);
    for (int64_t n = 0; n < kit->volume; n++)
      for (int r = 0; r < C; r++) m[(n * C + r) * C + c] = w[n * C + r];
  }
  free(v);
  free(w);
  return m;
}

/* The 6x6 block that begins at row and column 6 block of a site's matrix. */
static double complex block_at(const double complex *m, int64_t site, int block, int i, int j) {
  return m[(site * C + N * block + i) * C + N * block + j];
}

static double norm_of(const double complex *m, int64_t site, int block) {
  double most = 0;
  for (int i = 0; i < N; i++) {
    double row = 0;
    for (int j = 0; j < N; j++) row += cabs(block_at(m, site, block, i, j));
    most = fmax(most, row);
  }
  return most;
}

static double largest_norm(const kit_t *kit, const double complex *m) {
  double most = 0;
  for (int64_t n = 0; n < kit->volume; n++)
    for (int b = 0; b < 2; b++) most = fmax(most, norm_of(m, n, b));
  return most;
}

static void multiply(long double complex a[N][N], long double complex b[N][N],
                     long double complex ab[N][N]) {
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      long double complex sum = 0;
      for (int k = 0; k < N; k++) sum += a[i][k] * b[k][j];
      ab[i][j] = sum;
    }
}

/* e = exp(factor m) by 30 terms of the series of a 128th, and seven squares. */
static void series(const double complex *m, int64_t site, int block, double factor,
                   long double complex e[N][N]) {
  long double complex a[N][N], t[N][N], next[N][N];
  for (int i = 0; i < N; i++)
    for (int j = 0; j < N; j++) {
      a[i][j] = (long double complex)block_at(m, site, block, i, j) * factor / 128;
      t[i][j] = e[i][j] = i == j;
    }
  for (int k = 1; k <= 30; k++) {
    multiply(t, a, next);
    for (int i = 0; i < N; i++)
      for (int j = 0; j < N; j++) e[i][j] += t[i][j] = next[i][j] / k;
  }
  for (int k = 0; k < 7; k++) {
    multiply(e, e, next);
    memcpy(e, next, sizeof next);
  }
}

/* ---- the exponential ------------------------------------------------------------------------- */

static int64_t exponential(const kit_t *kit, const qk_local_t *in, qk_diag_exp_args_t a,
                           qk_local_t *out) {
  int64_t beyond = -1;
  a.lat = kit->lat;
  a.in = *in;
  a.out = out;
  a.beyond = &beyond;
  kit_must(kit, kit->ops->diag_exp(kit->ctx, &a), "diag_exp");
  return beyond;
}

static qk_local_t new_term(const kit_t *kit) {
  return (qk_local_t){.prec = QK_DOUBLE,
                      .data = kit_alloc(kit, kit->ops->diag_bytes(&kit->lat, QK_DOUBLE))};
}

/* Largest error over all sites and blocks, relative to the largest element of the block. */
static double error_of(const kit_t *kit, const double complex *m, double factor, double number,
                       const double complex *found) {
  double worst = 0;
  for (int64_t n = 0; n < kit->volume; n++)
    for (int b = 0; b < 2; b++) {
      long double complex e[N][N];
      double most = 0, off = 0;
      series(m, n, b, factor, e);
      for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
          const long double complex want = number * e[i][j];
          most = fmax(most, (double)cabsl(want));
          off = fmax(off, (double)cabsl(block_at(found, n, b, i, j) - want));
        }
      worst = fmax(worst, off / most);
    }
  return worst;
}

/* Traces and all; of norms as in use (about 1) and far beyond. */
Test(diag_exp, is_that_of_the_series) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.7, 6);
  qk_local_t a = kit_diag(&kit, 1.5, 0.4, false, QK_DOUBLE), e = new_term(&kit);
  double complex *m = matrices(&kit, &a);
  const double norm = largest_norm(&kit, m), number = 3.7;
  static const double norms[] = {1e-3, 1, 10, 30};
  for (int i = 0; i < 4; i++)
    for (int sign = -1; sign <= 1; sign += 2) {
      const double factor = sign * norms[i] / norm;
      const int64_t beyond = exponential(
          &kit, &a, (qk_diag_exp_args_t){.factor = factor, .number = number, .most = 1e300}, &e);
      cr_expect_eq(beyond, 0);
      double complex *found = matrices(&kit, &e);
      const double off = error_of(&kit, m, factor, number, found);
      cr_expect(off < 1e-15 * (4 + norms[i] / 3), "norm %g: %g", sign * norms[i], off);
      free(found);
    }
  free(m);
  kit_free(&kit, a.data);
  kit_free(&kit, e.data);
  kit_close(&kit);
}

/* The inverse, and in place. */
Test(diag_exp, of_minus_a_matrix_is_the_inverse) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.7, 7);
  qk_local_t a = kit_diag(&kit, 1.5, 0.1, false, QK_DOUBLE), e = new_term(&kit),
             inverse = new_term(&kit);
  int64_t singular = -1;
  const double number = 3.7;
  exponential(&kit, &a, (qk_diag_exp_args_t){.factor = 0.3, .number = number, .most = 100}, &e);
  const qk_diag_invert_args_t invert = {
      .lat = kit.lat, .in = e, .out = &inverse, .singular = &singular};
  kit_must(&kit, kit.ops->diag_invert(kit.ctx, &invert), "diag_invert");
  exponential(&kit, &a, (qk_diag_exp_args_t){.factor = -0.3, .number = 1 / number, .most = 100},
              &a);
  double complex *want = matrices(&kit, &inverse), *found = matrices(&kit, &a);
  double off = 0;
  for (int64_t i = 0; i < kit.volume * C * C; i++) off = fmax(off, cabs(found[i] - want[i]));
  cr_expect(singular == 0 && off < 1e-14, "%g", off);
  free(want);
  free(found);
  kit_free(&kit, a.data);
  kit_free(&kit, e.data);
  kit_free(&kit, inverse.data);
  kit_close(&kit);
}

/* Elements that are too large, or none; a term of zeros gives the number alone. */
Test(diag_exp, counts_the_sites_that_are_beyond) {
  double complex *links = kit_random_links(dims, 0, 0);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  qk_local_t a = kit_diag(&kit, 1, 2, false, QK_DOUBLE), e = new_term(&kit);
  static const struct {
    double factor, number, most;
    bool beyond;
  } row[] = {{1, 1, 8, false},    {1, 1, 7, true},      {400, 1, 1e308, true},
             {-400, 1, 1, false}, {0, 3.75, 4, false},  {0, -3.75, 3, true},
             {1e308, 1, 1, true}, {-1e308, 1, 1, false}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    const qk_diag_exp_args_t args = {
        .factor = row[i].factor, .number = row[i].number, .most = row[i].most};
    cr_expect_eq(exponential(&kit, &a, args, &e), row[i].beyond ? kit.volume : 0, "row %zu", i);
    if (row[i].factor != 0) continue;
    double complex *found = matrices(&kit, &e);
    for (int64_t k = 0; k < kit.volume * C * C; k++)
      cr_assert(found[k] == (k / C % C == k % C ? row[i].number : 0));
    free(found);
  }
  /* NaN, off the diagonal too */
  const qk_clover_set_args_t nan = {.gauge = {.lat = kit.lat, .u = {.data = kit.ext}},
                                    .csw = (double)NAN,
                                    .plane = {1, 1, 1, 1, 1, 1},
                                    .out = a};
  qk_clover_set_args_t set = nan;
  memcpy(set.gauge.u.e, kit.e, sizeof kit.e);
  kit_must(&kit, kit.ops->clover_set(kit.ctx, &set), "clover_set");
  cr_expect_eq(
      exponential(&kit, &a, (qk_diag_exp_args_t){.factor = 1, .number = 1, .most = 1e308}, &e),
      kit.volume);
  kit_free(&kit, a.data);
  kit_free(&kit, e.data);
  kit_close(&kit);
  free(links);
}

Test(diag_exp, refuses_what_is_no_field) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.7, 6);
  qk_local_t a = kit_diag(&kit, 1, 2, false, QK_DOUBLE), number = {.scalar = 2};
  int64_t beyond;
  const qk_diag_exp_args_t good = {
      .lat = kit.lat, .factor = 1, .number = 1, .most = 1e9, .in = a, .out = &a, .beyond = &beyond};
  qk_diag_exp_args_t bad[5] = {good, good, good, good, good};
  bad[0].out = NULL;
  bad[1].in = number;
  bad[2].factor = (double)NAN;
  bad[3].most = 0;
  bad[4].open = (qk_open_t){.is = 1, .edge = (double)INFINITY};
  static const char *const word[] = {"missing", "memory", "factor", "most", "edge"};
  for (int i = 0; i < 5; i++) kit_refused(&kit, kit.ops->diag_exp(kit.ctx, &bad[i]), word[i]);
  kit_free(&kit, a.data);
  kit_close(&kit);
}

/* ---- open boundary --------------------------------------------------------------------------- */

static int slice_of(int64_t site) {
  return (int)(site / (dims[0] * dims[1] * dims[2]));
}
static bool is_outer(int64_t site) {
  return slice_of(site) == 0 || slice_of(site) == dims[3] - 1;
}
static bool is_edge(int64_t site) {
  return slice_of(site) == 1 || slice_of(site) == dims[3] - 2;
}

/* got = want, but 1 on the outer slices; on those beside them by `change` of number and edge. */
static void expect_opened(const kit_t *kit, const double complex *got, const double complex *want,
                          double factor, double summand) {
  for (int64_t n = 0; n < kit->volume; n++)
    for (int r = 0; r < C; r++)
      for (int c = 0; c < C; c++) {
        const int64_t k = (n * C + r) * C + c;
        double complex w = want[k];
        if (is_edge(n)) w = factor * w + (r == c ? summand : 0);
        if (is_outer(n)) w = r == c;
        cr_assert(cabs(got[k] - w) < 1e-14, "slice %d, %d, %d: %g", slice_of(n), r, c,
                  cabs(got[k] - w));
      }
}

Test(open_boundary, is_one_on_the_outer_slices_of_a_term) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.7, 8);
  qk_local_t plain = kit_diag(&kit, 1.5, 4.1, false, QK_DOUBLE), open = new_term(&kit),
             bare = kit_diag(&kit, 1.5, 0, false, QK_DOUBLE), e = new_term(&kit);
  qk_clover_set_args_t set = {.gauge = {.lat = kit.lat, .u = {.data = kit.ext}},
                              .csw = 1.5,
                              .diag = 4.1,
                              .plane = {1, 1, 1, 1, 1, 1},
                              .open = {.is = 1, .edge = -0.2},
                              .out = open};
  memcpy(set.gauge.u.e, kit.e, sizeof kit.e);
  kit_must(&kit, kit.ops->clover_set(kit.ctx, &set), "clover_set");
  double complex *want = matrices(&kit, &plain), *got = matrices(&kit, &open);
  expect_opened(&kit, got, want, 1, -0.2);
  free(want);
  free(got);
  qk_diag_exp_args_t args = {.factor = 0.2, .number = 4.1, .most = 1e3};
  exponential(&kit, &bare, args, &e);
  want = matrices(&kit, &e);
  args.open = set.open;
  cr_expect_eq(exponential(&kit, &bare, args, &e), 0);
  got = matrices(&kit, &e);
  expect_opened(&kit, got, want, 3.9 / 4.1, 0);
  free(want);
  free(got);
  const void *held[] = {plain.data, open.data, bare.data, e.data};
  for (int i = 0; i < 4; i++) kit_free(&kit, held[i]);
  kit_close(&kit);
}

/* v on the slices where fields are not 0. */
static void project(const kit_t *kit, double complex *v) {
  for (int64_t i = 0; i < (int64_t)kit_components(kit); i++)
    if (is_outer(i / C)) v[i] = 0;
}

static void check_open_links(const kit_t *kit, qk_prec_t prec, int reals) {
  qk_links_t plain = kit_links(kit, prec, reals), open = plain;
  open.data = kit_alloc(kit, kit->ops->links_bytes(&kit->lat, prec, reals));
  qk_links_set_args_t set = {
      .gauge = {.lat = kit->lat, .u = {.data = kit->ext}}, .out = open, .open = 1};
  memcpy(set.gauge.u.e, kit->e, sizeof kit->e);
  kit_must(kit, kit->ops->links_set(kit->ctx, &set), "links_set");
  double complex *v = kit_vector(kit), *want = kit_vector(kit), *got = kit_vector(kit);
  kit_random(kit, 5, v);
  for (int dagger = 0; dagger < 2; dagger++) {
    qk_hop_args_t a = kit_dirac(kit, dagger, periodic);
    a.c_hop = 1;
    a.c_z = 0;
    a.links = open;
    kit_part(kit, a, prec, v, got);
    double complex *inside = kit_vector(kit);
    memcpy(inside, v, kit_components(kit) * sizeof *v);
    project(kit, inside);
    a.links = plain;
    kit_part(kit, a, prec, inside, want);
    project(kit, want);
    const double off = kit_distance(kit, got, want);
    cr_expect(off < 2 * kit_tolerance(prec, reals), "prec %d, %d reals: %g", (int)prec, reals, off);
    free(inside);
  }
  free(v);
  free(want);
  free(got);
  kit_free(kit, plain.data);
  kit_free(kit, open.data);
}

Test(open_boundary, has_no_hop_to_and_from_the_outer_slices) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.6, 9);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int reals = 12; reals <= 18; reals += 6) check_open_links(&kit, (qk_prec_t)prec, reals);
  qk_links_t links = kit_links(&kit, QK_DOUBLE, 8);
  qk_links_set_args_t set = {
      .gauge = {.lat = kit.lat, .u = {.data = kit.ext}}, .out = links, .open = 1};
  memcpy(set.gauge.u.e, kit.e, sizeof kit.e);
  kit_refused(&kit, kit.ops->links_set(kit.ctx, &set), "reals");
  kit_free(&kit, links.data);
  kit_close(&kit);
}
