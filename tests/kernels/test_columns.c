/* Columns and sources: wire order against a lane, gamma bases, and noise that depends on neither
 * the decomposition nor the backend. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

static qk_column_args_t column(const kit_t *kit, const block_t *b, int rhs, void *wire,
                               const double complex basis[4][4]) {
  qk_column_args_t c = {.lat = kit->lat,
                        .field = b->field.v,
                        .rhs = rhs,
                        .n = 1,
                        .is_double = 1,
                        .wire = {wire},
                        .factor = 1};
  memcpy(c.basis, basis, sizeof c.basis);
  return c;
}

static const double complex one[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
static const double complex mixing[4][4] = {
    {0.5, 0.25 * I, 0, -1}, {0, 2 - I, 0.125, 0}, {I, 0, 0.75, 0.5 * I}, {-0.25, 1, 0, 1 + I}};

static void turn(const kit_t *kit, const double complex basis[4][4], double factor,
                 const double complex *in, double complex *out) {
  for (size_t i = 0; i < kit_components(kit); i++) {
    const size_t site = i / 12, s = i % 12 / 3, c = i % 3;
    out[i] = 0;
    for (size_t r = 0; r < 4; r++) out[i] += factor * basis[s][r] * in[site * 12 + r * 3 + c];
  }
}

Test(column, import_and_export_turn_the_basis) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *x = kit_vector(&kit), *turned = kit_vector(&kit), *now = kit_vector(&kit);
  kit_random(&kit, 5, x);
  for (int i = 0; i < ncuts; i++) {
    if (cuts[i].subset != QK_FULL) continue;
    block_t b = block_make(&kit, cuts[i], 1);
    const int rhs = cuts[i].nrhs - 1;
    double *wire = device_scalars(&kit, x, (int)kit_components(&kit));
    qk_column_args_t c = column(&kit, &b, rhs, wire, mixing);
    c.factor = 3;
    kit_must(&kit, kit.ops->column_import(kit.ctx, &c), "import");
    double complex *stored = block_get(&kit, &b, rhs);
    turn(&kit, mixing, 3, x, turned);
    cr_expect_lt(block_off(&kit, stored, turned), blas_tolerance(cuts[i].prec), "import, %s",
                 cut_text(cuts[i]));

    c.factor = 0.5;
    kit_must(&kit, kit.ops->column_export(kit.ctx, &c), "export");
    read_scalars(&kit, wire, now, (int)kit_components(&kit));
    turn(&kit, mixing, 0.5, stored, turned);
    cr_expect_lt(block_off(&kit, now, turned), 1e-14, "export, %s", cut_text(cuts[i]));
    for (int other = 0; other < rhs; other++) {
      double complex *y = block_get(&kit, &b, other);
      cr_expect_arr_eq(y, b.x[other], kit_components(&kit) * sizeof *y, "%s: column %d was touched",
                       cut_text(cuts[i]), other);
      free(y);
    }
    free(stored);
    kit_free(&kit, wire);
    block_free(&kit, &b);
  }
  free(x);
  free(turned);
  free(now);
  kit_close(&kit);
}

/* Columns from `first` on, as many as go with it: against those of one alone, bit by bit. */
static void several_at(const kit_t *kit, cut_t cut, int first, bool is_double) {
  block_t b = block_make(kit, cut, 1), alone = block_make(kit, cut, 1);
  const int n = cut.nrhs - first < QK_COLUMNS_MOST ? cut.nrhs - first : QK_COLUMNS_MOST;
  const size_t reals = 2 * kit_components(kit);
  double *back[2] = {malloc(reals * sizeof(double)), malloc(reals * sizeof(double))};
  double complex *x = kit_vector(kit);
  qk_column_args_t c = column(kit, &b, first, NULL, mixing);
  c.n = n;
  c.is_double = is_double;
  for (int k = 0; k < n; k++) {
    kit_random(kit, 50 + (uint64_t)k, x);
    c.wire[k] = device_scalars(kit, x, (int)kit_components(kit));
    qk_column_args_t own = column(kit, &alone, first + k, c.wire[k], mixing);
    own.is_double = is_double;
    kit_must(kit, kit->ops->column_import(kit->ctx, &own), "import of one");
  }
  kit_must(kit, kit->ops->column_import(kit->ctx, &c), "import");
  for (int rhs = 0; rhs < cut.nrhs; rhs++) {
    double complex *y = block_get(kit, &b, rhs), *z = block_get(kit, &alone, rhs);
    cr_expect_arr_eq(y, z, reals * sizeof(double), "%s: import of %d from %d on: column %d",
                     cut_text(cut), n, first, rhs);
    free(y);
    free(z);
  }
  kit_must(kit, kit->ops->column_export(kit->ctx, &c), "export");
  void *wire = kit_alloc(kit, reals * sizeof(double));
  const size_t bytes = reals * (is_double ? sizeof(double) : sizeof(float));
  for (int k = 0; k < n; k++) {
    qk_column_args_t own = column(kit, &alone, first + k, wire, mixing);
    own.is_double = is_double;
    kit_must(kit, kit->ops->column_export(kit->ctx, &own), "export of one");
    kit_must(kit, kit->ops->copy(kit->ctx, back[0], wire, bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(kit, kit->ops->copy(kit->ctx, back[1], c.wire[k], bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "sync");
    cr_expect_arr_eq(back[0], back[1], bytes, "%s: export of %d from %d on: the %dth",
                     cut_text(cut), n, first, k);
    kit_free(kit, c.wire[k]);
  }
  kit_free(kit, wire);
  free(back[0]);
  free(back[1]);
  free(x);
  block_free(kit, &b);
  block_free(kit, &alone);
}

Test(column, several_come_and_go_as_each_alone) {
  kit_t kit;
  block_kit_open(&kit);
  for (int i = 0; i < ncuts; i++)
    if (cuts[i].subset == QK_FULL)
      for (int first = 0; first < cuts[i].nrhs; first += 3)
        for (int is_double = 0; is_double < 2; is_double++)
          several_at(&kit, cuts[i], first, is_double != 0);
  kit_close(&kit);
}

Test(column, more_than_there_are_is_refused) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 3, false, QK_FULL}, 1);
  void *wire = kit_alloc(&kit, kit_components(&kit) * sizeof(double complex));
  qk_column_args_t c = column(&kit, &b, 1, wire, one);
  c.wire[1] = c.wire[2] = wire;
  c.n = 3;
  cr_expect_eq(kit.ops->column_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "n = 3: 1 to 2 from rhs = 1 on"), "%s",
            kit.ops->last_error(kit.ctx));
  c.n = 0;
  cr_expect_eq(kit.ops->column_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  c.n = QK_COLUMNS_MOST + 1;
  cr_expect_eq(kit.ops->column_export(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "n = 5: 1 to 4"));
  c.n = 2;
  c.wire[1] = NULL;
  cr_expect_eq(kit.ops->column_import(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "wire 1 is missing"));
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(column, float32_wire_is_the_rounded_float64_wire) {
  kit_t kit;
  block_kit_open(&kit);
  const size_t reals = 2 * kit_components(&kit);
  float *host = malloc(reals * sizeof *host), *back = malloc(reals * sizeof *back);
  void *wire = kit_alloc(&kit, reals * sizeof *host);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  for (size_t i = 0; i < reals; i++) host[i] = (float)(((double *)b.x[1])[i]);
  qk_column_args_t c = column(&kit, &b, 1, wire, one);
  c.is_double = 0;
  kit_must(&kit, kit.ops->column_export(kit.ctx, &c), "export");
  kit_must(&kit, kit.ops->copy(kit.ctx, back, wire, reals * sizeof *back, QK_COPY_TO_HOST, 0),
           "copy");
  kit_must(&kit, kit.ops->queue_sync(kit.ctx, 0), "sync");
  cr_expect_arr_eq(back, host, reals * sizeof *host);
  c.rhs = 0;
  kit_must(&kit, kit.ops->column_import(kit.ctx, &c), "import");
  double complex *now = block_get(&kit, &b, 0);
  for (size_t i = 0; i < reals; i++) cr_assert(((double *)now)[i] == (double)host[i]);
  free(now);
  free(host);
  free(back);
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(column, wire_of_odd_addresses_is_refused) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 1, false, QK_FULL}, 1);
  char *wire = kit_alloc(&kit, (kit_components(&kit) + 1) * sizeof(double complex));
  qk_column_args_t c = column(&kit, &b, 0, (double *)(wire + 8), one);
  cr_expect_eq(kit.ops->column_export(kit.ctx, &c), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "multiple of 16"));
  kit_free(&kit, wire);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(column, nan_and_infinity_are_not_lost) {
  kit_t kit;
  block_kit_open(&kit);
  static const double bad[] = {NAN, INFINITY};
  double complex *x = kit_vector(&kit);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int k = 0; k < 2; k++) {
      block_t b = block_make(&kit, (cut_t){(qk_prec_t)prec, 2, false, QK_FULL}, 1);
      memset(x, 0, kit_components(&kit) * sizeof *x);
      x[12 * 7 + 5] = bad[k];
      block_set(&kit, &b, 1, x);
      cr_expect(!isfinite(creal(b.x[1][12 * 7 + 5])), "prec %d: %g", prec, bad[k]);
      cr_expect(isfinite(creal(b.x[1][12 * 8 + 5])), "prec %d: %g spread to another site", prec,
                bad[k]);
      block_free(&kit, &b);
    }
  free(x);
  kit_close(&kit);
}

