/* Bases of many vectors, and vectors in plain order, against plain loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { MAX_BLOCKS = 3, MAX_RHS = 11 };

/* n blocks of `width` vectors, and y. */
typedef struct many {
  int n, width;
  cut_t cut; /* of y */
  block_t v[MAX_BLOCKS], y;
  double complex *c; /* [n * width][nrhs] */
} many_t;

static many_t many_make(const kit_t *kit, int n, int width, qk_prec_t prec, cut_t cut) {
  many_t m = {.n = n, .width = width, .cut = cut, .y = block_make(kit, cut, 99)};
  const cut_t vcut = {prec, width, false, cut.subset};
  for (int k = 0; k < n; k++) m.v[k] = block_make(kit, vcut, (uint64_t)k + 1);
  m.c = calloc((size_t)(n * width * cut.nrhs), sizeof *m.c);
  cr_assert_not_null(m.c);
  for (int i = 0; i < n * width * cut.nrhs; i++) m.c[i] = cexp(0.7 * I * i) * (0.3 + 0.01 * i);
  return m;
}

static void many_free(const kit_t *kit, many_t *m) {
  for (int k = 0; k < m->n; k++) block_free(kit, &m->v[k]);
  block_free(kit, &m->y);
  free(m->c);
}

static const double complex *vector_of(const many_t *m, int i) {
  return m->v[i / m->width].x[i % m->width];
}

static qk_basis_args_t args_of(const many_t *m, double *c) {
  qk_basis_args_t a = {.n = m->n, .y = m->y.v, .sign = -1, .c = c};
  for (int k = 0; k < m->n; k++) a.v[k] = m->v[k].v;
  return a;
}

static void expect_dots(const kit_t *kit, const many_t *m) {
  const int nrhs = m->cut.nrhs, all = m->n * m->width * nrhs;
  double complex *red = calloc((size_t)all, sizeof *red);
  double *c = device_scalars(kit, red, all);
  qk_basis_args_t a = args_of(m, c);
  kit_must(kit, kit->ops->basis_dot(kit->ctx, &a), "basis_dot");
  read_scalars(kit, c, red, all);
  for (int i = 0; i < all; i++) {
    const double complex *v = vector_of(m, i / nrhs), *y = m->y.x[i % nrhs];
    double complex sum = 0;
    for (size_t j = 0; j < kit_components(kit); j++)
      if (component_in(kit, m->cut.subset, j)) sum += conj(v[j]) * y[j];
    const double off = cabs(red[i] - sum) / (double)kit_components(kit);
    cr_expect(off < (m->cut.prec == QK_DOUBLE ? 1e-15 : 1e-7),
              "%s, %d x %d: result %d, %d is off by %g", cut_text(m->cut), m->n, m->width, i / nrhs,
              i % nrhs, off);
  }
  kit_free(kit, c);
  free(red);
}

static void expect_update(const kit_t *kit, many_t *m) {
  const int nrhs = m->cut.nrhs, rows = m->n * m->width;
  double *c = device_scalars(kit, m->c, rows * nrhs);
  qk_basis_args_t a = args_of(m, c);
  kit_must(kit, kit->ops->basis_axpy(kit->ctx, &a), "basis_axpy");
  for (int rhs = 0; rhs < nrhs; rhs++) {
    double complex *y = m->y.x[rhs], *now = block_get(kit, &m->y, rhs);
    for (int i = 0; i < rows; i++)
      for (size_t j = 0; j < kit_components(kit); j++)
        if (component_in(kit, m->cut.subset, j)) y[j] -= m->c[i * nrhs + rhs] * vector_of(m, i)[j];
    const double off = block_off(kit, now, y);
    cr_expect(off < blas_tolerance(m->cut.prec) * (1 + rows / 4.0), "%s, %d x %d: rhs %d: %g",
              cut_text(m->cut), m->n, m->width, rhs, off);
    free(now);
  }
  kit_free(kit, c);
}

static const struct shape { int n, width; } shapes[] = {{1, 8}, {3, 8}, {2, 16}};

static void try_products(const kit_t *kit, qk_prec_t vprec, qk_prec_t yprec) {
  static const struct {
    int nrhs;
    bool single_rhs;
  } of_y[] = {{1, true}, {3, false}, {MAX_RHS, false}};
  for (int s = 0; s < 3; s++)
    for (int k = 0; k < 3; k++) {
      const cut_t cut = {yprec, of_y[k].nrhs, of_y[k].single_rhs, (s + k) % 2 ? QK_FULL : QK_EVEN};
      many_t m = many_make(kit, shapes[s].n, shapes[s].width, vprec, cut);
      expect_dots(kit, &m);
      expect_update(kit, &m);
      many_free(kit, &m);
    }
}

