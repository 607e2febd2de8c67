/* The operator on half with its result in single: the numbers of the call in single on the same
 * fields, but for links and clover terms in half; with `rough` sums of the hops are rounded, what
 * is added is not. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/kernels/hop_kit.h"

/* |difference| / |hop|: of links and projections in 16 bits, and of sums in 16 bits. */
static const double bound_of_links = 1e-3, bound_rough = 2e-3;

static const double antiperiodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {-1, 0}};

/* IN, X and Y in half; the same in single; what comes out of half and of single. */
enum { IN, X, Y, IN_SINGLE, X_SINGLE, Y_SINGLE, WIDE, SINGLE, FIELDS, HALVES = 3 };

typedef struct fields {
  const kit_t *kit;
  int nrhs;
  kit_field_t f[FIELDS]; /* full */
  qk_local_t diag[2];    /* in half and in single */
} fields_t;

/* Y is `large` times as large as the others. */
static fields_t make_fields(const kit_t *kit, int nrhs, double large) {
  fields_t t = {.kit = kit, .nrhs = nrhs};
  double complex *v = kit_vector(kit);
  for (int k = 0; k < FIELDS; k++) {
    t.f[k] = kit_field(kit, k < HALVES ? QK_HALF : QK_SINGLE, nrhs, nrhs == 1, QK_FULL);
    for (int rhs = 0; rhs < nrhs; rhs++) {
      kit_random(kit, 100 * (uint64_t)k + (uint64_t)rhs + 1, v);
      for (size_t i = 0; k == Y && i < kit_components(kit); i++) v[i] *= large;
      kit_import(kit, &t.f[k].v, rhs, v);
    }
  }
  for (int k = 0; k < HALVES; k++) {
    const qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {t.f[HALVES + k].v, t.f[k].v}};
    kit_must(kit, kit->ops->blas(kit->ctx, &copy), "copy");
  }
  t.diag[0] = kit_diag(kit, 1.3, 4.2, true, QK_HALF);
  t.diag[1] = kit_diag(kit, 1.3, 4.2, true, QK_SINGLE);
  free(v);
  return t;
}

static void free_fields(fields_t *t) {
  for (int k = 0; k < 2; k++) kit_free(t->kit, t->diag[k].data);
  for (int k = 0; k < FIELDS; k++) kit_field_free(t->kit, &t->f[k]);
}

/* A field, or its sites of one parity. */
static qk_spinor_t part(const fields_t *t, int k, qk_subset_t subset) {
  return subset == QK_FULL ? t->f[k].v : kit_half(t->kit, &t->f[k].v, subset == QK_ODD);
}

/* T hop + c_x x + c_y y on half with its result in single, or all in single. */
static qk_hop_args_t call(const fields_t *t, qk_subset_t to, bool single, double c_x, double c_y) {
  const qk_subset_t from = to == QK_FULL ? QK_FULL : to == QK_ODD ? QK_EVEN : QK_ODD;
  const int first = single ? HALVES : 0;
  qk_hop_args_t a = kit_dirac(t->kit, false, antiperiodic);
  a.out_parity = to;
  a.diag = t->diag[single];
  a.diag_on_sum = 1;
  a.c_hop = 0.7;
  a.c_z = 0;
  a.c_x = c_x;
  a.c_y = c_y;
  a.in = part(t, first + IN, from);
  a.x = part(t, first + X, to);
  a.y = part(t, first + Y, to);
  a.out = part(t, single ? SINGLE : WIDE, to);
  a.links = kit_links(t->kit, single ? QK_SINGLE : QK_HALF, 18);
  return a;
}

static void run(const fields_t *t, const qk_hop_args_t *a) {
  kit_must(t->kit, t->kit->ops->hop(t->kit->ctx, a), "hop");
  kit_free(t->kit, a->links.data);
}

static double norm(const kit_t *kit, const double complex *v) {
  double sum = 0;
  for (size_t i = 0; i < kit_components(kit); i++) sum += creal(v[i] * conj(v[i]));
  return sqrt(sum);
}

