#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/engine/gauge/evolve.h"
#include "tests/support/loops.h"
#include "tests/support/rig.h"

/* Plaquettes alone on awkward extents; rectangles need multiples of 4. */
static const struct action {
  const char *lattice;
  double c1;
} actions[] = {
    {"random:4x6x2x8:3", 0}, {"random:4x8x4x12:5", -0.331}, {"random:8x4x8x4:7", -1.0 / 12}};
enum { ACTIONS = sizeof actions / sizeof *actions };

typedef struct chain {
  qk_rig_t rig;
  qk_gaugefield_t *f;
  loops_t host; /* links as they were imported */
} chain_t;

static void chain_open(chain_t *c, const char *lattice, double c1) {
  const qk_evolve_params_t p = {.beta = 6, .c1 = c1};
  rig_open(&c->rig, NULL, lattice, NULL);
  rig_must(qk_evolve_check(&p, c->rig.geom.global, NULL), "check", NULL);
  rig_must(qk_gaugefield_create(&c->rig.dev, qk_evolve_halo(&p), &c->f), "create", NULL);
  rig_must(qk_gaugefield_import(c->f, c->rig.links), "import", NULL);
  memcpy(c->host.dims, c->rig.geom.global, sizeof c->host.dims);
  c->host.u = (const double complex *)c->rig.links;
}

static void chain_close(chain_t *c) {
  qk_gaugefield_destroy(c->f);
  rig_close(&c->rig);
}

static void update(const chain_t *c, int mu, int colour, bool heatbath, double beta, double c1,
                   int64_t sweep) {
  const qk_device_t *dev = &c->rig.dev;
  const qk_link_update_args_t a = {.lat = c->rig.geom.lat,
                                   .u = c->f->v,
                                   .mu = mu,
                                   .colour = colour,
                                   .heatbath = heatbath,
                                   .beta = beta,
                                   .c1 = c1,
                                   .seed = 11,
                                   .sweep = sweep};
  rig_must(dev->ops->link_update(dev->ctx, &a), "link_update", NULL);
}

static double complex *exported(const chain_t *c) {
  double *links = qk_malloc((size_t)c->rig.geom.local_volume * 72 * sizeof(double));
  rig_must(qk_gaugefield_export(c->f, links), "export", NULL);
  return (double complex *)links;
}

static void coordinates(const chain_t *c, int64_t site, int x[4]) {
  for (int mu = 0; mu < 4; mu++) {
    x[mu] = (int)(site % c->host.dims[mu]);
    site /= c->host.dims[mu];
  }
}

static int colour_of(const int x[4], int mu, double c1) {
  const int sum = x[0] + x[1] + x[2] + x[3];
  return c1 == 0 ? sum % 2 : (sum + x[mu]) % 4;
}

/* Of each of three SU(2) subgroups in turn: the link from the left by g with (g w) = w^+ for w, the
 * real quaternion in the block of link times staple. */
static void reflect(const double complex staple[9], double complex u[9]) {
  static const int pair[3][2] = {{0, 1}, {0, 2}, {1, 2}};
  for (int s = 0; s < 3; s++) {
    const int a = pair[s][0], b = pair[s][1];
    double complex w[9], g[9] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    loops_multiply(u, staple, w);
    /* the quaternion is ((p, q), (-q*, p*)); the inverse of its direction, squared, is g */
    const double complex p = (w[4 * a] + conj(w[4 * b])) / 2;
    const double complex q = (w[3 * a + b] - conj(w[3 * b + a])) / 2;
    const double n = creal(p * conj(p) + q * conj(q));
    const double complex ip = conj(p), iq = -q;
    g[4 * a] = (ip * ip - iq * conj(iq)) / n;
    g[3 * a + b] = (ip * iq + iq * conj(ip)) / n;
    g[3 * b + a] = -conj(g[3 * a + b]);
    g[4 * b] = conj(g[4 * a]);
    loops_multiply(g, u, u);
  }
}

/* So staples are what the action says, links of a colour do not see each other,
 * and no others change. */
