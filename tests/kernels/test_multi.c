/* Many fields against one: multi_dot and multi_axpy against plain loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_RHS = 11, MAX_N = 10 };

/* n fields, y, and the arrays of a call. d[k][rhs] is 0 for k == 2, where the
 * quotient must count as 0. */
typedef struct many {
  cut_t cut;
  int n;
  block_t f[MAX_N], y;
  double complex c[MAX_N * MAX_RHS], d[MAX_N * MAX_RHS];
  uint8_t mask[MAX_N * MAX_RHS];
} many_t;

static many_t many_make(const kit_t *kit, cut_t cut, int n) {
  many_t m = {.cut = cut, .n = n, .y = block_make(kit, cut, 99)};
  for (int k = 0; k < n; k++) m.f[k] = block_make(kit, cut, (uint64_t)k + 1);
  for (int i = 0; i < n * cut.nrhs; i++) {
    m.c[i] = cexp(0.7 * I * i) * (0.3 + 0.01 * i);
    m.d[i] = i / cut.nrhs == 2 ? 0 : 2 - 0.1 * I * i;
    m.mask[i] = i % 3 != 1;
  }
  return m;
}

static void many_free(const kit_t *kit, many_t *m) {
  for (int k = 0; k < m->n; k++) block_free(kit, &m->f[k]);
  block_free(kit, &m->y);
}

static qk_multi_args_t many_args(const many_t *m) {
  qk_multi_args_t args = {.n = m->n, .y = m->y.v, .sign = 1};
  for (int k = 0; k < m->n; k++) args.f[k] = m->f[k].v;
  return args;
}

/* The fields as they are, or with NaN wherever the mask hides it. */
static void hide_nan(const kit_t *kit, many_t *m) {
  double complex *bad = kit_vector(kit);
  for (size_t i = 0; i < kit_components(kit); i++) bad[i] = NAN;
  for (int k = 0; k < m->n; k++)
    for (int rhs = 0; rhs < m->cut.nrhs; rhs++)
      if (!m->mask[k * m->cut.nrhs + rhs]) block_set(kit, &m->f[k], rhs, bad);
  free(bad);
}

static void expect_dots(const kit_t *kit, cut_t cut, int n, bool masked) {
  many_t m = many_make(kit, cut, n);
  const int nrhs = cut.nrhs, results = n * nrhs;
  double complex red[MAX_N * MAX_RHS] = {0};
  if (masked) hide_nan(kit, &m);
  uint8_t *mask = masked ? device_mask(kit, m.mask, results) : NULL;
  double *out = device_scalars(kit, red, results);
  qk_multi_args_t args = many_args(&m);
  args.mask = mask;
  args.red = out;
  kit_must(kit, kit->ops->multi_dot(kit->ctx, &args), "multi_dot");
  read_scalars(kit, out, red, results);
  for (int i = 0; i < results; i++) {
    const int k = i / nrhs, rhs = i % nrhs;
    double complex sum = 0;
    for (size_t j = 0; j < kit_components(kit); j++)
      if (component_in(kit, cut.subset, j)) sum += conj(m.f[k].x[rhs][j]) * m.y.x[rhs][j];
    if (masked && !m.mask[i]) sum = 0;
    const double off = cabs(red[i] - sum) / (double)kit_components(kit);
    cr_expect(off < (cut.prec == QK_DOUBLE ? 1e-14 : 1e-7),
              "%s: n %d%s: result %d, rhs %d is off by %g", cut_text(cut), n,
              masked ? " masked" : "", k, rhs, off);
  }
  kit_free(kit, out);
  kit_free(kit, mask);
  many_free(kit, &m);
}

/* Every third column fresh, and NaN in it. */
static uint8_t *make_fresh(const kit_t *kit, many_t *m, uint8_t on[MAX_RHS]) {
  double complex *bad = kit_vector(kit);
  for (size_t i = 0; i < kit_components(kit); i++) bad[i] = NAN;
  for (int rhs = 0; rhs < m->cut.nrhs; rhs++) {
    on[rhs] = rhs % 3 == 1;
    if (on[rhs]) block_set(kit, &m->y, rhs, bad);
  }
  free(bad);
  return device_mask(kit, on, m->cut.nrhs);
}

