/*
 * bench_mg_setup: time of what a multigrid setup is made of, on one level: orthonormal columns,
 * Galerkin products, matrices of the coarse operator. GB/s count each field and matrix that is read
 * once and each that is written once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

typedef struct settings {
  const char *backend;
  int dims[4], block[4], ncomp, nvec;
  double seconds;
  bool json;
} settings_t;

typedef struct level {
  qk_aggregates_t agg;
  qk_spinor_t v, w;
  qk_coarse_links_t diag, inner, inverse, links, product;
} level_t;

static double matrix_bytes(const bench_t *b, const level_t *l, const qk_coarse_links_t *m) {
  return (double)b->ops->coarse_bytes(&l->agg.coarse, m);
}

static qk_coarse_links_t matrices(const bench_t *b, const level_t *l, qk_prec_t prec, int ndir) {
  qk_coarse_links_t m = {.prec = prec, .n = 2 * l->v.nrhs, .ndir = ndir};
  m.data = bench_alloc(b, b->ops->coarse_bytes(&l->agg.coarse, &m));
  return m;
}

static qk_spinor_t columns(const bench_t *b, const settings_t *s) {
  qk_spinor_t v = {.prec = QK_SINGLE,
                   .subset = QK_FULL,
                   .ncomp = s->ncomp,
                   .nrhs = s->nvec,
                   .ntile = (s->nvec + QK_TILE - 1) / QK_TILE,
                   .nsites = b->volume};
  v.data = bench_alloc(b, (size_t)(v.nsites * v.ntile * QK_TILE * v.ncomp) * 2 * sizeof(float));
  const qk_noise_args_t noise = {.lat = b->lat, .field = v, .rhs = -1, .seed = 17};
  bench_must(b, b->ops->noise(b->ctx, &noise), "noise");
  return v;
}

static void run_orthonormalise(const bench_t *b, void *arg) {
  const qk_orthonormalise_args_t *a = arg;
  bench_must(b, b->ops->orthonormalise(b->ctx, a), "orthonormalise");
  if (*a->dependent > 0) {
    fprintf(stderr, "bench_mg_setup: %lld dependent aggregates\n", (long long)*a->dependent);
    exit(1);
  }
}
static void run_galerkin(const bench_t *b, void *arg) {
  bench_must(b, b->ops->galerkin(b->ctx, arg), "galerkin");
}
static void run_close(const bench_t *b, void *arg) {
  bench_must(b, b->ops->coarse_close(b->ctx, arg), "coarse_close");
}
static void run_invert(const bench_t *b, void *arg) {
  bench_must(b, b->ops->coarse_invert(b->ctx, arg), "coarse_invert");
}
static void run_times(const bench_t *b, void *arg) {
  bench_must(b, b->ops->coarse_times(b->ctx, arg), "coarse_times");
}

static level_t open_level(const bench_t *b, const settings_t *s) {
  level_t l = {.agg = {.fine = b->lat, .coarse = b->lat}};
  qk_lattice_t *c = &l.agg.coarse;
  c->vcb = b->lat.vcb;
  for (int mu = 0; mu < 4; mu++) {
    l.agg.block[mu] = s->block[mu];
    c->l[mu] = c->global[mu] = b->lat.l[mu] / s->block[mu];
    c->vcb /= s->block[mu];
  }
  for (int mu = 0; mu < 4; mu++) c->face[mu] = c->vcb / c->l[mu];
  l.v = columns(b, s);
  l.w = columns(b, s);
  l.diag = matrices(b, &l, QK_SINGLE, 1);
  l.inner = matrices(b, &l, QK_SINGLE, 1);
  l.inverse = matrices(b, &l, QK_SINGLE, 1);
  l.links = matrices(b, &l, QK_SINGLE, 8);
  l.product = matrices(b, &l, QK_HALF, 8);
  return l;
}

static void show(const bench_t *b, const settings_t *s, const char *op, double bytes, bench_fn run,
                 void *arg) {
  bench_show(b, s->json, op, QK_SINGLE, s->nvec, bytes, bench_measure(b, run, arg));
}

static void bench_level(const bench_t *b, const settings_t *s) {
  level_t l = open_level(b, s);
  const double field = bench_field_bytes(&l.v) * s->nvec, diag = matrix_bytes(b, &l, &l.diag);
  const double links = matrix_bytes(b, &l, &l.links), product = matrix_bytes(b, &l, &l.product);
  int64_t dependent = 0, singular = 0;
  qk_orthonormalise_args_t o = {.agg = l.agg, .v = l.v, .dependent = &dependent};
  show(b, s, "orthonormalise", 2 * field, run_orthonormalise, &o);
  qk_galerkin_args_t g = {
      .agg = l.agg, .v = l.v, .w = l.w, .inner = l.inner, .ahead = l.links, .mu = 0};
  show(b, s, "galerkin, x", 2 * field + diag + links / 8, run_galerkin, &g);
  g.mu = 3;
  show(b, s, "galerkin, t", 2 * field + diag + links / 8, run_galerkin, &g);
  g.mu = -1;
  g.inner = l.diag;
  show(b, s, "galerkin, site-diagonal", 2 * field + diag, run_galerkin, &g);
  /* Columns with themselves, both chiralities: nearly the unit matrix. */
  bench_must(b, b->ops->zero(b->ctx, l.diag.data, (size_t)diag, 0), "zero");
  g.w = l.v;
  for (g.chirality = 0; g.chirality < 2; g.chirality++) run_galerkin(b, &g);
  qk_coarse_invert_args_t i = {
      .lat = l.agg.coarse, .diag = l.diag, .inverse = l.inverse, .singular = &singular};
  show(b, s, "invert", 2 * diag, run_invert, &i);
  qk_coarse_times_args_t t = {
      .lat = l.agg.coarse, .left = l.inverse, .in = l.links, .out = l.product};
  show(b, s, "times, to half", diag + links + product, run_times, &t);
  t.left.data = NULL;
  show(b, s, "convert, to half", links + product, run_times, &t);
  qk_coarse_close_args_t c = {
      .lat = l.agg.coarse, .inner = l.inner, .diag = l.diag, .ahead = l.links};
  show(b, s, "close", 3 * diag + links, run_close, &c);
  void *const memory[] = {l.v.data,       l.w.data,     l.diag.data,   l.inner.data,
                          l.inverse.data, l.links.data, l.product.data};
  for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) b->ops->free(b->ctx, memory[k]);
}