static void check_reflections(const struct action *action, int mu, int colour) {
  chain_t c;
  chain_open(&c, action->lattice, action->c1);
  update(&c, mu, colour, false, 6, action->c1, 0);
  double complex *got = exported(&c);
  int64_t changed = 0;
  double worst = 0;
  for (int64_t site = 0; site < c.rig.geom.volume; site++) {
    int x[4];
    coordinates(&c, site, x);
    for (int nu = 0; nu < 4; nu++) {
      const double complex *to = got + (site * 4 + nu) * 9;
      double complex want[9], staple[9];
      memcpy(want, loops_link(&c.host, x, nu), sizeof want);
      if (nu != mu || colour_of(x, mu, action->c1) != colour) {
        cr_assert_arr_eq(to, want, sizeof want, "site %ld, direction %d", (long)site, nu);
        continue;
      }
      loops_staple(&c.host, x, mu, action->c1, staple);
      reflect(staple, want);
      for (int k = 0; k < 9; k++) worst = fmax(worst, cabs(to[k] - want[k]));
      changed++;
    }
  }
  cr_expect_eq(changed, c.rig.geom.volume / (action->c1 == 0 ? 2 : 4));
  cr_expect_lt(worst, 1e-13, "%s, direction %d, colour %d: off by %g", action->lattice, mu, colour,
               worst);
  qk_free(got);
  chain_close(&c);
}

Test(evolve, overrelaxation_reflects_each_link_in_its_staple) {
  for (int i = 0; i < ACTIONS; i++)
    for (int mu = 0; mu < 4; mu++)
      for (int colour = 0; colour < (actions[i].c1 == 0 ? 2 : 4); colour++)
        check_reflections(&actions[i], mu, colour);
}

/* Sum of Re tr / 3 over all loops, with their weights. */
static double minus_action(const chain_t *c, double c1) {
  double plane[6], rectangle, sum = 0;
  rig_must(qk_gaugefield_measure(c->f, plane, c1 == 0 ? NULL : &rectangle), "measure", NULL);
  for (int p = 0; p < 6; p++) sum += (1 - 8 * c1) * plane[p];
  if (c1 != 0) sum += 12 * c1 * rectangle;
  return sum * (double)c->rig.geom.volume;
}

/* The staples of the oracle against the loops that are measured. */
Test(evolve, a_link_changes_the_action_by_its_staple) {
  for (int i = 0; i < ACTIONS; i++) {
    chain_t c;
    chain_open(&c, actions[i].lattice, actions[i].c1);
    for (int mu = 0; mu < 4; mu++) {
      const int x[4] = {3, 1, 1, c.host.dims[3] - 1};
      double complex staple[9], *u = (double complex *)loops_link(&c.host, x, mu);
      loops_staple(&c.host, x, mu, actions[i].c1, staple);
      const double before = minus_action(&c, actions[i].c1) - creal(loops_trace(u, staple)) / 3;
      memcpy(u, loops_link(&c.host, (int[4]){0, 0, 0, 0}, mu), 9 * sizeof *u);
      rig_must(qk_gaugefield_import(c.f, c.rig.links), "import", NULL);
      const double after = minus_action(&c, actions[i].c1) - creal(loops_trace(u, staple)) / 3;
      cr_expect_float_eq(after, before, 1e-11, "%s, direction %d: %g", actions[i].lattice, mu,
                         after - before);
    }
    chain_close(&c);
  }
}

Test(evolve, overrelaxation_keeps_the_action_and_the_group) {
  for (int i = 0; i < ACTIONS; i++) {
    const double c1 = actions[i].c1;
    chain_t c;
    qk_gauge_check_t check;
    chain_open(&c, actions[i].lattice, c1);
    const double before = minus_action(&c, c1);
    for (int n = 0; n < 3; n++)
      for (int mu = 0; mu < 4; mu++)
        for (int colour = 0; colour < (c1 == 0 ? 2 : 4); colour++)
          update(&c, mu, colour, false, 6, c1, 0);
    const double limit = 1e-14 * 6 * (double)c.rig.geom.volume;
    cr_expect_float_eq(minus_action(&c, c1), before, limit, "%s: %g", actions[i].lattice,
                       minus_action(&c, c1) - before);
    double complex *links = exported(&c);
    rig_must(qk_gauge_measure(&c.rig.geom, (double *)links, &check, NULL), "measure", NULL);
    cr_expect(check.unitarity < 4e-15 && check.determinant < 4e-15, "%g, %g", check.unitarity,
              check.determinant);
    qk_free(links);
    chain_close(&c);
  }
}

