#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/mg_kit.h"

/* A lattice cut into aggregates, with nvec columns on it. */
typedef struct shape {
  int dims[4], block[4], ncomp, nvec;
} shape_t;

static const shape_t shapes[] = {
    {{6, 4, 8, 12}, {3, 2, 2, 3}, 12, 6}, {{4, 4, 4, 4}, {2, 2, 2, 2}, 48, 24},
    {{8, 8, 4, 4}, {4, 4, 2, 2}, 12, 32}, {{4, 4, 4, 2}, {2, 1, 2, 1}, 12, 2},
    {{4, 4, 4, 8}, {2, 2, 2, 4}, 8, 40},  {{8, 4, 4, 4}, {4, 2, 2, 2}, 12, 24}};
static const int nshapes = sizeof shapes / sizeof shapes[0];

typedef struct cutting {
  kit_t fine, coarse;
  qk_aggregates_t agg;
  shape_t s;
} cutting_t;

static cutting_t cut_open(shape_t s) {
  const int split[4] = {0};
  int coarse[4];
  for (int mu = 0; mu < 4; mu++) coarse[mu] = s.dims[mu] / s.block[mu];
  cutting_t c = {.s = s};
  kit_t kit;
  mg_kit_open(&kit, s.dims, split);
  c.fine = kit;
  c.fine.ncomp = s.ncomp;
  c.coarse = mg_level(&kit, coarse, split, 2 * s.nvec);
  c.agg = (qk_aggregates_t){.fine = c.fine.lat, .coarse = c.coarse.lat};
  memcpy(c.agg.block, s.block, sizeof s.block);
  return c;
}

/* The aggregate of a fine site, as index of the coarse lattice (x fastest). */
static int64_t aggregate_of(const cutting_t *c, int64_t site) {
  int x[4];
  mg_coords(&c->fine, site, x);
  for (int mu = 0; mu < 4; mu++) x[mu] /= c->s.block[mu];
  return mg_site(&c->coarse, x);
}

static bool leaves(const cutting_t *c, int64_t site, int mu) {
  int x[4];
  mg_coords(&c->fine, site, x);
  return x[mu] % c->s.block[mu] == c->s.block[mu] - 1;
}

/* Sums over an aggregate and chirality h = 2 aggregate + chirality: out[h][i][j] = a_i^+ b_j, over
 * all sites, or those that a step in mu takes out of the aggregate (leaving 1) or not (0). */
static double complex *products(const cutting_t *c, double complex **a, double complex **b, int mu,
                                int leaving) {
  const int n = c->s.nvec, half = c->s.ncomp / 2;
  double complex *out = calloc((size_t)(2 * c->coarse.volume * n * n), sizeof *out);
  cr_assert_not_null(out);
  for (int64_t site = 0; site < c->fine.volume; site++) {
    if (mu >= 0 && leaves(c, site, mu) != leaving) continue;
    for (int h = 0; h < 2; h++) {
      double complex *to = out + (2 * aggregate_of(c, site) + h) * n * n;
      for (int k = 0; k < half; k++)
        for (int i = 0; i < n; i++)
          for (int j = 0; j < n; j++) {
            const int64_t at = site * c->s.ncomp + h * half + k;
            to[i * n + j] += conj(a[i][at]) * b[j][at];
          }
    }
  }
  return out;
}

/* Lanes beyond nrhs hold NaN, which nothing may look at. */
static void spoil_pads(const cutting_t *c, mg_block_t *b) {
  qk_spinor_t wide = b->f.v;
  const size_t n = kit_components(&c->fine);
  double complex *nan = malloc(n * sizeof *nan);
  cr_assert_not_null(nan);
  for (size_t i = 0; i < n; i++) nan[i] = CMPLX(NAN, NAN);
  wide.nrhs = wide.ntile * QK_TILE;
  for (int rhs = b->f.v.nrhs; rhs < wide.nrhs; rhs++) kit_import(&c->fine, &wide, rhs, nan);
  free(nan);
}

static void read_block(const cutting_t *c, mg_block_t *b, double complex **x) {
  for (int i = 0; i < b->f.v.nrhs; i++) {
    x[i] = malloc(kit_components(&c->fine) * sizeof **x);
    cr_assert_not_null(x[i]);
    kit_export(&c->fine, &b->f.v, i, x[i]);
  }
}

