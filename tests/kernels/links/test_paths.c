/*
 * Kernels of fat links on one backend, against plain loops over complex matrices, and the
 * projection to U(3) by what defines it. What a whole recipe gives is judged in
 * tests/unit/engine/gauge/test_fat_links.c.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/links/links_kit.h"

static const int whole[4] = {0, 0, 0, 0};
static const int extents[][4] = {{4, 6, 2, 8}, {2, 2, 2, 2}, {6, 2, 4, 4}};
enum { EXTENTS = sizeof extents / sizeof *extents };

/* Links, three tops for staples, and something to write on. */
typedef struct field {
  kit_t kit;
  qk_linkfield_t u, top[3], out;
  matrix_t *links, *tops[3]; /* host: [site][mu], [site] */
} field_t;

/* Matrices of no group: sums of links. */
static matrix_t *some_matrices(const int dims[4], int seed) {
  matrix_t *a = (matrix_t *)kit_random_links(dims, 1, (uint64_t)seed);
  const int n = dims[0] * dims[1] * dims[2] * dims[3];
  for (int site = 0; site < n; site++)
    for (int k = 0; k < 9; k++)
      a[site][k / 3][k % 3] = a[4 * site][k / 3][k % 3] + 0.7 * a[4 * site + 1][k % 3][k / 3];
  return a;
}

static void open_field(field_t *f, const int dims[4]) {
  f->links = (matrix_t *)kit_random_links(dims, 0.8, 4);
  kit_open(&f->kit, dims, whole, (const double complex *)f->links);
  f->u = links_field(&f->kit, 4);
  f->out = links_field(&f->kit, 4);
  links_copy_in(&f->kit, &f->u, 4, f->links);
  for (int i = 0; i < 3; i++) {
    f->tops[i] = some_matrices(dims, 10 + i);
    f->top[i] = links_field(&f->kit, 1);
    links_copy_in(&f->kit, &f->top[i], 1, f->tops[i]);
  }
}

static void close_field(field_t *f) {
  for (int i = 0; i < 3; i++) {
    free(f->tops[i]);
    kit_free(&f->kit, f->top[i].data);
  }
  kit_free(&f->kit, f->out.data);
  kit_free(&f->kit, f->u.data);
  kit_close(&f->kit);
  free(f->links);
}

/* ---- plain loops ---- */

/* out = a b, of adjoints where asked for */
static void product(const matrix_t a, bool adjoint_a, const matrix_t b, bool adjoint_b,
                    matrix_t out) {
  matrix_t c;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      c[i][j] = 0;
      for (int k = 0; k < 3; k++)
        c[i][j] += (adjoint_a ? conj(a[k][i]) : a[i][k]) * (adjoint_b ? conj(b[j][k]) : b[k][j]);
    }
  memcpy(out, c, sizeof c);
}

static void add(double factor, const matrix_t a, matrix_t sum) {
  for (int k = 0; k < 9; k++) sum[k / 3][k % 3] += factor * a[k / 3][k % 3];
}

/* From n along nu by `by` links (1, 2, -1, -2), then `top` there, then back to n + mu. */
static void detour(const field_t *f, int64_t n, int mu, int nu, int by, const matrix_t top,
                   matrix_t out) {
  const kit_t *kit = &f->kit;
  memcpy(out, top, sizeof(matrix_t));
  for (int i = abs(by) - 1; i >= 0; i--) {
    const int64_t side = links_step(kit, n, nu, by > 0 ? i : -i - 1);
    product(f->links[4 * side + nu], by < 0, out, false, out);
    product(out, false, f->links[4 * links_step(kit, side, mu, 1) + nu], by > 0, out);
  }
}

static void plain_paths(const field_t *f, const qk_link_paths_args_t *a, int64_t n, matrix_t out) {
  matrix_t way, sum = {{0}};
  for (int nu = 0, top = 0; nu < 4; nu++) {
    if (nu == a->mu) continue;
    for (int sign = -1; sign <= 1; sign += 2) {
      const int64_t near = links_step(&f->kit, n, nu, sign);
      const int64_t far = links_step(&f->kit, n, nu, 2 * sign);
      detour(f, n, a->mu, nu, 2 * sign, f->links[4 * far + a->mu], way);
      add(a->straight, way, sum);
      detour(f, n, a->mu, nu, sign, f->tops[top][near], way);
      if (a->top[nu].data) add(1, way, sum);
    }
    top++;
  }
  memset(out, 0, sizeof(matrix_t));
  add(a->own, f->links[4 * n + a->mu], out);
  add(a->weight, sum, out);
}

