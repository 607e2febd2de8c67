/* Small Krylov spaces: inner products of all pairs, and a step along them, against plain
 * loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_RHS = 11, MAX_N = QK_GRAM_MAX, MAX_PAIRS = (MAX_N + 1) * (MAX_N + 2) / 2 };

typedef struct space {
  cut_t cut;
  int n;
  block_t v[MAX_N + 1], x;
  double complex y[MAX_N * MAX_RHS], dots[MAX_PAIRS * MAX_RHS];
} space_t;

static space_t space_make(const kit_t *kit, cut_t cut, int n) {
  space_t s = {.cut = cut, .n = n, .x = block_make(kit, cut, 99)};
  for (int j = 0; j <= n; j++) s.v[j] = block_make(kit, cut, (uint64_t)j + 1);
  for (int i = 0; i < n * cut.nrhs; i++) s.y[i] = cexp(0.7 * I * i) * (0.3 + 0.01 * i);
  return s;
}

static void space_free(const kit_t *kit, space_t *s) {
  for (int j = 0; j <= s->n; j++) block_free(kit, &s->v[j]);
  block_free(kit, &s->x);
}

static qk_space_args_t space_args(const space_t *s) {
  qk_space_args_t a = {.n = s->n, .x = s->x.v};
  for (int j = 0; j <= s->n; j++) a.v[j] = s->v[j].v;
  return a;
}

static void run_dots(const kit_t *kit, space_t *s) {
  const int all = (s->n + 1) * (s->n + 2) / 2 * s->cut.nrhs;
  qk_space_args_t a = space_args(s);
  a.dots = device_scalars(kit, s->dots, all);
  kit_must(kit, kit->ops->space_dots(kit->ctx, &a), "space_dots");
  read_scalars(kit, a.dots, s->dots, all);
  kit_free(kit, a.dots);
}

static void run_step(const kit_t *kit, const space_t *s, bool x_zero, bool last) {
  qk_space_args_t a = space_args(s);
  double *y = device_scalars(kit, s->y, s->n * s->cut.nrhs);
  a.y = y;
  a.x_zero = x_zero;
  a.last = last;
  kit_must(kit, kit->ops->space_step(kit->ctx, &a), "space_step");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  kit_free(kit, y);
}

static void expect_dots(const kit_t *kit, cut_t cut, int n) {
  space_t s = space_make(kit, cut, n);
  run_dots(kit, &s);
  for (int j = 0, k = 0; j <= n; j++)
    for (int i = 0; i <= j; i++, k++)
      for (int rhs = 0; rhs < cut.nrhs; rhs++) {
        double complex sum = 0;
        for (size_t c = 0; c < kit_components(kit); c++)
          if (component_in(kit, cut.subset, c)) sum += conj(s.v[i].x[rhs][c]) * s.v[j].x[rhs][c];
        const double off = cabs(s.dots[k * cut.nrhs + rhs] - sum) / (double)kit_components(kit);
        cr_expect(off < (cut.prec == QK_DOUBLE ? 1e-14 : 1e-7),
                  "%s, ncomp %d, n %d: (%d,%d) of rhs %d is off by %g", cut_text(cut), kit->ncomp,
                  n, i, j, rhs, off);
      }
  space_free(kit, &s);
}

static void expect_vector(const kit_t *kit, cut_t cut, int n, const char *what, const block_t *b,
                          int rhs, const double complex *want) {
  double complex *now = block_get(kit, b, rhs);
  const double off = block_off(kit, now, want);
  cr_expect(off < blas_tolerance(cut.prec) * (1 + n / 4.0),
            "%s, ncomp %d, n %d: %s of rhs %d is off by %g", cut_text(cut), kit->ncomp, n, what,
            rhs, off);
  free(now);
}

/* last: v_0 stays as it was. */
static void expect_step(const kit_t *kit, cut_t cut, int n, bool x_zero, bool last) {
  space_t s = space_make(kit, cut, n);
  run_step(kit, &s, x_zero, last);
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *x = s.x.x[rhs], *r = kit_vector(kit);
    memcpy(r, s.v[0].x[rhs], kit_components(kit) * sizeof *r);
    for (size_t c = 0; c < kit_components(kit); c++) {
      if (!component_in(kit, cut.subset, c)) continue;
      if (x_zero) x[c] = 0;
      for (int i = 0; i < n; i++) {
        x[c] += s.y[i * cut.nrhs + rhs] * s.v[i].x[rhs][c];
        if (!last) r[c] -= s.y[i * cut.nrhs + rhs] * s.v[i + 1].x[rhs][c];
      }
    }
    expect_vector(kit, cut, n, "x", &s.x, rhs, x);
    expect_vector(kit, cut, n, "r", &s.v[0], rhs, r);
    free(r);
  }
  space_free(kit, &s);
}

