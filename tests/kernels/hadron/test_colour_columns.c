/* Colour vectors: wire order, sources and noise. Of spinors the spin 0 is made by the same rules,
 * so that it is what they are compared with.
 * Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

static const double unit[] = {0x1p-53, 0x1p-24, 0x1p-11};

static void colour_kit_open(kit_t *kit) {
  block_kit_open(kit);
  kit->ncomp = QK_COLOUR_COMPONENTS;
}

/* Half has its scales apart, which kit_export does not read. */
static bool has_cut(cut_t cut) {
  return cut.subset == QK_FULL && cut.prec != QK_HALF;
}

static double complex *colours(const kit_t *kit, uint64_t seed) {
  double complex *x = kit_vector(kit);
  kit_random(kit, seed, x);
  return x;
}

static double off_by(const kit_t *kit, const double complex *x, const double complex *y,
                     double factor) {
  double most = 0;
  for (size_t i = 0; i < kit_components(kit); i++) {
    const double off = cabs(x[i] - factor * y[i]);
    if (!(off <= most)) most = off;
  }
  return most;
}

static qk_rhs_args_t args_of(const kit_t *kit, const qk_spinor_t *field, int rhs, bool is_double) {
  return (qk_rhs_args_t){.lat = kit->lat,
                         .field = *field,
                         .rhs = rhs,
                         .n = 1,
                         .is_double = is_double,
                         .factor = 1,
                         /* not looked at */
                         .basis = {{{7, 7}, {7, 7}}}};
}

static void to_and_fro(const kit_t *kit, cut_t cut, bool is_double) {
  block_t b = block_make(kit, cut, 1);
  const int n = cut.nrhs < QK_RHS_TOGETHER ? cut.nrhs : QK_RHS_TOGETHER, first = cut.nrhs - n;
  const size_t reals = (size_t)kit->volume * 6;
  const size_t bytes = reals * (is_double ? sizeof(double) : sizeof(float));
  const double fine = unit[is_double && cut.prec == QK_DOUBLE ? QK_DOUBLE : QK_SINGLE];
  double complex *x[QK_RHS_TOGETHER];
  float *single = malloc(reals * sizeof *single);
  void *back = malloc(bytes);
  qk_rhs_args_t a = args_of(kit, &b.field.v, first, is_double);
  a.n = n;
  a.factor = 3;
  for (int k = 0; k < n; k++) {
    x[k] = colours(kit, 20 + (uint64_t)k);
    const double *plain = (const double *)x[k];
    for (size_t i = 0; i < reals; i++) single[i] = (float)plain[i];
    a.wire[k] = kit_alloc(kit, bytes);
    kit_must(kit,
             kit->ops->copy(kit->ctx, a.wire[k], is_double ? (const void *)plain : single, bytes,
                            QK_COPY_TO_DEVICE, 0),
             "copy");
    kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "sync");
  }
  kit_must(kit, kit->ops->rhs_import(kit->ctx, &a), "import");
  for (int k = 0; k < cut.nrhs; k++) {
    double complex *y = block_get(kit, &b, k);
    if (k < first)
      cr_expect_arr_eq(y, b.x[k], kit_components(kit) * sizeof *y, "%s: rhs %d", cut_text(cut), k);
    else
      cr_expect_lt(off_by(kit, y, x[k - first], 3), 32 * fine, "%s: import of %d", cut_text(cut),
                   k);
    free(y);
  }
  a.factor = 0.5;
  kit_must(kit, kit->ops->rhs_export(kit->ctx, &a), "export");
  for (int k = 0; k < n; k++) {
    const double *plain = (const double *)x[k];
    double off = 0;
    kit_must(kit, kit->ops->copy(kit->ctx, back, a.wire[k], bytes, QK_COPY_TO_HOST, 0), "copy");
    kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "sync");
    for (size_t i = 0; i < reals; i++) {
      const double y = is_double ? ((double *)back)[i] : (double)((float *)back)[i];
      const double d = y - 1.5 * plain[i];
      if (!(d * d <= off * off)) off = d < 0 ? -d : d;
    }
    cr_expect_lt(off, 32 * fine, "%s: export of %d", cut_text(cut), k);
    kit_free(kit, a.wire[k]);
    free(x[k]);
  }
  free(back);
  free(single);
  block_free(kit, &b);
}

Test(colour, goes_to_and_fro_in_wire_order) {
  kit_t kit;
  colour_kit_open(&kit);
  for (int i = 0; i < ncuts; i++)
    for (int is_double = 0; is_double < 2; is_double++)
      if (has_cut(cuts[i])) to_and_fro(&kit, cuts[i], is_double);
  kit_close(&kit);
}