/* Mean of Re tr U / 3 with weight exp(j Re tr U): an integral over two eigenangles with the measure
 * of Weyl, of a periodic analytic function, so that equidistant points converge exponentially. */
static double one_link_integral(double j) {
  enum { N = 200 };
  double sum[2] = {0};
  for (int a = 0; a < N; a++)
    for (int b = 0; b < N; b++) {
      const double p[3] = {2 * M_PI * a / N, 2 * M_PI * b / N, -2 * M_PI * (a + b) / N};
      double weight = 1;
      for (int k = 0; k < 3; k++) weight *= 2 - 2 * cos(p[k] - p[(k + 1) % 3]);
      const double trace = cos(p[0]) + cos(p[1]) + cos(p[2]);
      sum[0] += weight * exp(j * (trace - 3));
      sum[1] += weight * exp(j * (trace - 3)) * trace / 3;
    }
  return sum[1] / sum[0];
}

/* Among unit links every link of one colour is a Markov chain of its own with a known mean. */
static void check_one_link(double beta, double c1, int or_per_hb) {
  enum { SKIP = 10, SWEEPS = 250, MU = 2, COLOUR = 1 };
  chain_t c;
  chain_open(&c, "builtin:unit:4x8x4x8", c1);
  double *mean = qk_calloc((size_t)c.rig.geom.volume, sizeof *mean), sum = 0, sum2 = 0, n = 0;
  for (int sweep = 0; sweep < SKIP + SWEEPS; sweep++) {
    update(&c, MU, COLOUR, true, beta, c1, sweep);
    for (int i = 0; i < or_per_hb; i++) update(&c, MU, COLOUR, false, beta, c1, sweep);
    if (sweep < SKIP) continue;
    double complex *u = exported(&c);
    for (int64_t site = 0; site < c.rig.geom.volume; site++) {
      const double complex *m = u + (site * 4 + MU) * 9;
      mean[site] += creal(m[0] + m[4] + m[8]) / 3 / SWEEPS;
    }
    qk_free(u);
  }
  for (int64_t site = 0; site < c.rig.geom.volume; site++) {
    int x[4];
    coordinates(&c, site, x);
    if (colour_of(x, MU, c1) != COLOUR) continue;
    sum += mean[site];
    sum2 += mean[site] * mean[site];
    n++;
  }
  const double got = sum / n, error = sqrt((sum2 / n - got * got) / (n - 1));
  const double want = one_link_integral(beta / 3 * (6 - 30 * c1));
  cr_expect_lt(error, 0.003);
  cr_expect_lt(fabs(got - want), 4 * error, "beta %g, c1 %g, %d: %.6f +- %.6f, exactly %.6f", beta,
               c1, or_per_hb, got, error, want);
  qk_free(mean);
  chain_close(&c);
}

Test(evolve, one_link_among_unit_links_has_its_exact_mean) {
  check_one_link(0.1, 0, 0);
  check_one_link(1, 0, 0);
  check_one_link(1, 0, 1);
  check_one_link(6, 0, 0);
  check_one_link(0.5, -0.331, 0);
  check_one_link(200, 0, 0);
}

static double plaquette_of(const qk_gaugefield_t *f) {
  double plane[6], sum = 0;
  rig_must(qk_gaugefield_measure(f, plane, NULL), "measure", NULL);
  for (int p = 0; p < 6; p++) sum += plane[p] / 6;
  return sum;
}

/* Average plaquette of sweeps skip .. n - 1 on 8^4. */
static double chain_plaquette(double beta, bool hot, int or_per_hb, int skip, int n) {
  const qk_evolve_params_t p = {.beta = beta, .or_per_hb = or_per_hb, .seed = 5};
  chain_t c;
  double sum = 0;
  chain_open(&c, "builtin:unit:8x8x8x8", 0);
  if (hot) rig_must(qk_evolve_hot(c.f, p.seed), "hot start", NULL);
  for (int sweep = 0; sweep < n; sweep++) {
    rig_must(qk_evolve_sweep(c.f, &p, sweep), "sweep", NULL);
    if (sweep >= skip) sum += plaquette_of(c.f) / (n - skip);
  }
  chain_close(&c);
  return sum;
}

