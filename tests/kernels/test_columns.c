/* Columns: wire order against a lane, gamma bases, copies between blocks. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

static qk_rhs_args_t rhs_args(const kit_t *kit, const block_t *b, int rhs, void *wire,
                              const double complex basis[4][4]) {
  qk_rhs_args_t c = {.lat = kit->lat,
                     .field = b->field.v,
                     .rhs = rhs,
                     .n = 1,
                     .is_double = 1,
                     .wire = {wire},
                     .factor = 1};
  memcpy(c.basis, basis, sizeof c.basis);
  return c;
}

static const double complex one[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
static const double complex mixing[4][4] = {
    {0.5, 0.25 * I, 0, -1}, {0, 2 - I, 0.125, 0}, {I, 0, 0.75, 0.5 * I}, {-0.25, 1, 0, 1 + I}};

static void turn(const kit_t *kit, const double complex basis[4][4], double factor,
                 const double complex *in, double complex *out) {
  for (size_t i = 0; i < kit_components(kit); i++) {
    const size_t site = i / 12, s = i % 12 / 3, c = i % 3;
    out[i] = 0;
    for (size_t r = 0; r < 4; r++) out[i] += factor * basis[s][r] * in[site * 12 + r * 3 + c];
  }
}

Test(rhs, import_and_export_turn_the_basis) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *x = kit_vector(&kit), *turned = kit_vector(&kit), *now = kit_vector(&kit);
  kit_random(&kit, 5, x);
  for (int i = 0; i < ncuts; i++) {
    if (cuts[i].subset != QK_FULL) continue;
    block_t b = block_make(&kit, cuts[i], 1);
    const int rhs = cuts[i].nrhs - 1;
    double *wire = device_scalars(&kit, x, (int)kit_components(&kit));
    qk_rhs_args_t c = rhs_args(&kit, &b, rhs, wire, mixing);
    c.factor = 3;
    kit_must(&kit, kit.ops->rhs_import(kit.ctx, &c), "import");
    double complex *stored = block_get(&kit, &b, rhs);
    turn(&kit, mixing, 3, x, turned);
    cr_expect_lt(block_off(&kit, stored, turned), blas_tolerance(cuts[i].prec), "import, %s",
                 cut_text(cuts[i]));

    c.factor = 0.5;
    kit_must(&kit, kit.ops->rhs_export(kit.ctx, &c), "export");
    read_scalars(&kit, wire, now, (int)kit_components(&kit));
    turn(&kit, mixing, 0.5, stored, turned);
    cr_expect_lt(block_off(&kit, now, turned), 1e-14, "export, %s", cut_text(cuts[i]));
    for (int other = 0; other < rhs; other++) {
      double complex *y = block_get(&kit, &b, other);
      cr_expect_arr_eq(y, b.x[other], kit_components(&kit) * sizeof *y, "%s: rhs %d was touched",
                       cut_text(cuts[i]), other);
      free(y);
    }
    free(stored);
    kit_free(&kit, wire);
    block_free(&kit, &b);
  }
  free(x);
  free(turned);
  free(now);
  kit_close(&kit);
}

/* RHS from `first` on, as many as go with it: against those of one alone, bit by bit. */
static void several_at(const kit_t *kit, cut_t cut, int first, bool is_double) {
  block_t b = block_make(kit, cut, 1), alone = block_make(kit, cut, 1);
  const int n = cut.nrhs - first < QK_RHS_TOGETHER ? cut.nrhs - first : QK_RHS_TOGETHER;
  const size_t reals = 2 * kit_components(kit);
  double *back[2] = {malloc(reals * sizeof(double)), malloc(reals * sizeof(double))};
  double complex *x = kit_vector(kit);
  qk_rhs_args_t c = rhs_args(kit, &b, first, NULL, mixing);
  c.n = n;
  c.is_double = is_double;
  for (int k = 0; k < n; k++) {
    kit_random(kit, 50 + (uint64_t)k, x);
    c.wire[k] = device_scalars(kit, x, (int)kit_components(kit));
    qk_rhs_args_t own = rhs_args(kit, &alone, first + k, c.wire[k], mixing);
    own.is_double = is_double;
    kit_must(kit, kit->ops->rhs_import(kit->ctx, &own), "import of one");
  }
  kit_must(kit, kit->ops->rhs_import(kit->ctx, &c), "import");
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *y = block_get(kit, &b, rhs), *z = block_get(kit, &alone, rhs);
    cr_expect_arr_eq(y, z, reals * sizeof(double), "%s: import of %d from %d on: rhs %d",
                     cut_text(cut), n, first, rhs);
    free(y);
    free(z);
  }
  kit_must(kit, kit->ops->rhs_export(kit->ctx, &c), "export");
  void *wire = kit_alloc(kit, reals * sizeof(double));
  const size_t bytes = reals * (is_double ? sizeof(double) : sizeof(float));
  for (int k = 0; k < n; k++) {
    qk_rhs_args_t own = rhs_args(kit, &alone, first + k, wire, mixing);
    own.is_double = is_double;
    kit_must(kit, kit->ops->rhs_export(kit->ctx, &own), "export of one");
    kit_must(kit, kit->ops->copy(kit->ctx, back[0], wire, bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(kit, kit->ops->copy(kit->ctx, back[1], c.wire[k], bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "sync");
    cr_expect_arr_eq(back[0], back[1], bytes, "%s: export of %d from %d on: the %dth",
                     cut_text(cut), n, first, k);
    kit_free(kit, c.wire[k]);
  }
  kit_free(kit, wire);
  free(back[0]);
  free(back[1]);
  free(x);
  block_free(kit, &b);
  block_free(kit, &alone);
}

Test(rhs, several_come_and_go_as_each_alone) {
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].subset == QK_FULL)
      for (int first = 0; first < cuts[i].nrhs; first += 3)
        for (int is_double = 0; is_double < 2; is_double++)
          several_at(&kit, cuts[i], first, is_double != 0);
  kit_close(&kit);
}

