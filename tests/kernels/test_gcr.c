/* Steps of GCR and least squares in small spaces against plain loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

/* ---- gcr_step -------------------------------------------------------------------------------- */

enum { MOST = 7, LANES = 11 };

/* The fields and numbers of a step of n earlier directions. */
typedef struct gcr_case {
  cut_t cut;
  int n;
  block_t w[MOST + 1], z[MOST + 1], x, r, next;
  double complex dots[(MOST + 2) * LANES], norm2[(MOST + 1) * LANES];
  uint8_t mask[LANES];
} gcr_case_t;

/* In lane 1 of several nothing is left of |w_n|^2 but rounding, lane 2 is masked,
 * in lane 3 a norm is 0. */
static gcr_case_t case_make(const kit_t *kit, cut_t cut, int n) {
  gcr_case_t t = {.cut = cut, .n = n};
  const int nrhs = cut.nrhs;
  for (int k = 0; k <= n; k++) {
    t.w[k] = block_make(kit, cut, 10 + (uint64_t)k);
    t.z[k] = block_make(kit, cut, 30 + (uint64_t)k);
  }
  t.x = block_make(kit, cut, 51);
  t.r = block_make(kit, cut, 52);
  t.next = block_make(kit, cut, 53);
  for (int i = 0; i < nrhs; i++) {
    double taken = 0;
    for (int k = 0; k < n; k++) {
      t.norm2[k * nrhs + i] = i == 3 && k == 0 ? 0 : 2 + 0.1 * k + 0.3 * i;
      t.dots[k * nrhs + i] = cexp(0.7 * I * (k + 3 * i)) * (0.3 + 0.1 * k);
      if (t.norm2[k * nrhs + i] != 0)
        taken += pow(cabs(t.dots[k * nrhs + i]), 2) / creal(t.norm2[k * nrhs + i]);
    }
    t.dots[n * nrhs + i] = i == 1 && n > 0 ? taken * (1 + 1e-8) : taken + 1.5 + 0.1 * i;
    t.dots[(n + 1) * nrhs + i] = 0.8 - 0.2 * I * (i + 1);
    t.mask[i] = i != 2;
  }
  return t;
}

static void case_free(const kit_t *kit, gcr_case_t *t) {
  for (int k = 0; k <= t->n; k++) {
    block_free(kit, &t->w[k]);
    block_free(kit, &t->z[k]);
  }
  block_free(kit, &t->x);
  block_free(kit, &t->r);
  block_free(kit, &t->next);
}

static void add(const kit_t *kit, const gcr_case_t *t, double complex *y, double complex c,
                const double complex *f) {
  for (size_t j = 0; j < kit_components(kit); j++)
    if (component_in(kit, t->cut.subset, j)) y[j] += c * f[j];
}

/* The step on the host's vectors of one lane; |w_n|^2 afterwards. */
static double plain_step(const kit_t *kit, gcr_case_t *t, int i, bool x_zero) {
  const int n = t->n, nrhs = t->cut.nrhs;
  double size = creal(t->dots[n * nrhs + i]), left = size;
  for (int k = 0; k < n; k++) {
    double norm2 = creal(t->norm2[k * nrhs + i]);
    double complex c = norm2 == 0 ? 0 : t->dots[k * nrhs + i] / norm2;
    if (!t->mask[i]) c = 0;
    add(kit, t, t->w[n].x[i], -c, t->w[k].x[i]);
    add(kit, t, t->z[n].x[i], -c, t->z[k].x[i]);
    left -= pow(cabs(c), 2) * norm2;
  }
  if (left < 1e-6 * size) left = 0;
  double complex a = left == 0 || !t->mask[i] ? 0 : conj(t->dots[(n + 1) * nrhs + i]) / left;
  for (size_t j = 0; x_zero && j < kit_components(kit); j++)
    if (component_in(kit, t->cut.subset, j)) t->x.x[i][j] = 0;
  add(kit, t, t->x.x[i], a, t->z[n].x[i]);
  add(kit, t, t->r.x[i], -a, t->w[n].x[i]);
  return left;
}

