/*
 * bench_smear: one step of Gaussian smearing of a block, and one of each kind of link smearing, beside a
 * plain copy measured in the same run. GB/s count each field, and each link, once for reading and once
 * for writing. Links are random (hot): what smearing has most work with.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

static const char *const prec_names[] = {"double", "single", "half"};

typedef struct settings {
  const char *backend, *precs;
  char nrhs[64];
  int dims[4];
  double seconds;
  bool json;
} settings_t;

static void show(const bench_t *b, const settings_t *s, const char *op, const char *prec, int nrhs,
                 double bytes, double seconds) {
  const double rate = bytes / seconds;
  if (s->json)
    printf("{\"op\":\"%s\",\"precision\":\"%s\",\"nrhs\":%d,\"us\":%.6g,\"gbytes_per_s\":%.6g,\"of_"
           "copy\":%.4g}\n",
           op, prec, nrhs, 1e6 * seconds, 1e-9 * rate, rate / b->copy_rate);
  else
    printf("%-14s %-7s %5d %12.2f %10.1f %8.1f%%\n", op, prec, nrhs, 1e6 * seconds, 1e-9 * rate,
           100 * rate / b->copy_rate);
  fflush(stdout);
}

static void run_gauss(const bench_t *b, void *arg) {
  bench_must(b, b->ops->gauss(b->ctx, arg), "gauss");
}
static void run_links(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_smear(b->ctx, arg), "link_smear");
}

/* ---- Gaussian smearing ---- */

static qk_links_t make_links(const bench_t *b, const qk_linkfield_t *u, qk_prec_t prec) {
  qk_links_t all = {.prec = QK_DOUBLE, .reals = 18};
  all.data = bench_alloc(b, b->ops->links_bytes(&b->lat, QK_DOUBLE, 18));
  bench_must(b, b->ops->links_from_field(b->ctx, &b->lat, u, &all), "links_from_field");
  if (prec == QK_DOUBLE) return all;
  qk_links_t links = {.prec = prec, .reals = 12};
  links.data = bench_alloc(b, b->ops->links_bytes(&b->lat, prec, 12));
  bench_must(b, b->ops->links_convert(b->ctx, &b->lat, &all, &links), "links_convert");
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  b->ops->free(b->ctx, (void *)all.data);
  return links;
}

static void bench_gauss(const bench_t *b, const settings_t *s, const qk_linkfield_t *u) {
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    char list[64], *save = NULL;
    if (strstr(s->precs, prec_names[prec]) == NULL) continue;
    qk_links_t links = make_links(b, u, (qk_prec_t)prec);
    const double link_bytes = 0.75 * (double)b->ops->links_bytes(&b->lat, links.prec, links.reals);
    snprintf(list, sizeof list, "%s", s->nrhs);
    for (char *word = strtok_r(list, ",", &save); word != NULL; word = strtok_r(NULL, ",", &save)) {
      const int nrhs = atoi(word);
      if (nrhs < 1 || nrhs > QK_MAX_RHS) {
        fprintf(stderr, "bench_smear: --nrhs %s: 1 to %d\n", word, QK_MAX_RHS);
        exit(64);
      }
      qk_gauss_args_t a = {.lat = b->lat, .c_own = 0.4, .c_hop = 0.1, .links = links};
      a.in = bench_field(b, (qk_prec_t)prec, nrhs, QK_FULL);
      a.out = bench_field(b, (qk_prec_t)prec, nrhs, QK_FULL);
      const double bytes = 2 * bench_field_bytes(&a.in) * nrhs + link_bytes;
      show(b, s, "gauss step", prec_names[prec], nrhs, bytes, bench_measure(b, run_gauss, &a));
      b->ops->free(b->ctx, a.out.data);
      b->ops->free(b->ctx, a.in.data);
    }
    b->ops->free(b->ctx, (void *)links.data);
  }
}

/* ---- links ---- */

static qk_linkfield_t random_links(const bench_t *b) {
  qk_linkfield_t u = {.border = 1};
  memcpy(u.e, b->lat.l, sizeof u.e);
  u.data = bench_alloc(b, (size_t)b->volume * 72 * sizeof(double));
  const qk_link_start_args_t a = {.lat = b->lat, .u = u, .hot = 1, .seed = 5};
  bench_must(b, b->ops->link_start(b->ctx, &a), "link_start");
  return u;
}

static void bench_links(const bench_t *b, const settings_t *s, const qk_linkfield_t *u) {
  qk_linkfield_t out = random_links(b);
  const struct {
    const char *name;
    int extent, stout;
    double own, weight;
  } kind[] = {{"ape space", 3, 0, 0.4, 0.15},
              {"ape 4d", 4, 0, 0.3, 0.7 / 6},
              {"stout space", 3, 1, 0, 0.1},
              {"stout 4d", 4, 1, 0, 0.1}};
  for (int i = 0; i < 4; i++) {
    qk_link_smear_args_t a = {.lat = b->lat,
                              .u = *u,
                              .out = out,
                              .mask = (1u << kind[i].extent) - 1,
                              .stout = kind[i].stout,
                              .own = kind[i].own,
                              .weight = kind[i].weight};
    for (int mu = 0; mu < kind[i].extent; mu++)
      for (int nu = 0; nu < kind[i].extent; nu++)
        if (mu != nu) a.side[mu][nu] = a.top[mu][nu] = u->data;
    const double bytes = 2.0 * (double)b->volume * kind[i].extent * 18 * sizeof(double);
    show(b, s, kind[i].name, "double", kind[i].extent, bytes, bench_measure(b, run_links, &a));
  }
  b->ops->free(b->ctx, out.data);
}

static const char usage[] =
    "usage: bench_smear [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision "
    "double,single,half]\n"
    "                   [--nrhs 1,12] [--seconds S] [--json]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, all precisions, nrhs 1,12.\n"
    "For links the column nrhs has the directions smeared.\n";

static settings_t parse(int argc, char **argv) {
  static const struct option options[] = {
      {"backend", 1, 0, 'b'}, {"dims", 1, 0, 'd'}, {"precision", 1, 0, 'p'}, {"nrhs", 1, 0, 'n'},
      {"seconds", 1, 0, 's'}, {"json", 0, 0, 'j'}, {"help", 0, 0, 'h'},      {0, 0, 0, 0}};
  settings_t s = {.backend = "auto", .precs = "double,single,half", .nrhs = "1,12", .seconds = 0.1};
  int c;
  while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
    bool good = true;
    int *d = s.dims;
    switch (c) {
    case 'b':
      s.backend = optarg;
      break;
    case 'd':
      good = sscanf(optarg, "%dx%dx%dx%d", &d[0], &d[1], &d[2], &d[3]) == 4;
      break;
    case 'p':
      s.precs = optarg;
      break;
    case 'n':
      snprintf(s.nrhs, sizeof s.nrhs, "%s", optarg);
      break;
    case 's':
      s.seconds = atof(optarg);
      break;
    case 'j':
      s.json = true;
      break;
    case 'h':
      fputs(usage, stdout);
      exit(0);
    default:
      good = false;
    }
    if (!good) {
      fputs(usage, stderr);
      exit(64);
    }
  }
  return s;
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_smear", s.backend, s.dims, s.seconds);
  if (!s.json) {
    bench_heading(&b);
    printf("%-14s %-7s %5s %12s %10s %9s\n", "operation", "field", "nrhs", "us", "GB/s", "of copy");
  }
  qk_linkfield_t u = random_links(&b);
  bench_gauss(&b, &s, &u);
  bench_links(&b, &s, &u);
  b.ops->free(b.ctx, u.data);
  bench_close(&b);
  return 0;
}