/* Columns of the last shape in single: x_j = own x_0 + weight x_j. */
static void skew(const cutting_t *c, mg_block_t *b, int j, double own, double weight) {
  for (size_t i = 0; i < kit_components(&c->fine); i++)
    b->x[j][i] = own * b->x[0][i] + weight * b->x[j][i];
}

/* The columns x as the block stores them. */
static void rewrite(const cutting_t *c, mg_block_t *b) {
  for (int j = 0; j < b->f.v.nrhs; j++) {
    kit_import(&c->fine, &b->f.v, j, b->x[j]);
    kit_export(&c->fine, &b->f.v, j, b->x[j]);
  }
}

static void free_columns(double complex **x, int n) {
  for (int i = 0; i < n; i++) free(x[i]);
}

static void close_columns(cutting_t *c, mg_block_t *b, double complex **q) {
  free_columns(q, c->s.nvec);
  mg_block_free(&c->fine, b);
  kit_close(&c->fine);
}

/* Largest element of a^+ a - 1 over the first n columns. */
static double not_orthonormal(const cutting_t *c, double complex **a, int n) {
  const int all = c->s.nvec;
  double complex *one = products(c, a, a, -1, 0);
  double off = 0;
  for (int64_t h = 0; h < 2 * c->coarse.volume; h++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++)
        off = fmax(off, cabs(one[h * all * all + i * all + j] - (i == j)));
  free(one);
  return off;
}

static int64_t run_orthonormalise(const cutting_t *c, mg_block_t *b) {
  int64_t dependent = -1;
  const qk_orthonormalise_args_t args = {.agg = c->agg, .v = b->f.v, .dependent = &dependent};
  kit_must(&c->fine, c->fine.ops->orthonormalise(c->fine.ctx, &args), "orthonormalise");
  return dependent;
}

/* q orthonormal; q^+ x upper triangular and x = q (q^+ x): so the first k of q
 * span the first k of x. */
static void check_factors(const cutting_t *c, double complex **x, double complex **q, double unit,
                          double steep, const char *what) {
  const int n = c->s.nvec, half = c->s.ncomp / 2;
  double complex *r = products(c, q, x, -1, 0);
  double below = 0, rest = 0;
  for (int64_t h = 0; h < 2 * c->coarse.volume; h++)
    for (int i = 0; i < n; i++)
      for (int j = 0; j < n; j++) {
        const int64_t at = h * n * n + i * n + j;
        if (i > j) below = fmax(below, cabs(r[at]) / cabs(r[h * n * n]));
      }
  for (int64_t site = 0; site < c->fine.volume; site++)
    for (int k = 0; k < c->s.ncomp; k++)
      for (int j = 0; j < n; j++) {
        const int64_t h = 2 * aggregate_of(c, site) + k / half, at = site * c->s.ncomp + k;
        double complex sum = 0;
        for (int i = 0; i <= j; i++) sum += q[i][at] * r[h * n * n + i * n + j];
        rest = fmax(rest, cabs(sum - x[j][at]));
      }
  const double off = not_orthonormal(c, q, n);
  cr_expect_leq(off, 4 * unit, "%s: orthonormal to %.1e", what, off);
  cr_expect_leq(below, steep * unit, "%s: triangular to %.1e", what, below);
  cr_expect_leq(rest, steep * unit * 8, "%s: span kept to %.1e", what, rest);
  free(r);
}

Test(orthonormalise, gives_orthonormal_columns_with_the_same_spans) {
  for (int k = 0; k < nshapes; k++)
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
      cutting_t c = cut_open(shapes[k]);
      if (c.s.nvec == 6) c.s.nvec = 5;
      const double unit = prec == QK_DOUBLE ? 2e-15 : 1e-7;
      mg_block_t b = mg_block(&c.fine, prec, c.s.nvec, false, 7 + (uint64_t)k);
      double complex *q[64];
      spoil_pads(&c, &b);
      cr_expect_eq(run_orthonormalise(&c, &b), 0, "shape %d", k);
      read_block(&c, &b, q);
      check_factors(&c, b.x, q, unit, 32, "random columns");
      free_columns(q, c.s.nvec);
      mg_block_free(&c.fine, &b);
      kit_close(&c.fine);
    }
}

