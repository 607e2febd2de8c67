/*
 * bench_evolve: speed of the Markov chain: link updates a second of heatbath and overrelaxation,
 * and the time of a sweep; and of gauge fixing: an iteration, a look at theta. Least bytes: what
 * one launch (a direction, a colour; a parity) reads and writes when every link it touches moves
 * once; between launches nothing is kept. GB/s are of these.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/bench/bench_kit.h"

typedef struct settings {
  const char *backend;
  int dims[4], or_per_hb;
  double beta, c1, seconds;
  bool json;
} settings_t;

/* A pass: all links once, by heatbath or overrelaxation. */
typedef struct pass {
  qk_link_update_args_t a;
  int colours;
} pass_t;

static void run_pass(const bench_t *b, void *arg) {
  pass_t *p = arg;
  for (p->a.mu = 0; p->a.mu < 4; p->a.mu++)
    for (p->a.colour = 0; p->a.colour < p->colours; p->a.colour++)
      bench_must(b, b->ops->link_update(b->ctx, &p->a), "link_update");
  p->a.sweep++;
}

static void run_sums(const bench_t *b, void *arg) {
  bench_must(b, b->ops->link_sums(b->ctx, arg), "link_sums");
}

/* Links that a pass reads and writes, per site: a launch reads all and
 * writes one colour of U_mu. */
static double links_moved(const pass_t *p) {
  return 4 * p->colours * (4 + 1.0 / p->colours);
}

static void run_relax(const bench_t *b, void *arg) {
  qk_fix_relax_args_t *a = arg;
  for (a->parity = 0; a->parity < 2; a->parity++)
    bench_must(b, b->ops->fix_relax(b->ctx, a), "fix_relax");
}

static void run_theta(const bench_t *b, void *arg) {
  bench_must(b, b->ops->fix_sums(b->ctx, arg), "fix_sums");
}

static void show(const bench_t *b, const settings_t *s, const char *what, double seconds,
                 double updates, double bytes) {
  const double rate = bytes / seconds;
  if (s->json)
    printf("{\"op\":\"%s\",\"c1\":%g,\"ms\":%.6g,\"updates_per_s\":%.6g,\"gbytes_per_s\":%.6g,"
           "\"of_copy\":%.4g}\n",
           what, s->c1, 1e3 * seconds, updates / seconds, 1e-9 * rate, rate / b->copy_rate);
  else
    printf("%-16s %10.3f %14.4g %10.2f %10.1f %8.1f%%\n", what, 1e3 * seconds, updates / seconds,
           1e-9 * bytes, 1e-9 * rate, 100 * rate / b->copy_rate);
  fflush(stdout);
}

/* Landau gauge. A launch reads all links and g, and writes one parity of g. */
static void bench_fix(const bench_t *b, const settings_t *s, qk_linkfield_t u) {
  const double volume = (double)b->volume, link = 144;
  qk_linkfield_t g = u;
  g.data = bench_alloc(b, (size_t)b->volume * 144);
  double *sum = malloc((size_t)b->lat.l[3] * 2 * sizeof *sum);
  const qk_link_start_args_t start = {.lat = b->lat, .u = g, .directions = 1, .hot = 1};
  bench_must(b, b->ops->link_start(b->ctx, &start), "link_start");
  qk_fix_relax_args_t relax = {.lat = b->lat, .u = u, .g = g.data, .directions = 4, .omega = 1.95};
  qk_fix_sums_args_t theta = {.lat = b->lat, .u = u, .g = g.data, .directions = 4, .sum = sum};
  show(b, s, "gauge fixing", bench_measure(b, run_relax, &relax), volume,
       2 * (4 + 1 + 0.5) * volume * link);
  show(b, s, "theta", bench_measure(b, run_theta, &theta), 0, (4 + 1) * volume * link);
  free(sum);
  b->ops->free(b->ctx, g.data);
}

static void bench_all(const bench_t *b, const settings_t *s) {
  const double volume = (double)b->volume, link = 144;
  qk_linkfield_t u = {.halo = 2};
  for (int mu = 0; mu < 4; mu++) u.e[mu] = b->lat.l[mu];
  u.data = bench_alloc(b, (size_t)b->volume * 4 * 144);
  const qk_link_start_args_t start = {.lat = b->lat, .u = u, .directions = 4, .hot = 0};
  bench_must(b, b->ops->link_start(b->ctx, &start), "link_start");
  pass_t hb = {.a = {.lat = b->lat, .u = u, .heatbath = 1, .beta = s->beta, .c1 = s->c1, .seed = 1},
               .colours = s->c1 == 0 ? 2 : 4};
  for (int i = 0; i < 5; i++) run_pass(b, &hb); /* so that trials fail as often as they do later */
  pass_t over = hb;
  over.a.heatbath = 0;
  const double bytes = links_moved(&hb) * volume * link;
  const double t_hb = bench_measure(b, run_pass, &hb), t_or = bench_measure(b, run_pass, &over);
  show(b, s, "heatbath", t_hb, 4 * volume, bytes);
  show(b, s, "overrelaxation", t_or, 4 * volume, bytes);
  char name[32];
  snprintf(name, sizeof name, "sweep 1 + %d", s->or_per_hb);
  const double passes = 1 + s->or_per_hb;
  show(b, s, name, t_hb + s->or_per_hb * t_or, 4 * volume * passes, bytes * passes);
  double sum[QK_LINK_SUMS];
  qk_link_sums_args_t sums = {.lat = b->lat, .u = u, .rectangles = s->c1 != 0, .sum = sum};
  show(b, s, "plaquette", bench_measure(b, run_sums, &sums), 0, 4 * volume * link);
  bench_fix(b, s, u);
  b->ops->free(b->ctx, u.data);
}

static const char usage[] =
    "usage: bench_evolve [--backend cpu|cuda|auto] [--dims XxYxZxT] [--beta B] [--c1 C]\n"
    "                    [--or-per-hb N] [--seconds S] [--json]\n"
    "Default: auto, 16x16x16x16 on the CPU and 32x32x32x64 on a GPU, beta 6, c1 0, 4 "
    "overrelaxations\n"
    "to a heatbath in the line of a whole sweep.\n";

static settings_t parse(int argc, char **argv) {
  settings_t s = {.backend = "auto", .beta = 6, .or_per_hb = 4, .seconds = 1};
  const bench_option_t options[] = {
      {"backend", BENCH_TEXT, &s.backend}, {"dims", BENCH_DIMS, s.dims},
      {"seconds", BENCH_REAL, &s.seconds}, {"beta", BENCH_REAL, &s.beta},
      {"c1", BENCH_REAL, &s.c1},           {"or-per-hb", BENCH_COUNT, &s.or_per_hb},
      {"json", BENCH_FLAG, &s.json}};
  bench_parse(argc, argv, usage, options, sizeof options / sizeof *options);
  return s;
}

int main(int argc, char **argv) {
  const settings_t s = parse(argc, argv);
  bench_t b;
  bench_open(&b, "bench_evolve", s.backend, s.dims, s.seconds);
  if (!s.json) {
    bench_heading(&b);
    printf("%-16s %10s %14s %10s %10s %9s\n", "pass", "ms", "updates/s", "least GB", "GB/s",
           "of copy");
  }
  bench_all(&b, &s);
  bench_close(&b);
  return 0;
}
