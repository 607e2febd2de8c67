/*
 * bench_coarse: kernels of a multigrid cycle beside a plain copy measured in the same run.
 *
 *   coarse    hops of a coarse operator from even to odd sites
 *   restrict  even sites of a finer field to the coarse lattice; prolong: back;
 *             +prolong: added to the field
 *
 * Times are medians, of a call inside a graph where the backend has graphs. GB/s count the least
 * traffic: matrices and vectors once for the whole block, fields once in and once out.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

enum { CALLS = 20 }; /* in a graph */

static const size_t word_bytes[] = {8, 4, 2};

typedef struct level {
  int dims[4], block[4]; /* block: of the finer level */
  int ncomp;             /* of the finer level */
} level_t;

typedef struct job {
  enum { HOPS, RESTRICT, PROLONG } kind;
  qk_coarse_args_t coarse;
  qk_transfer_args_t transfer;
  qk_graph_t *graph;
} job_t;

static bool json;

static qk_lattice_t lattice(const int dims[4], const int block[4]) {
  qk_lattice_t lat = {.vcb = 1};
  for (int mu = 0; mu < 4; mu++) {
    lat.l[mu] = lat.global[mu] = dims[mu] * block[mu];
    lat.at_lo[mu] = lat.at_hi[mu] = 1;
    lat.vcb *= lat.l[mu];
  }
  lat.vcb /= 2;
  for (int mu = 0; mu < 4; mu++) lat.face[mu] = lat.vcb / lat.l[mu];
  return lat;
}

/* Numbers of modulus 2^-6 to 2^-2, of either sign. */
static void *noise(const bench_t *b, qk_prec_t prec, size_t bytes) {
  enum { CHUNK = 1 << 22 };
  char *device = bench_alloc(b, bytes);
  uint32_t *host = malloc(CHUNK), state = 1;
  if (host == NULL) bench_must(b, QK_NO_MEMORY, "noise");
  for (size_t i = 0; i < CHUNK / 4; i++) {
    state = state * 1664525u + 1013904223u;
    const uint32_t r = state ^ state >> 15;
    host[i] = prec == QK_HALF ? (r & 0x87ff87ffu) + 0x24002400u + (r >> 3 & 0x04000400u)
                              : (r & 0x81ffffffu) + 0x3c800000u;
  }
  for (size_t at = 0; at < bytes; at += CHUNK)
    bench_must(b,
               b->ops->copy(b->ctx, device + at, host, bytes - at < CHUNK ? bytes - at : CHUNK,
                            QK_COPY_TO_DEVICE, 0),
               "copy");
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  free(host);
  return device;
}

static qk_spinor_t field(const bench_t *b, qk_prec_t prec, int ncomp, int nrhs, qk_subset_t subset,
                         int64_t nsites) {
  qk_spinor_t v = {.prec = prec,
                   .subset = subset,
                   .ncomp = ncomp,
                   .nrhs = nrhs,
                   .ntile = nrhs == 1 ? 0 : (nrhs + QK_TILE - 1) / QK_TILE,
                   .nsites = nsites};
  const size_t lanes = (size_t)nsites * (size_t)(v.ntile > 0 ? v.ntile * QK_TILE : 1);
  v.data = noise(b, prec, lanes * 2 * (size_t)ncomp * word_bytes[prec]);
  if (prec == QK_HALF) v.scale = noise(b, QK_SINGLE, lanes * sizeof(float));
  return v;
}

static void release(const bench_t *b, qk_spinor_t *v) {
  b->ops->free(b->ctx, v->data);
  b->ops->free(b->ctx, v->scale);
}

static double bytes_of(const qk_spinor_t *v) {
  const double site = 2.0 * v->ncomp * (double)word_bytes[v->prec] + (v->scale ? 4 : 0);
  return (double)v->nsites * v->nrhs * site;
}

static void once(const bench_t *b, void *arg) {
  const job_t *j = arg;
  if (j->kind == HOPS)
    bench_must(b, b->ops->coarse(b->ctx, &j->coarse), "coarse");
  else if (j->kind == RESTRICT)
    bench_must(b, b->ops->restrict_(b->ctx, &j->transfer), "restrict");
  else
    bench_must(b, b->ops->prolong(b->ctx, &j->transfer), "prolong");
}

static void launch(const bench_t *b, void *arg) {
  const job_t *j = arg;
  bench_must(b, b->ops->graph_launch(b->ctx, j->graph), "graph_launch");
}

static double seconds_of(const bench_t *b, job_t *j) {
  const qk_status_t status = b->ops->graph_begin(b->ctx);
  if (status == QK_UNSUPPORTED) return bench_measure(b, once, j);
  bench_must(b, status, "graph_begin");
  for (int i = 0; i < CALLS; i++) once(b, j);
  bench_must(b, b->ops->graph_end(b->ctx, &j->graph), "graph_end");
  const double t = bench_measure(b, launch, j) / CALLS;
  b->ops->graph_destroy(b->ctx, j->graph);
  return t;
}

static void label(char text[64], const char *what, int n, const int dims[4]) {
  snprintf(text, 64, "%s-%d-%dx%dx%dx%d", what, n, dims[0], dims[1], dims[2], dims[3]);
}