/* ---- sources ---- */

/* Philox4x32-10 as the paper has it, with the mixing function and the key schedule apart. */
static void philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
  uint32_t c[4], k[2] = {key[0], key[1]};
  memcpy(c, counter, sizeof c);
  for (int round = 1; round <= 10; round++) {
    const uint64_t p0 = 0xD2511F53ull * c[0], p1 = 0xCD9E8D57ull * c[2];
    const uint32_t next[4] = {(uint32_t)(p1 >> 32) ^ c[1] ^ k[0], (uint32_t)p1,
                              (uint32_t)(p0 >> 32) ^ c[3] ^ k[1], (uint32_t)p0};
    memcpy(c, next, sizeof c);
    k[0] += 0x9E3779B9;
    k[1] += 0xBB67AE85;
  }
  memcpy(out, c, sizeof c);
}

/* Known answers: kat_vectors of the authors' Random123 distribution. */
Test(source, oracle_of_the_noise_gives_the_published_vectors) {
  static const struct {
    uint32_t counter[4], key[2], out[4];
  } known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (size_t i = 0; i < 3; i++) {
    uint32_t out[4];
    philox(known[i].counter, known[i].key, out);
    cr_expect_arr_eq(out, known[i].out, sizeof out, "vector %zu", i);
  }
}

