/* Hops with weights and cut boundaries, and local terms (A + Q) B: against what the same kernel
 * gives for their parts, which test_hop.c holds to the oracle. */
#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

#include <criterion/criterion.h>

static const int dims[4] = {4, 2, 4, 6};
static const double periodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};
static const double turned[4][2] = {{0.8, 0.6}, {1, 0}, {0, 1}, {-0.6, 0.8}};

enum { CUTS = 3 };
static const int columns[CUTS] = {1, 1, 11};

/* One precision and shape of tiles, the last column of it. */
typedef struct bench {
  kit_t kit;
  qk_prec_t prec;
  kit_field_t x, y;
  qk_links_t links;
} bench_t;

static bench_t bench_open(qk_prec_t prec, int cut) {
  bench_t b = {.prec = prec};
  kit_open_random(&b.kit, dims, 0.6, 5);
  b.x = kit_field(&b.kit, prec, columns[cut], cut == 0, QK_FULL);
  b.y = kit_field(&b.kit, prec, columns[cut], cut == 0, QK_FULL);
  b.links = kit_links(&b.kit, prec, 18);
  return b;
}

static void bench_close(bench_t *b) {
  kit_free(&b->kit, b->links.data);
  kit_field_free(&b->kit, &b->x);
  kit_field_free(&b->kit, &b->y);
  kit_close(&b->kit);
}

/* The call on v, in every column; result: that of the last. `a` has no fields and no links yet. */
static double complex *apply(bench_t *b, qk_hop_args_t a, const double complex *v) {
  const int nrhs = b->x.v.nrhs;
  for (int rhs = 0; rhs < nrhs; rhs++) kit_import(&b->kit, &b->x.v, rhs, v);
  a.links = b->links;
  a.in = a.z = b->x.v;
  a.out = b->y.v;
  kit_must(&b->kit, b->kit.ops->hop(b->kit.ctx, &a), "hop");
  double complex *w = kit_vector(&b->kit);
  kit_export(&b->kit, &b->y.v, nrhs - 1, w);
  return w;
}

static qk_hop_args_t hop_alone(const bench_t *b, const double phase[4][2], bool dagger) {
  qk_hop_args_t a = kit_dirac(&b->kit, dagger, phase);
  a.c_hop = 1;
  a.c_z = 0;
  return a;
}

static qk_hop_args_t term_alone(const bench_t *b, const qk_local_t *t, bool dagger) {
  qk_hop_args_t a = kit_dirac(&b->kit, dagger, periodic);
  a.c_hop = 0;
  a.c_z = 1;
  a.diag = *t;
  return a;
}

static void expect_same(const bench_t *b, double complex *got, double complex *want,
                        const char *what) {
  const double off = kit_distance(&b->kit, got, want);
  cr_expect(off < 4 * kit_tolerance(b->prec, 18), "%s: prec %d, %d columns: %g", what, (int)b->prec,
            b->x.v.nrhs, off);
  free(got);
  free(want);
}

static void each_bench(void (*check)(bench_t *)) {
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int cut = 0; cut < CUTS; cut++) {
      bench_t b = bench_open((qk_prec_t)prec, cut);
      check(&b);
      bench_close(&b);
    }
}

static void check_weights(bench_t *b) {
  static const double weight[4] = {0.5, -1.25, 2, 0.75};
  double complex *v = kit_vector(&b->kit), *want = kit_vector(&b->kit);
  kit_random(&b->kit, 3, v);
  for (int dagger = 0; dagger < 2; dagger++)
    for (int complex_phase = 0; complex_phase < 2; complex_phase++) {
      qk_hop_args_t a = hop_alone(b, complex_phase ? turned : periodic, dagger);
      memset(want, 0, kit_components(&b->kit) * sizeof *want);
      for (int mu = 0; mu < 4; mu++) {
        a.hops = 3u << 2 * mu;
        double complex *part = apply(b, a, v);
        for (size_t i = 0; i < kit_components(&b->kit); i++) want[i] += weight[mu] * part[i];
        free(part);
      }
      a.hops = 0;
      memcpy(a.weight, weight, sizeof weight);
      double complex *copy = kit_vector(&b->kit);
      memcpy(copy, want, kit_components(&b->kit) * sizeof *copy);
      expect_same(b, apply(b, a, v), copy, "weights");
    }
  free(want);
  free(v);
}

Test(local, weights_multiply_the_hops_of_a_direction) {
  each_bench(check_weights);
}

/* The hops across the edge with phase 1 and with -1 cancel. */
static void check_cut(bench_t *b) {
  double complex *v = kit_vector(&b->kit);
  kit_random(&b->kit, 4, v);
  for (int mu = 0; mu < 4; mu++) {
    double phase[4][2];
    memcpy(phase, periodic, sizeof phase);
    double complex *want = apply(b, hop_alone(b, phase, false), v);
    phase[mu][0] = -1;
    double complex *minus = apply(b, hop_alone(b, phase, false), v);
    for (size_t i = 0; i < kit_components(&b->kit); i++) want[i] = (want[i] + minus[i]) / 2;
    free(minus);
    phase[mu][0] = 0;
    expect_same(b, apply(b, hop_alone(b, phase, false), v), want, "cut");
  }
  free(v);
}

Test(local, phase_zero_cuts_the_boundary) {
  each_bench(check_cut);
}

