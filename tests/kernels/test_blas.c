/* Block BLAS against plain loops, and its promises: lanes do not see each other, masked lanes keep
 * their bits, sums have a fixed order. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_RHS = 11 };

/* One call: blocks, scalars and results. */
typedef struct call {
  qk_blas_op_t op;
  blas_counts_t n;
  cut_t cut;
  block_t f[QK_BLAS_MAX_FIELDS];
  double complex c[QK_BLAS_MAX_SCALARS][MAX_RHS];
  double complex red[2 * MAX_RHS];
} call_t;

static const double complex untouched = 12345 - 678 * I;

static call_t call_make(const kit_t *kit, qk_blas_op_t op, cut_t cut) {
  call_t call = {.op = op, .n = blas_counts(op), .cut = cut};
  for (int i = 0; i < call.n.fields; i++)
    call.f[i] = block_make(kit, cut, (uint64_t)op * 8 + (uint64_t)i + 1);
  for (int i = 0; i < call.n.scalars; i++)
    for (int rhs = 0; rhs < cut.nrhs; rhs++)
      call.c[i][rhs] = cexp(I * (1 + 2.7 * i + 0.3 * rhs)) * (0.5 + 0.1 * rhs + 0.07 * i);
  for (int k = 0; k < 2 * MAX_RHS; k++) call.red[k] = untouched;
  return call;
}

static void call_free(const kit_t *kit, call_t *call) {
  for (int i = 0; i < call->n.fields; i++) block_free(kit, &call->f[i]);
}

static qk_status_t call_run(const kit_t *kit, call_t *call, const uint8_t *mask) {
  qk_blas_args_t args = {.op = call->op};
  const int nrhs = call->cut.nrhs, nred = call->n.reductions * nrhs;
  uint8_t *m = mask != NULL ? device_mask(kit, mask, nrhs) : NULL;
  double *red = device_scalars(kit, call->red, 2 * MAX_RHS), *c[QK_BLAS_MAX_SCALARS];
  for (int i = 0; i < call->n.fields; i++) args.f[i] = call->f[i].v;
  for (int i = 0; i < call->n.scalars; i++)
    args.c[i] = c[i] = device_scalars(kit, call->c[i], nrhs);
  args.mask = m;
  args.red = nred > 0 ? red : NULL;
  const qk_status_t status = kit->ops->blas(kit->ctx, &args);
  read_scalars(kit, red, call->red, 2 * MAX_RHS);
  for (int i = 0; i < call->n.scalars; i++) kit_free(kit, c[i]);
  kit_free(kit, red);
  kit_free(kit, m);
  return status;
}

/* Sums of single and half are made in double of values that were rounded to
 * single once or twice. */
static double sum_tolerance(cut_t cut) {
  return cut.prec == QK_DOUBLE ? 1e-13 : 1e-6;
}

static void expect_agreement(const kit_t *kit, qk_blas_op_t op, cut_t cut) {
  call_t call = call_make(kit, op, cut);
  kit_must(kit, call_run(kit, &call, NULL), call.n.name);
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *f[QK_BLAS_MAX_FIELDS], c[QK_BLAS_MAX_SCALARS], red[2];
    for (int i = 0; i < call.n.fields; i++) f[i] = call.f[i].x[rhs];
    for (int i = 0; i < call.n.scalars; i++) c[i] = call.c[i][rhs];
    plain_blas(kit, op, cut.subset, f, c, red);
    for (int i = 0; i < call.n.fields; i++) {
      double complex *now = block_get(kit, &call.f[i], rhs);
      const double off = block_off(kit, now, f[i]);
      cr_expect_lt(off, blas_tolerance(cut.prec), "%s, %s, ncomp %d: field %d, rhs %d is off by %g",
                   call.n.name, cut_text(cut), kit->ncomp, i, rhs, off);
      free(now);
    }
    for (int k = 0; k < call.n.reductions; k++) {
      const double complex got = call.red[k * cut.nrhs + rhs];
      /* A dot product is judged by the size of its terms: compare with |f| |g| ~ components. */
      const double size = fmax(cabs(red[k]), (double)kit_components(kit));
      cr_expect_lt(cabs(got - red[k]), sum_tolerance(cut) * size,
                   "%s, %s, ncomp %d: result %d of rhs %d: %g%+gi is %g%+gi", call.n.name,
                   cut_text(cut), kit->ncomp, k, rhs, creal(red[k]), cimag(red[k]), creal(got),
                   cimag(got));
    }
  }
  for (int k = call.n.reductions * cut.nrhs; k < 2 * MAX_RHS; k++)
    cr_expect(call.red[k] == untouched);
  call_free(kit, &call);
}