Test(orthonormalise, is_precise_where_columns_are_nearly_parallel) {
  cutting_t c = cut_open(shapes[5]);
  mg_block_t b = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 3);
  double complex *q[64];
  for (int j = 1; j < c.s.nvec; j++) skew(&c, &b, j, 1, 1.0 / 1024);
  rewrite(&c, &b);
  cr_expect_eq(run_orthonormalise(&c, &b), 0);
  read_block(&c, &b, q);
  check_factors(&c, b.x, q, 1e-7, 64, "nearly parallel columns");
  close_columns(&c, &b, q);
}

static void run_principal(const cutting_t *c, mg_block_t *b, int keep) {
  const qk_principal_args_t args = {.agg = c->agg, .v = b->f.v, .keep = keep};
  kit_must(&c->fine, c->fine.ops->principal(c->fine.ctx, &args), "principal");
}

/* p = x^+ q: squares of its columns, [h][i], which fall with i. Their sum. */
static double column_squares(const cutting_t *c, const double complex *p, int keep, double slack,
                             double *square) {
  const int n = c->s.nvec;
  double all = 0;
  for (int64_t h = 0; h < 2 * c->coarse.volume; h++)
    for (int i = 0; i < keep; i++) {
      double *s = square + h * n + i;
      *s = 0;
      for (int j = 0; j < n; j++) *s += pow(cabs(p[(h * n + j) * n + i]), 2);
      cr_expect(i == 0 || s[0] <= s[-1] * (1 + slack), "vector %d: %g after %g", i, s[0], s[-1]);
      all += *s;
    }
  return all;
}

/* The first `keep` of q: orthonormal, x x^+ q_i = s_i q_i, s falling. Sum of the s over all
 * aggregates. */
static double check_principal(const cutting_t *c, double complex **x, double complex **q, int keep,
                              double unit, const char *what) {
  const int n = c->s.nvec, ncomp = c->s.ncomp;
  double complex *p = products(c, x, q, -1, 0);
  double *square = calloc((size_t)(2 * c->coarse.volume * n), sizeof *square), rest = 0;
  cr_assert_not_null(square);
  const double all = column_squares(c, p, keep, 32 * unit, square);
  for (int64_t at = 0; at < c->fine.volume * ncomp; at++) {
    const int64_t h = 2 * aggregate_of(c, at / ncomp) + at % ncomp / (ncomp / 2);
    for (int i = 0; i < keep; i++) {
      double complex image = 0;
      for (int j = 0; j < n; j++) image += x[j][at] * p[(h * n + j) * n + i];
      rest = fmax(rest, cabs(image - square[h * n + i] * q[i][at]) / square[h * n]);
    }
  }
  const double off = not_orthonormal(c, q, keep);
  cr_expect_leq(off, 64 * unit, "%s: orthonormal to %.1e", what, off);
  cr_expect_leq(rest, 64 * unit, "%s: singular vectors to %.1e", what, rest);
  free(square);
  free(p);
  return all;
}

/* What all singular values come to is the square of all columns. */
static double total(const cutting_t *c, double complex **x) {
  double sum = 0;
  for (int j = 0; j < c->s.nvec; j++)
    for (size_t i = 0; i < kit_components(&c->fine); i++) sum += pow(cabs(x[j][i]), 2);
  return sum;
}

Test(principal, gives_the_leading_singular_vectors) {
  for (int k = 0; k < nshapes; k++)
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
      cutting_t c = cut_open(shapes[k]);
      const double unit = prec == QK_DOUBLE ? 2e-15 : 1e-7;
      const int n = c.s.nvec, keeps[] = {n, n / 2};
      for (int i = 0; i < 2; i++) {
        mg_block_t b = mg_block(&c.fine, prec, n, false, 7 + (uint64_t)k);
        double complex *q[64];
        spoil_pads(&c, &b);
        run_principal(&c, &b, keeps[i]);
        read_block(&c, &b, q);
        const double sum = check_principal(&c, b.x, q, keeps[i], unit, "random columns");
        const double all = total(&c, b.x);
        if (i == 0)
          cr_expect(fabs(sum / all - 1) < 64 * unit, "shape %d: %g of %g", k, sum, all);
        else
          cr_expect(n == 2 || (sum > 0.5 * all && sum < all), "shape %d: %g of %g", k, sum, all);
        free_columns(q, n);
        mg_block_free(&c.fine, &b);
      }
      kit_close(&c.fine);
    }
}