static const int sizes[] = {1, 2, 4, 6};

static void check_dots(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].subset != QK_EVEN && cut_exists_without_colours(kit, cuts[i]))
      expect_dots(kit, cuts[i], sizes[i % 4]);
}

static void check_steps(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].subset != QK_EVEN && cut_exists_without_colours(kit, cuts[i]))
      for (int k = 0; k < 4; k++) expect_step(kit, cuts[i], sizes[i % 4], k % 2, k / 2);
}

Test(space, dots_agree_with_plain_loops) {
  each_ncomp_of_spinors(check_dots);
}

Test(space, steps_agree_with_plain_loops) {
  each_ncomp_of_spinors(check_steps);
}

/* Half: squares of numbers as small as these are below the range of single. */
Test(space, products_of_small_numbers_do_not_vanish) {
  kit_t kit;
  block_kit_open(&kit);
  for (int prec = QK_SINGLE; prec <= QK_HALF; prec++) {
    space_t s = space_make(&kit, (cut_t){(qk_prec_t)prec, 2, false, QK_FULL}, 2);
    double complex *v = kit_vector(&kit);
    for (int j = 0; j <= 2; j++)
      for (int rhs = 0; rhs < 2; rhs++) {
        for (size_t c = 0; c < kit_components(&kit); c++) v[c] = 1e-22 * (j + 1);
        block_set(&kit, &s.v[j], rhs, v);
      }
    run_dots(&kit, &s);
    const double unit = 1e-44 * (double)kit_components(&kit);
    for (int j = 0, k = 0; j <= 2; j++)
      for (int i = 0; i <= j; i++, k++) {
        const double ratio = creal(s.dots[2 * k]) / (unit * (i + 1) * (j + 1));
        cr_expect_float_eq(ratio, 1, 1e-3, "prec %d: (%d,%d): %g", prec, i, j, ratio);
      }
    free(v);
    space_free(&kit, &s);
  }
  kit_close(&kit);
}

Test(space, nan_in_one_lane_changes_no_bit_of_the_others) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *bad = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) bad[i] = NAN;
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    const cut_t cut = {(qk_prec_t)prec, MAX_RHS, false, QK_FULL};
    space_t clean = space_make(&kit, cut, 4), dirty = space_make(&kit, cut, 4);
    for (int j = 0; j <= 4; j++) block_set(&kit, &dirty.v[j], 3, bad);
    run_dots(&kit, &clean);
    run_dots(&kit, &dirty);
    for (int i = 0; i < 15 * MAX_RHS; i++) {
      if (i % MAX_RHS == 3)
        cr_expect(isnan(creal(dirty.dots[i])), "product %d", i / MAX_RHS);
      else
        cr_expect_arr_eq(&dirty.dots[i], &clean.dots[i], sizeof clean.dots[i], "product %d", i);
    }
    run_step(&kit, &clean, false, false);
    run_step(&kit, &dirty, false, false);
    for (int rhs = 0; rhs < MAX_RHS; rhs++) {
      if (rhs == 3) continue;
      double complex *a = block_get(&kit, &clean.x, rhs), *b = block_get(&kit, &dirty.x, rhs);
      cr_expect_arr_eq(a, b, kit_components(&kit) * sizeof *a, "prec %d, rhs %d", prec, rhs);
      free(a);
      free(b);
    }
    space_free(&kit, &clean);
    space_free(&kit, &dirty);
  }
  free(bad);
  kit_close(&kit);
}

Test(space, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  space_t s = space_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 2);
  double *y = device_scalars(&kit, s.y, 6);
  for (int i = 0; i < 4; i++) {
    static const char *const words[] = {"n = 9", "prec = 0", "is field 0", "y is missing"};
    qk_space_args_t a = space_args(&s);
    a.y = i == 3 ? NULL : y;
    if (i == 0) a.n = 9;
    if (i == 1) a.v[1].prec = QK_DOUBLE;
    if (i == 2) a.x = a.v[0];
    cr_expect_eq(kit.ops->space_step(kit.ctx, &a), QK_BAD_ARGUMENT, "case %d", i);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), words[i]) != NULL, "case %d: %s", i,
              kit.ops->last_error(kit.ctx));
  }
  kit_free(&kit, y);
  space_free(&kit, &s);
  kit_close(&kit);
}