static const uint64_t seed = 0x299f31d0a4093822;

/* Whether slice t is among site[3], site[3] + t_every, ... */
static bool slice_in(const qk_source_args_t *a, int t) {
  if (a->site[3] < 0) return true;
  for (int s = a->site[3]; a->t_every > 0 && s < a->lat.global[3]; s += a->t_every)
    if (s == t) return true;
  return t == a->site[3];
}

/* exp(i 2 pi p.x / L) by powers of the roots of unity. */
static double complex wave(const qk_source_args_t *a, const int x[4]) {
  double complex w = 1;
  for (int j = 0; j < 3; j++)
    for (int n = 0; n < abs(a->mom[j]) * x[j]; n++)
      w *= cexp(copysign(2 * M_PI, a->mom[j]) * I / a->lat.global[j]);
  return w;
}

/* The source on the global lattice by plain loops; held: what the column held there. */
static double complex source_value(const qk_source_args_t *a, const int x[4], int c,
                                   double complex held) {
  const int32_t *g = a->lat.global;
  if (!slice_in(a, x[3])) return 0;
  if (a->kind == QK_SOURCE_POINT &&
      (a->site[0] != x[0] || a->site[1] != x[1] || a->site[2] != x[2]))
    return 0;
  if ((a->spin >= 0 && c / 3 != a->spin) || (a->colour >= 0 && c % 3 != a->colour)) return 0;
  if (a->kind == QK_SOURCE_HELD) return held * wave(a, x);
  if (a->kind == QK_SOURCE_POINT || a->kind == QK_SOURCE_WALL) return wave(a, x);
  const uint64_t site =
      (((uint64_t)x[3] * (uint64_t)g[2] + (uint64_t)x[2]) * (uint64_t)g[1] + (uint64_t)x[1]) *
          (uint64_t)g[0] +
      (uint64_t)x[0];
  const uint32_t counter[4] = {(uint32_t)site, (uint32_t)(site >> 32), (uint32_t)c / 4, 0};
  const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
  uint32_t w[4];
  philox(counter, key, w);
  const double re = w[c % 4] & 0x80000000u ? -1 : 1, im = w[c % 4] & 0x40000000u ? -1 : 1;
  return wave(a, x) * (a->kind == QK_SOURCE_Z2 ? re : (re + im * I) / sqrt(2));
}