static void expect_update(const kit_t *kit, cut_t cut, int n, bool masked, bool divided,
                          bool renewed) {
  many_t m = many_make(kit, cut, n);
  const int nrhs = cut.nrhs, all = n * nrhs;
  uint8_t on[MAX_RHS] = {0};
  if (masked) hide_nan(kit, &m);
  uint8_t *mask = masked ? device_mask(kit, m.mask, all) : NULL;
  uint8_t *fresh = renewed ? make_fresh(kit, &m, on) : NULL;
  double *c = device_scalars(kit, m.c, all), *d = divided ? device_scalars(kit, m.d, all) : NULL;
  qk_multi_args_t args = many_args(&m);
  args.mask = mask;
  args.fresh = fresh;
  args.c = c;
  args.d = d;
  args.sign = divided ? -1 : 1;
  kit_must(kit, kit->ops->multi_axpy(kit->ctx, &args), "multi_axpy");
  for (int rhs = 0; rhs < nrhs; rhs++) {
    double complex *y = m.y.x[rhs], *now = block_get(kit, &m.y, rhs);
    for (size_t j = 0; on[rhs] && j < kit_components(kit); j++) y[j] = 0;
    for (int k = 0; k < n; k++) {
      const int i = k * nrhs + rhs;
      double complex factor = m.c[i];
      if (divided) factor = m.d[i] == 0 ? 0 : -m.c[i] / m.d[i];
      if (masked && !m.mask[i]) continue;
      for (size_t j = 0; j < kit_components(kit); j++)
        if (component_in(kit, cut.subset, j)) y[j] += factor * m.f[k].x[rhs][j];
    }
    const double off = block_off(kit, now, y);
    cr_expect(off < blas_tolerance(cut.prec) * (1 + n / 4.0), "%s: n %d%s%s%s: rhs %d is off by %g",
              cut_text(cut), n, masked ? " masked" : "", divided ? " divided" : "",
              on[rhs] ? " fresh" : "", rhs, off);
    free(now);
  }
  kit_free(kit, c);
  kit_free(kit, d);
  kit_free(kit, fresh);
  kit_free(kit, mask);
  many_free(kit, &m);
}

static const int counts[] = {1, 3, 8, MAX_N};

static void check_dots(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < 4; j++)
      if (cuts[i].subset != QK_ODD && cut_exists(kit, cuts[i]))
        expect_dots(kit, cuts[i], counts[j], (i + j) % 2 == 1);
}

Test(multi, dots_agree_with_plain_loops) {
  each_ncomp(check_dots);
}

static void check_updates(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    if (cuts[i].subset == QK_ODD || !cut_exists(kit, cuts[i])) continue;
    for (int j = 0; j < 4; j++)
      expect_update(kit, cuts[i], counts[j], (i + j) % 2 == 1, i % 2 == 1, j % 2 == 1);
    expect_update(kit, cuts[i], 0, false, false, true);
  }
}

Test(multi, updates_agree_with_plain_loops) {
  each_ncomp(check_updates);
}

/* A column whose every field is masked keeps its bits, in half too. */
static void check_masked_column(const kit_t *kit) {
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    const cut_t cut = {(qk_prec_t)prec, MAX_RHS, false, QK_FULL};
    if (!cut_exists(kit, cut)) continue;
    many_t m = many_make(kit, cut, 2);
    for (int i = 0; i < 2 * MAX_RHS; i++) m.mask[i] = i % MAX_RHS != 4;
    uint8_t *mask = device_mask(kit, m.mask, 2 * MAX_RHS);
    double *c = device_scalars(kit, m.c, 2 * MAX_RHS);
    qk_multi_args_t args = many_args(&m);
    args.mask = mask;
    args.c = c;
    kit_must(kit, kit->ops->multi_axpy(kit->ctx, &args), "multi_axpy");
    double complex *now = block_get(kit, &m.y, 4);
    cr_expect_arr_eq(now, m.y.x[4], kit_components(kit) * sizeof *now);
    free(now);
    kit_free(kit, c);
    kit_free(kit, mask);
    many_free(kit, &m);
  }
}