Test(rhs, more_than_there_are_is_refused) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 3, false, QK_FULL}, 1);
  void *wire = kit_alloc(&kit, kit_components(&kit) * sizeof(double complex));
  qk_rhs_args_t c = rhs_args(&kit, &b, 1, wire, one);
  c.wire[1] = c.wire[2] = wire;
  c.n = 3;
  cr_expect_eq(kit.ops->rhs_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "n = 3: 1 to 2 from rhs = 1 on"), "%s",
            kit.ops->last_error(kit.ctx));
  c.n = 0;
  cr_expect_eq(kit.ops->rhs_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  c.n = QK_RHS_TOGETHER + 1;
  cr_expect_eq(kit.ops->rhs_export(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "n = 5: 1 to 4"));
  c.n = 2;
  c.wire[1] = NULL;
  cr_expect_eq(kit.ops->rhs_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "wire 1 is missing"));
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(rhs, float32_wire_is_the_rounded_float64_wire) {
  kit_t kit;
  block_kit_open(&kit);
  const size_t reals = 2 * kit_components(&kit);
  float *host = malloc(reals * sizeof *host), *back = malloc(reals * sizeof *back);
  void *wire = kit_alloc(&kit, reals * sizeof *host);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  for (size_t i = 0; i < reals; i++) host[i] = (float)(((double *)b.x[1])[i]);
  qk_rhs_args_t c = rhs_args(&kit, &b, 1, wire, one);
  c.is_double = 0;
  kit_must(&kit, kit.ops->rhs_export(kit.ctx, &c), "export");
  kit_must(&kit, kit.ops->copy(kit.ctx, back, wire, reals * sizeof *back, QK_COPY_TO_HOST, 0),
           "copy");
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
  cr_expect_arr_eq(back, host, reals * sizeof *host);
  c.rhs = 0;
  kit_must(&kit, kit.ops->rhs_import(kit.ctx, &c), "import");
  double complex *now = block_get(&kit, &b, 0);
  for (size_t i = 0; i < reals; i++) cr_assert(((double *)now)[i] == (double)host[i]);
  free(now);
  free(host);
  free(back);
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(rhs, wire_of_odd_addresses_is_refused) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 1, false, QK_FULL}, 1);
  char *wire = kit_alloc(&kit, (kit_components(&kit) + 1) * sizeof(double complex));
  qk_rhs_args_t c = rhs_args(&kit, &b, 0, (double *)(wire + 8), one);
  cr_expect_eq(kit.ops->rhs_export(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "multiple of 16"));
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(rhs, nan_and_infinity_are_not_lost) {
  kit_t kit;
  block_kit_open(&kit);
  static const double bad[] = {NAN, INFINITY};
  double complex *x = kit_vector(&kit);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int k = 0; k < 2; k++) {
      block_t b = block_make(&kit, (cut_t){(qk_prec_t)prec, 2, false, QK_FULL}, 1);
      memset(x, 0, kit_components(&kit) * sizeof *x);
      x[12 * 7 + 5] = bad[k];
      block_set(&kit, &b, 1, x);
      cr_expect(!isfinite(creal(b.x[1][12 * 7 + 5])), "prec %d: %g", prec, bad[k]);
      cr_expect(isfinite(creal(b.x[1][12 * 8 + 5])), "prec %d: %g spread to another site", prec,
                bad[k]);
      block_free(&kit, &b);
    }
  free(x);
  kit_close(&kit);
}