static void expect_source(const kit_t *kit, block_t *b, const qk_source_args_t *a) {
  double complex *held = block_get(kit, b, a->rhs);
  double size = 1, eps[] = {[QK_DOUBLE] = 4e-15, [QK_SINGLE] = 2e-7, [QK_HALF] = 1e-3};
  kit_must(kit, kit->ops->source(kit->ctx, a), "source");
  double complex *now = block_get(kit, b, a->rhs);
  bool exact = a->kind != QK_SOURCE_Z4 && a->mom[0] == 0 && a->mom[1] == 0 && a->mom[2] == 0;
  if (a->kind == QK_SOURCE_HELD)
    for (size_t i = 0; i < kit_components(kit); i++) size = fmax(size, cabs(held[i]));
  for (size_t i = 0; i < kit_components(kit); i++) {
    int x[4];
    size_t n = i / 12;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = (int)(n % (size_t)a->lat.l[mu]) + a->lat.offset[mu];
      n /= (size_t)a->lat.l[mu];
    }
    const double complex want = source_value(a, x, (int)(i % 12), held[i]);
    if (exact && a->field.prec != QK_HALF) cr_assert(now[i] == want, "no momentum changes no bit");
    cr_assert_lt(cabs(now[i] - want), size * eps[a->field.prec],
                 "kind %d at %d,%d,%d,%d component %zu: %g%+gi is %g%+gi", (int)a->kind, x[0], x[1],
                 x[2], x[3], i % 12, creal(want), cimag(want), creal(now[i]), cimag(now[i]));
  }
  free(held);
  free(now);
}

static const qk_source_args_t sources[] = {
    {.kind = QK_SOURCE_POINT, .site = {3, 5, 1, 6}, .spin = 2, .colour = 1},
    {.kind = QK_SOURCE_POINT, .site = {4, 0, 0, 0}, .spin = 0, .colour = 0},
    {.kind = QK_SOURCE_WALL, .site = {0, 0, 0, 7}, .spin = 3, .colour = 2},
    {.kind = QK_SOURCE_Z2, .site = {0, 0, 0, -1}, .spin = -1, .colour = -1, .seed = seed},
    {.kind = QK_SOURCE_Z4, .site = {0, 0, 0, -1}, .spin = -1, .colour = -1, .seed = seed},
    {.kind = QK_SOURCE_Z4, .site = {0, 0, 0, 8}, .spin = 1, .colour = -1, .seed = 17},
    {.kind = QK_SOURCE_WALL, .site = {0, 0, 0, 3}, .spin = 1, .colour = 2, .mom = {1, 0, -1}},
    {.kind = QK_SOURCE_Z2,
     .site = {0, 0, 0, -1},
     .spin = -1,
     .colour = -1,
     .seed = 5,
     .mom = {-7, 5, 1}},
    {.kind = QK_SOURCE_Z4, .site = {0, 0, 0, 2}, .spin = -1, .colour = 0, .seed = 3, .t_every = 5},
    {.kind = QK_SOURCE_HELD, .site = {0, 0, 0, -1}, .spin = -1, .colour = -1},
    {.kind = QK_SOURCE_HELD, .site = {0, 0, 0, 4}, .spin = -1, .colour = -1, .mom = {2, -3, 1}},
    {.kind = QK_SOURCE_HELD, .site = {0, 0, 0, 1}, .spin = 2, .colour = -1, .t_every = 16},
};

