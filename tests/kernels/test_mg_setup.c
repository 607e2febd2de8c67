#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/fault.h"
#include "tests/kernels/mg_kit.h"

static const int whole[4] = {0, 0, 0, 0};

static kit_t open_level(const int dims[4]) {
  kit_t kit;
  mg_kit_open(&kit, dims, whole);
  return kit;
}

static size_t elements(const kit_t *kit, int n, int ndir) {
  return (size_t)(kit->volume * ndir * n * n);
}

/* Row r, column c of the matrix of direction d at place `at`, even sites first. */
static double complex *at(double complex *m, int64_t place, int n, int ndir, int d, int r, int c) {
  return m + ((place * ndir + d) * n + r) * n + c;
}

/* ---- copies ---- */

Test(coarse_copy, gives_back_what_was_set) {
  static const int dims[4] = {2, 4, 2, 6}, sizes[] = {4, 12, 16, 48};
  kit_t kit = open_level(dims);
  for (int k = 0; k < 4; k++)
    for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
      for (int ndir = 1; ndir <= 8; ndir += 7) {
        const int n = sizes[k];
        double complex *plain = mg_numbers(elements(&kit, n, ndir), 9);
        qk_coarse_links_t m = mg_matrices(&kit, (qk_prec_t)prec, n, ndir, plain);
        double complex *got = mg_plain(&kit, &m);
        cr_expect(mg_same_bits(got, plain, elements(&kit, n, ndir)), "n %d, ndir %d", n, ndir);
        kit_free(&kit, m.data);
        free(plain);
        free(got);
      }
  kit_close(&kit);
}

