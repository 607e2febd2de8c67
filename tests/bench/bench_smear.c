/*
 * bench_smear: one step of Gaussian smearing of a block, one of each kind of link smearing, and the
 * stages of fat links, beside a plain copy measured in the same run. GB/s count each field, and
 * each link, once for reading and once for writing. Links are random (hot): what smearing has most
 * work with.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/bench/bench_kit.h"

typedef struct settings {
  const char *backend, *precs, *nrhs;
  int dims[4];
  double seconds;
  bool json;
} settings_t;

static void run_gauss(const bench_t *b, void *arg) {
  bench_must(b, b->ops->gauss(b->ctx, arg), "gauss");
}
static void run_links(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_smear(b->ctx, arg), "link_smear");
}

static void run_paths(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_paths(b->ctx, arg), "link_paths");
}
static void run_long(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_long(b->ctx, arg), "link_long");
}
static void run_project(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_project(b->ctx, arg), "link_project");
}

/* ---- Gaussian smearing ---- */

static qk_links_t make_links(const bench_t *b, const qk_linkfield_t *u, qk_prec_t prec) {
  qk_links_t all = {.prec = QK_DOUBLE, .reals = 18};
  all.data = bench_alloc(b, b->ops->links_bytes(&b->lat, QK_DOUBLE, 18));
  const qk_links_from_field_args_t set = {.lat = b->lat, .u = *u, .out = all};
  bench_must(b, b->ops->links_from_field(b->ctx, &set), "links_from_field");
  if (prec == QK_DOUBLE) return all;
  qk_links_t links = {.prec = prec, .reals = 12};
  links.data = bench_alloc(b, b->ops->links_bytes(&b->lat, prec, 12));
  const qk_links_convert_args_t convert = {.lat = b->lat, .in = all, .out = links};
  bench_must(b, b->ops->links_convert(b->ctx, &convert), "links_convert");
  bench_must(b, b->ops->queue_sync(b->ctx, 0), "queue_sync");
  b->ops->free(b->ctx, (void *)all.data);
  return links;
}

static void bench_gauss(const bench_t *b, const settings_t *s, const qk_linkfield_t *u) {
  for (int prec = QK_DOUBLE; prec <= QK_HALF; prec++) {
    char list[64], *save = NULL;
    if (strstr(s->precs, bench_prec_name[prec]) == NULL) continue;
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
      bench_show(b, s->json, "gauss step", (qk_prec_t)prec, nrhs, bytes,
                 bench_measure(b, run_gauss, &a));
      b->ops->free(b->ctx, a.out.data);
      b->ops->free(b->ctx, a.in.data);
    }
    b->ops->free(b->ctx, (void *)links.data);
  }
}

/* ---- links ---- */

static qk_linkfield_t random_links(const bench_t *b) {
  qk_linkfield_t u = {.halo = 1};
  memcpy(u.e, b->lat.l, sizeof u.e);
  u.data = bench_alloc(b, (size_t)b->volume * 72 * sizeof(double));
  const qk_link_start_args_t a = {.lat = b->lat, .u = u, .directions = 4, .hot = 1, .seed = 5};
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
    bench_show(b, s->json, kind[i].name, QK_DOUBLE, kind[i].extent, bytes,
               bench_measure(b, run_links, &a));
  }
  b->ops->free(b->ctx, out.data);
}

/* For one direction A and B are made three times, F once (daemon/engine/gauge/fat/fat_links.h). */
static void bench_fat(const bench_t *b, const settings_t *s, const qk_linkfield_t *u) {
  static const char *const name[] = {"fat A", "fat B", "fat F, fat7", "fat F"};
  static const unsigned along[] = {2, 6, 14, 14};
  qk_linkfield_t out = random_links(b);
  const double one = 2.0 * (double)b->volume * 18 * sizeof(double);
  int64_t singular;
  for (int i = 0; i < 4; i++) {
    qk_link_paths_args_t a = {
        .lat = b->lat, .u = *u, .own = 0.3, .weight = 1, .straight = i == 3, .out = out};
    for (int nu = 1; nu < 4; nu++)
      if (along[i] >> nu & 1) a.top[nu] = *u;
    bench_show(b, s->json, name[i], QK_DOUBLE, 1, one, bench_measure(b, run_paths, &a));
  }
  qk_link_long_args_t l = {.lat = b->lat, .u = *u, .out = out, .factor = 1};
  bench_show(b, s->json, "long links", QK_DOUBLE, 4, 4 * one, bench_measure(b, run_long, &l));
  qk_link_project_args_t p = {.lat = b->lat, .u = *u, .out = out, .singular = &singular};
  bench_show(b, s->json, "to U(3)", QK_DOUBLE, 4, 4 * one, bench_measure(b, run_project, &p));
  b->ops->free(b->ctx, out.data);
}

static const char usage[] =
    "usage: bench_smear [--backend cpu|cuda|auto] [--dims XxYxZxT] [--precision "
    "double,single,half]\n"
    "                   [--nrhs 1,12] [--seconds S] [--json]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, all precisions, nrhs 1,12.\n"
    "For links the column nrhs has the directions smeared.\n";

static settings_t parse(int argc, char **argv) {
  settings_t s = {.backend = "auto", .precs = "double,single,half", .nrhs = "1,12", .seconds = 0.1};
  const bench_option_t options[] = {
      {"backend", BENCH_TEXT, &s.backend}, {"dims", BENCH_DIMS, s.dims},
      {"seconds", BENCH_REAL, &s.seconds}, {"precision", BENCH_TEXT, &s.precs},
      {"nrhs", BENCH_TEXT, &s.nrhs},       {"json", BENCH_FLAG, &s.json}};
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  return s;
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_smear", s.backend, s.dims, s.seconds);
  if (!s.json) bench_show_heading(&b);
  qk_linkfield_t u = random_links(&b);
  bench_gauss(&b, &s, &u);
  bench_links(&b, &s, &u);
  bench_fat(&b, &s, &u);
  b.ops->free(b.ctx, u.data);
  bench_close(&b);
  return 0;
}
