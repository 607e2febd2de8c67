/*
 * bench_contract: time of contractions beside a plain copy measured in the same run. GB/s count
 * each propagator once; GFLOPS the object at a site once, and its product with the phase of each
 * momentum, at 8 for a complex multiply-add.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

typedef struct hadron_case {
  const char *name;
  qk_hadron_t hadron;
  int props;   /* read */
  int object;  /* complex multiply-adds of the object at a site */
  int numbers; /* of it, each times a phase */
} case_t;

static const case_t cases[] = {
    {"mesons", QK_HADRON_MESON, 2, 16 * 16 * 9, 256},
    {"of one", QK_HADRON_MESON, 1, 16 * 16 * 9, 256},
    {"nucleon", QK_HADRON_NUCLEON, 2, 16 * (9 * 16 + 9 + 36), 16},
    {"delta", QK_HADRON_DELTA, 1, 3 * 16 * (9 * 16 + 3 * (9 + 36)), 144}};

typedef struct settings {
  const char *backend, *precs, *momenta;
  int dims[4];
  double seconds;
} settings_t;

static void run_contract(const bench_t *b, void *arg) {
  bench_must(b, b->ops->contract(b->ctx, arg), "contract");
}

static void show(const bench_t *b, const qk_contract_args_t *both, const case_t *h) {
  qk_contract_args_t c = *both;
  c.hadron = h->hadron;
  if (h->props == 1) c.b = c.a;
  const double t = bench_measure(b, run_contract, &c), v = (double)b->volume;
  const double bytes = v * h->props * 288 * (c.a.prec == QK_DOUBLE ? 8 : 4);
  const double flop = 8 * v * (h->object + c.nmom * h->numbers);
  printf("%-8s %-7s %8d %12.3f %10.1f %8.1f%% %10.1f\n", h->name, bench_prec_name[c.a.prec], c.nmom,
         1e3 * t, 1e-9 * bytes / t, 100 * bytes / t / b->copy_rate, 1e-9 * flop / t);
  fflush(stdout);
}

/* The factors of `nmom` momenta, on the device. */
static double *make_phases(const bench_t *b, int nmom) {
  const int factors = b->lat.l[0] + b->lat.l[1] + b->lat.l[2];
  const size_t bytes = (size_t)nmom * (size_t)factors * 2 * sizeof(double);
  double *host = malloc(bytes), *device = bench_alloc(b, bytes);
  for (int i = 0; i < nmom * factors; i++) {
    host[2 * i] = cos(0.1 * i);
    host[2 * i + 1] = sin(0.1 * i);
  }
  bench_must(b, b->ops->copy(b->ctx, device, host, bytes, QK_COPY_TO_DEVICE, 0), "copy");
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  free(host);
  return device;
}

static void bench_momenta(const bench_t *b, qk_contract_args_t *c) {
  c->phase = make_phases(b, c->nmom);
  c->out = bench_alloc(b, (size_t)c->nmom * (size_t)b->lat.l[3] * 256 * 2 * sizeof(double));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) show(b, c, &cases[i]);
  b->ops->free(b->ctx, (void *)c->phase);
  b->ops->free(b->ctx, c->out);
}

static void bench_all(const bench_t *b, const settings_t *s) {
  char list[64], *save = NULL;
  for (int prec = QK_DOUBLE; prec <= QK_SINGLE; prec++) {
    if (strstr(s->precs, bench_prec_name[prec]) == NULL) continue;
    qk_contract_args_t c = {.lat = b->lat};
    c.a = bench_field(b, (qk_prec_t)prec, 12, QK_FULL);
    c.b = bench_field(b, (qk_prec_t)prec, 12, QK_FULL);
    snprintf(list, sizeof list, "%s", s->momenta);
    for (char *word = strtok_r(list, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
      c.nmom = atoi(word);
      if (c.nmom < 1) {
        fprintf(stderr, "bench_contract: --momenta %s: numbers from 1\n", word);
        exit(64);
      }
      bench_momenta(b, &c);
    }
    b->ops->free(b->ctx, c.a.data);
    b->ops->free(b->ctx, c.b.data);
  }
}

static const char usage[] =
    "usage: bench_contract [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision double,single]\n"
    "                      [--momenta 1,4] [--seconds S]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, both precisions.\n";

static settings_t parse(int argc, char **argv) {
  settings_t s = {.backend = "auto", .precs = "double,single", .momenta = "1,4", .seconds = 0.1};
  const bench_option_t options[] = {{"backend", BENCH_TEXT, &s.backend},
                                    {"dims", BENCH_DIMS, s.dims},
                                    {"seconds", BENCH_REAL, &s.seconds},
                                    {"precision", BENCH_TEXT, &s.precs},
                                    {"momenta", BENCH_TEXT, &s.momenta}};
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  return s;
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_contract", s.backend, s.dims, s.seconds);
  bench_heading(&b);
  printf("%-8s %-7s %8s %12s %10s %9s %10s\n", "hadron", "field", "momenta", "ms", "GB/s",
         "of copy", "GFLOPS");
  bench_all(&b, &s);
  bench_close(&b);
  return 0;
}