/* This rank's lattice is put at each place of a 2x1x1x2 grid in turn. */
Test(source, is_the_same_wherever_the_lattice_is_cut) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *filling = kit_vector(&kit);
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++)
    for (int place = 0; place < 4; place++) {
      qk_lattice_t lat = kit.lat;
      lat.global[0] = 2 * lat.l[0];
      lat.global[3] = 2 * lat.l[3];
      lat.offset[0] = place % 2 * lat.l[0];
      lat.offset[3] = place / 2 * lat.l[3];
      block_t b = block_make(&kit, (cut_t){(qk_prec_t)prec, 3, false, QK_FULL}, 1);
      kit_random(&kit, 9, filling);
      for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        qk_source_args_t a = sources[i];
        a.lat = lat;
        a.field = b.field.v;
        a.rhs = 1;
        block_set(&kit, &b, 1, filling);
        expect_source(&kit, &b, &a);
      }
      for (int rhs = 0; rhs < 3; rhs += 2) {
        double complex *y = block_get(&kit, &b, rhs);
        cr_expect_arr_eq(y, b.x[rhs], kit_components(&kit) * sizeof *y, "column %d was touched",
                         rhs);
        free(y);
      }
      block_free(&kit, &b);
    }
  free(filling);
  kit_close(&kit);
}

/* Words of the oracle's generator, in a block of any number of components. */
static double complex noise_value(const qk_noise_args_t *a, const int x[4], int c, int rhs) {
  uint64_t site = 0;
  uint32_t w[4];
  for (int mu = 3; mu >= 0; mu--) site = site * (uint64_t)a->lat.global[mu] + (uint64_t)x[mu];
  const uint32_t counter[4] = {(uint32_t)site, (uint32_t)(site >> 32), (uint32_t)c / 2,
                               (uint32_t)rhs};
  const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
  philox(counter, key, w);
  const double re = w[c % 2 * 2], im = w[c % 2 * 2 + 1];
  return (re + 0.5) / 2147483648.0 - 1 + ((im + 0.5) / 2147483648.0 - 1) * I;
}

static void expect_noise(const kit_t *kit, const block_t *b, const qk_noise_args_t *a, int rhs) {
  double complex *now = block_get(kit, b, rhs);
  const double eps = a->field.prec == QK_DOUBLE ? 0 : 1e-7;
  for (size_t i = 0; i < kit_components(kit); i++) {
    int x[4];
    size_t n = i / (size_t)kit->ncomp;
    for (int mu = 0; mu < 4; mu++) {
      x[mu] = (int)(n % (size_t)a->lat.l[mu]) + a->lat.offset[mu];
      n /= (size_t)a->lat.l[mu];
    }
    const double complex want = noise_value(a, x, (int)(i % (size_t)kit->ncomp), rhs);
    cr_assert_leq(cabs(now[i] - want), eps, "component %zu of column %d: %g%+gi is %g%+gi", i, rhs,
                  creal(want), cimag(want), creal(now[i]), cimag(now[i]));
  }
  free(now);
}

static void noise_case(const kit_t *kit) {
  const int nrhs[] = {1, 3, 10};
  for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
    for (int k = 0; k < 3; k++) {
      block_t b = block_make(kit, (cut_t){(qk_prec_t)prec, nrhs[k], nrhs[k] == 1, QK_FULL}, 1);
      qk_noise_args_t a = {.lat = kit->lat, .field = b.field.v, .rhs = -1, .seed = seed};
      a.lat.global[0] = 2 * a.lat.l[0];
      a.lat.offset[0] = a.lat.l[0];
      kit_must(kit, kit->ops->noise(kit->ctx, &a), "noise");
      for (int rhs = 0; rhs < nrhs[k]; rhs++) expect_noise(kit, &b, &a, rhs);
      a.seed = 3;
      a.rhs = nrhs[k] - 1;
      kit_must(kit, kit->ops->noise(kit->ctx, &a), "noise");
      expect_noise(kit, &b, &a, a.rhs);
      a.seed = seed;
      for (int rhs = 0; rhs < a.rhs; rhs++) expect_noise(kit, &b, &a, rhs);
      block_free(kit, &b);
    }
}

