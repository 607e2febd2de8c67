/*
 * Kernels of gauge fixing on one backend, against plain loops over complex matrices. That they lead
 * to a gauge is judged in tests/unit/engine/gauge/test_gauge_fix.c.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/links/links_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const int extents[][4] = {{4, 6, 2, 8}, {2, 2, 2, 2}, {6, 2, 4, 4}};
enum { EXTENTS = sizeof extents / sizeof *extents };

/* Links and a transformation, on the device and in plain order. */
typedef struct field {
  kit_t kit;
  qk_linkfield_t u, g;
  matrix_t *links, *turn; /* host: [site][mu], [site] */
} field_t;

static void make(field_t *f) {
  f->u = links_field(&f->kit, 4);
  f->g = links_field(&f->kit, 1);
  links_copy_in(&f->kit, &f->u, 4, f->links);
  links_copy_in(&f->kit, &f->g, 1, f->turn);
}

static void open_field(field_t *f, const int dims[4]) {
  f->links = (matrix_t *)kit_random_links(dims, 0.8, 4);
  matrix_t *other = (matrix_t *)kit_random_links(dims, 1, 5);
  kit_open(&f->kit, dims, whole, (const double complex *)f->links);
  f->turn = malloc((size_t)f->kit.volume * sizeof(matrix_t));
  for (int64_t n = 0; n < f->kit.volume; n++) memcpy(f->turn[n], other[4 * n], sizeof(matrix_t));
  free(other);
  make(f);
}

static void close_field(field_t *f) {
  kit_free(&f->kit, f->u.data);
  kit_free(&f->kit, f->g.data);
  kit_close(&f->kit);
  free(f->turn);
  free(f->links);
}

/* ---- plain loops ---- */

/* a u b^+ */
static void sandwich(const matrix_t a, const matrix_t u, const matrix_t b, matrix_t out) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      out[i][j] = 0;
      for (int k = 0; k < 3; k++)
        for (int l = 0; l < 3; l++) out[i][j] += a[i][k] * u[k][l] * conj(b[j][l]);
    }
}

static void transformed(const field_t *f, int64_t n, int mu, matrix_t out) {
  sandwich(f->turn[n], f->links[4 * n + mu], f->turn[links_step(&f->kit, n, mu, 1)], out);
}

/* w of linkfield_ops.h */
static void around(const field_t *f, int64_t n, int directions, matrix_t w) {
  memset(w, 0, sizeof(matrix_t));
  for (int mu = 0; mu < directions; mu++) {
    matrix_t forward, backward;
    transformed(f, n, mu, forward);
    transformed(f, links_step(&f->kit, n, mu, -1), mu, backward);
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) w[i][j] += forward[i][j] + conj(backward[j][i]);
  }
}

/* Rows p, q of m from the left by {{a, b}, {-b^*, a^*}}. */
static void turn_rows(double complex a, double complex b, int p, int q, matrix_t m) {
  for (int j = 0; j < 3; j++) {
    const double complex x = m[p][j], y = m[q][j];
    m[p][j] = a * x + b * y;
    m[q][j] = -conj(b) * x + conj(a) * y;
  }
}

