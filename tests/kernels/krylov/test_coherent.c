/* Bases that are cut into aggregates, against plain loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { BLOCKS = 2, VECTORS = 8 * BLOCKS, M = VECTORS + 2, COMPONENTS = 12 };

/* How the lattice is cut, and what is on it. */
typedef struct form {
  int block[4];
  qk_subset_t subset;
  qk_prec_t prec; /* of the basis */
} form_t;

typedef struct many {
  const kit_t *kit;
  form_t form;
  int aggregates;
  block_t v[BLOCKS], y;
  qk_spinor_t c;
} many_t;

static qk_prec_t wide(qk_prec_t prec) {
  return prec == QK_DOUBLE ? QK_DOUBLE : QK_SINGLE;
}

static qk_spinor_t coefficients(const kit_t *kit, int aggregates, qk_prec_t prec) {
  qk_spinor_t c = {.prec = prec,
                   .subset = QK_EVEN,
                   .ncomp = 2 * M,
                   .nrhs = 8,
                   .inner = 1,
                   .ntile = 1,
                   .nsites = (aggregates + 7) / 8 * 8};
  const size_t bytes = (size_t)(c.nsites * 8 * 4 * M) * (size_t)qk_prec_bytes(prec);
  c.data = kit_alloc(kit, bytes);
  kit_must(kit, kit->ops->zero(kit->ctx, c.data, bytes, 0), "zero");
  return c;
}

static many_t many_make(const kit_t *kit, form_t form) {
  many_t m = {.kit = kit, .form = form, .aggregates = 1};
  for (int mu = 0; mu < 4; mu++) m.aggregates *= kit->lat.l[mu] / form.block[mu];
  const cut_t vcut = {form.prec, 8, false, form.subset},
              ycut = {wide(form.prec), 8, false, form.subset};
  for (int b = 0; b < BLOCKS; b++) m.v[b] = block_make(kit, vcut, (uint64_t)b + 1);
  m.y = block_make(kit, ycut, 99);
  m.c = coefficients(kit, m.aggregates, wide(form.prec));
  return m;
}

static void many_free(many_t *m) {
  for (int b = 0; b < BLOCKS; b++) block_free(m->kit, &m->v[b]);
  block_free(m->kit, &m->y);
  kit_free(m->kit, m->c.data);
}

static qk_coherent_args_t args_of(const many_t *m) {
  qk_coherent_args_t a = {.lat = m->kit->lat, .n = BLOCKS, .y = m->y.v, .c = m->c};
  memcpy(a.block, m->form.block, sizeof a.block);
  for (int b = 0; b < BLOCKS; b++) a.v[b] = m->v[b].v;
  return a;
}

/* The aggregate of component k of a vector on the host, counted x fastest. */
static int aggregate_of(const many_t *m, size_t k) {
  const qk_lattice_t *lat = &m->kit->lat;
  int64_t site = (int64_t)(k / COMPONENTS);
  int x = 0, stride = 1;
  for (int mu = 0; mu < 4; mu++) {
    const int here = (int)(site % lat->l[mu]);
    site /= lat->l[mu];
    x += stride * (here / m->form.block[mu]);
    stride *= lat->l[mu] / m->form.block[mu];
  }
  return x;
}

static double complex *vector_of(const many_t *m, int i) {
  return m->v[i / 8].x[i % 8];
}

/* Coefficient of vector i in row c of chirality s and aggregate X, and what it should be. */
static double worst_product(const many_t *m, const void *words, int i, int j) {
  double complex *sum = calloc((size_t)m->aggregates * 2, sizeof *sum);
  double worst = 0;
  for (size_t k = 0; k < kit_components(m->kit); k++)
    if (component_in(m->kit, m->form.subset, k))
      sum[2 * aggregate_of(m, k) + (int)(k % COMPONENTS) / 6] +=
          conj(vector_of(m, i)[k]) * m->y.x[j][k];
  for (int n = 0; n < 2 * m->aggregates; n++)
    worst = fmax(worst, cabs(kit_number(m->kit, &m->c, words, n / 2, j, n % 2 * M + i) - sum[n]));
  free(sum);
  return worst;
}

static void expect_restriction(many_t *m) {
  qk_coherent_args_t a = args_of(m);
  const double volume = (double)kit_components(m->kit) / m->aggregates;
  kit_must(m->kit, m->kit->ops->coherent_restrict(m->kit->ctx, &a), "coherent_restrict");
  void *words = kit_words(m->kit, &m->c);
  for (int i = 0; i < VECTORS; i++)
    for (int j = 0; j < 8; j++) {
      const double off = worst_product(m, words, i, j) / volume;
      cr_expect(off < (m->form.prec == QK_DOUBLE ? 1e-15 : 2e-7), "%d, %d: off by %g", i, j, off);
    }
  for (int n = 0; n < 2 * m->aggregates; n++) /* what has no vector is left alone */
    cr_expect(kit_number(m->kit, &m->c, words, n / 2, 3, n % 2 * M + VECTORS) == 0);
  free(words);
}