Test(basis, products_and_updates_agree_with_plain_loops) {
  static const int ncomp[] = {12, 3, 20};
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < 3; i++) {
    kit.ncomp = ncomp[i];
    try_products(&kit, QK_DOUBLE, QK_DOUBLE);
    try_products(&kit, QK_SINGLE, QK_SINGLE);
  }
  kit.ncomp = 12;
  try_products(&kit, QK_HALF, QK_SINGLE);
  kit_close(&kit);
}

/* add: y is added, which takes all columns of one block. */
static void expect_rotation(const kit_t *kit, qk_prec_t prec, struct shape shape, int columns,
                            bool add) {
  const cut_t cut = {prec, columns, false, QK_EVEN};
  many_t m = many_make(kit, shape.n, shape.width, prec, cut);
  const int rows = shape.n * shape.width;
  double *c = device_scalars(kit, m.c, rows * columns);
  qk_basis_args_t a = args_of(&m, c);
  a.columns = columns;
  if (!add) a.y.data = NULL;
  kit_must(kit, kit->ops->basis_rotate(kit->ctx, &a), "basis_rotate");
  for (int j = 0; j < rows; j++) {
    double complex *want = kit_vector(kit), *now = block_get(kit, &m.v[j / m.width], j % m.width);
    memcpy(want, vector_of(&m, j), kit_components(kit) * sizeof *want);
    for (size_t k = 0; j < columns && k < kit_components(kit); k++) {
      if (!component_in(kit, QK_EVEN, k)) continue;
      want[k] = add ? m.y.x[j][k] : 0;
      for (int i = 0; i < rows; i++) want[k] += m.c[i * columns + j] * vector_of(&m, i)[k];
    }
    const double off = block_off(kit, now, want);
    cr_expect(off <= (j < columns ? blas_tolerance(prec) * (1 + rows / 4.0) : 0),
              "%s, %d x %d to %d: vector %d: %g", cut_text(cut), m.n, m.width, columns, j, off);
    free(now);
    free(want);
  }
  kit_free(kit, c);
  many_free(kit, &m);
}

Test(basis, rotation_agrees_with_plain_loops) {
  static const int ncomp[] = {12, 20};
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < 2; i++) {
    kit.ncomp = ncomp[i];
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
      expect_rotation(&kit, (qk_prec_t)prec, shapes[1], 24, false);
      expect_rotation(&kit, (qk_prec_t)prec, shapes[1], 8, false);
      expect_rotation(&kit, (qk_prec_t)prec, shapes[2], 13, false);
    }
  }
  kit_close(&kit);
}

/* One block against one of as many columns: on GPUs kernels of their own, in single. */
Test(basis, one_block_agrees_with_plain_loops) {
  static const int ncomp[] = {12, QK_COLOUR_COMPONENTS};
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < 2; i++) {
    kit.ncomp = ncomp[i];
    for (int width = 8; width <= 40; width += 8)
      for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
        const cut_t cut = {(qk_prec_t)prec, width, false, width % 16 ? QK_FULL : QK_EVEN};
        many_t m = many_make(&kit, 1, width, (qk_prec_t)prec, cut);
        expect_dots(&kit, &m);
        expect_update(&kit, &m);
        many_free(&kit, &m);
        expect_rotation(&kit, (qk_prec_t)prec, (struct shape){1, width}, width, true);
        expect_rotation(&kit, (qk_prec_t)prec, (struct shape){1, width}, width, false);
      }
  }
  kit_close(&kit);
}

/* Products of a block with itself, which is read once. */
Test(basis, products_of_a_block_with_itself) {
  kit_t kit;
  block_kit_open(&kit);
  for (int width = 8; width <= 32; width += 8) {
    const cut_t cut = {QK_SINGLE, width, false, QK_EVEN};
    many_t m = many_make(&kit, 1, width, QK_SINGLE, cut);
    block_free(&kit, &m.y);
    m.y = m.v[0];
    expect_dots(&kit, &m);
    m.y = block_make(&kit, cut, 99);
    many_free(&kit, &m);
  }
  kit_close(&kit);
}