/* J. Drouffe, J. Zuber, Phys. Rept. 102 (1983) 1: P = b/18 + b^2/216 - 5 b^4/93312 + ... */
Test(evolve, strong_coupling_has_the_plaquette_of_the_expansion) {
  const double b = 0.6, want = b / 18 + b * b / 216 - 5 * b * b * b * b / 93312;
  const double got = chain_plaquette(b, false, 0, 5, 65);
  cr_expect_float_eq(got, want, 6e-4, "%.6f, expansion %.6f", got, want);
}

/* 0.5937 in a large volume: docs/physics.md. */
Test(evolve, hot_and_cold_starts_meet_at_the_known_plaquette) {
  const double cold = chain_plaquette(6, false, 1, 30, 110),
               hot = chain_plaquette(6, true, 1, 50, 130);
  cr_expect_float_eq(cold, 0.5937, 1.5e-3, "cold: %.6f", cold);
  cr_expect_float_eq(hot, 0.5937, 1.5e-3, "hot: %.6f", hot);
}

/* Seed 1, sweep 1313 draw a direction at site 22726 whose sine, a series, rounds beyond 1. */
Test(evolve, links_stay_finite_where_a_series_rounds_beyond_one) {
  const qk_evolve_params_t p = {.beta = 6, .seed = 1};
  double plane[6];
  chain_t c;
  chain_open(&c, "builtin:unit:16x16x16x8", 0);
  rig_must(qk_evolve_sweep(c.f, &p, 1313), "sweep", NULL);
  rig_must(qk_gaugefield_measure(c.f, plane, NULL), "measure", NULL);
  for (int i = 0; i < 6; i++) cr_expect(isfinite(plane[i]), "plane %d: %g", i, plane[i]);
  chain_close(&c);
}

Test(evolve, hot_links_are_distributed_by_the_haar_measure) {
  enum { MOMENTS = 5 };
  static const double want[MOMENTS] = {0, 0, 1, 1, 2}; /* tr, |tr|^2, tr^3, |tr|^4 */
  chain_t c;
  chain_open(&c, "builtin:unit:8x8x8x8", 0);
  rig_must(qk_evolve_hot(c.f, 3), "hot start", NULL);
  double complex *u = exported(&c);
  double sum[MOMENTS] = {0}, sum2[MOMENTS] = {0};
  const int64_t n = c.rig.geom.volume * 4;
  for (int64_t i = 0; i < n; i++) {
    const double complex t = u[9 * i] + u[9 * i + 4] + u[9 * i + 8];
    const double a = creal(t * conj(t));
    const double v[MOMENTS] = {creal(t), cimag(t), a, creal(t * t * t), a * a};
    for (int k = 0; k < MOMENTS; k++) {
      sum[k] += v[k] / (double)n;
      sum2[k] += v[k] * v[k] / (double)n;
    }
  }
  for (int k = 0; k < MOMENTS; k++) {
    const double error = sqrt((sum2[k] - sum[k] * sum[k]) / (double)n);
    cr_expect_lt(fabs(sum[k] - want[k]), 4 * error, "moment %d: %g +- %g", k, sum[k], error);
  }
  qk_free(u);
  chain_close(&c);
}

/* ---- the same bits everywhere ---- */

static uint64_t digest_after(const char *lattice, double c1, int sweeps) {
  const qk_evolve_params_t p = {.beta = c1 == 0 ? 6 : 2.6, .c1 = c1, .or_per_hb = 2, .seed = 2026};
  chain_t c;
  qk_gauge_check_t check;
  chain_open(&c, lattice, c1);
  rig_must(qk_evolve_hot(c.f, p.seed), "hot start", NULL);
  for (int sweep = 0; sweep < sweeps; sweep++)
    rig_must(qk_evolve_sweep(c.f, &p, (1ll << 40) + sweep), "sweep", NULL);
  double complex *links = exported(&c);
  rig_must(qk_gauge_measure(&c.rig.geom, (double *)links, &check, NULL), "measure", NULL);
  qk_free(links);
  chain_close(&c);
  return check.digest;
}