/* A source of the same arguments on colour vectors, and that of spin 0 on spinors. */
static void against_spinors(kit_t *kit, const qk_source_args_t *like) {
  const cut_t cut = {QK_DOUBLE, 3, false, QK_FULL};
  qk_source_args_t a = *like;
  block_t three = block_make(kit, cut, 2);
  a.field = three.field.v;
  double complex *held = block_get(kit, &three, a.rhs);
  kit_must(kit, kit->ops->source(kit->ctx, &a), "source");
  double complex *got = block_get(kit, &three, a.rhs);
  kit->ncomp = 12;
  block_t twelve = block_make(kit, cut, 3);
  double complex *x = kit_vector(kit);
  for (int64_t n = 0; n < kit->volume; n++) memcpy(x + 12 * n, held + 3 * n, 3 * sizeof *x);
  block_set(kit, &twelve, a.rhs, x);
  a.field = twelve.field.v;
  if (a.spin < 0) a.spin = 0;
  kit_must(kit, kit->ops->source(kit->ctx, &a), "source");
  double complex *want = block_get(kit, &twelve, a.rhs);
  for (int64_t n = 0; n < kit->volume; n++)
    for (int c = 0; c < 3; c++)
      cr_assert(got[3 * n + c] == want[12 * n + c], "kind %d, site %lld, colour %d", (int)a.kind,
                (long long)n, c);
  free(held);
  free(got);
  free(x);
  free(want);
  block_free(kit, &twelve);
  kit->ncomp = QK_COLOUR_COMPONENTS;
  block_free(kit, &three);
}

Test(colour, sources_are_those_of_spin_0) {
  kit_t kit;
  colour_kit_open(&kit);
  const qk_source_args_t like[] = {
      {.kind = QK_SOURCE_POINT, .site = {1, 2, 1, 3}, .colour = 2},
      {.kind = QK_SOURCE_WALL, .site = {0, 0, 0, 5}, .colour = 1, .mom = {1, -2, 0}},
      {.kind = QK_SOURCE_Z2, .site = {0, 0, 0, -1}, .spin = -1, .colour = -1, .seed = 77},
      {.kind = QK_SOURCE_Z4, .site = {0, 0, 0, 1}, .t_every = 2, .colour = 1, .seed = 78},
      {.kind = QK_SOURCE_Z4, .site = {0, 0, 0, 2}, .spin = -1, .colour = -1, .mom = {0, 1, 1}},
      {.kind = QK_SOURCE_HELD, .site = {0, 0, 0, 4}, .spin = -1, .colour = -1, .mom = {1, 0, 0}}};
  for (size_t i = 0; i < sizeof like / sizeof *like; i++) {
    qk_source_args_t a = like[i];
    a.lat = kit.lat;
    a.rhs = 1;
    against_spinors(&kit, &a);
  }
  kit_close(&kit);
}

Test(colour, noise_is_that_of_spin_0) {
  kit_t kit;
  colour_kit_open(&kit);
  for (int i = 0; i < ncuts; i++) {
    if (!has_cut(cuts[i])) continue;
    kit.ncomp = 12;
    block_t spinors = block_make(&kit, cuts[i], 5);
    kit.ncomp = QK_COLOUR_COMPONENTS;
    block_t b = block_make(&kit, cuts[i], 4);
    qk_noise_args_t a = {.lat = kit.lat, .field = b.field.v, .rhs = -1, .seed = 9};
    kit_must(&kit, kit.ops->noise(kit.ctx, &a), "noise");
    a.field = spinors.field.v;
    kit_must(&kit, kit.ops->noise(kit.ctx, &a), "noise");
    for (int rhs = 0; rhs < cuts[i].nrhs; rhs++) {
      double complex *x = block_get(&kit, &b, rhs);
      kit.ncomp = 12;
      double complex *y = block_get(&kit, &spinors, rhs);
      kit.ncomp = QK_COLOUR_COMPONENTS;
      for (int64_t n = 0; n < kit.volume; n++)
        cr_assert_arr_eq(x + 3 * n, y + 12 * n, 3 * sizeof *x);
      free(x);
      free(y);
    }
    block_free(&kit, &b);
    kit.ncomp = 12;
    block_free(&kit, &spinors);
  }
  kit_close(&kit);
}

Test(colour, has_one_spin) {
  kit_t kit;
  colour_kit_open(&kit);
  block_t b = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  qk_source_args_t a = {.lat = kit.lat, .field = b.field.v, .kind = QK_SOURCE_POINT, .spin = 1};
  kit_refused(&kit, kit.ops->source(kit.ctx, &a), "spin = 1");
  block_free(&kit, &b);
  kit.ncomp = 20;
  b = block_make(&kit, (cut_t){QK_DOUBLE, 2, false, QK_FULL}, 1);
  a.field = b.field.v;
  kit_refused(&kit, kit.ops->source(kit.ctx, &a), "ncomp = 20");
  block_free(&kit, &b);
  kit_close(&kit);
}