static void expect_prolongation(many_t *m) {
  qk_coherent_args_t a = args_of(m);
  void *words = kit_words(m->kit, &m->c);
  kit_must(m->kit, m->kit->ops->coherent_prolong(m->kit->ctx, &a), "coherent_prolong");
  for (int j = 0; j < 8; j++) {
    double complex *now = block_get(m->kit, &m->y, j), *want = kit_vector(m->kit);
    for (size_t k = 0; k < kit_components(m->kit); k++) {
      want[k] = component_in(m->kit, m->form.subset, k) ? 0 : m->y.x[j][k];
      if (!component_in(m->kit, m->form.subset, k)) continue;
      for (int i = 0; i < VECTORS; i++)
        want[k] += vector_of(m, i)[k] * kit_number(m->kit, &m->c, words, aggregate_of(m, k), j,
                                                   (int)(k % COMPONENTS) / 6 * M + i);
    }
    const double off = block_off(m->kit, now, want);
    cr_expect(off < blas_tolerance(wide(m->form.prec)) * 10, "column %d: %g", j, off);
    free(now);
    free(want);
  }
  free(words);
}

Test(coherent, restriction_and_prolongation_agree_with_plain_loops) {
  static const form_t forms[] = {
      {{2, 3, 2, 4}, QK_EVEN, QK_DOUBLE}, {{4, 2, 1, 8}, QK_EVEN, QK_SINGLE},
      {{2, 2, 2, 8}, QK_EVEN, QK_HALF},   {{4, 3, 2, 2}, QK_FULL, QK_SINGLE},
      {{2, 6, 1, 4}, QK_ODD, QK_DOUBLE},
  };
  kit_t kit;
  block_kit_open(&kit);
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    many_t m = many_make(&kit, forms[i]);
    expect_restriction(&m);
    expect_prolongation(&m);
    many_free(&m);
  }
  kit_close(&kit);
}

/* Two full fields as the vectors of one. */
static qk_spinor_t pair_of(const kit_t *kit, const qk_spinor_t *first, const qk_spinor_t *second) {
  qk_spinor_t both = *first;
  const size_t bytes = (size_t)(first->nsites * 8 * 2 * COMPONENTS) * sizeof(double);
  const qk_spinor_t *const from[] = {first, second};
  both.inner = 2;
  both.nsites = 2 * first->nsites;
  both.data = kit_alloc(kit, 2 * bytes);
  for (int k = 0; k < 2; k++) {
    qk_spinor_t part = *first;
    part.data = (char *)both.data + (size_t)k * bytes;
    for (int j = 0; j < 8; j++) {
      const qk_rhs_copy_args_t a = {.to = part, .from = *from[k], .to_rhs = j, .from_rhs = j};
      kit_must(kit, kit->ops->rhs_copy(kit->ctx, &a), "rhs_copy");
    }
  }
  return both;
}

Test(coherent, sums_over_all_vectors_of_a_field) {
  static const form_t form = {{2, 3, 2, 4}, QK_FULL, QK_DOUBLE};
  kit_t kit;
  block_kit_open(&kit);
  many_t m[2] = {many_make(&kit, form), many_make(&kit, form)};
  for (int j = 0; j < 8; j++) block_set(&kit, &m[1].y, j, m[1].v[0].x[j]);
  qk_coherent_args_t a = args_of(&m[0]);
  void *words[2];
  for (int k = 0; k < 2; k++) {
    qk_coherent_args_t one = args_of(&m[k]);
    kit_must(&kit, kit.ops->coherent_restrict(kit.ctx, &one), "coherent_restrict");
    words[k] = kit_words(&kit, &m[k].c);
  }
  a.y = pair_of(&kit, &m[0].y.v, &m[1].y.v);
  for (int b = 0; b < BLOCKS; b++) a.v[b] = pair_of(&kit, &m[0].v[b].v, &m[1].v[b].v);
  kit_must(&kit, kit.ops->coherent_restrict(kit.ctx, &a), "coherent_restrict");
  void *all = kit_words(&kit, &a.c);
  for (int X = 0; X < m[0].aggregates; X++)
    for (int i = 0; i < VECTORS; i++) {
      const double complex want = kit_number(&kit, &a.c, words[0], X, 2, M + i) +
                                  kit_number(&kit, &a.c, words[1], X, 2, M + i);
      cr_expect(cabs(kit_number(&kit, &a.c, all, X, 2, M + i) - want) < 1e-12 * cabs(want) + 1e-12);
    }
  for (int k = 0; k < 2; k++) free(words[k]);
  free(all);
  kit_free(&kit, a.y.data);
  for (int b = 0; b < BLOCKS; b++) kit_free(&kit, a.v[b].data);
  for (int k = 0; k < 2; k++) many_free(&m[k]);
  kit_close(&kit);
}

Test(coherent, refuses_what_does_not_fit) {
  static const form_t form = {{2, 3, 2, 4}, QK_EVEN, QK_SINGLE};
  kit_t kit;
  block_kit_open(&kit);
  many_t m = many_make(&kit, form);
  qk_coherent_args_t a = args_of(&m);
  a.block[0] = 1;
  kit_refused(&kit, kit.ops->coherent_restrict(kit.ctx, &a), "block[0]");
  a = args_of(&m);
  a.block[1] = 4;
  kit_refused(&kit, kit.ops->coherent_prolong(kit.ctx, &a), "block[1]");
  a = args_of(&m);
  a.n = 3;
  kit_refused(&kit, kit.ops->coherent_restrict(kit.ctx, &a), "v");
  a = args_of(&m);
  a.c.nsites = 16;
  kit_refused(&kit, kit.ops->coherent_restrict(kit.ctx, &a), "c: nsites");
  a = args_of(&m);
  a.c.prec = QK_DOUBLE;
  kit_refused(&kit, kit.ops->coherent_restrict(kit.ctx, &a), "prec");
  many_free(&m);
  kit_close(&kit);
}