static void agree_in(const kit_t *kit, qk_prec_t prec) {
  for (int op = 1; op < QK_BLAS_COUNT; op++)
    for (int i = 0; i < ncuts; i++)
      if (cuts[i].prec == prec && cut_exists(kit, cuts[i]))
        expect_agreement(kit, (qk_blas_op_t)op, cuts[i]);
}

static void agree_in_double(const kit_t *kit) {
  agree_in(kit, QK_DOUBLE);
}
static void agree_in_single(const kit_t *kit) {
  agree_in(kit, QK_SINGLE);
}
static void agree_in_half(const kit_t *kit) {
  agree_in(kit, QK_HALF);
}

Test(blas, agrees_with_plain_loops_in_double) {
  each_ncomp(agree_in_double);
}
Test(blas, agrees_with_plain_loops_in_single) {
  each_ncomp(agree_in_single);
}
Test(blas, agrees_with_plain_loops_in_half) {
  each_ncomp(agree_in_half);
}

static void check_mixed(const kit_t *kit) {
  static const qk_blas_op_t ops[] = {QK_BLAS_COPY, QK_BLAS_ADD};
  for (int o = 0; o < 2; o++)
    for (int i = 0; i < ncuts; i++)
      for (int from = QK_DOUBLE; from <= QK_HALF; from++) {
        cut_t low = cuts[i];
        low.prec = (qk_prec_t)from;
        if (!cut_exists(kit, cuts[i]) || !cut_exists(kit, low)) continue;
        /* half is read as single: 16 bits times a scale */
        const double tolerance =
            blas_tolerance(from == QK_HALF && cuts[i].prec == QK_DOUBLE ? QK_SINGLE : cuts[i].prec);
        call_t call = {.op = ops[o], .n = blas_counts(ops[o]), .cut = cuts[i]};
        call.f[0] = block_make(kit, cuts[i], 1);
        call.f[1] = block_make(kit, low, 2);
        kit_must(kit, call_run(kit, &call, NULL), call.n.name);
        for (int rhs = 0; rhs < cuts[i].nrhs; rhs++) {
          double complex *f[] = {call.f[0].x[rhs], call.f[1].x[rhs]}, none = 0, red[2];
          plain_blas(kit, ops[o], cuts[i].subset, f, &none, red);
          double complex *now = block_get(kit, &call.f[0], rhs);
          const double off = block_off(kit, now, f[0]);
          cr_expect_lt(off, tolerance, "%s of prec %d to %s: rhs %d is off by %g", call.n.name,
                       from, cut_text(cuts[i]), rhs, off);
          free(now);
        }
        call_free(kit, &call);
      }
}

Test(blas, copies_and_adds_between_precisions) {
  each_ncomp(check_mixed);
}

static bool same_bits(const void *a, const void *b, size_t bytes) {
  return memcmp(a, b, bytes) == 0;
}

/* The columns in keep have the bits that they had before the call, fields and results. */
static void expect_untouched(const kit_t *kit, call_t *a, const uint8_t *keep) {
  for (int rhs = 0; rhs < a->cut.nrhs; rhs++) {
    if (!keep[rhs]) continue;
    for (int i = 0; i < a->n.fields; i++) {
      double complex *now = block_get(kit, &a->f[i], rhs);
      cr_expect(same_bits(now, a->f[i].x[rhs], kit_components(kit) * sizeof *now),
                "masked: %s, %s: field %d of rhs %d", a->n.name, cut_text(a->cut), i, rhs);
      free(now);
    }
    for (int k = 0; k < a->n.reductions; k++)
      cr_expect(a->red[k * a->cut.nrhs + rhs] == untouched, "masked: %s, %s: result %d of rhs %d",
                a->n.name, cut_text(a->cut), k, rhs);
  }
}

