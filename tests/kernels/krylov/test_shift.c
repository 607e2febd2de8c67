/* shift_step against plain loops: several shifts of multi-shift CG. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_RHS = 11, MAX_N = 3, EACH = 1 + QK_SHIFT_RESIDUALS };

typedef struct shifts {
  cut_t cut;
  int n, nr;
  block_t x[MAX_N], p[MAX_N], r[QK_SHIFT_RESIDUALS];
  double complex c[MAX_N * 2 * EACH * MAX_RHS];
} shifts_t;

static shifts_t *shifts_make(const kit_t *kit, cut_t cut, int n, int nr) {
  shifts_t *s = calloc(1, sizeof *s);
  cr_assert_not_null(s);
  cut_t wide = cut;
  wide.prec = QK_DOUBLE;
  s->cut = cut;
  s->n = n;
  s->nr = nr;
  for (int k = 0; k < n; k++) {
    s->x[k] = block_make(kit, wide, (uint64_t)k + 1);
    s->p[k] = block_make(kit, cut, (uint64_t)k + 40);
  }
  for (int i = 0; i < nr; i++) s->r[i] = block_make(kit, cut, (uint64_t)i + 80);
  for (int i = 0; i < n * 2 * (1 + nr) * cut.nrhs; i++)
    s->c[i] = cos(0.9 * i) + I * 100; /* imaginary parts do not count */
  return s;
}

static void shifts_free(const kit_t *kit, shifts_t *s) {
  for (int k = 0; k < s->n; k++) {
    block_free(kit, &s->x[k]);
    block_free(kit, &s->p[k]);
  }
  for (int i = 0; i < s->nr; i++) block_free(kit, &s->r[i]);
  free(s);
}

static qk_shift_args_t args_of(const shifts_t *s, const double *c) {
  qk_shift_args_t args = {.n = s->n, .nr = s->nr, .c = c};
  for (int k = 0; k < s->n; k++) {
    args.x[k] = s->x[k].v;
    args.p[k] = s->p[k].v;
  }
  for (int i = 0; i < s->nr; i++) args.r[i] = s->r[i].v;
  return args;
}

static void run(const kit_t *kit, const shifts_t *s) {
  double *c = device_scalars(kit, s->c, s->n * 2 * (1 + s->nr) * s->cut.nrhs);
  const qk_shift_args_t args = args_of(s, c);
  kit_must(kit, kit->ops->shift_step(kit->ctx, &args), "shift_step");
  kit_free(kit, c);
}

/* What becomes of x_k (which: 0) or p_k (1). */
static double complex *plain(const kit_t *kit, const shifts_t *s, int k, int which, int rhs) {
  double complex *out = kit_vector(kit);
  for (size_t j = 0; j < kit_components(kit); j++) {
    const double complex *c = s->c + ((2 * k + which) * (1 + s->nr)) * s->cut.nrhs + rhs;
    const double complex old = which ? s->p[k].x[rhs][j] : s->x[k].x[rhs][j];
    out[j] = old;
    if (!component_in(kit, s->cut.subset, j)) continue;
    out[j] = (which ? 0 : old) + creal(c[0]) * s->p[k].x[rhs][j];
    for (int i = 0; i < s->nr; i++) out[j] += creal(c[(i + 1) * s->cut.nrhs]) * s->r[i].x[rhs][j];
  }
  return out;
}

static void expect(const kit_t *kit, cut_t cut, int n, int nr) {
  shifts_t *s = shifts_make(kit, cut, n, nr);
  run(kit, s);
  for (int k = 0; k < n; k++)
    for (int i = 0; i < 2 * cut.nrhs; i++) {
      const int which = i % 2, rhs = i / 2;
      double complex *want = plain(kit, s, k, which, rhs),
                     *got = block_get(kit, which ? &s->p[k] : &s->x[k], rhs);
      const double off = block_off(kit, got, want);
      cr_expect(off < (1 + nr / 2.0) * blas_tolerance(cut.prec),
                "%s, ncomp %d: %d shifts, %d residuals: %s of %d, rhs %d is off by %g",
                cut_text(cut), kit->ncomp, n, nr, which ? "p" : "x", k, rhs, off);
      free(got);
      free(want);
    }
  shifts_free(kit, s);
}

