/*
 * bench_project: time of projections onto vectors of time slices, beside a plain copy measured in
 * the same run. GB/s count vectors and right-hand sides once each, as the kernel reads them for up
 * to 64 vectors; GFLOPS 8 for a complex multiply-add.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

typedef struct settings {
  const char *backend, *precs;
  int dims[4], vectors;
  double seconds;
} settings_t;

static void run_project(const bench_t *b, void *arg) {
  bench_must(b, b->ops->project(b->ctx, arg), "project");
}

static void show(const bench_t *b, qk_project_args_t *a, int nrhs) {
  a->nrhs = nrhs;
  const double t = bench_measure(b, run_project, a), v = (double)b->volume;
  const int vectors = a->nblock * QK_PROJECT_COLUMNS;
  const double field = bench_field_bytes(&a->x[0].field);
  const double bytes = v * vectors * 24 + nrhs * field, flop = 96.0 * v * vectors * nrhs;
  printf("%-7s %8d %5d %12.3f %10.1f %8.1f%% %10.1f\n", bench_prec_name[a->x[0].field.prec],
         vectors, nrhs, 1e3 * t, 1e-9 * bytes / t, 100 * bytes / t / b->copy_rate, 1e-9 * flop / t);
  fflush(stdout);
}

static void bench_prec(const bench_t *b, const settings_t *s, qk_prec_t prec) {
  static const int counts[] = {1, 4, QK_PROJECT_RHS};
  qk_project_args_t a = {.lat = b->lat, .nt = b->lat.l[3]};
  a.nblock = (s->vectors + QK_PROJECT_COLUMNS - 1) / QK_PROJECT_COLUMNS;
  if (a.nblock < 1 || a.nblock > QK_PROJECT_BLOCKS) {
    fprintf(stderr, "bench_project: --vectors %d: 1 to %d\n", s->vectors,
            QK_PROJECT_BLOCKS * QK_PROJECT_COLUMNS);
    exit(64);
  }
  float *vectors[QK_PROJECT_BLOCKS];
  const size_t bytes = (size_t)b->volume * QK_PROJECT_COLUMNS * 6 * sizeof(float);
  for (int k = 0; k < a.nblock; k++) {
    a.vectors[k] = vectors[k] = bench_alloc(b, bytes);
    bench_must(b, b->ops->zero(b->ctx, vectors[k], bytes, 0), "zero");
  }
  a.work = bench_alloc(b, qk_project_bytes(&a.lat, a.nt, a.nblock));
  a.out = bench_alloc(b, (size_t)(QK_PROJECT_RHS * a.nt * 4 * a.nblock) * QK_PROJECT_COLUMNS * 2 *
                             sizeof(double));
  for (int i = 0; i < QK_PROJECT_RHS; i++) a.x[i].field = bench_field(b, prec, 1, QK_FULL);
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) show(b, &a, counts[i]);
  for (int i = 0; i < QK_PROJECT_RHS; i++) b->ops->free(b->ctx, a.x[i].field.data);
  for (int k = 0; k < a.nblock; k++) b->ops->free(b->ctx, vectors[k]);
  b->ops->free(b->ctx, a.work);
  b->ops->free(b->ctx, a.out);
}

static const char usage[] =
    "usage: bench_project [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision double,single]\n"
    "                     [--vectors N] [--seconds S]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, both precisions, 64\n"
    "vectors.\n";

static settings_t settings = {
    .backend = "auto", .precs = "double,single", .vectors = 64, .seconds = 0.1};
static const bench_option_t options[] = {{"backend", BENCH_TEXT, &settings.backend},
                                         {"dims", BENCH_DIMS, settings.dims},
                                         {"seconds", BENCH_REAL, &settings.seconds},
                                         {"precision", BENCH_TEXT, &settings.precs},
                                         {"vectors", BENCH_COUNT, &settings.vectors}};

int main(int argc, char **argv) {
  const settings_t *s = &settings;
  bench_t b;
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  bench_open(&b, "bench_project", s->backend, s->dims, s->seconds);
  bench_heading(&b);
  printf("%-7s %8s %5s %12s %10s %9s %10s\n", "field", "vectors", "nrhs", "ms", "GB/s", "of copy",
         "GFLOPS");
  for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++)
    if (strstr(s->precs, bench_prec_name[prec]) != NULL) bench_prec(&b, s, (qk_prec_t)prec);
  bench_close(&b);
  return 0;
}