/* Columns whose lengths fall by nine decades: the small ones are 0, the others right. */
Test(principal, of_columns_of_very_different_length) {
  cutting_t c = cut_open(shapes[5]);
  mg_block_t b = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 3);
  double complex *q[64];
  double size = 0;
  for (int j = 1; j < c.s.nvec; j++) skew(&c, &b, j, 0, pow(10, j < 6 ? -j / 2.0 : -9));
  rewrite(&c, &b);
  run_principal(&c, &b, c.s.nvec);
  read_block(&c, &b, q);
  check_principal(&c, b.x, q, 6, 1e-7, "steep columns");
  for (int j = 6; j < c.s.nvec; j++)
    for (size_t i = 0; i < kit_components(&c.fine); i++) size = fmax(size, cabs(q[j][i]));
  cr_expect(size <= 1, "what is nothing: %g", size); /* 0, or of unit length */
  close_columns(&c, &b, q);
}

Test(principal, bad_arguments_are_refused) {
  cutting_t c = cut_open(shapes[0]);
  mg_block_t b = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 3);
  qk_principal_args_t a = {.agg = c.agg, .v = b.f.v, .keep = 0};
  cr_expect_eq(c.fine.ops->principal(c.fine.ctx, &a), QK_BAD_ARGUMENT);
  a.keep = c.s.nvec + 1;
  cr_expect_eq(c.fine.ops->principal(c.fine.ctx, &a), QK_BAD_ARGUMENT);
  a.keep = 2;
  a.v.nrhs--;
  cr_expect_eq(c.fine.ops->principal(c.fine.ctx, &a), QK_BAD_ARGUMENT);
  mg_block_free(&c.fine, &b);
  kit_close(&c.fine);
}

/* Column j of an aggregate and chirality becomes that of column i, times factor. */
static void make_dependent(const cutting_t *c, mg_block_t *b, int64_t h, int j, int i,
                           double complex factor) {
  const int half = c->s.ncomp / 2;
  for (int64_t site = 0; site < c->fine.volume; site++)
    for (int k = 0; k < half; k++) {
      const int64_t at = site * c->s.ncomp + h % 2 * half + k;
      if (aggregate_of(c, site) == h / 2) b->x[j][at] = factor * b->x[i][at];
    }
  kit_import(&c->fine, &b->f.v, j, b->x[j]);
}

Test(orthonormalise, counts_dependent_aggregates_and_leaves_the_others_alone) {
  cutting_t c = cut_open(shapes[1]);
  const int n = c.s.nvec, half = c.s.ncomp / 2;
  const int64_t bad[4] = {2, 7, 12, 13};
  mg_block_t clean = mg_block(&c.fine, QK_SINGLE, n, false, 5);
  mg_block_t b = mg_block(&c.fine, QK_SINGLE, n, false, 5);
  make_dependent(&c, &b, bad[0], 9, 4, 1);
  make_dependent(&c, &b, bad[1], 23, 0, NAN);
  make_dependent(&c, &b, bad[2], 1, 0, 0);
  make_dependent(&c, &b, bad[3], 17, 16, CMPLX(0, -3));
  cr_expect_eq(run_orthonormalise(&c, &clean), 0);
  cr_expect_eq(run_orthonormalise(&c, &b), 4);
  double complex *q[64], *p[64];
  read_block(&c, &b, q);
  read_block(&c, &clean, p);
  int64_t changed = 0;
  for (int64_t site = 0; site < c.fine.volume; site++)
    for (int k = 0; k < c.s.ncomp; k++) {
      const int64_t h = 2 * aggregate_of(&c, site) + k / half, at = site * c.s.ncomp + k;
      if (h == bad[0] || h == bad[1] || h == bad[2] || h == bad[3]) continue;
      for (int j = 0; j < n; j++) changed += q[j][at] != p[j][at];
    }
  cr_expect_eq(changed, 0, "%lld numbers of other aggregates changed", (long long)changed);
  free_columns(q, n);
  free_columns(p, n);
  mg_block_free(&c.fine, &b);
  mg_block_free(&c.fine, &clean);
  kit_close(&c.fine);
}

/* want[rows of all chiralities, columns of one] += sums. */
static void add_products(const cutting_t *c, double complex *want, int ndir, int d, int chirality,
                         const double complex *sums) {
  const int n = c->s.nvec;
  for (int64_t X = 0; X < c->coarse.volume; X++)
    for (int row = 0; row < 2 * n; row++)
      for (int j = 0; j < n; j++) {
        const int64_t matrix = mg_index(&c->coarse, X) * ndir + d;
        want[(matrix * 2 * n + row) * 2 * n + chirality * n + j] +=
            sums[((2 * X + row / n) * n + row % n) * n + j];
      }
}

