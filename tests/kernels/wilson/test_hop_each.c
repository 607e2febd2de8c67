/* One call for several fields of one RHS each (qk_hop_each_args_t) against a call of hop for each:
 * the same bits. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

static const double antiperiodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}};
static const double turned[4][2] = {{1, 0}, {0.6, 0.8}, {1, 0}, {-1, 0}};
static const double cut[4][2] = {{1, 0}, {-0.5, 0}, {1, 0}, {0, 0}};

enum { IN, Z, X, Y, OUT, FIELDS };

/* Full fields: of each number what goes in, what comes out of the call for all, and of its own. */
typedef struct fields {
  kit_field_t of[QK_RHS_TOGETHER][FIELDS], alone[QK_RHS_TOGETHER];
} fields_t;

static fields_t make_fields(const kit_t *kit, qk_prec_t prec) {
  fields_t f;
  double complex *v = kit_vector(kit);
  for (int k = 0; k < QK_RHS_TOGETHER; k++) {
    for (int i = 0; i < FIELDS; i++) {
      f.of[k][i] = kit_field(kit, prec, 1, true, QK_FULL);
      kit_random(kit, 10 * (uint64_t)k + (uint64_t)i, v);
      kit_import(kit, &f.of[k][i].v, 0, v);
    }
    f.alone[k] = kit_field(kit, prec, 1, true, QK_FULL);
    kit_import(kit, &f.alone[k].v, 0, v);
  }
  free(v);
  return f;
}

static void free_fields(const kit_t *kit, fields_t *f) {
  for (int k = 0; k < QK_RHS_TOGETHER; k++) {
    for (int i = 0; i < FIELDS; i++) kit_field_free(kit, &f->of[k][i]);
    kit_field_free(kit, &f->alone[k]);
  }
}

static qk_spinor_t part(const kit_t *kit, const kit_field_t *f, qk_subset_t parity, bool other) {
  if (parity == QK_FULL) return f->v;
  return kit_half(kit, &f->v, (parity == QK_ODD) != other);
}

/* a: of number 0, without its fields. */
static qk_hop_each_args_t for_fields(const kit_t *kit, qk_hop_args_t a, int n, const fields_t *f) {
  qk_hop_each_args_t each = {.hop = a, .n = n};
  const qk_subset_t p = a.out_parity;
  each.hop.in = part(kit, &f->of[0][IN], p, true);
  each.hop.z = part(kit, &f->of[0][Z], p, false);
  each.hop.x = part(kit, &f->of[0][X], p, false);
  each.hop.y = part(kit, &f->of[0][Y], p, false);
  each.hop.out = part(kit, &f->of[0][OUT], p, false);
  for (int k = 0; k < n; k++) {
    each.of[k].in = part(kit, &f->of[k][IN], p, true).data;
    each.of[k].z = part(kit, &f->of[k][Z], p, false).data;
    each.of[k].x = part(kit, &f->of[k][X], p, false).data;
    each.of[k].y = part(kit, &f->of[k][Y], p, false).data;
    each.of[k].out = part(kit, &f->of[k][OUT], p, false).data;
  }
  return each;
}

/* minus: on the device, by number. */
static void run_alone(const kit_t *kit, const qk_hop_each_args_t *each, int k, const fields_t *f) {
  qk_hop_args_t a = each->hop;
  a.in.data = each->of[k].in;
  a.z.data = each->of[k].z;
  a.x.data = each->of[k].x;
  a.y.data = each->of[k].y;
  a.out = part(kit, &f->alone[k], a.out_parity, false);
  if (a.minus) a.minus += k;
  kit_must(kit, kit->ops->hop(kit->ctx, &a), "hop");
}

static void expect_same(const kit_t *kit, int n, const fields_t *f, const char *what) {
  const size_t bytes = 24 * (size_t)kit->volume * (f->alone[0].v.prec == QK_DOUBLE ? 8 : 4);
  for (int k = 0; k < n; k++) {
    void *x = kit_words(kit, &f->of[k][OUT].v), *y = kit_words(kit, &f->alone[k].v);
    cr_expect(memcmp(x, y, bytes) == 0, "%s: number %d of %d", what, k, n);
    free(x);
    free(y);
  }
}