/* ---- copies between blocks ---- */

static void copies_between(const kit_t *kit, cut_t to_cut, cut_t from_cut) {
  const double tolerance = fmax(blas_tolerance(to_cut.prec), blas_tolerance(from_cut.prec));
  block_t to = block_make(kit, to_cut, 1), from = block_make(kit, from_cut, 2);
  qk_rhs_copy_args_t copy = {
      .to = to.v, .from = from.v, .to_rhs = to_cut.nrhs - 1, .from_rhs = from_cut.nrhs / 2};
  double complex *expected = kit_vector(kit);
  memcpy(expected, to.x[copy.to_rhs], kit_components(kit) * sizeof *expected);
  for (copy.add = 0; copy.add < 2; copy.add++) {
    const double complex *x = from.x[copy.from_rhs];
    for (size_t i = 0; i < kit_components(kit); i++)
      if (component_in(kit, to_cut.subset, i)) expected[i] = copy.add ? expected[i] + x[i] : x[i];
    kit_must(kit, kit->ops->rhs_copy(kit->ctx, &copy), "rhs_copy");
    double complex *now = block_get(kit, &to, copy.to_rhs);
    cr_expect_lt(block_off(kit, now, expected), tolerance, "add = %d, from %d RHS, prec %d, to %s",
                 copy.add, from_cut.nrhs, (int)from_cut.prec, cut_text(to_cut));
    free(now);
  }
  for (int other = 0; other < copy.to_rhs; other++) {
    double complex *y = block_get(kit, &to, other);
    cr_expect_arr_eq(y, to.x[other], kit_components(kit) * sizeof *y, "%s: rhs %d was touched",
                     cut_text(to_cut), other);
    free(y);
  }
  free(expected);
  block_free(kit, &from);
  block_free(kit, &to);
}

static void copies(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < ncuts; j++)
      if (cuts[i].subset == cuts[j].subset && cut_exists(kit, cuts[i]) && cut_exists(kit, cuts[j]))
        copies_between(kit, cuts[i], cuts[j]);
}

Test(rhs, copies_between_blocks_of_any_precision_and_shape) {
  each_ncomp(copies);
}

/* RHS from `first` on of a block, from or into fields of one RHS: against those of
 * one alone, bit by bit. */