static void check_galerkin(const cutting_t *c, mg_block_t *v, mg_block_t *w, int mu, int chirality,
                           qk_prec_t prec) {
  const int n = 2 * c->s.nvec;
  const size_t one = (size_t)(c->coarse.volume * n * n);
  double complex *inner = mg_numbers(one, 3), *ahead = mg_numbers(8 * one, 4);
  qk_galerkin_args_t args = {
      .agg = c->agg, .mu = mu, .chirality = chirality, .v = v->f.v, .w = w->f.v};
  args.inner = mg_matrices(&c->coarse, prec, n, 1, inner);
  args.ahead = mg_matrices(&c->coarse, prec, n, 8, ahead);
  kit_must(&c->fine, c->fine.ops->galerkin(c->fine.ctx, &args), "galerkin");
  double complex *sums = products(c, v->x, w->x, mu, 0);
  add_products(c, inner, 1, 0, chirality, sums);
  free(sums);
  if (mu >= 0) {
    sums = products(c, v->x, w->x, mu, 1);
    add_products(c, ahead, 8, 2 * mu, chirality, sums);
    free(sums);
  }
  double complex *got = mg_plain(&c->coarse, &args.inner);
  cr_expect_lt(mg_off(got, inner, one), 1e-6, "inner, mu %d, nvec %d", mu, c->s.nvec);
  free(got);
  got = mg_plain(&c->coarse, &args.ahead);
  cr_expect_lt(mg_off(got, ahead, 8 * one), 1e-6, "ahead, mu %d, nvec %d", mu, c->s.nvec);
  free(got);
  kit_free(&c->fine, args.inner.data);
  kit_free(&c->fine, args.ahead.data);
  free(inner);
  free(ahead);
}

Test(galerkin, products_are_those_of_direct_sums) {
  for (int k = 0; k < nshapes; k++) {
    cutting_t c = cut_open(shapes[k]);
    mg_block_t v = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 1);
    mg_block_t w = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 2);
    spoil_pads(&c, &v);
    spoil_pads(&c, &w);
    for (int mu = -1; mu < 4; mu++)
      check_galerkin(&c, &v, &w, mu, (mu + k) & 1, mu % 2 ? QK_SINGLE : QK_DOUBLE);
    mg_block_free(&c.fine, &v);
    mg_block_free(&c.fine, &w);
    kit_close(&c.fine);
  }
}

/* Columns of x from `first` on, at most a tile of them. */
static kit_field_t cut_out(const cutting_t *c, double complex **x, int first) {
  const int left = c->s.nvec - first, n = left < QK_TILE ? left : QK_TILE;
  kit_field_t f = kit_field(&c->fine, QK_SINGLE, n, false, QK_FULL);
  for (int i = 0; i < n; i++) kit_import(&c->fine, &f.v, i, x[first + i]);
  return f;
}

static void add_in_pieces(const cutting_t *c, mg_block_t *v, mg_block_t *w,
                          qk_galerkin_args_t args) {
  for (args.row0 = 0; args.row0 < c->s.nvec; args.row0 += QK_TILE)
    for (args.column0 = 0; args.column0 < c->s.nvec; args.column0 += QK_TILE) {
      kit_field_t a = cut_out(c, v->x, args.row0), b = cut_out(c, w->x, args.column0);
      args.v = a.v;
      args.w = b.v;
      kit_must(&c->fine, c->fine.ops->galerkin(c->fine.ctx, &args), "galerkin");
      kit_field_free(&c->fine, &b);
      kit_field_free(&c->fine, &a);
    }
}

static void expect_same(const cutting_t *c, const qk_coarse_links_t *a, const qk_coarse_links_t *b,
                        int mu) {
  const size_t n = (size_t)(c->coarse.volume * a->n * a->n * a->ndir);
  double complex *x = mg_plain(&c->coarse, a), *y = mg_plain(&c->coarse, b);
  cr_expect_eq(memcmp(x, y, n * sizeof *x), 0, "%d directions, mu %d, nvec %d", a->ndir, mu,
               c->s.nvec);
  free(y);
  free(x);
}