static const char usage[] =
    "usage: bench_mg_setup [--backend cpu|cuda|auto] [--dims XxYxZxT] [--block XxYxZxT]\n"
    "                      [--ncomp N] [--nvec N] [--seconds S] [--json]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, blocks of 4x4x4x4, 12 "
    "components,\n"
    "24 vectors. The blocks must cut each extent into an even number of aggregates.\n";

static settings_t parse(int argc, char **argv) {
  settings_t s = {
      .backend = "auto", .block = {4, 4, 4, 4}, .ncomp = 12, .nvec = 24, .seconds = 0.1};
  const bench_option_t options[] = {
      {"backend", BENCH_TEXT, &s.backend}, {"dims", BENCH_DIMS, s.dims},
      {"block", BENCH_DIMS, s.block},      {"ncomp", BENCH_COUNT, &s.ncomp},
      {"nvec", BENCH_COUNT, &s.nvec},      {"seconds", BENCH_REAL, &s.seconds},
      {"json", BENCH_FLAG, &s.json}};
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  return s;
}

static void check(const bench_t *b, const settings_t *s) {
  bool fits = s->nvec >= 2 && s->nvec <= QK_MAX_RHS && s->nvec % 2 == 0;
  for (int mu = 0; mu < 4; mu++)
    fits = fits && s->block[mu] > 0 && b->lat.l[mu] % (2 * s->block[mu]) == 0;
  if (fits && s->ncomp >= 4 && s->ncomp % 4 == 0) return;
  fputs(usage, stderr);
  exit(64);
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_mg_setup", s.backend, s.dims, s.seconds);
  check(&b, &s);
  if (!s.json) bench_show_heading(&b);
  bench_level(&b, &s);
  bench_close(&b);
  return 0;
}
