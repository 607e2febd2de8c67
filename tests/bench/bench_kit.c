#include "tests/bench/bench_kit.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const size_t word_bytes[] = {8, 4, 2};
const char *const bench_prec_name[3] = {"double", "single", "half"};

void bench_must(const bench_t *b, qk_status_t status, const char *what) {
  if (status == QK_OK) return;
  fprintf(stderr, "%s: %s: %s: %s\n", b->program, what, qk_status_text(status),
          b->ctx ? b->ops->last_error(b->ctx) : "");
  exit(1);
}

void *bench_alloc(const bench_t *b, size_t bytes) {
  void *p = NULL;
  bench_must(b, b->ops->alloc(b->ctx, bytes, &p), "alloc");
  bench_must(b, b->ops->zero(b->ctx, p, bytes, 0), "zero");
  return p;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double batch(const bench_t *b, bench_fn run, void *arg, int n) {
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  const double start = now();
  for (int i = 0; i < n; i++) run(b, arg);
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  return (now() - start) / n;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double bench_measure(const bench_t *b, bench_fn run, void *arg) {
  double t[9];
  batch(b, run, arg, 1);
  const double once = batch(b, run, arg, 2);
  int n = (int)(b->seconds / 9 / once);
  if (n < 1) n = 1;
  for (int i = 0; i < 9; i++) t[i] = batch(b, run, arg, n);
  qsort(t, 9, sizeof *t, ascending);
  return t[4];
}

typedef struct copy_job {
  void *to, *from;
  size_t bytes;
} copy_job_t;

static void run_copy(const bench_t *b, void *arg) {
  const copy_job_t *c = arg;
  bench_must(b, b->ops->copy(b->ctx, c->to, c->from, c->bytes, QK_COPY_DEVICE, 0), "copy");
}

static bool on_cpu(const bench_t *b) {
  return strcmp(b->ops->name, "cpu") == 0;
}

static double copy_rate(const bench_t *b) {
  copy_job_t c = {.bytes = (size_t)1 << (on_cpu(b) ? 28 : 31)};
  c.to = bench_alloc(b, c.bytes);
  c.from = bench_alloc(b, c.bytes);
  const double t = bench_measure(b, run_copy, &c);
  b->ops->free(b->ctx, c.to);
  b->ops->free(b->ctx, c.from);
  return 2 * (double)c.bytes / t;
}

void bench_open(bench_t *b, const char *program, const char *backend, const int dims[4],
                double seconds) {
  *b = (bench_t){.program = program, .ops = qk_ops_by_name(backend), .seconds = seconds};
  qk_err_t err = {0};
  if (b->ops == NULL) {
    fprintf(stderr, "%s: --backend %s: cpu, cuda or auto\n", program, backend);
    exit(64);
  }
  if (b->ops->open(0, &b->ctx, &err) != QK_OK) {
    fprintf(stderr, "%s: %s\n", program, err.text);
    exit(69);
  }
  b->volume = 1;
  for (int mu = 0; mu < 4; mu++) {
    const int l = dims[mu] > 0 ? dims[mu] : on_cpu(b) ? 16 : mu == 3 ? 64 : 32;
    b->lat.l[mu] = b->lat.global[mu] = l;
    b->lat.at_lo[mu] = b->lat.at_hi[mu] = 1;
    b->volume *= l;
  }
  b->lat.vcb = (int32_t)(b->volume / 2);
  for (int mu = 0; mu < 4; mu++) b->lat.face[mu] = b->lat.vcb / b->lat.l[mu];
  b->copy_rate = copy_rate(b);
}

static bool take(const bench_option_t *o, const char *text) {
  int *d = o->to;
  switch (o->kind) {
  case BENCH_TEXT:
    *(const char **)o->to = text;
    return true;
  case BENCH_REAL:
    return sscanf(text, "%lf", (double *)o->to) == 1;
  case BENCH_COUNT:
    return sscanf(text, "%d", d) == 1;
  case BENCH_DIMS:
    return sscanf(text, "%dx%dx%dx%d", &d[0], &d[1], &d[2], &d[3]) == 4;
  case BENCH_FLAG:
    *(bool *)o->to = true;
    return true;
  }
  return false;
}

void bench_parse(int argc, char **argv, const char *usage, const bench_option_t options[], int n) {
  enum { HELP = 1000, MOST = 16 };
  struct option table[MOST + 2] = {0};
  for (int i = 0; i < n && i < MOST; i++)
    table[i] = (struct option){options[i].name, options[i].kind != BENCH_FLAG, NULL, i};
  table[n] = (struct option){"help", 0, NULL, HELP};
  int c;
  while ((c = getopt_long(argc, argv, "", table, NULL)) != -1) {
    if (c == HELP) {
      fputs(usage, stdout);
      exit(0);
    }
    if (c < 0 || c >= n || !take(&options[c], optarg)) {
      fputs(usage, stderr);
      exit(64);
    }
  }
}

void bench_show_heading(const bench_t *b) {
  bench_heading(b);
  printf("%-28s %-7s %5s %12s %10s %9s\n", "operation", "field", "nrhs", "us", "GB/s", "of copy");
}

void bench_show(const bench_t *b, bool json, const char *op, qk_prec_t prec, int nrhs, double bytes,
                double seconds) {
  const double rate = bytes / seconds;
  if (json)
    printf("{\"op\":\"%s\",\"precision\":\"%s\",\"nrhs\":%d,\"us\":%.6g,\"gbytes_per_s\":%.6g,\"of_"
           "copy\":%.4g}\n",
           op, bench_prec_name[prec], nrhs, 1e6 * seconds, 1e-9 * rate, rate / b->copy_rate);
  else
    printf("%-28s %-7s %5d %12.2f %10.1f %8.1f%%\n", op, bench_prec_name[prec], nrhs, 1e6 * seconds,
           1e-9 * rate, 100 * rate / b->copy_rate);
  fflush(stdout);
}

void bench_close(bench_t *b) {
  b->ops->close(b->ctx);
}

void bench_heading(const bench_t *b) {
  qk_device_info_t info;
  bench_must(b, b->ops->info(b->ctx, &info), "info");
  printf("%s: %s, %d threads; lattice %dx%dx%dx%d; copy %.1f GB/s\n", b->ops->name, info.name,
         info.threads, b->lat.l[0], b->lat.l[1], b->lat.l[2], b->lat.l[3], 1e-9 * b->copy_rate);
}

qk_spinor_t bench_field(const bench_t *b, qk_prec_t prec, int nrhs, qk_subset_t subset) {
  return bench_field_of(b, prec, nrhs, 12, subset);
}

qk_spinor_t bench_field_of(const bench_t *b, qk_prec_t prec, int nrhs, int ncomp,
                           qk_subset_t subset) {
  qk_spinor_t v = {.prec = prec,
                   .subset = subset,
                   .ncomp = ncomp,
                   .nrhs = nrhs,
                   .ntile = nrhs == 1 ? 0 : (nrhs + QK_TILE - 1) / QK_TILE,
                   .nsites = subset == QK_FULL ? b->volume : b->volume / 2};
  const size_t lanes = (size_t)v.nsites * (size_t)(v.ntile > 0 ? v.ntile * QK_TILE : 1);
  const size_t words = lanes * 2 * (size_t)ncomp * word_bytes[prec];
  char *p = bench_alloc(b, words + (prec == QK_HALF ? lanes * sizeof(float) : 0));
  v.data = p;
  if (prec == QK_HALF) v.scale = (float *)(p + words);
  qk_source_args_t s = {.lat = b->lat,
                        .field = v,
                        .kind = QK_SOURCE_Z4,
                        .site = {0, 0, 0, -1},
                        .spin = -1,
                        .colour = -1};
  for (s.rhs = 0; subset == QK_FULL && s.rhs < nrhs; s.rhs++) {
    s.seed = 17 + (uint64_t)s.rhs;
    bench_must(b, b->ops->source(b->ctx, &s), "source");
  }
  return v;
}

double bench_field_bytes(const qk_spinor_t *v) {
  return (double)v->nsites *
         (2.0 * v->ncomp * (double)word_bytes[v->prec] + (v->prec == QK_HALF ? 4 : 0));
}