/* ---- sums over paths ---- */

/* Staples along the directions of `along`, which are numbered without mu. */
static qk_link_paths_args_t stage(const field_t *f, int mu, unsigned along, double straight) {
  qk_link_paths_args_t a = {.lat = f->kit.lat,
                            .u = f->u,
                            .mu = mu,
                            .own = 0.6,
                            .weight = -0.3,
                            .straight = straight,
                            .out = f->out};
  for (int i = 0; i < 3; i++)
    if (along >> i & 1) a.top[i < mu ? i : i + 1] = f->top[i];
  return a;
}

static void expect_paths(field_t *f, const qk_link_paths_args_t *a) {
  matrix_t *want = malloc((size_t)f->kit.volume * sizeof *want);
  kit_must(&f->kit, f->kit.ops->link_paths(f->kit.ctx, a), "link_paths");
  matrix_t *got = links_copy_out(&f->kit, &f->out, 1);
  for (int64_t n = 0; n < f->kit.volume; n++) plain_paths(f, a, n, want[n]);
  const double off = links_distance((const matrix_t *)got, (const matrix_t *)want, f->kit.volume);
  cr_expect(off < 2e-14, "mu %d, straight %g: off by %g", a->mu, a->straight, off);
  free(got);
  free(want);
}

Test(paths_kernels, sum_staples_and_straight_paths_as_plain_loops) {
  for (int e = 0; e < EXTENTS; e++) {
    field_t f;
    open_field(&f, extents[e]);
    for (int mu = 0; mu < 4; mu++)
      for (unsigned along = 0; along < 8; along++) {
        const qk_link_paths_args_t a = stage(&f, mu, along, along & 1 ? -1.7 : 0);
        expect_paths(&f, &a);
      }
    close_field(&f);
  }
}

Test(paths_kernels, take_a_direction_of_the_links_as_top) {
  field_t f;
  open_field(&f, extents[0]);
  for (int mu = 0; mu < 4; mu++) {
    qk_link_paths_args_t a = stage(&f, mu, 0, 0);
    a.top[(mu + 1) % 4] = f.u;
    a.top[(mu + 1) % 4].data += 36 * mu * (f.kit.volume / 2);
    for (int i = 0; i < 3; i++)
      for (int64_t n = 0; n < f.kit.volume; n++)
        memcpy(f.tops[i][n], f.links[4 * n + mu], sizeof(matrix_t));
    expect_paths(&f, &a);
  }
  close_field(&f);
}

Test(paths_kernels, make_long_links_as_plain_loops) {
  for (int e = 0; e < EXTENTS; e++) {
    field_t f;
    open_field(&f, extents[e]);
    const int64_t n = 4 * f.kit.volume;
    matrix_t *want = calloc((size_t)n, sizeof *want);
    const qk_link_long_args_t a = {.lat = f.kit.lat, .u = f.u, .out = f.out, .factor = -0.25};
    kit_must(&f.kit, f.kit.ops->link_long(f.kit.ctx, &a), "link_long");
    for (int64_t i = 0; i < n; i++) {
      matrix_t way;
      const int mu = (int)(i % 4);
      const int64_t second = links_step(&f.kit, i / 4, mu, 1);
      const int64_t third = links_step(&f.kit, i / 4, mu, 2);
      product(f.links[i], false, f.links[4 * second + mu], false, way);
      product(way, false, f.links[4 * third + mu], false, way);
      add(a.factor, way, want[i]);
    }
    matrix_t *got = links_copy_out(&f.kit, &f.out, 4);
    const double off = links_distance((const matrix_t *)got, (const matrix_t *)want, n);
    cr_expect(off < 1e-15, "lattice %d: off by %g", e, off);
    free(got);
    free(want);
    close_field(&f);
  }
}

/* ---- projection ---- */