static void plain_relax(field_t *f, int64_t n, int directions, int first, double omega) {
  static const int pair[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  matrix_t w;
  around(f, n, directions, w);
  for (int s = 0; s < 3; s++) {
    const int p = pair[(first + s) % 3][0], q = pair[(first + s) % 3][1];
    /* Re tr (h w) = Re [a (w_pp + w_qq^*) + b (w_qp - w_pq^*)] */
    const double complex a = conj(w[p][p] + conj(w[q][q])), b = conj(w[q][p] - conj(w[p][q]));
    const double k = sqrt(creal(a * conj(a) + b * conj(b)));
    const double complex ra = 1 - omega + omega * a / k, rb = omega * b / k;
    const double r = sqrt(creal(ra * conj(ra) + rb * conj(rb)));
    turn_rows(ra / r, rb / r, p, q, w);
    turn_rows(ra / r, rb / r, p, q, f->turn[n]);
  }
}

/* ---- tests ---- */

static void relax(const field_t *f, int directions, int parity, int first, double omega) {
  const qk_fix_relax_args_t a = {.lat = f->kit.lat,
                                 .u = f->u,
                                 .g = f->g.data,
                                 .directions = directions,
                                 .parity = parity,
                                 .first = first,
                                 .omega = omega};
  kit_must(&f->kit, f->kit.ops->fix_relax(f->kit.ctx, &a), "fix_relax");
}

Test(fix_kernels, relax_as_plain_loops) {
  static const double omegas[] = {1, 1.7, 1.99};
  for (int e = 0; e < EXTENTS; e++)
    for (int directions = 3; directions <= 4; directions++) {
      field_t f;
      open_field(&f, extents[e]);
      for (int i = 0; i < 6; i++) {
        relax(&f, directions, i & 1, i / 2, omegas[i / 2]);
        for (int64_t n = 0; n < f.kit.volume; n++)
          if (links_parity(&f.kit, n) == (i & 1))
            plain_relax(&f, n, directions, i / 2, omegas[i / 2]);
      }
      matrix_t *got = links_copy_out(&f.kit, &f.g, 1);
      const double off = links_distance(got, f.turn, f.kit.volume);
      cr_expect(off < 1e-13, "lattice %d, %d directions: off by %g", e, directions, off);
      free(got);
      close_field(&f);
    }
}

Test(fix_kernels, sum_time_slices_as_plain_loops) {
  for (int e = 0; e < EXTENTS; e++)
    for (int directions = 3; directions <= 4; directions++) {
      field_t f;
      open_field(&f, extents[e]);
      const int t = f.kit.lat.l[3];
      const int64_t slice = f.kit.volume / t;
      double got[16], want[16] = {0};
      const qk_fix_sums_args_t a = {
          .lat = f.kit.lat, .u = f.u, .g = f.g.data, .directions = directions, .sum = got};
      kit_must(&f.kit, f.kit.ops->fix_sums(f.kit.ctx, &a), "fix_sums");
      for (int64_t n = 0; n < f.kit.volume; n++) {
        matrix_t w;
        around(&f, n, directions, w);
        const double trace = 2 * cimag(w[0][0] + w[1][1] + w[2][2]) / 3;
        for (int i = 0; i < 3; i++) want[2 * (n / slice)] += creal(w[i][i]);
        for (int i = 0; i < 9; i++) {
          const double complex d =
              w[i / 3][i % 3] - conj(w[i % 3][i / 3]) - (i % 4 == 0 ? trace * I : 0);
          want[2 * (n / slice) + 1] += creal(d * conj(d));
        }
      }
      for (int i = 0; i < 2 * t; i++)
        cr_expect_float_eq(got[i], want[i], 1e-12 * (double)slice, "lattice %d, %d: %.15g, %.15g",
                           e, i, got[i], want[i]);
      close_field(&f);
    }
}

Test(fix_kernels, transform_links_as_plain_loops) {
  for (int e = 0; e < EXTENTS; e++) {
    field_t f;
    open_field(&f, extents[e]);
    const qk_fix_rotate_args_t a = {.lat = f.kit.lat, .u = f.u, .g = f.g.data};
    matrix_t *want = malloc((size_t)f.kit.volume * 4 * sizeof *want);
    for (int64_t n = 0; n < 4 * f.kit.volume; n++) transformed(&f, n / 4, (int)(n % 4), want[n]);
    kit_must(&f.kit, f.kit.ops->fix_rotate(f.kit.ctx, &a), "fix_rotate");
    matrix_t *got = links_copy_out(&f.kit, &f.u, 4);
    const double off = links_distance(got, want, 4 * f.kit.volume);
    cr_expect(off < 1e-14, "lattice %d: off by %g", e, off);
    free(got);
    free(want);
    close_field(&f);
  }
}

/* Three iterations and the links transformed, on whichever backend. */
static void all_of_it(field_t *f, matrix_t **g, matrix_t **u) {
  for (int i = 0; i < 6; i++) relax(f, 4, i & 1, i / 2, 1.7);
  const qk_fix_rotate_args_t a = {.lat = f->kit.lat, .u = f->u, .g = f->g.data};
  kit_must(&f->kit, f->kit.ops->fix_rotate(f->kit.ctx, &a), "fix_rotate");
  *g = links_copy_out(&f->kit, &f->g, 1);
  *u = links_copy_out(&f->kit, &f->u, 4);
}

Test(fix_kernels, give_the_bits_of_the_cpu) {
  field_t f, cpu;
  matrix_t *g, *u, *want_g, *want_u;
  open_field(&f, extents[0]);
  all_of_it(&f, &g, &u);
  cr_assert(setenv("QK_BACKEND", "cpu", 1) == 0);
  open_field(&cpu, extents[0]);
  all_of_it(&cpu, &want_g, &want_u);
  const size_t bytes = (size_t)f.kit.volume * sizeof(matrix_t);
  cr_expect_eq(memcmp(g, want_g, bytes), 0);
  cr_expect_eq(memcmp(u, want_u, 4 * bytes), 0);
  free(want_u);
  free(want_g);
  free(u);
  free(g);
  close_field(&cpu);
  close_field(&f);
}

Test(fix_kernels, start_with_unit_matrices_or_random_ones) {
  field_t f;
  open_field(&f, extents[0]);
  qk_link_start_args_t a = {.lat = f.kit.lat, .u = f.g, .directions = 1};
  for (a.hot = 0; a.hot < 2; a.hot++) {
    kit_must(&f.kit, f.kit.ops->link_start(f.kit.ctx, &a), "link_start");
    matrix_t *g = links_copy_out(&f.kit, &f.g, 1);
    double complex trace = 0;
    double off = 0;
    const matrix_t one = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
    for (int64_t n = 0; n < f.kit.volume; n++) {
      matrix_t square;
      sandwich(g[n], one, g[n], square);
      off = fmax(off, links_distance((const matrix_t *)&square, &one, 1));
      for (int i = 0; i < 3; i++) trace += g[n][i][i] / (3 * (double)f.kit.volume);
    }
    cr_expect(off < 1e-14, "off by %g", off);
    if (a.hot)
      cr_expect(cabs(trace) < 0.1, "%g", cabs(trace));
    else
      cr_expect(cabs(trace - 1) < 1e-13, "%g", cabs(trace - 1));
    free(g);
  }
  close_field(&f);
}

Test(fix_kernels, refuse_what_does_not_fit) {
  field_t f;
  double sum[16];
  open_field(&f, extents[0]);
  const kit_t *kit = &f.kit;
  const qk_fix_relax_args_t good = {
      .lat = kit->lat, .u = f.u, .g = f.g.data, .directions = 4, .omega = 1.5};
  qk_fix_relax_args_t a;
#define REFUSED(change, said)                                                                      \
  a = good;                                                                                        \
  change;                                                                                          \
  kit_refused(kit, kit->ops->fix_relax(kit->ctx, &a), said)
  REFUSED(a.directions = 2, "directions = 2");
  REFUSED(a.parity = 2, "parity = 2");
  REFUSED(a.first = -1, "first = -1");
  REFUSED(a.first = 3, "first = 3");
  REFUSED(a.omega = 0.9, "omega = 0.9");
  REFUSED(a.omega = 2, "omega = 2");
  REFUSED(a.omega = NAN, "omega = ");
  REFUSED(a.g = NULL, "no memory");
  REFUSED(a.g = f.u.data, "memory of u");
  REFUSED(a.u.data = NULL, "no data");
  REFUSED(a.u.e[1] = 4, "e[1] = 4");
#undef REFUSED
  qk_fix_sums_args_t s = {.lat = kit->lat, .u = f.u, .g = f.g.data, .directions = 4};
  kit_refused(kit, kit->ops->fix_sums(kit->ctx, &s), "sum is missing");
  s.sum = sum;
  s.directions = 5;
  kit_refused(kit, kit->ops->fix_sums(kit->ctx, &s), "directions = 5");
  const qk_fix_rotate_args_t r = {.lat = kit->lat, .u = f.u};
  kit_refused(kit, kit->ops->fix_rotate(kit->ctx, &r), "no memory");
  qk_link_start_args_t start = {.lat = kit->lat, .u = f.u, .directions = 5};
  kit_refused(kit, kit->ops->link_start(kit->ctx, &start), "directions = 5");
  qk_link_copy_args_t copy = {.lat = kit->lat, .u = f.u, .sites = sum, .n = 1, .directions = 2};
  kit_refused(kit, kit->ops->link_export(kit->ctx, &copy), "directions = 2");
  close_field(&f);
}