static void check_all(const kit_t *kit) {
  const int n[] = {1, MAX_N, 2, MAX_N}, nr[] = {QK_SHIFT_RESIDUALS, 1, 3, QK_SHIFT_RESIDUALS};
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < 4; j++)
      if (!qk_prec_scaled(cuts[i].prec) && cut_exists(kit, cuts[i]))
        expect(kit, cuts[i], n[j], nr[j]);
}

Test(shift_step, agrees_with_plain_loops) {
  each_ncomp(check_all);
}

Test(shift_step, nan_in_one_lane_changes_no_bit_of_the_others) {
  const cut_t cut = {QK_SINGLE, MAX_RHS, false, QK_FULL};
  kit_t kit;
  block_kit_open(&kit);
  double complex *bad = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) bad[i] = NAN;
  shifts_t *clean = shifts_make(&kit, cut, 2, 2), *dirty = shifts_make(&kit, cut, 2, 2);
  block_set(&kit, &dirty->r[1], 3, bad);
  run(&kit, clean);
  run(&kit, dirty);
  for (int rhs = 0; rhs < MAX_RHS; rhs++) {
    double complex *a = block_get(&kit, &clean->x[1], rhs), *b = block_get(&kit, &dirty->x[1], rhs);
    if (rhs == 3)
      cr_expect(isnan(creal(b[0])));
    else
      cr_expect_arr_eq(b, a, kit_components(&kit) * sizeof *a, "rhs %d", rhs);
    free(a);
    free(b);
  }
  shifts_free(&kit, dirty);
  shifts_free(&kit, clean);
  free(bad);
  kit_close(&kit);
}

/* Zeros as coefficients, and one for p, leave what is there. */
Test(shift_step, does_nothing_where_coefficients_are_zero_and_that_of_p_is_one) {
  const cut_t cut = {QK_SINGLE, MAX_RHS, false, QK_EVEN};
  kit_t kit;
  block_kit_open(&kit);
  shifts_t *s = shifts_make(&kit, cut, 1, 4);
  for (int i = 0; i < 2 * 5 * MAX_RHS; i++)
    if (i % MAX_RHS == 4) s->c[i] = i / MAX_RHS == 5;
  run(&kit, s);
  double complex *x = block_get(&kit, &s->x[0], 4), *p = block_get(&kit, &s->p[0], 4);
  cr_expect_arr_eq(x, s->x[0].x[4], kit_components(&kit) * sizeof *x);
  cr_expect_arr_eq(p, s->p[0].x[4], kit_components(&kit) * sizeof *p);
  free(p);
  free(x);
  shifts_free(&kit, s);
  kit_close(&kit);
}

static void expect_refused(const kit_t *kit, qk_shift_args_t args, const char *word) {
  const qk_status_t status = kit->ops->shift_step(kit->ctx, &args);
  const char *said = status != QK_OK ? kit->ops->last_error(kit->ctx) : "";
  cr_expect(status == QK_BAD_ARGUMENT && strstr(said, word), "%s: %s", word, said);
}

Test(shift_step, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  shifts_t *s = shifts_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 2, 2),
           *half = shifts_make(&kit, (cut_t){QK_HALF, 3, false, QK_FULL}, 1, 1);
  double *c = device_scalars(&kit, s->c, 2 * 2 * 3 * 3);
  const qk_shift_args_t good = args_of(s, c);
  qk_shift_args_t bad = good;
  bad.n = 0;
  expect_refused(&kit, bad, "n = 0");
  bad.n = QK_SHIFTS_MAX + 1;
  expect_refused(&kit, bad, "n = 33");
  bad = good;
  bad.nr = QK_SHIFT_RESIDUALS + 1;
  expect_refused(&kit, bad, "nr = 9");
  bad = good;
  bad.p[1].prec = QK_DOUBLE;
  expect_refused(&kit, bad, "field 3: prec = ");
  bad = good;
  bad.x[1] = s->r[0].v;
  expect_refused(&kit, bad, "field 1: prec = 1: double (0)");
  bad = good;
  bad.r[0].nrhs = 2;
  expect_refused(&kit, bad, "field 4: nrhs, ntile, nsites");
  bad = good;
  bad.r[1].data = bad.x[0].data;
  expect_refused(&kit, bad, "field 5: is field 0");
  bad = good;
  bad.c = NULL;
  expect_refused(&kit, bad, "c is missing");
  expect_refused(&kit, args_of(half, c), "double (");
  kit_free(&kit, c);
  shifts_free(&kit, half);
  shifts_free(&kit, s);
  kit_close(&kit);
}