Test(noise, is_that_of_the_oracle_in_every_shape) {
  each_ncomp(noise_case);
}

Test(noise, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_SINGLE, 2, false, QK_FULL}, 1),
          half = block_make(&kit, (cut_t){QK_HALF, 2, false, QK_FULL}, 1),
          even = block_make(&kit, (cut_t){QK_SINGLE, 2, false, QK_EVEN}, 1);
  const qk_noise_args_t bad[] = {{.lat = kit.lat, .field = b.field.v, .rhs = 2},
                                 {.lat = kit.lat, .field = b.field.v, .rhs = -2},
                                 {.lat = kit.lat, .field = half.field.v, .rhs = -1},
                                 {.lat = kit.lat, .field = even.v, .rhs = -1}};
  static const char *const words[] = {"rhs = 2: -1 to 1", "rhs = -2", "prec = half", "subset"};
  for (int i = 0; i < 4; i++) {
    cr_expect(kit.ops->noise(kit.ctx, &bad[i]) == QK_BAD_ARGUMENT);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), words[i]), "%s", kit.ops->last_error(kit.ctx));
  }
  block_free(&kit, &even);
  block_free(&kit, &half);
  block_free(&kit, &b);
  kit_close(&kit);
}

Test(source, misfits_are_refused_by_name) {
  kit_t kit;
  block_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  const qk_source_args_t good = {.lat = kit.lat, .field = b.field.v, .kind = QK_SOURCE_POINT};
  qk_source_args_t bad[10];
  static const char *const words[] = {"site[1] = 6: 0 to 5",
                                      "spin = 4",
                                      "colour = -1",
                                      "rhs = 2: 0 to 1",
                                      "kind = 9",
                                      "mom[2] = 1: 0 to 0",
                                      "mom[0] = -4: -3 to 3",
                                      "t_every = 2: 0 to 0",
                                      "t_every = 9: 0 to 8",
                                      "t_every = 1: 0 to 0"};
  for (int i = 0; i < 10; i++) bad[i] = good;
  bad[0].site[1] = 6;
  bad[1].spin = 4;
  bad[2].colour = -1;
  bad[3].rhs = 2;
  bad[4].kind = (qk_source_kind_t)9;
  bad[5].mom[2] = 1;
  bad[6].kind = bad[7].kind = QK_SOURCE_WALL;
  bad[6].mom[0] = -4;
  bad[7].t_every = 2;
  bad[8].kind = bad[9].kind = QK_SOURCE_Z4;
  bad[8].t_every = 9;
  bad[9].site[3] = -1;
  bad[9].t_every = 1;
  for (int i = 0; i < 10; i++) {
    cr_expect_eq(kit.ops->source(kit.ctx, &bad[i]), QK_BAD_ARGUMENT);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), words[i]) != NULL, "%s",
              kit.ops->last_error(kit.ctx));
  }
  double complex *now = block_get(&kit, &b, 0);
  cr_expect_arr_eq(now, b.x[0], kit_components(&kit) * sizeof *now);
  free(now);
  block_free(&kit, &b);
  kit_close(&kit);
}

/* ---- copies between blocks ---- */