static void run_hops(const bench_t *b, const int dims[4], int n, qk_prec_t prec, int nrhs) {
  static const int one[4] = {1, 1, 1, 1};
  job_t j = {.kind = HOPS, .coarse = {.lat = lattice(dims, one), .out_parity = QK_ODD, .c_hop = 1}};
  qk_coarse_args_t *a = &j.coarse;
  const int vcb = a->lat.vcb;
  a->links = (qk_coarse_links_t){.prec = prec, .n = n, .ndir = 8};
  const size_t bytes = b->ops->coarse_bytes(&a->lat, &a->links);
  a->links.data = noise(b, prec, bytes);
  a->in = field(b, QK_SINGLE, n, nrhs, QK_EVEN, vcb);
  a->out = field(b, QK_SINGLE, n, nrhs, QK_ODD, vcb);
  char text[64];
  label(text, "coarse", n, dims);
  const double least = (double)bytes / 2 + bytes_of(&a->in) + bytes_of(&a->out);
  bench_show(b, json, text, prec, nrhs, least, seconds_of(b, &j));
  release(b, &a->in);
  release(b, &a->out);
  b->ops->free(b->ctx, a->links.data);
}

static void run_transfers(const bench_t *b, const level_t *l, int nvec, qk_prec_t prec, int nrhs) {
  static const int one[4] = {1, 1, 1, 1};
  job_t j = {.transfer = {.parity = QK_EVEN}};
  qk_transfer_args_t *a = &j.transfer;
  a->t = (qk_transfer_t){.prec = prec, .ncomp = l->ncomp, .nvec = nvec};
  a->t.agg.fine = lattice(l->dims, l->block);
  a->t.agg.coarse = lattice(l->dims, one);
  memcpy(a->t.agg.block, l->block, sizeof l->block);
  a->t.data = noise(b, prec, b->ops->transfer_bytes(&a->t));
  const int vcb = a->t.agg.fine.vcb;
  a->fine = field(b, l->ncomp == 12 ? QK_HALF : QK_SINGLE, l->ncomp, nrhs, QK_EVEN, vcb);
  a->coarse = field(b, QK_SINGLE, 2 * nvec, nrhs, QK_FULL, 2 * (int64_t)a->t.agg.coarse.vcb);
  const double vectors = 2.0 * l->ncomp * nvec * (double)word_bytes[prec] * vcb;
  const double fine = bytes_of(&a->fine), least = vectors + fine + bytes_of(&a->coarse);
  char text[64];
  label(text, "restrict", nvec, a->t.agg.fine.l);
  j.kind = RESTRICT;
  bench_show(b, json, text, prec, nrhs, least, seconds_of(b, &j));
  label(text, "prolong", nvec, a->t.agg.fine.l);
  j.kind = PROLONG;
  bench_show(b, json, text, prec, nrhs, least, seconds_of(b, &j));
  label(text, "+prolong", nvec, a->t.agg.fine.l);
  a->add = 1;
  bench_show(b, json, text, prec, nrhs, least + fine, seconds_of(b, &j));
  release(b, &a->fine);
  release(b, &a->coarse);
  b->ops->free(b->ctx, a->t.data);
}

static const char usage[] =
    "usage: bench_coarse [--backend cpu|cuda|auto] [--only coarse|transfer] [--nrhs N]\n"
    "                    [--seconds S] [--json]\n"
    "Default: auto, both, blocks of 1, 8, 16 and 32.\n";

int main(int argc, char **argv) {
  static const int grids[][4] = {{8, 8, 8, 16}, {4, 4, 4, 8}, {2, 2, 2, 4}};
  static const level_t levels[] = {{{8, 8, 8, 16}, {4, 4, 4, 4}, 12},
                                   {{4, 4, 4, 8}, {2, 2, 2, 2}, 48},
                                   {{4, 4, 4, 8}, {2, 2, 2, 2}, 64}};
  const char *backend = "auto", *only = "";
  double seconds = 0.2;
  int want = 0;
  const bench_option_t options[] = {{"backend", BENCH_TEXT, &backend},
                                    {"only", BENCH_TEXT, &only},
                                    {"nrhs", BENCH_COUNT, &want},
                                    {"seconds", BENCH_REAL, &seconds},
                                    {"json", BENCH_FLAG, &json}};
  bench_parse(argc, argv, usage, options, 5);
  bench_t b;
  bench_open(&b, "bench_coarse", backend, grids[0], seconds);
  if (!json) bench_show_heading(&b);
  for (int k = 0; k < 4; k++) {
    const int nrhs = (const int[]){1, 8, 16, 32}[k];
    if (want != 0 && want != nrhs) continue;
    for (int g = 0; g < 3 && strcmp(only, "transfer") != 0; g++) {
      run_hops(&b, grids[g], 48, QK_HALF, nrhs);
      run_hops(&b, grids[g], 64, QK_HALF, nrhs);
      if (g == 0) run_hops(&b, grids[g], 48, QK_SINGLE, nrhs);
    }
    for (int l = 0; l < 3 && strcmp(only, "coarse") != 0; l++) {
      run_transfers(&b, &levels[l], levels[l].ncomp == 12 ? 24 : levels[l].ncomp / 2, QK_HALF,
                    nrhs);
      if (l == 0) run_transfers(&b, &levels[l], 32, QK_HALF, nrhs);
    }
  }
  bench_close(&b);
  return 0;
}