/* In units of the hop alone, which stands in `hop`. */
static void expect_near(const fields_t *t, int rhs, const double complex *hop, double bound) {
  double complex *wide = kit_vector(t->kit), *single = kit_vector(t->kit);
  kit_export(t->kit, &t->f[WIDE].v, rhs, wide);
  kit_export(t->kit, &t->f[SINGLE].v, rhs, single);
  for (size_t i = 0; i < kit_components(t->kit); i++) wide[i] -= single[i];
  const double off = norm(t->kit, wide) / norm(t->kit, hop);
  cr_expect_lt(off, bound, "rhs %d of %d: off by %g", rhs, t->nrhs, off);
  free(wide);
  free(single);
}

/* The sites of one parity that no call writes are made the same. */
static void check(const fields_t *t, qk_subset_t to, bool rough, double c_x, double c_y) {
  const kit_t *kit = t->kit;
  const double bound = rough ? bound_rough : bound_of_links;
  double complex *hop = kit_vector(kit);
  const qk_blas_args_t copy = {.op = QK_BLAS_COPY, .f = {t->f[WIDE].v, t->f[SINGLE].v}};
  qk_hop_args_t a = call(t, to, true, 0, 0);
  run(t, &a);
  kit_export(kit, &t->f[SINGLE].v, t->nrhs - 1, hop);
  kit_must(kit, kit->ops->blas(kit->ctx, &copy), "copy");
  a = call(t, to, true, c_x, c_y);
  run(t, &a);
  a = call(t, to, false, c_x, c_y);
  a.rough = rough;
  run(t, &a);
  expect_near(t, t->nrhs - 1, hop, bound);
  free(hop);
}

Test(hop_wide, is_as_exact_as_its_sums) {
  static const int nrhs[] = {1, 8, 11, 16};
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 6, 2, 8}, 0.5, 3);
  for (int i = 0; i < 4; i++) {
    fields_t t = make_fields(&kit, nrhs[i], 1);
    for (int to = QK_EVEN; to <= QK_FULL; to++)
      for (int rough = 0; rough < 2; rough++) {
        check(&t, (qk_subset_t)to, rough, 0, 0);
        check(&t, (qk_subset_t)to, rough, -0.6, 0.9);
      }
    free_fields(&t);
  }
  kit_close(&kit);
}

/* A correction of something large: in half all of it would be rounding. */
Test(hop_wide, adds_what_is_large_without_rounding_it) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 4);
  for (int nrhs = 1; nrhs <= 9; nrhs += 8)
    for (int rough = 0; rough < 2; rough++) {
      fields_t t = make_fields(&kit, nrhs, 1000);
      check(&t, QK_EVEN, rough, 0.4, 1);
      free_fields(&t);
    }
  kit_close(&kit);
}

Test(hop_wide, keeps_lanes_apart) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  for (int rough = 0; rough < 2; rough++) {
    fields_t t = make_fields(&kit, KIT_LANES, 1);
    for (int k = 0; k < HALVES; k++) kit_fill_lanes(&kit, &t.f[k].v);
    for (int to = QK_EVEN; to <= QK_ODD; to++) {
      qk_hop_args_t a = call(&t, (qk_subset_t)to, false, 0.5, 1);
      a.rough = rough;
      run(&t, &a);
    }
    kit_expect_lanes_apart(&kit, &t.f[WIDE].v);
    free_fields(&t);
  }
  kit_close(&kit);
}

Test(hop_wide, refuses_other_mixtures) {
  kit_t kit;
  kit_open_random(&kit, (int[]){4, 4, 4, 4}, 0.5, 10);
  fields_t t = make_fields(&kit, 3, 1);
  const qk_hop_args_t good = call(&t, QK_EVEN, false, 0.5, 0.5);
  qk_hop_args_t a = good;
  a.y = part(&t, Y_SINGLE, QK_EVEN);
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "field: another block than out");
  a = good;
  a.diag = t.diag[1];
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "diag: other precision");
  a = good;
  a.links = kit_links(&kit, QK_SINGLE, 18);
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "links: other precision");
  kit_free(&kit, a.links.data);
  a = good;
  a.c_hop = 0;
  a.in.data = NULL;
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "field: another block than out");
  a = good;
  a.in.nrhs = 4;
  kit_refused(&kit, kit.ops->hop(kit.ctx, &a), "another block");
  kit_free(&kit, good.links.data);
  free_fields(&t);
  kit_close(&kit);
}