static void copies_between(const kit_t *kit, cut_t to_cut, cut_t from_cut) {
  const double tolerance = fmax(blas_tolerance(to_cut.prec), blas_tolerance(from_cut.prec));
  block_t to = block_make(kit, to_cut, 1), from = block_make(kit, from_cut, 2);
  qk_column_copy_args_t copy = {
      .to = to.v, .from = from.v, .to_rhs = to_cut.nrhs - 1, .from_rhs = from_cut.nrhs / 2};
  double complex *expected = kit_vector(kit);
  memcpy(expected, to.x[copy.to_rhs], kit_components(kit) * sizeof *expected);
  for (copy.add = 0; copy.add < 2; copy.add++) {
    const double complex *x = from.x[copy.from_rhs];
    for (size_t i = 0; i < kit_components(kit); i++)
      if (component_in(kit, to_cut.subset, i)) expected[i] = copy.add ? expected[i] + x[i] : x[i];
    kit_must(kit, kit->ops->column_copy(kit->ctx, &copy), "column_copy");
    double complex *now = block_get(kit, &to, copy.to_rhs);
    cr_expect_lt(block_off(kit, now, expected), tolerance,
                 "add = %d, from %d columns, prec %d, to %s", copy.add, from_cut.nrhs,
                 (int)from_cut.prec, cut_text(to_cut));
    free(now);
  }
  for (int other = 0; other < copy.to_rhs; other++) {
    double complex *y = block_get(kit, &to, other);
    cr_expect_arr_eq(y, to.x[other], kit_components(kit) * sizeof *y, "%s: column %d was touched",
                     cut_text(to_cut), other);
    free(y);
  }
  free(expected);
  block_free(kit, &from);
  block_free(kit, &to);
}

static void copies(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++)
    for (int j = 0; j < ncuts; j++)
      if (cuts[i].subset == cuts[j].subset && cut_exists(kit, cuts[i]) && cut_exists(kit, cuts[j]))
        copies_between(kit, cuts[i], cuts[j]);
}

Test(column, copies_between_blocks_of_any_precision_and_shape) {
  each_ncomp(copies);
}

/* Columns from `first` on of a block, from or into fields of one column: against those of
 * one alone, bit by bit. */
static void several_copies(const kit_t *kit, cut_t cut, qk_prec_t lone_prec, int first, bool into) {
  const cut_t single = {lone_prec, 1, true, cut.subset};
  const int n = cut.nrhs - first < QK_COLUMNS_MOST ? cut.nrhs - first : QK_COLUMNS_MOST;
  block_t together = block_make(kit, cut, 1), alone = block_make(kit, cut, 1);
  block_t lone[2][QK_COLUMNS_MOST];
  for (int which = 0; which < 2; which++)
    for (int k = 0; k < n; k++) lone[which][k] = block_make(kit, single, 20 + (uint64_t)k);
  for (int add = 0; add < 2; add++) {
    qk_column_copy_args_t all = {.to = into ? together.v : lone[0][0].v,
                                 .from = into ? lone[0][0].v : together.v,
                                 .add = add,
                                 .n = n};
    *(into ? &all.to_rhs : &all.from_rhs) = first;
    for (int k = 0; k < n; k++) {
      all.lone[k] = lone[0][k].v.data;
      const qk_column_copy_args_t own = {.to = into ? alone.v : lone[1][k].v,
                                         .from = into ? lone[1][k].v : alone.v,
                                         .to_rhs = into ? first + k : 0,
                                         .from_rhs = into ? 0 : first + k,
                                         .add = add};
      kit_must(kit, kit->ops->column_copy(kit->ctx, &own), "column_copy of one");
    }
    kit_must(kit, kit->ops->column_copy(kit->ctx, &all), "column_copy");
  }
  for (int k = 0; k < (into ? cut.nrhs : n); k++) {
    double complex *x = into ? block_get(kit, &together, k) : block_get(kit, &lone[0][k], 0);
    double complex *y = into ? block_get(kit, &alone, k) : block_get(kit, &lone[1][k], 0);
    cr_expect_arr_eq(x, y, kit_components(kit) * sizeof *x, "%s: %d from %d on, %s prec %d: %d",
                     cut_text(cut), n, first, into ? "from" : "into", (int)lone_prec, k);
    free(x);
    free(y);
  }
  for (int which = 0; which < 2; which++)
    for (int k = 0; k < n; k++) block_free(kit, &lone[which][k]);
  block_free(kit, &together);
  block_free(kit, &alone);
}