static void check_pieces(const cutting_t *c, mg_block_t *v, mg_block_t *w, int mu) {
  const int n = 2 * c->s.nvec;
  double complex *start = mg_numbers((size_t)(c->coarse.volume * n * n * 8), 3);
  qk_galerkin_args_t whole = {.agg = c->agg, .mu = mu, .chirality = 1, .v = v->f.v, .w = w->f.v};
  qk_galerkin_args_t cut = whole;
  whole.inner = mg_matrices(&c->coarse, QK_SINGLE, n, 1, start);
  whole.ahead = mg_matrices(&c->coarse, QK_SINGLE, n, 8, start);
  cut.inner = mg_matrices(&c->coarse, QK_SINGLE, n, 1, start);
  cut.ahead = mg_matrices(&c->coarse, QK_SINGLE, n, 8, start);
  kit_must(&c->fine, c->fine.ops->galerkin(c->fine.ctx, &whole), "galerkin");
  add_in_pieces(c, v, w, cut);
  expect_same(c, &whole.inner, &cut.inner, mu);
  expect_same(c, &whole.ahead, &cut.ahead, mu);
  void *held[] = {whole.inner.data, whole.ahead.data, cut.inner.data, cut.ahead.data};
  for (int i = 0; i < 4; i++) kit_free(&c->fine, held[i]);
  free(start);
}

Test(galerkin, products_in_pieces_have_the_bits_of_the_whole) {
  for (int k = 0; k < nshapes; k++) {
    cutting_t c = cut_open(shapes[k]);
    mg_block_t v = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 1);
    mg_block_t w = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 2);
    for (int mu = -1; mu < 4; mu += 2) check_pieces(&c, &v, &w, mu);
    mg_block_free(&c.fine, &v);
    mg_block_free(&c.fine, &w);
    kit_close(&c.fine);
  }
}

Test(aggregates, refuse_what_does_not_fit) {
  cutting_t c = cut_open(shapes[5]);
  const qk_ops_t *ops = c.fine.ops;
  mg_block_t v = mg_block(&c.fine, QK_SINGLE, c.s.nvec, false, 1);
  double complex *zero = calloc((size_t)(c.coarse.volume * 8 * 48 * 48), sizeof *zero);
  cr_assert_not_null(zero);
  int64_t dependent = -1;
  const qk_orthonormalise_args_t good = {.agg = c.agg, .v = v.f.v, .dependent = &dependent};
  qk_orthonormalise_args_t o = good;
  o.agg.block[1] = 3;
  cr_expect_eq(ops->orthonormalise(c.fine.ctx, &o), QK_BAD_ARGUMENT);
  o = good;
  o.v.ntile = 0;
  cr_expect_eq(ops->orthonormalise(c.fine.ctx, &o), QK_BAD_ARGUMENT);
  o = good;
  o.v.prec = QK_HALF;
  cr_expect_eq(ops->orthonormalise(c.fine.ctx, &o), QK_BAD_ARGUMENT);
  o = good;
  o.dependent = NULL;
  cr_expect_eq(ops->orthonormalise(c.fine.ctx, &o), QK_BAD_ARGUMENT);
  cr_expect_eq(dependent, -1);
  const qk_galerkin_args_t fine = {.agg = c.agg,
                                   .v = v.f.v,
                                   .w = v.f.v,
                                   .inner = mg_matrices(&c.coarse, QK_SINGLE, 48, 1, zero),
                                   .ahead = mg_matrices(&c.coarse, QK_SINGLE, 48, 8, zero)};
  qk_galerkin_args_t g = fine;
  g.mu = 4;
  cr_expect_eq(ops->galerkin(c.fine.ctx, &g), QK_BAD_ARGUMENT);
  g = fine;
  g.chirality = 2;
  cr_expect_eq(ops->galerkin(c.fine.ctx, &g), QK_BAD_ARGUMENT);
  g = fine;
  g.column0 = 8;
  cr_expect_eq(ops->galerkin(c.fine.ctx, &g), QK_BAD_ARGUMENT);
  g = fine;
  g.ahead.n = 44;
  cr_expect_eq(ops->galerkin(c.fine.ctx, &g), QK_BAD_ARGUMENT);
  cr_expect(strstr(ops->last_error(c.fine.ctx), "ahead: n = 44: 48") != NULL);
  kit_free(&c.fine, fine.inner.data);
  kit_free(&c.fine, fine.ahead.data);
  free(zero);
  mg_block_free(&c.fine, &v);
  kit_close(&c.fine);
}
