/* site_ratios against plain loops: |r|^2 / |x|^2 summed over sites. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_RHS = 11 };

typedef struct pair {
  cut_t cut;
  block_t r, x;
} pair_t;

static pair_t pair_make(const kit_t *kit, cut_t cut) {
  return (pair_t){.cut = cut, .r = block_make(kit, cut, 5), .x = block_make(kit, cut, 6)};
}

static void pair_free(const kit_t *kit, pair_t *p) {
  block_free(kit, &p->r);
  block_free(kit, &p->x);
}

static void run(const kit_t *kit, const pair_t *p, double complex out[MAX_RHS]) {
  memset(out, 0, MAX_RHS * sizeof *out);
  double *red = device_scalars(kit, out, p->cut.nrhs);
  const qk_site_ratios_args_t args = {.r = p->r.v, .x = p->x.v, .red = red};
  kit_must(kit, kit->ops->site_ratios(kit->ctx, &args), "site_ratios");
  read_scalars(kit, red, out, p->cut.nrhs);
  kit_free(kit, red);
}

static double complex plain(const kit_t *kit, const pair_t *p, int rhs) {
  double complex sum = 0;
  for (size_t at = 0; at < kit_components(kit); at += (size_t)kit->ncomp) {
    long double r2 = 0, x2 = 0; /* whose range is larger */
    if (!component_in(kit, p->cut.subset, at)) continue;
    for (size_t c = at; c < at + (size_t)kit->ncomp; c++) {
      const long double rr = creal(p->r.x[rhs][c]), ri = cimag(p->r.x[rhs][c]);
      const long double xr = creal(p->x.x[rhs][c]), xi = cimag(p->x.x[rhs][c]);
      r2 += rr * rr + ri * ri;
      x2 += xr * xr + xi * xi;
    }
    sum += x2 == 0 ? I : (double)(r2 / x2);
  }
  return sum;
}

static void expect(const kit_t *kit, const pair_t *p, const char *what) {
  double complex out[MAX_RHS];
  run(kit, p, out);
  for (int rhs = 0; rhs < p->cut.nrhs; rhs++) {
    const double complex want = plain(kit, p, rhs);
    cr_expect(fabs(creal(out[rhs]) / creal(want) - 1) < 1e-13 && cimag(out[rhs]) == cimag(want),
              "%s, %s, ncomp %d: rhs %d: %.17g and %g, not %.17g and %g", what, cut_text(p->cut),
              kit->ncomp, rhs, creal(out[rhs]), cimag(out[rhs]), creal(want), cimag(want));
  }
}

/* Every seventh site of x is 0, and every seventh + 3 so small that its square is 0. */
static void make_holes(const kit_t *kit, const pair_t *p, double small) {
  for (int rhs = 0; rhs < p->cut.nrhs; rhs++) {
    double complex *x = kit_vector(kit), *r = kit_vector(kit);
    for (size_t c = 0; c < kit_components(kit); c++) {
      const size_t site = c / (size_t)kit->ncomp;
      const double factor = site % 7 == 0 ? 0 : site % 7 == 3 ? small : 1;
      x[c] = p->x.x[rhs][c] * factor;
      r[c] = p->r.x[rhs][c] * (site % 7 == 3 ? small : 1);
    }
    block_set(kit, (block_t *)&p->x, rhs, x);
    block_set(kit, (block_t *)&p->r, rhs, r);
    free(x);
    free(r);
  }
}

static void check_all(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    if (qk_prec_scaled(cuts[i].prec) || !cut_exists(kit, cuts[i])) continue;
    pair_t p = pair_make(kit, cuts[i]);
    expect(kit, &p, "random");
    make_holes(kit, &p, cuts[i].prec == QK_DOUBLE ? 1e-250 : 1e-30);
    expect(kit, &p, "with zeros");
    pair_free(kit, &p);
  }
}

Test(site_ratios, agree_with_plain_loops_also_where_x_is_zero_or_its_square_is) {
  each_ncomp(check_all);
}

Test(site_ratios, nan_in_one_lane_changes_no_bit_of_the_others) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_DOUBLE, MAX_RHS, false, QK_FULL};
  pair_t p = pair_make(&kit, cut);
  double complex clean[MAX_RHS], dirty[MAX_RHS], *bad = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) bad[i] = NAN;
  run(&kit, &p, clean);
  block_set(&kit, &p.x, 3, bad);
  run(&kit, &p, dirty);
  for (int rhs = 0; rhs < MAX_RHS; rhs++) {
    if (rhs == 3)
      cr_expect(isnan(creal(dirty[rhs])));
    else
      cr_expect_arr_eq(&dirty[rhs], &clean[rhs], sizeof clean[rhs], "rhs %d", rhs);
  }
  free(bad);
  pair_free(&kit, &p);
  kit_close(&kit);
}

static void expect_refused(const kit_t *kit, qk_site_ratios_args_t args, const char *word) {
  const char *said = "";
  const qk_status_t status = kit->ops->site_ratios(kit->ctx, &args);
  if (status != QK_OK) said = kit->ops->last_error(kit->ctx);
  cr_expect(status == QK_BAD_ARGUMENT && strstr(said, word), "%s: %s", word, said);
}

Test(site_ratios, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  double complex none[3] = {0};
  pair_t p = pair_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL});
  pair_t half = pair_make(&kit, (cut_t){QK_HALF, 3, false, QK_FULL});
  double *red = device_scalars(&kit, none, 3);
  const qk_site_ratios_args_t good = {.r = p.r.v, .x = p.x.v, .red = red};
  qk_site_ratios_args_t bad = good;
  bad.x.prec = QK_DOUBLE;
  expect_refused(&kit, bad, "field 1: prec = ");
  bad = good;
  bad.x.nrhs = 2;
  expect_refused(&kit, bad, "field 1: nrhs, ntile, nsites");
  bad = good;
  bad.r.data = NULL;
  expect_refused(&kit, bad, "field 0: data");
  bad = good;
  bad.red = NULL;
  expect_refused(&kit, bad, "red is missing");
  expect_refused(&kit, (qk_site_ratios_args_t){half.r.v, half.x.v, red}, "double (");
  kit_free(&kit, red);
  pair_free(&kit, &half);
  pair_free(&kit, &p);
  kit_close(&kit);
}