/* NaN in a column of y stays there: the other columns keep their bits. */
Test(basis, columns_do_not_see_each_other) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, MAX_RHS, false, QK_EVEN};
  many_t m = many_make(&kit, 2, 8, QK_SINGLE, cut), bad = many_make(&kit, 2, 8, QK_SINGLE, cut);
  double complex *x = kit_vector(&kit), red[2][16 * MAX_RHS] = {{0}};
  for (size_t i = 0; i < kit_components(&kit); i++) x[i] = NAN;
  block_set(&kit, &bad.y, 4, x);
  many_t *both[] = {&m, &bad};
  for (int k = 0; k < 2; k++) {
    double *c = device_scalars(&kit, red[k], 16 * MAX_RHS);
    qk_basis_args_t a = args_of(both[k], c);
    kit_must(&kit, kit.ops->basis_dot(kit.ctx, &a), "basis_dot");
    read_scalars(&kit, c, red[k], 16 * MAX_RHS);
    kit_must(&kit, kit.ops->basis_axpy(kit.ctx, &a), "basis_axpy");
    kit_free(&kit, c);
  }
  for (int rhs = 0; rhs < MAX_RHS; rhs++) {
    double complex *a = block_get(&kit, &m.y, rhs), *b = block_get(&kit, &bad.y, rhs);
    bool same = memcmp(a, b, kit_components(&kit) * sizeof *a) == 0;
    for (int i = 0; i < 16; i++)
      same = same && memcmp(&red[0][i * MAX_RHS + rhs], &red[1][i * MAX_RHS + rhs], 16) == 0;
    cr_expect(same == (rhs != 4), "column %d", rhs);
    free(a);
    free(b);
  }
  free(x);
  many_free(&kit, &m);
  many_free(&kit, &bad);
  kit_close(&kit);
}

/* ---- plain order ----------------------------------------------------------------------------- */

static int parity_of(const kit_t *kit, int64_t site) {
  int sum = 0;
  for (int mu = 0; mu < 4; mu++) {
    sum += (int)(site % kit->lat.l[mu]);
    site /= kit->lat.l[mu];
  }
  return sum % 2;
}

static void expect_sites(const kit_t *kit, cut_t cut) {
  block_t b = block_make(kit, cut, 5), back = block_make(kit, cut, 6);
  const int64_t sites = b.v.nsites, first = 3, n = sites - 5;
  const int line = kit->ncomp * cut.nrhs;
  const size_t bytes = (size_t)(n * line) * 2 * sizeof(float);
  float *host = malloc(bytes);
  void *plain = kit_alloc(kit, bytes);
  qk_sites_args_t a = {kit->lat, b.v, QK_SINGLE, plain, first, n};
  kit_must(kit, kit->ops->sites_get(kit->ctx, &a), "sites_get");
  kit_must(kit, kit->ops->copy(kit->ctx, host, plain, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  int64_t wrong = 0, at = 0;
  for (int64_t site = 0; site < kit->volume; site++) {
    if (cut.subset != QK_FULL && parity_of(kit, site) != (cut.subset == QK_ODD)) continue;
    const int64_t k = at++ - first;
    for (int i = 0; i < line && k >= 0 && k < n; i++) {
      const double complex want = b.x[i / kit->ncomp][site * kit->ncomp + i % kit->ncomp];
      const float *got = host + 2 * (k * line + i);
      wrong += got[0] != (float)creal(want) || got[1] != (float)cimag(want);
    }
  }
  cr_expect_eq(wrong, 0, "%s: %ld numbers", cut_text(cut), (long)wrong);
  a.field = back.v;
  kit_must(kit, kit->ops->sites_set(kit->ctx, &a), "sites_set");
  a.n = first; /* what stands before the piece */
  a.first = 0;
  a.field = b.v;
  kit_must(kit, kit->ops->sites_get(kit->ctx, &a), "sites_get");
  a.field = back.v;
  kit_must(kit, kit->ops->sites_set(kit->ctx, &a), "sites_set");
  a.n = 2; /* and after it */
  a.first = sites - 2;
  a.field = b.v;
  kit_must(kit, kit->ops->sites_get(kit->ctx, &a), "sites_get");
  a.field = back.v;
  kit_must(kit, kit->ops->sites_set(kit->ctx, &a), "sites_set");
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *now = block_get(kit, &back, rhs);
    for (size_t i = 0; i < kit_components(kit); i++)
      if (component_in(kit, cut.subset, i)) wrong += now[i] != b.x[rhs][i];
    free(now);
  }
  cr_expect_eq(wrong, 0, "%s: %ld numbers differ after a round trip", cut_text(cut), (long)wrong);
  kit_free(kit, plain);
  free(host);
  block_free(kit, &b);
  block_free(kit, &back);
}

Test(basis, plain_order_is_lexicographic) {
  kit_t kit;
  block_kit_open(&kit);
  for (int ncomp = 12; ncomp <= 16; ncomp += 4) {
    kit.ncomp = ncomp;
    expect_sites(&kit, (cut_t){QK_SINGLE, 6, false, QK_FULL});
    expect_sites(&kit, (cut_t){QK_SINGLE, 8, false, QK_EVEN});
    expect_sites(&kit, (cut_t){QK_SINGLE, 10, false, QK_ODD});
    expect_sites(&kit, (cut_t){QK_SINGLE, 1, true, QK_FULL});
  }
  kit_close(&kit);
}

Test(basis, plain_half_is_the_nearest_16_bit_number) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, 2, false, QK_FULL};
  block_t b = block_make(&kit, cut, 5);
  const int64_t n = b.v.nsites;
  void *plain = kit_alloc(&kit, (size_t)n * 24 * 2 * sizeof(uint16_t));
  qk_sites_args_t a = {kit.lat, b.v, QK_HALF, plain, 0, n};
  for (int again = 0; again < 2; again++) {
    kit_must(&kit, kit.ops->sites_get(kit.ctx, &a), "sites_get");
    kit_must(&kit, kit.ops->sites_set(kit.ctx, &a), "sites_set");
    for (int rhs = 0; rhs < 2; rhs++) {
      double complex *now = block_get(&kit, &b, rhs);
      double off = 0;
      for (size_t i = 0; i < kit_components(&kit); i++) {
        const double d = cabs(now[i] - b.x[rhs][i]) / cabs(b.x[rhs][i]);
        if (!(d <= off)) off = d;
      }
      cr_expect(again ? off == 0 : off < 0x1p-11 && off > 0, "pass %d: %g", again, off);
      memcpy(b.x[rhs], now, kit_components(&kit) * sizeof *now);
      free(now);
    }
  }
  kit_free(&kit, plain);
  block_free(&kit, &b);
  kit_close(&kit);
}