static qk_local_t made_up(const bench_t *b, bool field, bool with_b) {
  qk_local_t t = {.prec = b->prec, .scalar = 1.7, .q = {{0.3, 0.9}, {-0.2, -0.7}}};
  if (field) t.data = kit_diag(&b->kit, 1.3, 1.7, false, b->prec).data;
  if (with_b) t.b = kit_diag(&b->kit, 1.3, 1.7, true, b->prec).data;
  return t;
}

/* want = (A + Q) B v, from A and B alone. */
static double complex *by_parts(bench_t *b, const qk_local_t *t, bool dagger,
                                const double complex *v) {
  const qk_local_t only_a = {.data = t->data, .prec = t->prec, .scalar = t->scalar};
  const qk_local_t only_b = {.data = t->b, .prec = t->prec, .scalar = 1};
  double complex *x = apply(b, term_alone(b, &only_b, false), v);
  double complex *want = apply(b, term_alone(b, &only_a, false), x);
  for (size_t i = 0; i < kit_components(&b->kit); i++) {
    const double *q = t->q[i % 12 / 6];
    want[i] += (q[0] + (dagger ? -q[1] : q[1]) * I) * x[i];
  }
  free(x);
  return want;
}

static double complex dot(const kit_t *kit, const double complex *x, const double complex *y) {
  double complex sum = 0;
  for (size_t i = 0; i < kit_components(kit); i++) sum += conj(x[i]) * y[i];
  return sum;
}

static void check_term(bench_t *b) {
  double complex *v = kit_vector(&b->kit), *w = kit_vector(&b->kit);
  kit_random(&b->kit, 6, v);
  kit_random(&b->kit, 7, w);
  for (int form = 0; form < 4; form++) {
    const qk_local_t t = made_up(b, form & 1, form & 2);
    for (int dagger = 0; dagger < 2; dagger++)
      expect_same(b, apply(b, term_alone(b, &t, dagger), v), by_parts(b, &t, dagger, v), "T v");
    qk_hop_args_t a = hop_alone(b, turned, false);
    a.diag = t;
    a.diag_on_sum = 1;
    double complex *sum = apply(b, hop_alone(b, turned, false), v);
    expect_same(b, apply(b, a, v), by_parts(b, &t, false, sum), "T hop v");
    free(sum);
    double complex *tv = apply(b, term_alone(b, &t, false), v);
    double complex *tw = apply(b, term_alone(b, &t, true), w);
    const double complex one = dot(&b->kit, w, tv), two = dot(&b->kit, tw, v);
    const double size = sqrt(creal(dot(&b->kit, w, w)) * creal(dot(&b->kit, tv, tv)));
    cr_expect(cabs(one - two) < 4 * kit_tolerance(b->prec, 18) * size, "adjoint: prec %d: %g",
              (int)b->prec, cabs(one - two) / size);
    free(tv);
    free(tw);
    kit_free(&b->kit, t.data);
    kit_free(&b->kit, t.b);
  }
  free(v);
  free(w);
}

Test(local, term_is_a_plus_q_times_b_and_its_adjoint_has_the_conjugate_of_q) {
  each_bench(check_term);
}

/* A number and its inverse, as twisted mass has them: (a + i mu)^-1 = (a - i mu) / (a^2 + mu^2). */
static void check_inverse(bench_t *b) {
  const double m = 1.7, mu = 0.6, n = m * m + mu * mu;
  const qk_local_t t = {.prec = b->prec, .scalar = m, .q = {{0, mu}, {0, -mu}}};
  const qk_local_t inverse = {.prec = b->prec, .scalar = m / n, .q = {{0, -mu / n}, {0, mu / n}}};
  double complex *v = kit_vector(&b->kit);
  kit_random(&b->kit, 8, v);
  double complex *w = apply(b, term_alone(b, &t, false), v);
  expect_same(b, apply(b, term_alone(b, &inverse, false), w), v, "T^-1 T");
  free(w);
}

Test(local, inverse_of_a_twisted_number_undoes_it) {
  each_bench(check_inverse);
}

Test(local, refuses_what_does_not_fit) {
  bench_t b = bench_open(QK_SINGLE, 1);
  qk_hop_args_t a = hop_alone(&b, periodic, false);
  a.links = b.links;
  a.in = b.x.v;
  a.out = b.y.v;
  const qk_hop_args_t good = a;
  a.weight[2] = NAN;
  cr_expect_eq(b.kit.ops->hop(b.kit.ctx, &a), QK_BAD_ARGUMENT);
  cr_expect(strstr(b.kit.ops->last_error(b.kit.ctx), "weight: not finite") != NULL);
  a = good;
  a.out.inner = 2;
  cr_expect_eq(b.kit.ops->hop(b.kit.ctx, &a), QK_BAD_ARGUMENT);
  cr_expect(strstr(b.kit.ops->last_error(b.kit.ctx), "inner must be 0 or 1") != NULL);
  const qk_local_t t = {.prec = QK_DOUBLE, .scalar = 2, .q = {{0, 1}, {0, 0}}};
  qk_local_t out = {.prec = QK_DOUBLE};
  int64_t singular = -1;
  const qk_diag_invert_args_t invert = {
      .lat = b.kit.lat, .in = t, .out = &out, .singular = &singular};
  cr_expect_eq(b.kit.ops->diag_invert(b.kit.ctx, &invert), QK_BAD_ARGUMENT);
  cr_expect(strstr(b.kit.ops->last_error(b.kit.ctx), "q[0] = 0, 1: 0, 0") != NULL);
  cr_expect_eq(singular, -1);
  bench_close(&b);
}