static void several_copies(const kit_t *kit, cut_t cut, qk_prec_t single_prec, int first,
                           bool into) {
  const cut_t single = {single_prec, 1, true, cut.subset};
  const int n = cut.nrhs - first < QK_RHS_TOGETHER ? cut.nrhs - first : QK_RHS_TOGETHER;
  block_t together = block_make(kit, cut, 1), alone = block_make(kit, cut, 1);
  block_t single_rhs[2][QK_RHS_TOGETHER];
  for (int which = 0; which < 2; which++)
    for (int k = 0; k < n; k++) single_rhs[which][k] = block_make(kit, single, 20 + (uint64_t)k);
  for (int add = 0; add < 2; add++) {
    qk_rhs_copy_args_t all = {.to = into ? together.v : single_rhs[0][0].v,
                              .from = into ? single_rhs[0][0].v : together.v,
                              .add = add,
                              .n = n};
    *(into ? &all.to_rhs : &all.from_rhs) = first;
    for (int k = 0; k < n; k++) {
      all.single_rhs[k] = single_rhs[0][k].v.data;
      const qk_rhs_copy_args_t own = {.to = into ? alone.v : single_rhs[1][k].v,
                                      .from = into ? single_rhs[1][k].v : alone.v,
                                      .to_rhs = into ? first + k : 0,
                                      .from_rhs = into ? 0 : first + k,
                                      .add = add};
      kit_must(kit, kit->ops->rhs_copy(kit->ctx, &own), "rhs_copy of one");
    }
    kit_must(kit, kit->ops->rhs_copy(kit->ctx, &all), "rhs_copy");
  }
  for (int k = 0; k < (into ? cut.nrhs : n); k++) {
    double complex *x = into ? block_get(kit, &together, k) : block_get(kit, &single_rhs[0][k], 0);
    double complex *y = into ? block_get(kit, &alone, k) : block_get(kit, &single_rhs[1][k], 0);
    cr_expect_arr_eq(x, y, kit_components(kit) * sizeof *x, "%s: %d from %d on, %s prec %d: %d",
                     cut_text(cut), n, first, into ? "from" : "into", (int)single_prec, k);
    free(x);
    free(y);
  }
  for (int which = 0; which < 2; which++)
    for (int k = 0; k < n; k++) block_free(kit, &single_rhs[which][k]);
  block_free(kit, &together);
  block_free(kit, &alone);
}

static void several(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    if (!cut_exists(kit, cuts[i]) || cuts[i].nrhs == 1) continue;
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
      for (int into = 0; into < 2; into++)
        for (int first = 0; first < cuts[i].nrhs; first += 3)
          several_copies(kit, cuts[i], (qk_prec_t)prec, first, into != 0);
  }
}

Test(rhs, several_are_copied_as_each_alone) {
  each_ncomp(several);
}

/* RHS from `first` on of a block, added to fields that stay: against a copy of these and the same
 * without them, bit by bit. */
static void sums_of_several(const kit_t *kit, cut_t cut, qk_prec_t prec, int first) {
  const cut_t single = {prec, 1, true, cut.subset};
  const int n = cut.nrhs - first < QK_RHS_TOGETHER ? cut.nrhs - first : QK_RHS_TOGETHER;
  block_t block = block_make(kit, cut, 1), sum[QK_RHS_TOGETHER], plus[QK_RHS_TOGETHER];
  qk_rhs_copy_args_t a = {.from = block.v, .from_rhs = first, .add = 1, .n = n};
  for (int k = 0; k < n; k++) {
    sum[k] = block_make(kit, single, 10 + (uint64_t)k);
    plus[k] = block_make(kit, single, 20 + (uint64_t)k);
    a.single_rhs[k] = sum[k].v.data;
    a.plus[k] = plus[k].v.data;
  }
  a.to = sum[0].v;
  kit_must(kit, kit->ops->rhs_copy(kit->ctx, &a), "rhs_copy with plus");
  for (int k = 0; k < n; k++) {
    const qk_rhs_copy_args_t own = {
        .to = plus[k].v, .from = block.v, .from_rhs = first + k, .add = 1};
    double complex *x = block_get(kit, &plus[k], 0), *y = block_get(kit, &sum[k], 0);
    for (size_t i = 0; i < kit_components(kit); i++)
      if (component_in(kit, cut.subset, i)) cr_assert(x[i] == plus[k].x[0][i], "plus[%d]", k);
    kit_must(kit, kit->ops->rhs_copy(kit->ctx, &own), "rhs_copy");
    free(x);
    x = block_get(kit, &plus[k], 0);
    for (size_t i = 0; i < kit_components(kit); i++)
      if (component_in(kit, cut.subset, i)) cr_assert(x[i] == y[i], "%s: %d", cut_text(cut), k);
    free(x);
    free(y);
  }
  for (int k = 0; k < n; k++) {
    block_free(kit, &plus[k]);
    block_free(kit, &sum[k]);
  }
  block_free(kit, &block);
}

static void all_sums_of_several(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    if (!cut_exists(kit, cuts[i]) || cuts[i].nrhs == 1) continue;
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
      for (int first = 0; first < cuts[i].nrhs; first += 3)
        sums_of_several(kit, cuts[i], (qk_prec_t)prec, first);
  }
}