/* Against calls for each, from outs that are the same before. */
static void expect_call(const kit_t *kit, const qk_hop_args_t *a, int n, const char *what) {
  fields_t f = make_fields(kit, a->links.prec);
  const qk_hop_each_args_t each = for_fields(kit, *a, n, &f);
  kit_must(kit, kit->ops->hop_each(kit->ctx, &each), "hop_each");
  for (int k = 0; k < n; k++) run_alone(kit, &each, k, &f);
  expect_same(kit, n, &f, what);
  free_fields(kit, &f);
}

/* With all terms, on links of that form. */
static qk_hop_args_t make_call(const kit_t *kit, qk_prec_t prec, int reals,
                               const double phase[4][2]) {
  qk_hop_args_t a = kit_dirac(kit, false, phase);
  a.links = kit_links(kit, prec, reals);
  a.diag = kit_diag(kit, 1.3, 4.2, true, prec);
  a.c_hop = 0.5;
  a.c_z = 1.5;
  a.c_x = -1;
  a.c_y = 0;
  return a;
}

static void free_call(const kit_t *kit, const qk_hop_args_t *a) {
  kit_free(kit, a->links.data);
  kit_free(kit, a->diag.data);
}

/* ---- properties ---- */

static void every_parity_and_number(const int dims[4], qk_prec_t prec, int reals,
                                    const double phase[4][2]) {
  kit_t kit;
  kit_open_random(&kit, dims, 0.5, 5);
  qk_hop_args_t a = make_call(&kit, prec, reals, phase);
  for (int parity = QK_EVEN; parity <= QK_FULL; parity++)
    for (int n = 1; n <= QK_RHS_TOGETHER; n++) {
      a.out_parity = (qk_subset_t)parity;
      a.diag_on_sum = n % 2;
      a.dagger = parity == QK_ODD;
      expect_call(&kit, &a, n, "all terms");
    }
  free_call(&kit, &a);
  kit_close(&kit);
}

Test(hop_each, has_the_bits_of_a_call_for_each) {
  static const int reals[] = {18, 12, 8};
  for (int i = 0; i < 3; i++)
    every_parity_and_number((int[]){8, 4, 6, 4}, QK_DOUBLE, reals[i], cut);
  every_parity_and_number((int[]){2, 2, 2, 2}, QK_DOUBLE, 12, antiperiodic);
  every_parity_and_number((int[]){16, 4, 4, 10}, QK_DOUBLE, 12, antiperiodic);
}

Test(hop_each, has_them_where_it_is_several_calls) {
  every_parity_and_number((int[]){4, 4, 4, 4}, QK_DOUBLE, 12, turned);
  every_parity_and_number((int[]){4, 4, 4, 4}, QK_SINGLE, 12, antiperiodic);
}

Test(hop_each, takes_weights_twists_and_flavours) {
  static const uint8_t minus[QK_RHS_TOGETHER] = {0, 1, 1, 0};
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 8}, 0.5, 6);
  qk_hop_args_t a = make_call(&kit, QK_DOUBLE, 12, antiperiodic);
  uint8_t *device = kit_alloc(&kit, sizeof minus);
  kit_must(&kit, kit.ops->copy(kit.ctx, device, minus, sizeof minus, QK_COPY_TO_DEVICE, 0), "copy");
  for (int mu = 0; mu < 4; mu++) a.weight[mu] = 1 + 0.25 * mu;
  a.diag.b = a.diag.data;
  a.diag.q[0][1] = 0.3;
  a.diag.q[1][1] = -0.3;
  a.minus = device;
  a.c_y = 0.25;
  for (int n = 2; n <= QK_RHS_TOGETHER; n++)
    for (int on_sum = 0; on_sum < 2; on_sum++) {
      a.out_parity = on_sum ? QK_ODD : QK_FULL;
      a.diag_on_sum = on_sum;
      expect_call(&kit, &a, n, "dressed");
    }
  kit_free(&kit, device);
  free_call(&kit, &a);
  kit_close(&kit);
}