static void several(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    if (!cut_exists(kit, cuts[i]) || cuts[i].nrhs == 1) continue;
    for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
      for (int into = 0; into < 2; into++)
        for (int first = 0; first < cuts[i].nrhs; first += 3)
          several_copies(kit, cuts[i], (qk_prec_t)prec, first, into != 0);
  }
}

Test(column, several_are_copied_as_each_alone) {
  each_ncomp(several);
}

Test(column, copies_of_several_refuse_what_does_not_fit) {
  kit_t kit;
  block_kit_open(&kit);
  block_t block = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_FULL}, 1);
  block_t lone = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 1);
  block_t half = block_make(&kit, (cut_t){QK_HALF, 1, true, QK_FULL}, 1);
  void *data = lone.v.data;
  const qk_column_copy_args_t bad[] = {
      {.to = block.v, .from = lone.v, .to_rhs = 1, .n = 3, .lone = {data, data, data}},
      {.to = block.v, .from = lone.v, .n = 2, .lone = {data}},
      {.to = block.v, .from = block.v, .n = 2, .lone = {data, data}},
      {.to = half.v, .from = block.v, .n = 2, .lone = {data, data}},
      {.to = block.v, .from = lone.v, .n = QK_COLUMNS_MOST + 1, .lone = {data, data, data, data}}};
  static const char *const words[] = {"n = 3: 1 to 2", "lone[1] is missing",
                                      "nrhs, ntile, prec = 3", "prec = 1, 0, 2", "n = 5: 1 to 3"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_expect_eq(kit.ops->column_copy(kit.ctx, &bad[i]), QK_BAD_ARGUMENT);
    cr_expect(strstr(kit.ops->last_error(kit.ctx), words[i]), "%s", kit.ops->last_error(kit.ctx));
  }
  block_free(&kit, &half);
  block_free(&kit, &lone);
  block_free(&kit, &block);
  kit_close(&kit);
}

Test(column, copies_what_is_not_a_number_and_zeros) {
  kit_t kit;
  block_kit_open(&kit);
  double complex *x = kit_vector(&kit);
  block_t from = block_make(&kit, (cut_t){QK_DOUBLE, 1, true, QK_FULL}, 2);
  block_t to = block_make(&kit, (cut_t){QK_HALF, 5, false, QK_FULL}, 1);
  x[12] = NAN;
  x[24] = INFINITY;
  x[36] = 1e-30;
  block_set(&kit, &from, 0, x);
  qk_column_copy_args_t copy = {.to = to.v, .from = from.v, .to_rhs = 3};
  kit_must(&kit, kit.ops->column_copy(kit.ctx, &copy), "column_copy");
  double complex *now = block_get(&kit, &to, 3);
  cr_expect(!isfinite(cabs(now[12])) && !isfinite(cabs(now[24])));
  cr_expect_float_eq(creal(now[36]), 1e-30, 1e-33);
  cr_expect(now[0] == 0 && now[48] == 0);
  free(now);
  free(x);
  block_free(&kit, &from);
  block_free(&kit, &to);
  kit_close(&kit);
}

Test(column, copies_refuse_what_does_not_fit) {
  kit_t kit;
  block_kit_open(&kit);
  block_t a = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  block_t b = block_make(&kit, (cut_t){QK_SINGLE, 3, false, QK_EVEN}, 1);
  qk_column_copy_args_t copy = {.to = a.v, .from = b.v};
  cr_expect_eq(kit.ops->column_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "subset"), "%s", kit.ops->last_error(kit.ctx));
  copy = (qk_column_copy_args_t){.to = a.v, .from = a.v, .to_rhs = 2};
  cr_expect_eq(kit.ops->column_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "to_rhs = 2: 0 to 1"));
  copy = (qk_column_copy_args_t){.to = a.v, .from = a.v, .from_rhs = -1};
  cr_expect_eq(kit.ops->column_copy(kit.ctx, &copy), QK_BAD_ARGUMENT);
  cr_expect(strstr(kit.ops->last_error(kit.ctx), "from_rhs = -1: 0 to 1"));
  block_free(&kit, &a);
  block_free(&kit, &b);
  kit_close(&kit);
}