static void expect_block(const kit_t *kit, const gcr_case_t *t, const block_t *b, int i,
                         const double complex *want, const char *what) {
  double complex *now = block_get(kit, b, i);
  double off = block_off(kit, now, want);
  cr_expect(off < blas_tolerance(t->cut.prec) * (1 + t->n), "%s, n %d: %s of rhs %d is off by %g",
            cut_text(t->cut), t->n, what, i, off);
  free(now);
}

static void expect_step(const kit_t *kit, cut_t cut, int n, bool x_zero) {
  gcr_case_t t = case_make(kit, cut, n);
  const int nrhs = cut.nrhs;
  double *dots = device_scalars(kit, t.dots, (n + 2) * nrhs);
  double *norm2 = device_scalars(kit, t.norm2, (n + 1) * nrhs);
  uint8_t *mask = device_mask(kit, t.mask, nrhs);
  qk_gcr_args_t args = {.n = n,
                        .x_zero = x_zero,
                        .x = t.x.v,
                        .r = t.r.v,
                        .next = t.next.v,
                        .dots = dots,
                        .mask = mask};
  for (int k = 0; k <= n; k++) {
    args.w[k] = t.w[k].v;
    args.z[k] = t.z[k].v;
    args.norm2[k] = norm2 + 2 * k * nrhs;
  }
  kit_must(kit, kit->ops->gcr_step(kit->ctx, &args), "gcr_step");
  double complex after[(MOST + 1) * LANES];
  read_scalars(kit, norm2, after, (n + 1) * nrhs);
  for (int i = 0; i < nrhs; i++) {
    double left = plain_step(kit, &t, i, x_zero);
    expect_block(kit, &t, &t.w[n], i, t.w[n].x[i], "w");
    expect_block(kit, &t, &t.z[n], i, t.z[n].x[i], "z");
    expect_block(kit, &t, &t.x, i, t.x.x[i], "x");
    expect_block(kit, &t, &t.r, i, t.r.x[i], "r");
    for (size_t j = 0; j < kit_components(kit); j++)
      if (component_in(kit, cut.subset, j)) t.next.x[i][j] = t.r.x[i][j];
    expect_block(kit, &t, &t.next, i, t.next.x[i], "next");
    double complex norm = after[n * nrhs + i];
    cr_expect(!t.mask[i] || cabs(norm - left) <= 1e-12, "%s, n %d: |w|^2 of rhs %d: %g, not %g",
              cut_text(cut), n, i, creal(norm), left);
  }
  kit_free(kit, mask);
  kit_free(kit, norm2);
  kit_free(kit, dots);
  case_free(kit, &t);
}

static void check_steps(const kit_t *kit) {
  const int counts[] = {0, 1, MOST};
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < 3; j++)
      if (cuts[i].nrhs <= LANES && cut_exists_without_colours(kit, cuts[i]))
        expect_step(kit, cuts[i], counts[j], (i + j) % 2 == 0);
}

Test(krylov, steps_agree_with_plain_loops) {
  each_ncomp_of_spinors(check_steps);
}

Test(krylov, steps_that_do_not_fit_are_refused) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, 3, false, QK_EVEN}, other = {QK_SINGLE, 4, false, QK_EVEN},
              wide = {QK_DOUBLE, 3, false, QK_EVEN};
  block_t a = block_make(&kit, cut, 1), b = block_make(&kit, other, 2),
          h = block_make(&kit, wide, 3);
  double complex zero[12] = {0};
  double *s = device_scalars(&kit, zero, 12);
  const qk_gcr_args_t good = {.x = a.v, .r = a.v, .w = {a.v}, .z = {a.v}, .dots = s, .norm2 = {s}};
  qk_gcr_args_t bad[6] = {good, good, good, good, good, good};
  bad[0].n = QK_GCR_MAX;
  bad[1].n = -1;
  bad[2].x = b.v;
  bad[3].next = b.v;
  bad[4].norm2[0] = NULL;
  bad[5].w[0] = h.v;
  for (int i = 0; i < 6; i++)
    cr_expect(kit.ops->gcr_step(kit.ctx, &bad[i]) == QK_BAD_ARGUMENT, "case %d", i);
  kit_free(&kit, s);
  block_free(&kit, &h);
  block_free(&kit, &b);
  block_free(&kit, &a);
  kit_close(&kit);
}

/* ---- gram_solve ------------------------------------------------------------------------------ */

enum { LENGTH = 20, MOST_DOTS = (QK_GRAM_MAX + 1) * (QK_GRAM_MAX + 2) / 2 };

