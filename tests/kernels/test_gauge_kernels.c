/* What the kernels make of a gauge field: checks, compressed links, clover term and inverse. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/hop_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const double periodic[4][2] = {{1, 0}, {1, 0}, {1, 0}, {1, 0}};

static qk_gauge_args_t gauge(const kit_t *kit) {
  qk_gauge_args_t a = {.lat = kit->lat, .u = {.data = kit->ext}};
  memcpy(a.u.e, kit->e, sizeof a.u.e);
  return a;
}

/* ---- plaquette ---- */

static int64_t ahead(const int dims[4], int64_t n, int mu) {
  int64_t stride = 1;
  for (int nu = 0; nu < mu; nu++) stride *= dims[nu];
  const int64_t x = n / stride % dims[mu];
  return x == dims[mu] - 1 ? n - x * stride : n + stride;
}

/* Re tr U_mu(n) U_nu(n+mu) U_mu(n+nu)^+ U_nu(n)^+ / 3 by its definition */
static double plaquette(const int dims[4], const double complex *u, int64_t n, int mu, int nu) {
  const double complex *a = u + (n * 4 + mu) * 9, *d = u + (n * 4 + nu) * 9;
  const double complex *b = u + (ahead(dims, n, mu) * 4 + nu) * 9;
  const double complex *c = u + (ahead(dims, n, nu) * 4 + mu) * 9;
  double complex sum = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++)
          sum += a[3 * i + j] * b[3 * j + k] * conj(c[3 * l + k]) * conj(d[3 * i + l]);
  return creal(sum) / 3;
}

static void check_plaquettes(const int dims[4], const int split[4]) {
  double complex *links = kit_random_links(dims, 0.6, 3);
  kit_t kit;
  kit_open(&kit, dims, split, links);
  double got[6], want[6] = {0};
  const qk_plaquette_args_t a = {.gauge = gauge(&kit), .plaq = got};
  kit_must(&kit, kit.ops->plaquette(kit.ctx, &a), "plaquette");
  for (int mu = 0, plane = 0; mu < 3; mu++)
    for (int nu = mu + 1; nu < 4; nu++, plane++) {
      for (int64_t n = 0; n < kit.volume; n++) want[plane] += plaquette(dims, links, n, mu, nu);
      cr_expect_float_eq(got[plane], want[plane], 1e-13 * (double)kit.volume, "plane %d: %.17g",
                         plane, got[plane] - want[plane]);
    }
  kit_close(&kit);
  free(links);
}

Test(gauge_kernels, sum_plaquettes_by_their_definition) {
  check_plaquettes((int[]){4, 6, 2, 8}, whole);
  check_plaquettes((int[]){4, 6, 2, 8}, (int[]){1, 1, 0, 1});
}

/* ---- unitarity ---- */

static void unitarity(const int dims[4], const double complex *links, double v[3]) {
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  const qk_unitarity_args_t a = {
      .gauge = gauge(&kit), .dev = &v[0], .det = &v[1], .link_trace = &v[2]};
  kit_must(&kit, kit.ops->unitarity(kit.ctx, &a), "unitarity");
  kit_close(&kit);
}

Test(gauge_kernels, find_the_one_link_that_is_not_unitary) {
  const int dims[4] = {4, 4, 4, 6};
  double complex *links = kit_random_links(dims, 0.6, 3);
  double v[3], trace = 0;
  for (int64_t n = 0; n < 4 * 4 * 4 * 6 * 4; n++)
    trace += creal(links[n * 9] + links[n * 9 + 4] + links[n * 9 + 8]) / 3;
  unitarity(dims, links, v);
  cr_expect(v[0] < 2e-15 && v[1] < 2e-15, "dev %g, det %g", v[0], v[1]);
  cr_expect_float_eq(v[2], trace, 1e-10);
  double complex *u = links + (3 * 64 + 17) * 36 + 9;
  for (int k = 0; k < 9; k++) u[k] *= 1 + 1e-7;
  unitarity(dims, links, v);
  cr_expect_float_eq(v[0], 2e-7, 1e-12);
  cr_expect_float_eq(v[1], 3e-7, 1e-12);
  for (int k = 0; k < 9; k++) u[k] *= cexp(0.01 * I) / (1 + 1e-7); /* unitary, but det is not 1 */
  unitarity(dims, links, v);
  cr_expect_lt(v[0], 1e-14);
  cr_expect_float_eq(v[1], 2 * sin(0.015), 1e-12);
  u[4] = NAN;
  unitarity(dims, links, v);
  cr_expect(isnan(v[0]) && isnan(v[1]));
  free(links);
}

