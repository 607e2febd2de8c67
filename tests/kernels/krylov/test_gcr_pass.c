/* Steps of GCR that change no direction (cuda/body/gcr.h: without x), in a chain, against
 * directions that are made orthogonal one by one. Backend: QK_BACKEND. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/kernels/blas_kit.h"

enum { STEPS = 5, LANES = 11, RECORD = STEPS };

/* Directions, the residual, and it once more in `next`. Scalars: a record of each direction, the
 * products of a step, |r|^2. */
typedef struct chain {
  const kit_t *kit;
  cut_t cut;
  block_t w[STEPS], r, next;
  double complex *orthogonal[STEPS][LANES]; /* on the host; NULL: not made */
  double left[STEPS][LANES];                /* |w'|^2 */
  double *records, *dots, *norm;
  uint8_t *mask;
} chain_t;

/* Lane 2 is masked; lane 4 begins with the third direction, those before are of another run, which
 * has left NaN; and in lane 1 the third one is made of those before it. */
static bool takes_part(int lane) {
  return lane != 2;
}
static int first_of(int lane) {
  return lane == 4 ? 2 : 0;
}

static double complex product(const chain_t *c, const double complex *a, const double complex *b) {
  double complex sum = 0;
  for (size_t j = 0; j < kit_components(c->kit); j++)
    if (component_in(c->kit, c->cut.subset, j)) sum += conj(a[j]) * b[j];
  return sum;
}

static void add(const chain_t *c, double complex *y, double complex by, const double complex *f) {
  for (size_t j = 0; j < kit_components(c->kit); j++)
    if (component_in(c->kit, c->cut.subset, j)) y[j] += by * f[j];
}

static size_t bytes_of(const chain_t *c) {
  return kit_components(c->kit) * sizeof(double complex);
}

/* The scalars start as NaN: what is not written must not be looked at. */
static chain_t chain_make(const kit_t *kit, cut_t cut, qk_prec_t next) {
  chain_t c = {.kit = kit, .cut = cut};
  cut_t narrow = cut;
  narrow.prec = next;
  for (int k = 0; k < STEPS; k++) c.w[k] = block_make(kit, cut, 10 + (uint64_t)k);
  c.r = block_make(kit, cut, 52);
  c.next = block_make(kit, narrow, 53);
  if (cut.nrhs > 1) {
    double complex *v = malloc(bytes_of(&c));
    cr_assert_not_null(v);
    for (size_t j = 0; j < kit_components(kit); j++)
      v[j] = 0.5 * c.w[0].x[1][j] - 0.25 * I * c.w[1].x[1][j];
    block_set(kit, &c.w[2], 1, v);
    free(v);
  }
  double complex none[STEPS * RECORD * LANES];
  uint8_t mask[LANES];
  for (int i = 0; i < STEPS * RECORD * LANES; i++) none[i] = NAN;
  for (int i = 0; i < cut.nrhs; i++) mask[i] = takes_part(i);
  c.records = device_scalars(kit, none, STEPS * RECORD * cut.nrhs);
  c.norm = device_scalars(kit, none, cut.nrhs);
  c.mask = device_mask(kit, mask, cut.nrhs);
  return c;
}

static void chain_free(chain_t *c) {
  const kit_t *kit = c->kit;
  for (int k = 0; k < STEPS; k++) {
    block_free(kit, &c->w[k]);
    for (int i = 0; i < LANES; i++) free(c->orthogonal[k][i]);
  }
  block_free(kit, &c->r);
  block_free(kit, &c->next);
  kit_free(kit, c->records);
  kit_free(kit, c->norm);
  kit_free(kit, c->mask);
}

/* Products of step n; those with directions of another run are 0. */
static double *upload_products(const chain_t *c, int n) {
  const int nrhs = c->cut.nrhs;
  double complex dots[(STEPS + 2) * LANES] = {0};
  for (int i = 0; i < nrhs; i++) {
    for (int k = first_of(i); k <= n; k++)
      dots[k * nrhs + i] = product(c, c->w[k].x[i], c->w[n].x[i]);
    dots[(n + 1) * nrhs + i] = product(c, c->r.x[i], c->w[n].x[i]);
  }
  return device_scalars(c->kit, dots, (n + 2) * nrhs);
}