/* The columns in keep have the same bits in both calls, fields and results. */
static void expect_same_lanes(const kit_t *kit, const char *what, call_t *a, const call_t *b,
                              const uint8_t *keep) {
  const int nrhs = a->cut.nrhs;
  for (int rhs = 0; rhs < nrhs; rhs++) {
    if (!keep[rhs]) continue;
    for (int i = 0; i < a->n.fields; i++) {
      double complex *x = block_get(kit, &a->f[i], rhs), *y = block_get(kit, &b->f[i], rhs);
      cr_expect(same_bits(x, y, kit_components(kit) * sizeof *x), "%s: %s, %s: field %d of rhs %d",
                what, a->n.name, cut_text(a->cut), i, rhs);
      free(x);
      free(y);
    }
    for (int k = 0; k < a->n.reductions; k++)
      cr_expect(same_bits(&a->red[k * nrhs + rhs], &b->red[k * nrhs + rhs], sizeof a->red[0]),
                "%s: %s, %s: result %d of rhs %d", what, a->n.name, cut_text(a->cut), k, rhs);
  }
}

static void check_nan(const kit_t *kit) {
  double complex *nan_vector = kit_vector(kit);
  for (size_t i = 0; i < kit_components(kit); i++) nan_vector[i] = NAN;
  for (int op = 1; op < QK_BLAS_COUNT; op++)
    for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
      const cut_t cut = {(qk_prec_t)prec, MAX_RHS, false, QK_FULL};
      uint8_t keep[MAX_RHS];
      if (!cut_exists(kit, cut)) continue;
      memset(keep, 1, sizeof keep);
      keep[3] = keep[9] = 0;
      call_t clean = call_make(kit, (qk_blas_op_t)op, cut),
             dirty = call_make(kit, (qk_blas_op_t)op, cut);
      for (int rhs = 3; rhs <= 9; rhs += 6) {
        for (int i = 0; i < dirty.n.fields; i++) block_set(kit, &dirty.f[i], rhs, nan_vector);
        for (int i = 0; i < dirty.n.scalars; i++) dirty.c[i][rhs] = rhs == 3 ? NAN : 0;
      }
      kit_must(kit, call_run(kit, &clean, NULL), clean.n.name);
      kit_must(kit, call_run(kit, &dirty, NULL), dirty.n.name);
      expect_same_lanes(kit, "with nan beside it", &dirty, &clean, keep);
      if (dirty.n.reductions > 0)
        cr_expect(isnan(creal(dirty.red[3])), "%s: nan must not vanish", dirty.n.name);
      call_free(kit, &clean);
      call_free(kit, &dirty);
    }
  free(nan_vector);
}

Test(blas, nan_in_one_lane_changes_no_bit_of_the_others) {
  each_ncomp(check_nan);
}

static void check_masks(const kit_t *kit) {
  for (int op = 1; op < QK_BLAS_COUNT; op++)
    for (int i = 0; i < ncuts; i++) {
      const cut_t cut = cuts[i];
      uint8_t mask[MAX_RHS] = {0}, other[MAX_RHS] = {0};
      if (!cut_exists(kit, cut)) continue;
      for (int rhs = 0; rhs < cut.nrhs; rhs++) {
        mask[rhs] = rhs % 3 == 1 || rhs == 8;
        other[rhs] = !mask[rhs];
      }
      call_t all = call_make(kit, (qk_blas_op_t)op, cut);
      call_t some = call_make(kit, (qk_blas_op_t)op, cut);
      kit_must(kit, call_run(kit, &all, NULL), all.n.name);
      kit_must(kit, call_run(kit, &some, mask), some.n.name);
      expect_same_lanes(kit, "not masked", &some, &all, mask);
      expect_untouched(kit, &some, other);
      call_free(kit, &all);
      call_free(kit, &some);
    }
}

