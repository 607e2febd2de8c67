/* Projection onto vectors of time slices against plain loops. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { BLOCKS = 5, COLUMNS = QK_PROJECT_COLUMNS, SITE = COLUMNS * 3 * 2 };

/* Vectors of nt slices from t0 on, and what is projected onto them. */
typedef struct set {
  int nblock, t0, nt;
  float *host[BLOCKS][2], *device[BLOCKS][2]; /* [1]: what is added */
} set_t;

static int64_t slice_of(const kit_t *kit) {
  return kit->volume / kit->lat.l[3];
}

static float number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (float)((double)(*state >> 40) / (1 << 24) - 0.5);
}

static set_t set_make(const kit_t *kit, int nblock, int t0, int nt, bool low) {
  set_t s = {.nblock = nblock, .t0 = t0, .nt = nt};
  const size_t n = (size_t)(nt * slice_of(kit)) * SITE;
  uint64_t state = (uint64_t)(nblock * 100 + t0 * 10 + nt);
  for (int b = 0; b < nblock; b++)
    for (int k = 0; k < 1 + low; k++) {
      s.host[b][k] = malloc(n * sizeof(float));
      s.device[b][k] = kit_alloc(kit, n * sizeof(float));
      cr_assert_not_null(s.host[b][k]);
      for (size_t i = 0; i < n; i++) s.host[b][k][i] = number(&state) * (k ? 1e-8f : 1);
      kit_must(kit,
               kit->ops->copy(kit->ctx, s.device[b][k], s.host[b][k], n * sizeof(float),
                              QK_COPY_TO_DEVICE, 0),
               "copy");
    }
  return s;
}

static void set_free(const kit_t *kit, set_t *s) {
  for (int b = 0; b < s->nblock; b++)
    for (int k = 0; k < 2; k++) {
      free(s->host[b][k]);
      if (s->device[b][k]) kit_free(kit, s->device[b][k]);
    }
}

/* Component `colour` of vector m at a site of slice t0 + t, in lexicographic order. */
static double complex vector_at(const set_t *s, int64_t slice, int m, int t, int64_t x, int c) {
  double complex sum = 0;
  for (int k = 0; k < 2; k++) {
    const float *v = s->host[m / COLUMNS][k];
    const int64_t at = ((t * slice + x) * COLUMNS + m % COLUMNS) * 6 + 2 * c;
    if (v) sum += v[at] + I * (double)v[at + 1];
  }
  return sum;
}

static qk_project_args_t args_of(const kit_t *kit, const set_t *s) {
  qk_project_args_t a = {.lat = kit->lat, .nblock = s->nblock, .t0 = s->t0, .nt = s->nt};
  for (int b = 0; b < s->nblock; b++) {
    a.vectors[b] = s->device[b][0];
    a.low[b] = s->device[b][1];
  }
  return a;
}

static size_t numbers(const qk_project_args_t *a) {
  return (size_t)(a->nrhs * a->nt * 4 * a->nblock * COLUMNS);
}

/* What comes out; malloc'd. */
static double complex *run(const kit_t *kit, qk_project_args_t a) {
  const size_t n = numbers(&a);
  double complex *out = malloc(n * sizeof *out);
  cr_assert_not_null(out);
  a.work = kit_alloc(kit, qk_project_bytes(&a.lat, a.nt, a.nblock));
  a.out = kit_alloc(kit, n * sizeof *out);
  kit_must(kit, kit->ops->project(kit->ctx, &a), "project");
  read_scalars(kit, a.out, out, (int)n);
  kit_free(kit, a.work);
  kit_free(kit, a.out);
  return out;
}

static void expect_sums(const kit_t *kit, const set_t *s, const double complex *x,
                        const double complex *out, const char *what) {
  const int64_t slice = slice_of(kit);
  const int columns = s->nblock * COLUMNS;
  for (int t = 0; t < s->nt; t++)
    for (int spin = 0; spin < 4; spin++)
      for (int m = 0; m < columns; m++) {
        double complex sum = 0;
        double size = 0;
        for (int64_t i = 0; i < slice; i++)
          for (int c = 0; c < 3; c++) {
            const double complex v = vector_at(s, slice, m, t, i, c);
            const double complex z = x[((s->t0 + t) * slice + i) * 12 + 3 * spin + c];
            sum += conj(v) * z;
            size += cabs(v) * cabs(z);
          }
        const double off = cabs(out[(t * 4 + spin) * columns + m] - sum);
        cr_assert(off <= 1e-15 * size, "%s: slice %d, spin %d, vector %d: off by %g of %g", what, t,
                  spin, m, off, size);
      }
}

/* All columns of blocks of one cut, as many a call as there can be. */
static void try_cut(const kit_t *kit, const set_t *s, cut_t cut) {
  block_t block = block_make(kit, cut, 7);
  qk_project_args_t a = args_of(kit, s);
  for (int first = 0; first < cut.nrhs; first += a.nrhs) {
    const int left = cut.nrhs - first;
    a.nrhs = left < QK_PROJECT_RHS ? left : QK_PROJECT_RHS;
    for (int i = 0; i < a.nrhs; i++) a.x[i] = (qk_project_rhs_t){block.v, first + i};
    double complex *out = run(kit, a);
    for (int i = 0; i < a.nrhs; i++)
      expect_sums(kit, s, block.x[first + i], out + numbers(&a) / (size_t)a.nrhs * (size_t)i,
                  cut_text(cut));
    free(out);
  }
  block_free(kit, &block);
}