/* r of lane i on the host, and the new orthogonal direction. */
static void plain_step(chain_t *c, int n, int i) {
  double complex *w = malloc(bytes_of(c));
  cr_assert_not_null(w);
  memcpy(w, c->w[n].x[i], bytes_of(c));
  const double size = creal(product(c, w, w));
  for (int twice = 0; twice < 2; twice++)
    for (int k = first_of(i); k < n; k++)
      if (c->left[k][i] > 0)
        add(c, w, -product(c, c->orthogonal[k][i], w) / c->left[k][i], c->orthogonal[k][i]);
  const double left = creal(product(c, w, w));
  c->left[n][i] = left > 1e-6 * size ? left : 0;
  c->orthogonal[n][i] = w;
  if (c->left[n][i] > 0) add(c, c->r.x[i], -product(c, w, c->r.x[i]) / left, w);
}

static void run_step(chain_t *c, int n) {
  const kit_t *kit = c->kit;
  const int nrhs = c->cut.nrhs;
  double *dots = upload_products(c, n);
  qk_gcr_args_t a = {.n = n, .r = c->r.v, .next = c->next.v, .dots = dots, .mask = c->mask};
  for (int k = 0; k <= n; k++) {
    a.w[k] = c->w[k].v;
    a.norm2[k] = c->records + (size_t)2 * RECORD * nrhs * k;
  }
  a.norm2[n + 1] = c->norm;
  kit_must(kit, kit->ops->gcr_step(kit->ctx, &a), "gcr_step");
  kit_free(kit, dots);
}

/* What the block holds now; malloc'd. */
static double complex *expect_block(const chain_t *c, const block_t *b, int i,
                                    const double complex *want, double bound, const char *what) {
  double complex *now = block_get(c->kit, b, i);
  const double off = block_off(c->kit, now, want);
  cr_expect(off < bound, "%s: %s of rhs %d is off by %g", cut_text(c->cut), what, i, off);
  return now;
}

/* The host goes on from what the device has. */
static void expect_step(chain_t *c, int n) {
  const kit_t *kit = c->kit;
  const int nrhs = c->cut.nrhs;
  const double bound = blas_tolerance(c->cut.prec) * (2 + n);
  double complex norm[LANES], records[STEPS * RECORD * LANES];
  read_scalars(kit, c->norm, norm, nrhs);
  read_scalars(kit, c->records, records, STEPS * RECORD * nrhs);
  for (int i = 0; i < nrhs; i++) {
    const bool on = takes_part(i) && n >= first_of(i);
    if (on) plain_step(c, n, i);
    double complex *r = expect_block(c, &c->r, i, c->r.x[i], bound, "r");
    const double rr = creal(product(c, r, r)), left = c->left[n][i];
    memcpy(c->r.x[i], r, bytes_of(c));
    free(r);
    if (!takes_part(i)) {
      cr_expect(isnan(creal(norm[i])) && isnan(creal(records[n * RECORD * nrhs + i])));
      continue;
    }
    cr_expect(fabs(creal(norm[i]) - rr) < fmax(4 * blas_tolerance(c->cut.prec), 1e-12) * rr,
              "%s, n %d: %g, %g", cut_text(c->cut), n, creal(norm[i]), rr);
    const double got = creal(records[n * RECORD * nrhs + i]);
    cr_expect(!on || fabs(got - left) < 1e-9 * (1 + left), "%s, n %d, rhs %d: |w|^2 %g, not %g",
              cut_text(c->cut), n, i, got, left);
  }
}

/* next, which holds nothing of other sites. */
static void expect_next(const chain_t *c) {
  for (int i = 0; i < c->cut.nrhs; i++) {
    double complex *want = malloc(bytes_of(c));
    cr_assert_not_null(want);
    for (size_t j = 0; j < kit_components(c->kit); j++)
      want[j] = component_in(c->kit, c->cut.subset, j) ? c->r.x[i][j] : c->next.x[i][j];
    free(expect_block(c, &c->next, i, want, 2 * blas_tolerance(c->next.v.prec), "next"));
    free(want);
  }
}