Test(rhs, several_are_added_to_fields_that_stay) {
  each_ncomp(all_sums_of_several);
}

Test(rhs, copies_of_several_refuse_what_does_not_fit) {
  kit_t kit;
  block_kit_open(&kit);
  block_t block = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 1);
  block_t single_rhs = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 1);
  block_t half = block_make(&kit, (cut_t){QK_HALF, 1, true, QK_FULL}, 1);
  void *data = single_rhs.v.data;
  const qk_rhs_copy_args_t bad[] = {
      {.to = block.v, .from = single_rhs.v, .to_rhs = 1, .n = 3, .single_rhs = {data, data, data}},
      {.to = block.v, .from = single_rhs.v, .n = 2, .single_rhs = {data}},
      {.to = block.v, .from = block.v, .n = 2, .single_rhs = {data, data}},
      {.to = half.v, .from = block.v, .n = 2, .single_rhs = {data, data}},
      {.to = block.v,
       .from = single_rhs.v,
       .n = QK_RHS_TOGETHER + 1,
       .single_rhs = {data, data, data, data}},
      {.to = single_rhs.v, .from = block.v, .n = 2, .single_rhs = {data, data}, .plus = {data}},
      {.to = single_rhs.v,
       .from = block.v,
       .add = 1,
       .n = 2,
       .single_rhs = {data, data},
       .plus = {data}},
      {.to = half.v, .from = block.v, .add = 1, .plus = {data}}};
  static const char *const words[] = {
      "n = 3: 1 to 2",         "single_rhs[1] is missing",
      "nrhs, ntile, prec = 3", "prec = 1, 0, 2",
      "n = 5: 1 to 3",         "plus: add, nrhs, ntile, prec = 0",
      "plus[1] is missing",    "plus: add, nrhs, ntile, prec = 1, 1, 0, 2"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_expect_eq(kit.ops->rhs_copy(kit.ctx, &bad[i]), QK_BAD_ARGUMENT);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), words[i]), "%s", kit.ops->last_error(kit.ctx));
  }
  block_free(&kit, &half);
  block_free(&kit, &single_rhs);
  block_free(&kit, &block);
  kit_close(&kit);
}

Test(rhs, copies_what_is_not_a_number_and_zeros) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *x = kit_vector(&kit);
  block_t from = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 2);
  block_t to = block_make(&kit, (cut_t){QK_HALF, 5, false, QK_FULL}, 1);
  x[12] = NAN;
  x[24] = INFINITY;
  x[36] = 1e-30;
  block_set(&kit, &from, 0, x);
  qk_rhs_copy_args_t copy = {.to = to.v, .from = from.v, .to_rhs = 3};
  kit_must(&kit, kit.ops->rhs_copy(kit.ctx, &copy), "rhs_copy");
  double complex *now = block_get(&kit, &to, 3);
  cr_expect(!isfinite(cabs(now[12])) && !isfinite(cabs(now[24])));
  cr_expect_float_eq(creal(now[36]), 1e-30, 1e-33);
  cr_expect(now[0] == 0 && now[48] == 0);
  free(now);
  free(x);
  block_free(&kit, &from);
  block_free(&kit, &to);
  kit_close(&kit);
}

Test(rhs, copies_refuse_what_does_not_fit) {
  kit_t kit;
  block_kit_open(&kit);
  block_t a = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  block_t b = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_EVEN}, 1);
  qk_rhs_copy_args_t copy = {.to = a.v, .from = b.v};
  cr_expect_eq(kit.ops->rhs_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "subset"), "%s", kit.ops->last_error(kit.ctx));
  copy = (qk_rhs_copy_args_t){.to = a.v, .from = a.v, .to_rhs = 2};
  cr_expect_eq(kit.ops->rhs_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "to_rhs = 2: 0 to 1"));
  copy = (qk_rhs_copy_args_t){.to = a.v, .from = a.v, .from_rhs = -1};
  cr_expect_eq(kit.ops->rhs_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "from_rhs = -1: 0 to 1"));
  block_free(&kit, &a);
  block_free(&kit, &b);
  kit_close(&kit);
}