Test(blas, masked_lanes_keep_their_bits_and_change_none) {
  each_ncomp(check_masks);
}

/* Columns 2, 5 and 9 hold the same numbers. */
static void check_lanes(const kit_t *kit) {
  for (int op = 1; op < QK_BLAS_COUNT; op++)
    for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
      const cut_t cut = {(qk_prec_t)prec, MAX_RHS, false, QK_FULL};
      if (!cut_exists(kit, cut)) continue;
      call_t call = call_make(kit, (qk_blas_op_t)op, cut);
      static const int places[] = {5, 9};
      for (int p = 0; p < 2; p++) {
        for (int i = 0; i < call.n.fields; i++)
          block_set(kit, &call.f[i], places[p], call.f[i].x[2]);
        for (int i = 0; i < call.n.scalars; i++) call.c[i][places[p]] = call.c[i][2];
      }
      kit_must(kit, call_run(kit, &call, NULL), call.n.name);
      for (int p = 0; p < 2; p++) {
        for (int i = 0; i < call.n.fields; i++) {
          double complex *x = block_get(kit, &call.f[i], 2),
                         *y = block_get(kit, &call.f[i], places[p]);
          cr_expect(same_bits(x, y, kit_components(kit) * sizeof *x), "%s: field %d, rhs %d",
                    call.n.name, i, places[p]);
          free(x);
          free(y);
        }
        for (int k = 0; k < call.n.reductions; k++)
          cr_expect(same_bits(&call.red[k * MAX_RHS + 2], &call.red[k * MAX_RHS + places[p]],
                              sizeof call.red[0]),
                    "%s: result %d, rhs %d", call.n.name, k, places[p]);
      }
      call_free(kit, &call);
    }
}

Test(blas, result_does_not_depend_on_the_lane) {
  each_ncomp(check_lanes);
}

/* Only the CPU backend has threads; on others the same call is made three times. */
static void check_threads(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    double complex first[2 * MAX_RHS];
    if (!cut_exists(kit, cuts[i])) continue;
    for (int threads = 1; threads <= 3; threads++) {
      call_t call = call_make(kit, QK_BLAS_CDOT_NORM2, cuts[i]);
      omp_set_num_threads(threads);
      kit_must(kit, call_run(kit, &call, NULL), call.n.name);
      if (threads == 1) memcpy(first, call.red, sizeof first);
      cr_expect(same_bits(first, call.red, sizeof first), "%s: %d threads", cut_text(cuts[i]),
                threads);
      call_free(kit, &call);
    }
  }
}

Test(blas, sums_have_the_same_bits_on_any_number_of_threads) {
  each_ncomp(check_threads);
}

/* rho = 0 and t = 0 happen to exact solutions: the updates must then leave finite numbers. */
Test(blas, divisions_by_zero_count_as_zero) {
  kit_t kit;
  block_kit_open(&kit);
  static const double complex bad[][2] = {{1, 0}, {0, 0}, {1, NAN}, {INFINITY, 1}, {1e300, 1e-300}};
  const cut_t cut = {QK_DOUBLE, 5, false, QK_FULL};
  call_t call = call_make(&kit, QK_BLAS_CG_XR, cut);
  for (int rhs = 0; rhs < cut.nrhs; rhs++)
    for (int i = 0; i < 2; i++) call.c[i][rhs] = bad[rhs][i];
  kit_must(&kit, call_run(&kit, &call, NULL), "CG_XR");
  for (int rhs = 0; rhs < cut.nrhs; rhs++)
    for (int i = 0; i < 2; i++) {
      double complex *now = block_get(&kit, &call.f[i], rhs);
      cr_expect(same_bits(now, call.f[i].x[rhs], kit_components(&kit) * sizeof *now), "case %d",
                rhs);
      free(now);
    }
  call_free(&kit, &call);
  kit_close(&kit);
}