/* A direction is w_n - sum_k s_nk w_k. */
static void expect_coefficients(const chain_t *c) {
  const int nrhs = c->cut.nrhs;
  double complex s[STEPS * RECORD * LANES];
  read_scalars(c->kit, c->records, s, STEPS * RECORD * nrhs);
  for (int i = 0; i < nrhs; i++) {
    for (int n = first_of(i); takes_part(i) && n < STEPS; n++) {
      double complex *w = malloc(bytes_of(c));
      cr_assert_not_null(w);
      memcpy(w, c->w[n].x[i], bytes_of(c));
      for (int k = 0; k < n; k++) add(c, w, -s[(n * RECORD + n - k) * nrhs + i], c->w[k].x[i]);
      add(c, w, -1, c->orthogonal[n][i]);
      const double off =
          sqrt(creal(product(c, w, w)) / creal(product(c, c->w[n].x[i], c->w[n].x[i])));
      cr_expect_lt(off, 1e-9, "%s, n %d, rhs %d: off by %g", cut_text(c->cut), n, i, off);
      free(w);
    }
  }
}

static void spoil_other_run(const chain_t *c) {
  const kit_t *kit = c->kit;
  const int nrhs = c->cut.nrhs;
  double s[STEPS * RECORD * LANES][2];
  const size_t bytes = (size_t)(STEPS * RECORD * nrhs) * sizeof s[0];
  if (nrhs <= 4) return;
  kit_must(kit, kit->ops->copy(kit->ctx, s, c->records, bytes, QK_COPY_TO_HOST, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
  for (int k = 0; k < first_of(4) * RECORD; k++) s[k * nrhs + 4][0] = s[k * nrhs + 4][1] = NAN;
  kit_must(kit, kit->ops->copy(kit->ctx, c->records, s, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  kit_must(kit, kit->ops->queue_sync(kit->ctx, 0), "queue_sync");
}

static void check_chain(const kit_t *kit, cut_t cut, qk_prec_t next) {
  chain_t c = chain_make(kit, cut, next);
  for (int n = 0; n < STEPS; n++) {
    run_step(&c, n);
    expect_step(&c, n);
    if (n % 2) expect_next(&c);
    spoil_other_run(&c);
  }
  for (int k = 0; k < STEPS; k++) /* nothing is written there */
    free(expect_block(&c, &c.w[k], cut.nrhs - 1, c.w[k].x[cut.nrhs - 1], 1e-300, "w"));
  expect_coefficients(&c);
  chain_free(&c);
}

static void check_chains(const kit_t *kit) {
  for (int i = 0; i < ncuts; i++) {
    cut_t narrow = cuts[i];
    narrow.prec = QK_HALF;
    if (cuts[i].nrhs > LANES || !cut_exists_without_colours(kit, cuts[i])) continue;
    check_chain(kit, cuts[i], cuts[i].prec);
    if (cuts[i].prec == QK_SINGLE && cut_exists_without_colours(kit, narrow))
      check_chain(kit, cuts[i], QK_HALF);
  }
}

Test(gcr_pass, agrees_with_directions_that_are_made_orthogonal) {
  each_ncomp_of_spinors(check_chains);
}

/* Neither a norm nor `next` is asked for; precisions of next that do not fit are refused. */
Test(gcr_pass, needs_no_norm_and_takes_next_in_half_beside_single_alone) {
  kit_t kit;
  block_kit_open(&kit);
  const cut_t cut = {QK_SINGLE, 3, false, QK_EVEN}, half = {QK_HALF, 3, false, QK_EVEN},
              wide = {QK_DOUBLE, 3, false, QK_EVEN};
  chain_t c = chain_make(&kit, cut, QK_SINGLE);
  block_t h = block_make(&kit, half, 1), d = block_make(&kit, wide, 2);
  double *dots = upload_products(&c, 0);
  qk_gcr_args_t a = {.r = c.r.v, .w = {c.w[0].v}, .dots = dots, .norm2 = {c.records}};
  kit_must(&kit, kit.ops->gcr_step(kit.ctx, &a), "gcr_step");
  for (int i = 0; i < 3; i++) {
    plain_step(&c, 0, i);
    if (first_of(i) == 0)
      free(expect_block(&c, &c.r, i, c.r.x[i], 2 * blas_tolerance(QK_SINGLE), "r"));
  }
  a.next = d.v;
  kit_refused(&kit, kit.ops->gcr_step(kit.ctx, &a), "prec");
  a.next = h.v;
  a.x = c.next.v;
  a.z[0] = c.w[1].v;
  kit_refused(&kit, kit.ops->gcr_step(kit.ctx, &a), "prec");
  kit_free(&kit, dots);
  block_free(&kit, &h);
  block_free(&kit, &d);
  chain_free(&c);
  kit_close(&kit);
}
