/* Fields with a fifth dimension, against plain loops. Backend: QK_BACKEND. */
#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "tests/kernels/blas_kit.h"

enum { MOST = QK_LS_MAX };
typedef double complex matrix_t[2][MOST][MOST];

static double number(uint64_t *seed) {
  *seed = *seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*seed / 0x1p63;
}

static void random_matrix(matrix_t m, int to, int from, bool is_real, uint64_t seed) {
  for (int k = 0; k < 2; k++)
    for (int s = 0; s < to; s++)
      for (int r = 0; r < from; r++) {
        const double re = number(&seed), im = number(&seed);
        m[k][s][r] = is_real ? re : re + I * im;
      }
}

/* In device memory as qk_fifth_mix_args_t says. */
static void *device_matrix(const kit_t *kit, matrix_t m, int to, int from, bool is_real,
                           bool is_double) {
  const size_t n = (size_t)(2 * to * from) * (is_real ? 1 : 2);
  double *d = calloc(n, sizeof *d);
  float *f = calloc(n, sizeof *f);
  size_t at = 0;
  for (int k = 0; k < 2; k++)
    for (int r = 0; r < from; r++)
      for (int s = 0; s < to; s++) {
        d[at++] = creal(m[k][s][r]);
        if (!is_real) d[at++] = cimag(m[k][s][r]);
      }
  for (size_t i = 0; i < n; i++) f[i] = (float)d[i];
  void *memory = NULL;
  const size_t bytes = n * (is_double ? sizeof *d : sizeof *f);
  kit_must(kit, kit->ops->alloc(kit->ctx, bytes, &memory), "alloc");
  kit_must(kit,
           kit->ops->copy(kit->ctx, memory, is_double ? (void *)d : (void *)f, bytes,
                          QK_COPY_TO_DEVICE, 0),
           "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  free(d);
  free(f);
  return memory;
}

typedef struct mix {
  qk_prec_t prec;
  qk_subset_t subset;
  int nrhs, to, from;
  bool is_real, x, in_place; /* in_place: out is in */
  double c_in, c_x;
} mix_t;

static cut_t cut_of(const mix_t *m, int columns) {
  return (cut_t){m->prec, m->nrhs * columns, m->nrhs * columns == 1, m->subset};
}

static void expect_mix(const kit_t *kit, const mix_t *m) {
  block_t in = block_make(kit, cut_of(m, m->from), 1), x = block_make(kit, cut_of(m, m->to), 2);
  block_t other = block_make(kit, cut_of(m, m->to), 3), *out = m->in_place ? &in : &other;
  matrix_t matrix;
  random_matrix(matrix, m->to, m->from, m->is_real, 4);
  void *memory = device_matrix(kit, matrix, m->to, m->from, m->is_real, m->prec == QK_DOUBLE);
  qk_fifth_mix_args_t args = {.to = m->to,
                              .from = m->from,
                              .is_real = m->is_real,
                              .matrix = memory,
                              .c_in = m->c_in,
                              .c_x = m->c_x,
                              .in = in.v,
                              .out = out->v};
  if (m->x) args.x = x.v;
  kit_must(kit, kit->ops->fifth_mix(kit->ctx, &args), "fifth_mix");
  const size_t n = kit_components(kit);
  for (int column = 0; column < m->nrhs * m->to; column++) {
    const int rhs = column / m->to, s = column % m->to;
    double complex *now = block_get(kit, out, column), *want = malloc(n * sizeof *want);
    for (size_t i = 0; i < n; i++) {
      const int k = i % 12 < 6 ? 0 : 1;
      want[i] = out->x[column][i];
      if (!component_in(kit, m->subset, i)) continue;
      want[i] = m->x ? m->c_x * x.x[column][i] : 0;
      for (int r = 0; r < m->from; r++)
        want[i] += m->c_in * matrix[k][s][r] * in.x[rhs * m->from + r][i];
    }
    const double off = block_off(kit, now, want);
    cr_expect(off <= 4 * blas_tolerance(m->prec),
              "prec %d, subset %d, %d RHS, %d from %d%s: column %d is off by %g", m->prec,
              m->subset, m->nrhs, m->to, m->from, m->in_place ? " in place" : "", column, off);
    free(now);
    free(want);
  }
  kit->ops->free(kit->ctx, memory);
  block_free(kit, &in);
  block_free(kit, &x);
  block_free(kit, &other);
}

Test(fifth, slices_are_mixed_by_chirality) {
  static const int shapes[][3] = {{1, 8, 8}, {1, 12, 12}, {3, 6, 6},   {4, 12, 12},
                                  {2, 5, 5}, {1, 12, 1},  {1, 1, 12},  {3, 4, 1},
                                  {3, 1, 4}, {9, 2, 2},   {2, 17, 17}, {1, 64, 64}};
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < (int)(sizeof shapes / sizeof shapes[0]); i++)
    for (int p = 0; p < QK_PRECS; p++)
      for (int k = 0; k < 3; k++) {
        const int nrhs = shapes[i][0], to = shapes[i][1], from = shapes[i][2];
        const mix_t m = {.prec = (qk_prec_t)p,
                         .subset = (qk_subset_t)k,
                         .nrhs = nrhs,
                         .to = to,
                         .from = from,
                         .is_real = (i + k) % 2,
                         .x = (i + k) % 3 != 0,
                         .in_place = to == from && (p + k) % 2,
                         .c_in = i % 2 ? 1 : 0.5,
                         .c_x = (i + k) % 3 == 0 ? 0 : -0.75};
        if (p == QK_HALF && nrhs * (to < from ? to : from) == 1) continue;
        expect_mix(&kit, &m);
      }
  kit_close(&kit);
}