/* ---- compressed links ---- */

static void hop_once(const kit_t *kit, const qk_links_t *links, const double complex *in,
                     double complex *out) {
  qk_hop_args_t a = kit_dirac(kit, false, periodic);
  a.c_hop = 1;
  a.c_z = 0;
  a.links = *links;
  kit_part(kit, a, links->prec, in, out);
}

/* Links of one element a row: the 24 signed permutations of determinant one, with phases or
 * without. Every modulus that 8 reals get from a square root is 0 or 1 somewhere among them. */
static double complex *monomial_links(const int dims[4], bool phases) {
  static const int even[3][3] = {{0, 1, 2}, {1, 2, 0}, {2, 0, 1}};
  double complex *links = kit_random_links(dims, 1, 77);
  const int64_t n = (int64_t)dims[0] * dims[1] * dims[2] * dims[3] * 4;
  for (int64_t i = 0; i < n; i++) {
    double complex *u = links + 9 * i, p = 1, q = 1;
    if (phases) {
      p = u[0] / cabs(u[0]);
      q = u[1] / cabs(u[1]);
    } else {
      p = i % 2 ? -1 : 1;
      q = i % 3 ? 1 : -1;
    }
    for (int k = 0; k < 9; k++) u[k] = 0;
    const int *to = even[i % 3];
    u[to[0]] = p;
    u[3 + to[1]] = q;
    u[6 + to[2]] = conj(p * q);
  }
  return links;
}

static void check_forms(const int dims[4], const double complex *links, const double bound[3]) {
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  double complex *v = kit_vector(&kit), *exact = kit_vector(&kit), *got = kit_vector(&kit);
  kit_random(&kit, 4, v);
  qk_links_t all = kit_links(&kit, QK_DOUBLE, 18);
  hop_once(&kit, &all, v, exact);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int reals = 8; reals <= 12; reals += 4) {
      qk_links_t some = kit_links(&kit, prec, reals);
      hop_once(&kit, &some, v, got);
      const double off = kit_distance(&kit, got, exact);
      cr_expect(off < bound[prec], "prec %d, %d reals: off by %g", prec, reals, off);
      kit_free(&kit, some.data);
    }
  kit_free(&kit, all.data);
  kit_close(&kit);
  free(v);
  free(exact);
  free(got);
}

Test(gauge_kernels, rebuild_links_whose_rows_have_one_element) {
  const int dims[4] = {4, 4, 4, 4};
  double complex *links = monomial_links(dims, false);
  check_forms(dims, links, (double[]){2e-15, 1e-6, 2e-3});
  free(links);
  links = monomial_links(dims, true); /* the square root of rounding, where a modulus is near 0 */
  check_forms(dims, links, (double[]){5e-8, 1e-3, 2e-2});
  free(links);
}

Test(gauge_kernels, rebuild_smooth_and_rough_links) {
  const int dims[4] = {4, 4, 4, 4};
  for (int i = 0; i < 3; i++) {
    double complex *links = kit_random_links(dims, (double[]){0.02, 0.3, 1}[i], 5);
    check_forms(dims, links, (double[]){1e-13, 5e-5, 1e-2});
    free(links);
  }
}

/* ---- site-diagonal terms ---- */