Test(multi, update_leaves_a_fully_masked_column_alone) {
  each_ncomp(check_masked_column);
}

/* Dot products of all QK_MULTI_MAX fields in one call are those of one field
 * at a time, bit by bit. */
static void check_counts(const kit_t *kit) {
  const cut_t cut = {QK_SINGLE, 2, false, QK_FULL};
  many_t m = many_make(kit, cut, MAX_N);
  double complex red[QK_MULTI_MAX * 2] = {0}, one[2];
  double *out = device_scalars(kit, red, QK_MULTI_MAX * 2);
  qk_multi_args_t args = many_args(&m), single = args;
  args.n = QK_MULTI_MAX;
  single.n = 1;
  args.red = single.red = out;
  for (int k = 0; k < QK_MULTI_MAX; k++) args.f[k] = m.f[k % MAX_N].v;
  kit_must(kit, kit->ops->multi_dot(kit->ctx, &args), "multi_dot");
  read_scalars(kit, out, red, QK_MULTI_MAX * 2);
  for (int k = 0; k < QK_MULTI_MAX; k++) {
    single.f[0] = args.f[k];
    kit_must(kit, kit->ops->multi_dot(kit->ctx, &single), "multi_dot");
    read_scalars(kit, out, one, 2);
    cr_expect_arr_eq(one, red + 2 * k, sizeof one, "field %d", k);
  }
  kit_free(kit, out);
  many_free(kit, &m);
}

Test(multi, dot_does_not_depend_on_how_many_fields_there_are) {
  each_ncomp(check_counts);
}

/* Adds n fields to y, which it makes; x: what y holds then. */
static void add_fields(const kit_t *kit, cut_t cut, const many_t *m, const block_t *f, int n,
                       double complex **x) {
  block_t y = block_make(kit, cut, 99);
  double *c = device_scalars(kit, m->c, n * cut.nrhs);
  uint8_t *mask = device_mask(kit, m->mask, n * cut.nrhs);
  qk_multi_args_t args = {.n = n, .y = y.v, .c = c, .mask = mask, .sign = -1};
  for (int k = 0; k < n; k++) args.f[k] = f[k].v;
  kit_must(kit, kit->ops->multi_axpy(kit->ctx, &args), "multi_axpy");
  for (int rhs = 0; rhs < cut.nrhs; rhs++) x[rhs] = block_get(kit, &y, rhs);
  kit_free(kit, mask);
  kit_free(kit, c);
  block_free(kit, &y);
}

static void expect_narrow(const kit_t *kit, cut_t cut, int n) {
  cut_t half = cut;
  half.prec = QK_HALF;
  many_t m = many_make(kit, half, n);
  block_t wide[MAX_N];
  double complex *x[2][MAX_RHS];
  for (int k = 0; k < n; k++) {
    wide[k] = block_make(kit, cut, 7);
    const qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {wide[k].v, m.f[k].v}};
    kit_must(kit, kit->ops->blas(kit->ctx, &copy), "copy");
  }
  add_fields(kit, cut, &m, wide, n, x[0]);
  add_fields(kit, cut, &m, m.f, n, x[1]);
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    cr_expect(memcmp(x[0][rhs], x[1][rhs], kit_components(kit) * sizeof *x[0][rhs]) == 0,
              "%s: n %d: rhs %d", cut_text(cut), n, rhs);
    free(x[0][rhs]);
    free(x[1][rhs]);
  }
  for (int k = 0; k < n; k++) block_free(kit, &wide[k]);
  many_free(kit, &m);
}

Test(multi, fields_in_half_give_a_sum_in_single_the_bits_of_copies_in_single) {
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < 4; j++)
      if (cuts[i].prec == QK_SINGLE) expect_narrow(&kit, cuts[i], counts[j]);
  kit_close(&kit);
}