static const int lattices[][4] = {{4, 6, 2, 8}, {8, 8, 12, 2}, {2, 2, 2, 4}, {6, 10, 14, 2}};
static const int whole[4];

Test(project, agrees_with_plain_loops) {
  static const cut_t shapes[] = {{QK_DOUBLE, 1, true, QK_FULL},
                                 {QK_SINGLE, 1, true, QK_FULL},
                                 {QK_DOUBLE, 11, false, QK_FULL},
                                 {QK_SINGLE, 3, false, QK_FULL}};
  for (size_t l = 0; l < sizeof lattices / sizeof *lattices; l++) {
    kit_t kit;
    double complex *links = kit_random_links(lattices[l], 0, 1);
    kit_open(&kit, lattices[l], whole, links);
    const int t = lattices[l][3];
    set_t sets[] = {set_make(&kit, 1, 0, t, false), set_make(&kit, 5, t - 1, 1, false),
                    set_make(&kit, 3, 1, t - 1, true)};
    for (int i = 0; i < 3; i++) {
      for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        try_cut(&kit, &sets[i], shapes[k]);
      set_free(&kit, &sets[i]);
    }
    free(links);
    kit_close(&kit);
  }
}

/* Of one RHS and slice the same bits, whatever other RHS, blocks and slices are in the call: NaN,
 * or nothing. */
Test(project, a_number_does_not_depend_on_its_neighbours) {
  kit_t kit;
  double complex *links = kit_random_links(lattices[1], 0, 1);
  kit_open(&kit, lattices[1], whole, links);
  set_t all = set_make(&kit, 5, 0, 2, false);
  block_t x = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 3);
  block_t bad = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 4);
  double complex *nan = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) nan[i] = NAN;
  block_set(&kit, &bad, 0, nan);
  qk_project_args_t a = args_of(&kit, &all), b = a;
  a.nrhs = 7;
  for (int i = 0; i < a.nrhs; i++) a.x[i] = (qk_project_rhs_t){i == 4 ? x.v : bad.v, 0};
  b.nrhs = b.nblock = b.nt = b.t0 = 1;
  b.x[0] = (qk_project_rhs_t){x.v, 0};
  b.vectors[0] = all.device[3][0] + slice_of(&kit) * SITE;
  double complex *many = run(&kit, a), *one = run(&kit, b);
  for (int spin = 0; spin < 4; spin++)
    cr_expect(memcmp(many + ((4 * 2 + 1) * 4 + spin) * 40 + 24, one + spin * 8, 8 * sizeof *one) ==
                  0,
              "spin %d", spin);
  cr_expect(isnan(creal(many[0])) && !isnan(creal(one[0])));
  free(many);
  free(one);
  free(nan);
  free(links);
  block_free(&kit, &x);
  block_free(&kit, &bad);
  set_free(&kit, &all);
  kit_close(&kit);
}

Test(project, what_does_not_fit_is_refused) {
  kit_t kit;
  double complex *links = kit_random_links(lattices[2], 0, 1);
  kit_open(&kit, lattices[2], whole, links);
  set_t s = set_make(&kit, 2, 0, 4, true);
  block_t x = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 3);
  block_t half = block_make(&kit, (cut_t){QK_HALF, 1, false, QK_FULL}, 3);
  block_t even = block_make(&kit, (cut_t){QK_DOUBLE, 1, false, QK_EVEN}, 3);
  block_t single = block_make(&kit, (cut_t){QK_SINGLE, 1, false, QK_FULL}, 3);
  double *out = kit_alloc(&kit, 1 << 16);
  const qk_project_args_t good = {.lat = kit.lat,
                                  .nrhs = 2,
                                  .nblock = 2,
                                  .nt = 4,
                                  .x = {{x.v, 0}, {x.v, 1}},
                                  .vectors = {s.device[0][0], s.device[1][0]},
                                  .low = {s.device[0][1], s.device[1][1]},
                                  .work = out,
                                  .out = out};
#define REFUSED(word, change)                                                                      \
  do {                                                                                             \
    qk_project_args_t a = good;                                                                    \
    a.change;                                                                                      \
    kit_refused(&kit, kit.ops->project(kit.ctx, &a), word);                                        \
  } while (0)
  REFUSED("nrhs = 0", nrhs = 0);
  REFUSED("nrhs = 9", nrhs = 9);
  REFUSED("nblock = 17", nblock = 17);
  REFUSED("nblock = 0", nblock = 0);
  REFUSED("t0, nt = 1, 4", t0 = 1);
  REFUSED("t0, nt = 0, 0", nt = 0);
  REFUSED("t0, nt = -1, 4", t0 = -1);
  REFUSED("work is missing", work = NULL);
  REFUSED("out is missing", out = NULL);
  REFUSED("vectors[1] is missing", vectors[1] = NULL);
  REFUSED("low[1]", low[1] = NULL);
  REFUSED("x[1]: rhs = 2", x[1].rhs = 2);
  REFUSED("x[0]: prec", x[0].field = half.v);
  REFUSED("x[1]: prec", x[1].field = single.v);
  REFUSED("x[1]: subset", x[1].field = even.v);
  REFUSED("x[0]: ncomp", x[0].field.ncomp = 8);
#undef REFUSED
  kit_free(&kit, out);
  block_free(&kit, &x);
  block_free(&kit, &half);
  block_free(&kit, &even);
  block_free(&kit, &single);
  set_free(&kit, &s);
  free(links);
  kit_close(&kit);
}