/* The largest and smallest numbers whose quotient is in range. */
Test(blas, quotients_survive_numbers_whose_squares_overflow) {
  kit_t kit;
  block_kit_open(&kit);
  static const double complex pair[][2] = {{3e200, 1e200 * I}, {3e-200, 1e-200 * I}};
  call_t call = call_make(&kit, QK_BLAS_CG_P, (cut_t){QK_DOUBLE, 2, false, QK_FULL});
  for (int rhs = 0; rhs < 2; rhs++)
    for (int i = 0; i < 2; i++) call.c[i][rhs] = pair[rhs][i];
  kit_must(&kit, call_run(&kit, &call, NULL), "CG_P");
  for (int rhs = 0; rhs < 2; rhs++) {
    double complex *now = block_get(&kit, &call.f[0], rhs);
    for (size_t i = 0; i < kit_components(&kit); i++)
      cr_assert_lt(cabs(now[i] - (call.f[1].x[rhs][i] - 3 * I * call.f[0].x[rhs][i])), 1e-14);
    free(now);
  }
  call_free(&kit, &call);
  kit_close(&kit);
}

Test(precision, has_its_bytes_and_scales) {
  cr_expect_eq(qk_prec_bytes(QK_DOUBLE), 8);
  cr_expect_eq(qk_prec_bytes(QK_SINGLE), 4);
  cr_expect_eq(qk_prec_bytes(QK_HALF), 2);
  for (int p = 0; p < QK_PRECS; p++) cr_expect_eq(qk_prec_scaled((qk_prec_t)p), p == QK_HALF);
  cr_expect_eq(qk_prec_bytes((qk_prec_t)QK_PRECS), 0);
  cr_expect_eq(qk_prec_scaled((qk_prec_t)QK_PRECS), 0);
}

Test(blas, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  block_t a = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 1);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 3, false, QK_FULL}, 2);
  block_t c = block_make(&kit, (cut_t){QK_SINGLE, 2, false, QK_FULL}, 3);
  qk_spinor_t four = a.v, odd = a.v, unknown = a.v, bare = a.v;
  four.ncomp = 4;
  odd.ncomp = 6;
  unknown.prec = (qk_prec_t)QK_PRECS;
  bare.prec = QK_HALF;
  qk_blas_args_t ncomp = {.f = {a.v, four}}, ragged = {.f = {odd, odd}};
  qk_blas_args_t which = {.f = {unknown, a.v}}, scale = {.f = {a.v, bare}};
  qk_blas_args_t prec = {.f = {a.v, b.v}}, nrhs = {.f = {a.v, c.v}}, none = {.f = {a.v}},
                 scalar = {.f = {a.v, a.v}};
  const struct {
    qk_blas_op_t op;
    const qk_blas_args_t *args;
    const char *word;
  } cases[] = {{QK_BLAS_CDOT, &prec, "prec = 0"},
               {QK_BLAS_COPY, &nrhs, "nrhs"},
               {QK_BLAS_SUB, &none, "field 1"},
               {QK_BLAS_AXPY, &scalar, "scalar 0"},
               {QK_BLAS_NORM2, &none, "red"},
               {QK_BLAS_COUNT, &none, "op = "},
               {QK_BLAS_NONE, &prec, "op = 0: 1 to 19"},
               {QK_BLAS_COPY, &ncomp, "ncomp = 4: 12 as the first"},
               {QK_BLAS_COPY, &ragged, "ncomp = 6: a multiple of 4"},
               {QK_BLAS_COPY, &which, "field 0: prec = "},
               {QK_BLAS_COPY, &scale, "field 1: scale is missing, prec = 2"}};
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    qk_blas_args_t args = *cases[i].args;
    args.op = cases[i].op;
    kit_refused(&kit, kit.ops->blas(kit.ctx, &args), cases[i].word);
  }
  cr_expect_eq(kit.ops->queue_sync(kit.ctx, 0), QK_OK, "a bad argument must not lose the device");
  block_free(&kit, &a);
  block_free(&kit, &b);
  block_free(&kit, &c);
  kit_close(&kit);
}