Test(hop_each, takes_the_local_term_alone_and_out_in_place) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 7);
  qk_hop_args_t a = make_call(&kit, QK_DOUBLE, 18, antiperiodic);
  a.out_parity = QK_ODD;
  a.c_hop = 0;
  expect_call(&kit, &a, 4, "without hops");
  a.c_hop = 0.5;
  fields_t f = make_fields(&kit, QK_DOUBLE);
  qk_hop_each_args_t each = for_fields(&kit, a, 3, &f);
  for (int k = 0; k < 3; k++) run_alone(&kit, &each, k, &f);
  each.hop.x = each.hop.out; /* x is OUT of its number, which holds other numbers than X */
  for (int k = 0; k < 3; k++) {
    each.of[k].x = each.of[k].out;
    const qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {f.of[k][OUT].v, f.of[k][X].v}};
    kit_must(&kit, kit.ops->blas(kit.ctx, &copy), "copy");
  }
  kit_must(&kit, kit.ops->hop_each(kit.ctx, &each), "hop_each");
  for (int k = 0; k < 3; k++) { /* even sites: OUT has X there now */
    const qk_spinor_t to = part(&kit, &f.alone[k], QK_EVEN, false),
                      from = part(&kit, &f.of[k][X], QK_EVEN, false);
    const qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {to, from}};
    kit_must(&kit, kit.ops->blas(kit.ctx, &copy), "copy");
  }
  expect_same(&kit, 3, &f, "in place");
  free_fields(&kit, &f);
  free_call(&kit, &a);
  kit_close(&kit);
}

/* What is not finite stays in its field. */
Test(hop_each, keeps_fields_apart) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 8);
  qk_hop_args_t a = make_call(&kit, QK_DOUBLE, 12, antiperiodic);
  a.out_parity = QK_EVEN;
  fields_t f = make_fields(&kit, QK_DOUBLE);
  double complex *v = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) v[i] = NAN;
  for (int i = 0; i < OUT; i++) kit_import(&kit, &f.of[1][i].v, 0, v);
  const qk_hop_each_args_t each = for_fields(&kit, a, 4, &f);
  kit_must(&kit, kit.ops->hop_each(kit.ctx, &each), "hop_each");
  for (int k = 0; k < 4; k++)
    if (k != 1) {
      run_alone(&kit, &each, k, &f);
      void *x = kit_words(&kit, &f.of[k][OUT].v), *y = kit_words(&kit, &f.alone[k].v);
      cr_expect(memcmp(x, y, 24 * 8 * (size_t)kit.volume) == 0, "number %d", k);
      free(x);
      free(y);
    }
  free(v);
  free_fields(&kit, &f);
  free_call(&kit, &a);
  kit_close(&kit);
}

Test(hop_each, takes_the_interior_and_refuses_ghosts) {
  const int dims[4] = {4, 4, 8, 8}, split[4] = {0, 0, 1, 1};
  double complex *links = kit_random_links(dims, 0.5, 9);
  kit_t kit;
  kit_open(&kit, dims, split, links);
  free(links);
  qk_hop_args_t a = make_call(&kit, QK_DOUBLE, 12, antiperiodic);
  a.out_parity = QK_ODD;
  a.region = QK_REGION_INTERIOR;
  for (int n = 1; n <= QK_RHS_TOGETHER; n++) expect_call(&kit, &a, n, "interior");
  fields_t f = make_fields(&kit, QK_DOUBLE);
  a.region = QK_REGION_ALL;
  const qk_hop_each_args_t each = for_fields(&kit, a, 2, &f);
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &each), "ghosts are not read");
  free_fields(&kit, &f);
  free_call(&kit, &a);
  kit_close(&kit);
}

Test(hop_each, refuses_what_does_not_fit) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  qk_hop_args_t a = make_call(&kit, QK_DOUBLE, 12, antiperiodic);
  a.out_parity = QK_EVEN;
  fields_t f = make_fields(&kit, QK_DOUBLE);
  const qk_hop_each_args_t good = for_fields(&kit, a, 3, &f);
  qk_hop_each_args_t bad = good;
  bad.n = QK_RHS_TOGETHER + 1;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "n must be 1..4");
  bad = good;
  bad.n = 0;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "n must be 1..4");
  bad = good;
  bad.of[2].x = NULL;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "absent");
  bad = good;
  bad.of[2].out = bad.of[1].out;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "another number");
  bad = good;
  bad.of[2].out = bad.of[0].x;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "another number");
  bad = good;
  bad.hop.out = kit_field(&kit, QK_DOUBLE, 2, false, QK_EVEN).v;
  kit_refused(&kit, kit.ops->hop_each(kit.ctx, &bad), "one RHS");
  kit_free(&kit, bad.hop.out.data);
  free_fields(&kit, &f);
  free_call(&kit, &a);
  kit_close(&kit);
}
