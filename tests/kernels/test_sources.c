/* Sources: points, walls, and noise that depends neither on the decomposition nor on the
 * backend. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

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

/* Coordinates of a site of this rank, x fastest. */
static void global_site(const qk_lattice_t *lat, size_t site, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(site % (size_t)lat->l[mu]) + lat->offset[mu];
    site /= (size_t)lat->l[mu];
  }
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
    global_site(&a->lat, i / 12, x);
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
    global_site(&a->lat, i / (size_t)kit->ncomp, x);
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
  static const char *const words[] = {"rhs = 2: -1 to 1", "rhs = -2", "prec = 2: double", "subset"};
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