/* ---- what does not fit ----------------------------------------------------------------------- */

static void expect_bad(const kit_t *kit, qk_status_t status, const char *word) {
  cr_expect_eq(status, QK_BAD_ARGUMENT, "%s", word);
  const char *said = kit->ops->last_error(kit->ctx);
  cr_expect(strstr(said, word) != NULL, "\"%s\" in \"%s\"", word, said);
}

static void expect_bad_rotation(const kit_t *kit, qk_basis_args_t a, const char *word) {
  cr_expect_eq(kit->ops->basis_rotate(kit->ctx, &a), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit->ops->last_error(kit->ctx), word) != NULL, "%s",
            kit->ops->last_error(kit->ctx));
}

Test(basis, what_is_added_to_a_rotation_is_another_block_like_it) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, 8, false, QK_EVEN};
  many_t m = many_make(&kit, 2, 8, QK_SINGLE, cut);
  double *c = device_scalars(&kit, m.c, 8 * 8);
  qk_basis_args_t a = args_of(&m, c);
  a.columns = 8;
  expect_bad_rotation(&kit, a, "the only one");
  a.n = 1;
  a.y.nrhs = 7;
  expect_bad_rotation(&kit, a, "y is another block");
  a.y = a.v[0];
  expect_bad_rotation(&kit, a, "y is another block");
  kit_free(&kit, c);
  many_free(&kit, &m);
  kit_close(&kit);
}

Test(basis, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  many_t m = many_make(&kit, 2, 8, QK_SINGLE, (cut_t){QK_SINGLE, 3, false, QK_EVEN});
  double *c = device_scalars(&kit, m.c, 16 * 3);
  const qk_basis_args_t good = args_of(&m, c);
  qk_basis_args_t a = good;
  a.n = QK_BASIS_BLOCKS + 1;
  expect_bad(&kit, kit.ops->basis_dot(kit.ctx, &a), "n = 65");
  a = good;
  a.c = NULL;
  expect_bad(&kit, kit.ops->basis_axpy(kit.ctx, &a), "c is missing");
  a = good;
  a.v[1].nrhs = 7;
  expect_bad(&kit, kit.ops->basis_dot(kit.ctx, &a), "nrhs = 7");
  a = good;
  a.v[1].nsites *= 2;
  expect_bad(&kit, kit.ops->basis_dot(kit.ctx, &a), "v[1]");
  a = good;
  a.y.prec = QK_DOUBLE;
  expect_bad(&kit, kit.ops->basis_dot(kit.ctx, &a), "prec = 0");
  a = good;
  a.y.nsites *= 2;
  expect_bad(&kit, kit.ops->basis_dot(kit.ctx, &a), "nsites");
  a = good;
  a.columns = 17;
  expect_bad(&kit, kit.ops->basis_rotate(kit.ctx, &a), "columns = 17");
  qk_sites_args_t s = {kit.lat, m.y.v, QK_SINGLE, c, 0, m.y.v.nsites + 1};
  expect_bad(&kit, kit.ops->sites_get(kit.ctx, &s), "sites 0");
  s.n = 1;
  s.prec = QK_DOUBLE;
  expect_bad(&kit, kit.ops->sites_set(kit.ctx, &s), "prec = 0");
  kit_free(&kit, c);
  many_free(&kit, &m);
  kit_close(&kit);
}