Test(coarse_copy, moves_some_sites_only) {
  static const int dims[4] = {2, 2, 2, 4};
  enum { n = 16, first = 11, count = 9 };
  kit_t kit = open_level(dims);
  const size_t all = elements(&kit, n, 8), before = (size_t)first * 8 * n * n;
  double complex *plain = mg_numbers(all, 9), *piece = mg_numbers((size_t)count * 8 * n * n, 10);
  qk_coarse_links_t m = mg_matrices(&kit, QK_SINGLE, n, 8, plain);
  const size_t bytes = (size_t)count * 8 * n * n * sizeof *piece;
  qk_coarse_copy_args_t copy = {.lat = kit.lat, .links = m, .first = first, .n = count};
  copy.plain = kit_alloc(&kit, bytes);
  kit_must(&kit, kit.ops->copy(kit.ctx, copy.plain, piece, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(&kit, kit.ops->coarse_set(kit.ctx, &copy), "coarse_set");
  memcpy(plain + before, piece, bytes);
  double complex *got = mg_plain(&kit, &m);
  cr_expect(mg_same_bits(got, plain, all));
  kit_must(&kit, kit.ops->coarse_get(kit.ctx, &copy), "coarse_get");
  kit_must(&kit, kit.ops->copy(kit.ctx, got, copy.plain, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "queue_sync");
  cr_expect(mg_same_bits(got, piece, (size_t)count * 8 * n * n));
  copy.n = kit.volume;
  cr_expect_eq(kit.ops->coarse_get(kit.ctx, &copy), QK_BAD_ARGUMENT);
  kit_free(&kit, copy.plain);
  kit_free(&kit, m.data);
  free(plain);
  free(piece);
  free(got);
  kit_close(&kit);
}

/* ---- closing ---- */

/* (G5 m^+ G5)(r, c), of m(c, r) */
static double complex flipped(int n, int r, int c, double complex m_cr) {
  return (r < n / 2) == (c < n / 2) ? conj(m_cr) : -conj(m_cr);
}

typedef struct closing {
  kit_t kit;
  int n;
  double complex *inner, *diag, *ahead; /* as given; ahead: odd directions hold junk */
  qk_coarse_close_args_t args;
} closing_t;

static closing_t open_closing(const int dims[4], const int split[4], int n, qk_prec_t prec) {
  kit_t kit = open_level(dims);
  closing_t c = {.kit = mg_level(&kit, dims, split, n), .n = n};
  c.kit.ext = kit.ext;
  c.kit.links = kit.links;
  c.inner = mg_numbers(elements(&kit, n, 1), 1);
  c.diag = mg_numbers(elements(&kit, n, 1), 2);
  c.ahead = mg_numbers(elements(&kit, n, 8), 3);
  c.args = (qk_coarse_close_args_t){.lat = c.kit.lat,
                                    .inner = mg_matrices(&c.kit, prec, n, 1, c.inner),
                                    .diag = mg_matrices(&c.kit, prec, n, 1, c.diag),
                                    .ahead = mg_matrices(&c.kit, prec, n, 8, c.ahead)};
  return c;
}

static void close_closing(closing_t *c) {
  kit_free(&c->kit, c->args.inner.data);
  kit_free(&c->kit, c->args.diag.data);
  kit_free(&c->kit, c->args.ahead.data);
  free(c->inner);
  free(c->diag);
  free(c->ahead);
  kit_close(&c->kit);
}

static void expect_closed(closing_t *c) {
  const kit_t *kit = &c->kit;
  const int n = c->n;
  double complex *diag = mg_plain(kit, &c->args.diag), *links = mg_plain(kit, &c->args.ahead);
  int64_t wrong_diag = 0, wrong_links = 0;
  for (int64_t i = 0; i < kit->volume; i++) {
    const int64_t place = mg_index(kit, i);
    for (int r = 0; r < n; r++)
      for (int col = 0; col < n; col++) {
        const double complex want = *at(c->diag, place, n, 1, 0, r, col) +
                                    *at(c->inner, place, n, 1, 0, r, col) +
                                    flipped(n, r, col, *at(c->inner, place, n, 1, 0, col, r));
        wrong_diag += *at(diag, place, n, 1, 0, r, col) != want;
        for (int mu = 0; mu < 4; mu++) {
          int x[4];
          mg_coords(kit, i, x);
          x[mu]--;
          const int64_t behind = mg_index(kit, mg_site(kit, x));
          const double complex back =
              flipped(n, r, col, *at(c->ahead, behind, n, 8, 2 * mu, col, r));
          wrong_links += *at(links, place, n, 8, 2 * mu + 1, r, col) != back;
          wrong_links +=
              *at(links, place, n, 8, 2 * mu, r, col) != *at(c->ahead, place, n, 8, 2 * mu, r, col);
        }
      }
  }
  cr_expect_eq(wrong_diag, 0, "diag: %lld elements are wrong", (long long)wrong_diag);
  cr_expect_eq(wrong_links, 0, "links: %lld elements are wrong", (long long)wrong_links);
  free(diag);
  free(links);
}

Test(coarse_close, makes_the_hops_backwards_and_those_inside) {
  static const int dims[][4] = {{2, 2, 2, 2}, {4, 2, 2, 6}};
  for (int k = 0; k < 4; k++) {
    closing_t c = open_closing(dims[k % 2], whole, k < 2 ? 12 : 48, k % 2 ? QK_SINGLE : QK_DOUBLE);
    kit_must(&c.kit, c.kit.ops->coarse_close(c.kit.ctx, &c.args), "coarse_close");
    expect_closed(&c);
    close_closing(&c);
  }
}

Test(coarse_close, takes_ghosts_in_split_directions) {
  static const int dims[4] = {4, 2, 2, 6}, split[4] = {1, 1, 0, 1};
  closing_t c = open_closing(dims, split, 12, QK_SINGLE);
  cr_expect_eq(c.kit.ops->coarse_close(c.kit.ctx, &c.args), QK_BAD_ARGUMENT);
  for (int mu = 0; mu < 4; mu++) {
    if (!split[mu]) continue;
    const size_t count = (size_t)(2 * c.kit.lat.face[mu] * c.n * c.n);
    double *to = kit_alloc(&c.kit, count * sizeof(double complex));
    const qk_coarse_face_args_t face = {
        .lat = c.kit.lat, .ahead = c.args.ahead, .mu = mu, .to = to};
    kit_must(&c.kit, c.kit.ops->coarse_face(c.kit.ctx, &face), "coarse_face");
    c.args.ghost[mu] = to;
  }
  kit_must(&c.kit, c.kit.ops->coarse_close(c.kit.ctx, &c.args), "coarse_close");
  expect_closed(&c);
  for (int mu = 0; mu < 4; mu++) kit_free(&c.kit, c.args.ghost[mu]);
  close_closing(&c);
}

Test(coarse_close, leaves_links_alone_where_there_are_none) {
  static const int dims[4] = {2, 2, 2, 4};
  closing_t c = open_closing(dims, whole, 4, QK_DOUBLE);
  qk_coarse_links_t ahead = c.args.ahead;
  c.args.ahead.data = NULL;
  kit_must(&c.kit, c.kit.ops->coarse_close(c.kit.ctx, &c.args), "coarse_close");
  double complex *links = mg_plain(&c.kit, &ahead);
  cr_expect(mg_same_bits(links, c.ahead, elements(&c.kit, 4, 8)));
  free(links);
  c.args.ahead = ahead;
  close_closing(&c);
}

/* Face sites in the order of the other coordinates, even ones first. */
Test(coarse_face, has_the_last_face_in_order) {
  static const int dims[4] = {4, 2, 6, 2};
  enum { n = 12 };
  kit_t kit = open_level(dims);
  double complex *plain = mg_numbers(elements(&kit, n, 8), 3);
  const qk_coarse_links_t m = mg_matrices(&kit, QK_DOUBLE, n, 8, plain);
  for (int mu = 0; mu < 4; mu++) {
    const size_t count = (size_t)(2 * kit.lat.face[mu] * n * n), bytes = count * sizeof *plain;
    double complex *got = malloc(bytes);
    cr_assert_not_null(got);
    const qk_coarse_face_args_t face = {
        .lat = kit.lat, .ahead = m, .mu = mu, .to = kit_alloc(&kit, bytes)};
    kit_must(&kit, kit.ops->coarse_face(kit.ctx, &face), "coarse_face");
    kit_must(&kit, kit.ops->copy(kit.ctx, got, face.to, bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "queue_sync");
    int64_t next[2] = {0, kit.lat.face[mu]};
    for (int64_t i = 0; i < kit.volume; i++) {
      int x[4];
      mg_coords(&kit, i, x);
      if (x[mu] != dims[mu] - 1) continue;
      const int64_t f = next[mg_parity(&kit, i)]++;
      cr_expect(mg_same_bits(got + f * n * n, at(plain, mg_index(&kit, i), n, 8, 2 * mu, 0, 0),
                             (size_t)n * n),
                "direction %d, face site %lld", mu, (long long)f);
    }
    kit_free(&kit, face.to);
    free(got);
  }
  kit_free(&kit, m.data);
  free(plain);
  kit_close(&kit);
}

/* ---- inverse ---- */

/* Largest element of a b - 1 for the matrices at a place. */
static double off_one(double complex *a, double complex *b, int64_t place, int n) {
  double off = 0;
  for (int r = 0; r < n; r++)
    for (int c = 0; c < n; c++) {
      double complex sum = -(double)(r == c);
      for (int k = 0; k < n; k++)
        sum += *at(a, place, n, 1, 0, r, k) * *at(b, place, n, 1, 0, k, c);
      if (!(cabs(sum) <= off)) off = cabs(sum);
    }
  return off;
}

static double complex *inverse_of(const kit_t *kit, const qk_coarse_links_t *diag, qk_prec_t prec,
                                  int64_t *singular) {
  qk_coarse_invert_args_t args = {.lat = kit->lat, .diag = *diag, .singular = singular};
  args.inverse = (qk_coarse_links_t){.prec = prec, .n = diag->n, .ndir = 1};
  args.inverse.data = kit_alloc(kit, kit->ops->coarse_bytes(&kit->lat, &args.inverse));
  kit_must(kit, kit->ops->coarse_invert(kit->ctx, &args), "coarse_invert");
  double complex *got = mg_plain(kit, &args.inverse);
  kit_free(kit, args.inverse.data);
  return got;
}

Test(coarse_invert, gives_the_inverse_at_every_site) {
  static const int dims[4] = {2, 2, 2, 4}, sizes[] = {4, 12, 48, 64, 116, 128};
  kit_t kit = open_level(dims);
  for (int k = 0; k < 6; k++)
    for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
      const int n = sizes[k];
      int64_t singular = -1;
      double complex *plain = mg_numbers(elements(&kit, n, 1), 11 + (uint64_t)k);
      for (int64_t i = 0; i < kit.volume; i++)
        for (int r = 0; r < n / 2; r++) *at(plain, i, n, 1, 0, r, n - 1 - r) += 4;
      const qk_coarse_links_t m = mg_matrices(&kit, QK_SINGLE, n, 1, plain);
      double complex *got = inverse_of(&kit, &m, (qk_prec_t)prec, &singular);
      cr_expect_eq(singular, 0);
      double off = 0;
      for (int64_t i = 0; i < kit.volume; i++) off = fmax(off, off_one(plain, got, i, n));
      const double unit = prec == QK_DOUBLE ? 1e-15 : prec == QK_SINGLE ? 6e-8 : 5e-4;
      cr_expect_lt(off, 4000 * unit, "n %d, precision %d: %.1e", n, prec, off);
      kit_free(&kit, m.data);
      free(plain);
      free(got);
    }
  kit_close(&kit);
}

Test(coarse_invert, counts_singular_sites_and_inverts_the_others) {
  static const int dims[4] = {2, 2, 2, 4}, sizes[] = {12, 48, 120};
  kit_t kit = open_level(dims);
  for (int k = 0; k < 3; k++) {
    const int n = sizes[k];
    int64_t singular = -1;
    double complex *plain = mg_numbers(elements(&kit, n, 1), 5);
    memset(at(plain, 3, n, 1, 0, 0, 0), 0, (size_t)n * n * sizeof *plain);
    memcpy(at(plain, 8, n, 1, 0, n - 1, 0), at(plain, 8, n, 1, 0, 1, 0), (size_t)n * sizeof *plain);
    *at(plain, 20, n, 1, 0, n / 2, 2) = NAN;
    *at(plain, 31, n, 1, 0, 0, n - 1) = INFINITY;
    const qk_coarse_links_t m = mg_matrices(&kit, QK_DOUBLE, n, 1, plain);
    double complex *got = inverse_of(&kit, &m, QK_DOUBLE, &singular);
    cr_expect_eq(singular, 4, "n %d: %lld", n, (long long)singular);
    for (int64_t i = 0; i < kit.volume; i++)
      if (i != 3 && i != 8 && i != 20 && i != 31)
        cr_expect_lt(off_one(plain, got, i, n), 1e-10, "n %d, site %lld", n, (long long)i);
    kit_free(&kit, m.data);
    free(plain);
    free(got);
  }
  kit_close(&kit);
}

Test(coarse_invert, without_memory_leaves_everything_as_it_was) {
  static const int dims[4] = {2, 2, 2, 2};
  enum { n = 128 };
  kit_t kit = open_level(dims);
  double complex *plain = mg_numbers(elements(&kit, n, 1), 5);
  const qk_coarse_links_t m = mg_matrices(&kit, QK_DOUBLE, n, 1, plain);
  const qk_coarse_links_t to = mg_matrices(&kit, QK_DOUBLE, n, 1, plain);
  int64_t singular = -1;
  const qk_coarse_invert_args_t args = {
      .lat = kit.lat, .diag = m, .inverse = to, .singular = &singular};
  const int64_t before = kit.ops->allocated(kit.ctx);
  cr_assert_eq(qk_fault_set("device-alloc:1"), 0);
  cr_expect_eq(kit.ops->coarse_invert(kit.ctx, &args), QK_DEVICE_MEMORY);
  cr_assert_eq(qk_fault_set(NULL), 0);
  double complex *got = mg_plain(&kit, &to);
  cr_expect(mg_same_bits(got, plain, elements(&kit, n, 1)));
  cr_expect_eq(kit.ops->allocated(kit.ctx), before);
  cr_expect_eq(singular, -1);
  kit_must(&kit, kit.ops->coarse_invert(kit.ctx, &args), "coarse_invert");
  cr_expect_eq(singular, 0);
  free(got);
  kit_free(&kit, m.data);
  kit_free(&kit, to.data);
  free(plain);
  kit_close(&kit);
}

/* ---- products ---- */

static void check_times(const kit_t *kit, int n, int ndir, const qk_prec_t prec[3], bool left) {
  double complex *l = mg_numbers(elements(kit, n, 1), 6),
                 *in = mg_numbers(elements(kit, n, ndir), 7);
  double complex *want = calloc(elements(kit, n, ndir), sizeof *want);
  cr_assert_not_null(want);
  for (int64_t i = 0; i < kit->volume; i++)
    for (int d = 0; d < ndir; d++)
      for (int r = 0; r < n; r++)
        for (int k = 0; k < n; k++) {
          if (!left) *at(want, i, n, ndir, d, r, k) = *at(in, i, n, ndir, d, r, k);
          for (int c = 0; left && c < n; c++)
            *at(want, i, n, ndir, d, r, c) +=
                *at(l, i, n, 1, 0, r, k) * *at(in, i, n, ndir, d, k, c);
        }
  qk_coarse_times_args_t args = {.lat = kit->lat, .in = mg_matrices(kit, prec[1], n, ndir, in)};
  if (left) args.left = mg_matrices(kit, prec[0], n, 1, l);
  args.out = (qk_coarse_links_t){.prec = prec[2], .n = n, .ndir = ndir};
  args.out.data = kit_alloc(kit, kit->ops->coarse_bytes(&kit->lat, &args.out));
  kit_must(kit, kit->ops->coarse_times(kit->ctx, &args), "coarse_times");
  double complex *got = mg_plain(kit, &args.out);
  const double unit = prec[2] == QK_HALF ? 5e-4 : 2e-7;
  cr_expect_lt(mg_off(got, want, elements(kit, n, ndir)), unit,
               "n %d, ndir %d, precisions %d %d %d", n, ndir, prec[0], prec[1], prec[2]);
  kit_free(kit, args.in.data);
  kit_free(kit, args.left.data);
  kit_free(kit, args.out.data);
  free(l);
  free(in);
  free(want);
  free(got);
}

Test(coarse_times, multiplies_and_converts_in_all_precisions) {
  static const int dims[4] = {2, 2, 2, 2};
  kit_t kit = open_level(dims);
  for (int k = 0; k < 27; k++) {
    const qk_prec_t prec[3] = {k / 9, k / 3 % 3, k % 3};
    check_times(&kit, k % 2 ? 12 : 48, k % 4 < 2 ? 8 : 1, prec, true);
    if (k < 9) check_times(&kit, k % 2 ? 12 : 48, 8, prec, false);
  }
  kit_close(&kit);
}

Test(mg_setup, refuses_what_does_not_fit) {
  static const int dims[4] = {2, 2, 2, 2};
  kit_t kit = open_level(dims);
  double complex *plain = mg_numbers(elements(&kit, 12, 8), 1);
  qk_coarse_links_t diag = mg_matrices(&kit, QK_SINGLE, 12, 1, plain);
  qk_coarse_links_t links = mg_matrices(&kit, QK_SINGLE, 12, 8, plain);
  int64_t singular = -1;
  qk_coarse_times_args_t times = {.lat = kit.lat, .left = diag, .in = links, .out = links};
  cr_expect_eq(kit.ops->coarse_times(kit.ctx, &times), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "out: may not be in or left") != NULL);
  qk_coarse_invert_args_t invert = {
      .lat = kit.lat, .diag = links, .inverse = diag, .singular = &singular};
  cr_expect_eq(kit.ops->coarse_invert(kit.ctx, &invert), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "diag: ndir = 8: 1") != NULL);
  invert.diag = diag;
  invert.inverse.n = 16;
  cr_expect_eq(kit.ops->coarse_invert(kit.ctx, &invert), QK_BAD_ARGUMENT);
  cr_expect_eq(singular, -1);
  double room[2];
  qk_coarse_face_args_t face = {.lat = kit.lat, .ahead = links, .mu = 4, .to = room};
  cr_expect_eq(kit.ops->coarse_face(kit.ctx, &face), QK_BAD_ARGUMENT);
  face.mu = 0;
  face.ahead.n = 6;
  cr_expect_eq(kit.ops->coarse_face(kit.ctx, &face), QK_BAD_ARGUMENT);
  face.ahead.n = 132;
  cr_expect_eq(kit.ops->coarse_face(kit.ctx, &face), QK_BAD_ARGUMENT);
  kit_free(&kit, diag.data);
  kit_free(&kit, links.data);
  free(plain);
  kit_close(&kit);
}