/* Vectors 0 .. n of a RHS; where `twice`, vector 2 repeats vector 1. */
static void vectors(int n, int rhs, bool twice, double complex v[][LENGTH]) {
  for (int i = 0; i <= n; i++)
    for (int j = 0; j < LENGTH; j++)
      v[i][j] = sin(1.3 * i * i + 2.1 * j + 0.7 * rhs) + I * cos(0.9 * i + j * j + rhs);
  for (int j = 0; twice && n >= 2 && j < LENGTH; j++) v[2][j] = (2 - I) * v[1][j];
}

static double complex product(const double complex *a, const double complex *b) {
  double complex sum = 0;
  for (int j = 0; j < LENGTH; j++) sum += conj(a[j]) * b[j];
  return sum;
}

/* What is left of v_0 must be orthogonal to all others. */
static void expect_least(int n, int nrhs, int rhs, bool twice, const double complex *y) {
  double complex v[QK_GRAM_MAX + 1][LENGTH];
  vectors(n, rhs, twice, v);
  for (int i = 0; i < n; i++)
    for (int j = 0; j < LENGTH; j++) v[0][j] -= y[i * nrhs + rhs] * v[i + 1][j];
  for (int i = 1; i <= n; i++)
    cr_expect(cabs(product(v[i], v[0])) < 1e-10, "n %d of %d, rhs %d: vector %d: %g", n, nrhs, rhs,
              i, cabs(product(v[i], v[0])));
  cr_expect(!twice || n < 2 || y[nrhs + rhs] == 0, "a dependent vector counts for nothing");
}

Test(krylov, least_squares_leave_what_is_orthogonal) {
  const int batch[] = {1, 5, QK_MAX_RHS};
  kit_t kit;
  block_kit_open(&kit);
  for (int b = 0; b < 3; b++)
    for (int n = 1; n <= QK_GRAM_MAX; n++) {
      const int nrhs = batch[b];
      double complex dots[MOST_DOTS * QK_MAX_RHS], y[QK_GRAM_MAX * QK_MAX_RHS] = {0};
      for (int rhs = 0; rhs < nrhs; rhs++) {
        double complex v[QK_GRAM_MAX + 1][LENGTH];
        vectors(n, rhs, rhs == 3, v);
        for (int j = 0; j <= n; j++)
          for (int i = 0; i <= j; i++)
            dots[(j * (j + 1) / 2 + i) * nrhs + rhs] = rhs == 4 ? NAN : product(v[i], v[j]);
      }
      double *in = device_scalars(&kit, dots, (n + 1) * (n + 2) / 2 * nrhs);
      double *out = device_scalars(&kit, y, n * nrhs);
      qk_gram_args_t args = {.n = n, .nrhs = nrhs, .dots = in, .y = out};
      kit_must(&kit, kit.ops->gram_solve(kit.ctx, &args), "gram_solve");
      read_scalars(&kit, out, y, n * nrhs);
      for (int rhs = 0; rhs < nrhs; rhs++) {
        if (rhs != 4) expect_least(n, nrhs, rhs, rhs == 3, y);
        for (int i = 0; rhs == 4 && i < n; i++) cr_expect(y[i * nrhs + rhs] == 0);
      }
      kit_free(&kit, out);
      kit_free(&kit, in);
    }
  kit_close(&kit);
}

Test(krylov, least_squares_that_do_not_fit_are_refused) {
  kit_t kit;
  block_kit_open(&kit);
  double complex zero[64] = {0};
  double *s = device_scalars(&kit, zero, 64);
  const qk_gram_args_t bad[] = {{.n = 0, .nrhs = 1, .dots = s, .y = s},
                                {.n = 9, .nrhs = 1, .dots = s, .y = s},
                                {.n = 1, .nrhs = 0, .dots = s, .y = s},
                                {.n = 1, .nrhs = 65, .dots = s, .y = s},
                                {.n = 1, .nrhs = 1, .y = s},
                                {.n = 1, .nrhs = 1, .dots = s}};
  for (int i = 0; i < 6; i++)
    cr_expect(kit.ops->gram_solve(kit.ctx, &bad[i]) == QK_BAD_ARGUMENT, "case %d", i);
  kit_free(&kit, s);
  kit_close(&kit);
}