static int64_t project(const field_t *f) {
  int64_t singular = 77;
  const qk_link_project_args_t a = {
      .lat = f->kit.lat, .u = f->u, .out = f->out, .singular = &singular};
  kit_must(&f->kit, f->kit.ops->link_project(f->kit.ctx, &a), "link_project");
  return singular;
}

/* A = P diag(1, size, size^2) Q with unitary P and Q, one of which has any determinant. */
static void stretch(matrix_t a, const matrix_t other, double size, double angle) {
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) a[i][j] *= pow(size, j) * cexp(I * angle);
  product(a, false, other, false, a);
}

/* V is the unitary factor of A: V^+ V = 1, and V^+ A is hermitian and positive. */
static void expect_polar(const matrix_t v, const matrix_t a, double size) {
  matrix_t square, h;
  product(v, true, v, false, square);
  product(v, true, a, false, h);
  double off = 0, skew = 0;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) {
      off = fmax(off, cabs(square[i][j] - (i == j)));
      skew = fmax(skew, cabs(h[i][j] - conj(h[j][i])));
    }
  const double complex det = h[0][0] * (h[1][1] * h[2][2] - h[1][2] * h[2][1]) -
                             h[0][1] * (h[1][0] * h[2][2] - h[1][2] * h[2][0]) +
                             h[0][2] * (h[1][0] * h[2][1] - h[1][1] * h[2][0]);
  const double minor = creal(h[0][0] * h[1][1] - h[0][1] * h[1][0]);
  cr_expect(off < 1e-14, "singular values to %g: V^+ V off by %g", size, off);
  cr_expect(skew < 1e-14, "singular values to %g: V^+ A off by %g", size, skew);
  if (size > 1e-4) /* below, minors are lost in rounding */
    cr_expect(creal(h[0][0]) > 0 && minor > 0 && creal(det) > 0, "%g: not positive", size);
}

Test(paths_kernels, project_to_the_unitary_factor) {
  static const double sizes[] = {1, 0.9, 0.3, 1e-2, 1e-4, 1e-6};
  field_t f;
  open_field(&f, extents[0]);
  matrix_t *other = (matrix_t *)kit_random_links(extents[0], 1, 8);
  const int64_t n = 4 * f.kit.volume;
  for (int64_t i = 0; i < n; i++)
    stretch(f.links[i], other[i], sizes[i % 6], 0.37 * (double)(i % 17));
  links_copy_in(&f.kit, &f.u, 4, f.links);
  cr_expect_eq(project(&f), -1);
  matrix_t *v = links_copy_out(&f.kit, &f.out, 4);
  for (int64_t i = 0; i < n; i++) expect_polar(v[i], f.links[i], sizes[i % 6] * sizes[i % 6]);
  free(v);
  free(other);
  close_field(&f);
}

Test(paths_kernels, leave_unitary_matrices_as_they_are) {
  field_t f;
  open_field(&f, extents[2]);
  cr_expect_eq(project(&f), -1);
  matrix_t *v = links_copy_out(&f.kit, &f.out, 4);
  const double off =
      links_distance((const matrix_t *)v, (const matrix_t *)f.links, 4 * f.kit.volume);
  cr_expect(off < 2e-15, "off by %g", off);
  free(v);
  close_field(&f);
}

/* Rank 2, rank 0, almost rank 2, something that is no number, something too small to be squared:
 * the first is named, and the links beside it are projected. */
Test(paths_kernels, name_the_first_singular_matrix) {
  enum { LINK = 4 * 37 + 2 };
  for (int kind = 0; kind < 5; kind++) {
    field_t f;
    open_field(&f, extents[0]);
    matrix_t *bad = &f.links[LINK];
    for (int k = 0; k < 9; k++) {
      double complex *z = &(*bad)[k / 3][k % 3];
      const double factor[5] = {k % 3 == 1 ? 0 : 1, 0, k % 3 == 1 ? 1e-15 : 1, NAN, 1e-150};
      *z = kind == 3 && k > 0 ? *z : *z * factor[kind];
    }
    memset(f.links[LINK + 99], 0, sizeof(matrix_t));
    links_copy_in(&f.kit, &f.u, 4, f.links);
    cr_expect_eq(project(&f), LINK, "kind %d", kind);
    matrix_t *v = links_copy_out(&f.kit, &f.out, 4);
    cr_expect(isnan(creal(v[LINK][0][0])), "kind %d", kind);
    const double off = links_distance((const matrix_t *)v, (const matrix_t *)f.links, LINK);
    cr_expect(off < 2e-15, "kind %d: off by %g before it", kind, off);
    free(v);
    close_field(&f);
  }
}