/* The numbers are this program's own: they hold on every processor, compiler and backend. */
static void check_digests(void) {
  static const struct {
    const char *lattice;
    double c1;
    uint64_t digest;
  } chains[] = {{"builtin:unit:6x4x2x8", 0, 0xdcbca3e7f15c3f7e},
                {"builtin:unit:4x8x4x12", -0.331, 0xe0355546a1357fa4}};
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
    const uint64_t got = digest_after(chains[i].lattice, chains[i].c1, 3);
    cr_expect_eq(got, chains[i].digest, "%s: %016lx", chains[i].lattice, got);
  }
}

Test(evolve, gives_the_same_bits_on_every_backend) {
  check_digests();
}

Test(evolve, gives_the_same_bits_on_the_plainest_processor) {
  setenv("QK_CPU_VARIANT", "base", 1);
  check_digests();
}

Test(evolve, another_seed_or_sweep_gives_other_links) {
  chain_t c;
  double p[4];
  chain_open(&c, "builtin:unit:4x4x4x4", 0);
  for (int i = 0; i < 4; i++) {
    const qk_evolve_params_t a = {.beta = 6, .seed = i == 1 ? 8 : 7};
    rig_must(qk_evolve_cold(c.f), "cold start", NULL);
    rig_must(qk_evolve_sweep(c.f, &a, i == 2 ? 1ll << 32 : 0), "sweep", NULL);
    p[i] = plaquette_of(c.f);
  }
  cr_expect(p[0] == p[3] && p[0] != p[1] && p[0] != p[2] && p[1] != p[2]);
  chain_close(&c);
}

/* ---- bad input ---- */

static void refused(qk_evolve_params_t p, const int dims[4], qk_status_t status,
                    const char *words) {
  qk_err_t err = {0};
  cr_expect_eq(qk_evolve_check(&p, dims, &err), status, "%s", words);
  cr_expect(strstr(err.text, words) != NULL, "%s: %s", words, err.text);
}

Test(evolve, bad_parameters_are_named) {
  const int good[4] = {4, 4, 4, 8}, odd[4] = {4, 4, 6, 8};
  const qk_evolve_params_t p = {.beta = 6, .c1 = -0.331};
  cr_expect_eq(qk_evolve_check(&p, good, NULL), QK_OK);
  refused((qk_evolve_params_t){.beta = 0}, good, QK_BAD_ARGUMENT, "beta = 0");
  refused((qk_evolve_params_t){.beta = -1}, good, QK_BAD_ARGUMENT, "beta = -1");
  refused((qk_evolve_params_t){.beta = NAN}, good, QK_BAD_ARGUMENT, "beta = ");
  refused((qk_evolve_params_t){.beta = 1001}, good, QK_BAD_ARGUMENT, "1000");
  refused((qk_evolve_params_t){.beta = 6, .c1 = 0.1}, good, QK_BAD_ARGUMENT, "c1 = 0.1");
  refused((qk_evolve_params_t){.beta = 6, .c1 = NAN}, good, QK_BAD_ARGUMENT, "c1 = ");
  refused((qk_evolve_params_t){.beta = 6, .or_per_hb = -1}, good, QK_BAD_ARGUMENT, "-1");
  refused((qk_evolve_params_t){.beta = 6, .or_per_hb = 1001}, good, QK_BAD_ARGUMENT, "1001");
  refused(p, odd, QK_BAD_GEOMETRY, "extent 6 in direction z");
}

Test(evolve, descriptors_that_do_not_fit_are_refused) {
  chain_t c;
  chain_open(&c, "builtin:unit:4x4x4x8", 0);
  const qk_device_t *dev = &c.rig.dev;
  const qk_link_update_args_t good = {
      .lat = c.rig.geom.lat, .u = c.f->v, .mu = 1, .colour = 1, .beta = 6};
  qk_link_update_args_t bad[7];
  for (int i = 0; i < 7; i++) bad[i] = good;
  bad[0].mu = 4;
  bad[1].colour = 2;
  bad[2].beta = 0;
  bad[3].u.data = NULL;
  bad[4].u.e[3] = 10;
  bad[5].u.halo = 3;
  bad[6].sweep = -1;
  cr_expect_eq(dev->ops->link_update(dev->ctx, &good), QK_OK);
  for (int i = 0; i < 7; i++)
    cr_expect_eq(dev->ops->link_update(dev->ctx, &bad[i]), QK_BAD_ARGUMENT, "case %d", i);
  chain_close(&c);
}