Test(fifth, right_hand_sides_are_kept_apart) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, 12, false, QK_EVEN};
  block_t b = block_make(&kit, cut, 1), clean = block_make(&kit, cut, 1);
  double complex *bad = kit_vector(&kit);
  for (size_t i = 0; i < kit_components(&kit); i++) bad[i] = NAN;
  block_set(&kit, &b, 5, bad);
  matrix_t matrix;
  random_matrix(matrix, 4, 4, false, 2);
  void *memory = device_matrix(&kit, matrix, 4, 4, false, false);
  block_t *both[] = {&b, &clean};
  for (int i = 0; i < 2; i++) {
    const qk_fifth_mix_args_t args = {
        .to = 4, .from = 4, .matrix = memory, .c_in = 1, .in = both[i]->v, .out = both[i]->v};
    kit_must(&kit, kit.ops->fifth_mix(kit.ctx, &args), "fifth_mix");
  }
  for (int column = 0; column < 12; column++) {
    double complex *now = block_get(&kit, &b, column), *want = block_get(&kit, &clean, column);
    if (column / 4 != 1)
      cr_expect_arr_eq(now, want, kit_components(&kit) * sizeof *now, "column %d", column);
    else
      cr_expect(isnan(creal(now[0])), "column %d", column);
    free(now);
    free(want);
  }
  kit.ops->free(kit.ctx, memory);
  free(bad);
  block_free(&kit, &b);
  block_free(&kit, &clean);
  kit_close(&kit);
}

Test(fifth, sums_of_right_hand_sides) {
  enum { N = 3, LS = 4, COLUMNS = 12 };
  kit_t kit;
  block_kit_open(&kit);
  double complex red[N * COLUMNS], now[N * COLUMNS];
  uint64_t seed = 5;
  for (int i = 0; i < N * COLUMNS; i++) {
    red[i] = number(&seed);
    red[i] += I * number(&seed);
  }
  red[COLUMNS + 5] = NAN;
  double *device = device_scalars(&kit, red, N * COLUMNS);
  const qk_fifth_sum_args_t args = {.ls = LS, .n = N, .columns = COLUMNS, .red = device};
  kit_must(&kit, kit.ops->fifth_sum(kit.ctx, &args), "fifth_sum");
  read_scalars(&kit, device, now, N * COLUMNS);
  for (int i = 0; i < N * COLUMNS; i++) {
    const int first = i / LS * LS;
    double complex want = 0;
    for (int s = 0; s < LS; s++) want += red[first + s];
    if (isnan(creal(want)))
      cr_expect(isnan(creal(now[i])), "%d", i);
    else
      cr_expect(creal(now[i]) == creal(want) && cimag(now[i]) == cimag(want), "%d", i);
  }
  kit.ops->free(kit.ctx, device);
  kit_close(&kit);
}

static void refuse_mix(const kit_t *kit, qk_fifth_mix_args_t bad, const char *word) {
  kit_refused(kit, kit->ops->fifth_mix(kit->ctx, &bad), word);
}

static void refuse_sum(const kit_t *kit, qk_fifth_sum_args_t bad, const char *word) {
  kit_refused(kit, kit->ops->fifth_sum(kit->ctx, &bad), word);
}

Test(fifth, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  double red[16] = {0};
  block_t eight = block_make(&kit, (cut_t){QK_SINGLE, 8, false, QK_FULL}, 1);
  block_t wide = block_make(&kit, (cut_t){QK_DOUBLE, 8, false, QK_FULL}, 2);
  const qk_spinor_t a = eight.v, b = wide.v;
#define MIX(t, f, ...)                                                                             \
  (qk_fifth_mix_args_t){.to = t, .from = f, .matrix = red, .c_in = 1, __VA_ARGS__}
  refuse_mix(&kit, MIX(0, 4, .in = a, .out = a), "to = 0");
  refuse_mix(&kit, MIX(4, QK_LS_MAX + 1, .in = a, .out = a), "from = 65");
  refuse_mix(&kit, (qk_fifth_mix_args_t){.to = 4, .from = 4, .in = a, .out = a}, "matrix");
  refuse_mix(&kit, MIX(4, 4, .in = a, .out = b), "out: prec");
  refuse_mix(&kit, MIX(4, 4, .in = a, .out = a, .c_x = 1), "x is missing");
  refuse_mix(&kit, MIX(4, 4, .in = a), "data is missing");
  refuse_mix(&kit, MIX(4, 3, .in = a, .out = a), "nrhs = 8");
  refuse_mix(&kit, MIX(4, 2, .in = a, .out = a), "nrhs = 8: 4 right-hand sides of 4");
#undef MIX
  refuse_sum(&kit, (qk_fifth_sum_args_t){4, 1, 8, NULL}, "red");
  refuse_sum(&kit, (qk_fifth_sum_args_t){3, 1, 8, red}, "columns = 8");
  refuse_sum(&kit, (qk_fifth_sum_args_t){0, 1, 8, red}, "ls = 0");
  refuse_sum(&kit, (qk_fifth_sum_args_t){4, 33, 8, red}, "n = 33");
  block_free(&kit, &eight);
  block_free(&kit, &wide);
  kit_close(&kit);
}