/* ---- bits, refusals ---- */

static matrix_t *append(const field_t *f, int directions, matrix_t *to) {
  const size_t n = (size_t)f->kit.volume * (size_t)directions;
  matrix_t *made = links_copy_out(&f->kit, &f->out, directions);
  memcpy(to, made, n * sizeof *made);
  free(made);
  return to + n;
}

/* Nine matrices a site. */
static matrix_t *all_of_it(field_t *f) {
  matrix_t *all = malloc(9 * (size_t)f->kit.volume * sizeof *all);
  const qk_link_paths_args_t a = stage(f, 2, 7, -0.5);
  kit_must(&f->kit, f->kit.ops->link_paths(f->kit.ctx, &a), "link_paths");
  matrix_t *to = append(f, 1, all);
  const qk_link_long_args_t l = {.lat = f->kit.lat, .u = f->u, .out = f->out, .factor = 0.3};
  kit_must(&f->kit, f->kit.ops->link_long(f->kit.ctx, &l), "link_long");
  to = append(f, 4, to);
  for (int64_t i = 0; i < 4 * f->kit.volume; i++)
    memcpy(f->links[i], f->tops[i % 3][i / 4], sizeof(matrix_t));
  links_copy_in(&f->kit, &f->u, 4, f->links);
  cr_expect_eq(project(f), -1);
  append(f, 4, to);
  return all;
}

Test(paths_kernels, give_the_bits_of_the_cpu) {
  field_t f, cpu;
  open_field(&f, extents[0]);
  matrix_t *got = all_of_it(&f);
  cr_assert(setenv("QK_BACKEND", "cpu", 1) == 0);
  open_field(&cpu, extents[0]);
  matrix_t *want = all_of_it(&cpu);
  cr_expect_eq(memcmp(got, want, 9 * (size_t)f.kit.volume * sizeof(matrix_t)), 0);
  free(want);
  free(got);
  close_field(&cpu);
  close_field(&f);
}

Test(paths_kernels, refuse_what_does_not_fit) {
  field_t f;
  int64_t singular;
  open_field(&f, extents[0]);
  const kit_t *kit = &f.kit;
  const qk_link_paths_args_t good = stage(&f, 1, 7, 1);
  qk_link_paths_args_t a;
#define REFUSED(change, said)                                                                      \
  a = good;                                                                                        \
  change;                                                                                          \
  kit_refused(kit, kit->ops->link_paths(kit->ctx, &a), said)
  REFUSED(a.mu = 4, "mu = 4");
  REFUSED(a.u.data = NULL, "no data");
  REFUSED(a.out.e[1] = 4, "e[1] = 4");
  REFUSED(a.top[1] = a.top[0], "along mu");
  REFUSED(a.top[0] = a.out, "memory of out");
  REFUSED(a.top[3].halo = 3, "halo = 3");
  REFUSED(a.out = a.u, "memory of u");
  REFUSED(a.out.data = a.u.data + 36 * 3 * (f.kit.volume / 2), "memory of u");
  REFUSED(a.lat.split[0] = 1; a.u.e[0] += 2; a.out.e[0] += 2, "halo = 1: 2");
#undef REFUSED
  qk_link_long_args_t l = {.lat = kit->lat, .u = f.u, .out = f.u};
  kit_refused(kit, kit->ops->link_long(kit->ctx, &l), "memory of u");
  l.out = f.out;
  l.out.data = NULL;
  kit_refused(kit, kit->ops->link_long(kit->ctx, &l), "no data");
  qk_link_project_args_t p = {.lat = kit->lat, .u = f.u, .out = f.out};
  kit_refused(kit, kit->ops->link_project(kit->ctx, &p), "singular is missing");
  p.singular = &singular;
  p.out = p.u;
  p.out.halo = 2;
  kit_refused(kit, kit->ops->link_project(kit->ctx, &p), "halo of out = 2");
  close_field(&f);
}