static void diag_once(const kit_t *kit, const qk_local_t *diag, const double complex *in,
                      double complex *out) {
  qk_hop_args_t a = kit_dirac(kit, false, periodic);
  a.c_hop = 0;
  a.diag = *diag;
  kit_part(kit, a, QK_DOUBLE, in, out);
}

/* Positive, and indefinite where the number on the diagonal is small. */
Test(gauge_kernels, invert_the_clover_term) {
  const int dims[4] = {4, 2, 6, 4};
  double complex *links = kit_random_links(dims, 0.7, 6);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  double complex *v = kit_vector(&kit), *w = kit_vector(&kit), *x = kit_vector(&kit);
  kit_random(&kit, 4, v);
  for (int i = 0; i < 2; i++) {
    qk_local_t a = kit_diag(&kit, 1.5, (double[]){4.1, 0.01}[i], false, QK_DOUBLE);
    qk_local_t b = kit_diag(&kit, 1.5, (double[]){4.1, 0.01}[i], true, QK_DOUBLE);
    diag_once(&kit, &a, v, w);
    diag_once(&kit, &b, w, x);
    cr_expect_lt(kit_distance(&kit, x, v), i ? 1e-10 : 1e-14);
    kit_free(&kit, a.data);
    kit_free(&kit, b.data);
  }
  kit_close(&kit);
  free(v);
  free(w);
  free(x);
  free(links);
}

Test(gauge_kernels, count_sites_that_have_no_inverse) {
  const int dims[4] = {4, 4, 2, 4};
  double complex *links = kit_random_links(dims, 0, 0);
  kit_t kit;
  kit_open(&kit, dims, whole, links);
  qk_local_t d = {.prec = QK_DOUBLE};
  d.data = kit_alloc(&kit, kit.ops->diag_bytes(&kit.lat, QK_DOUBLE));
  int64_t singular = -1;
  /* zero on unit links */
  const qk_clover_set_args_t set = {
      .gauge = gauge(&kit), .csw = 1, .plane = {1, 1, 1, 1, 1, 1}, .out = d};
  kit_must(&kit, kit.ops->clover_set(kit.ctx, &set), "clover_set");
  qk_diag_invert_args_t invert = {.lat = kit.lat, .in = d, .out = &d, .singular = &singular};
  kit_must(&kit, kit.ops->diag_invert(kit.ctx, &invert), "diag_invert");
  cr_expect_eq(singular, kit.volume);
  kit_free(&kit, d.data);
  qk_local_t inverse = {.prec = QK_DOUBLE};
  invert.in = (qk_local_t){.prec = QK_DOUBLE, .scalar = 4};
  invert.out = &inverse;
  kit_must(&kit, kit.ops->diag_invert(kit.ctx, &invert), "diag_invert");
  cr_expect(singular == 0 && inverse.data == NULL && inverse.scalar == 0.25);
  kit_close(&kit);
  free(links);
}

/* The halo of a split direction gives the same clover term as wrapping around. */
Test(gauge_kernels, make_the_clover_term_from_halos) {
  const int dims[4] = {4, 6, 4, 4};
  double complex *links = kit_random_links(dims, 0.7, 6);
  kit_t a, b;
  kit_open(&a, dims, whole, links);
  kit_open(&b, dims, (int[]){1, 1, 1, 1}, links);
  qk_local_t p = kit_diag(&a, 1.5, 4, false, QK_DOUBLE), q = kit_diag(&b, 1.5, 4, false, QK_DOUBLE);
  double complex *v = kit_vector(&a), *w = kit_vector(&a), *x = kit_vector(&a);
  kit_random(&a, 4, v);
  diag_once(&a, &p, v, w);
  diag_once(&b, &q, v, x);
  cr_expect_lt(kit_distance(&a, x, w), 1e-15);
  kit_free(&a, p.data);
  kit_free(&b, q.data);
  kit_close(&a);
  kit_close(&b);
  free(v);
  free(w);
  free(x);
  free(links);
}
