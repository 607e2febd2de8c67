#include <complex.h>
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/channels.h"
#include "tests/support/refused.h"

typedef double complex spin_t[4][4];
enum { NT = 8, NMOM = 2 };

/* The table of docs/physics.md, rows as written there. */
static const spin_t gammas[4] = {{{0, 0, 0, I}, {0, 0, I, 0}, {0, -I, 0, 0}, {-I, 0, 0, 0}},
                                 {{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}},
                                 {{0, 0, I, 0}, {0, 0, 0, -I}, {-I, 0, 0, 0}, {0, I, 0, 0}},
                                 {{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}}};

static void multiply(const spin_t a, const spin_t b, spin_t out) {
  spin_t c = {{0}};
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++)
      for (int k = 0; k < 4; k++) c[i][j] += a[i][k] * b[k][j];
  memcpy(out, c, sizeof c);
}

static void gamma_product(uint32_t n, spin_t out) {
  const spin_t one = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  memcpy(out, one, sizeof one);
  for (int mu = 0; mu < 4; mu++)
    if (n >> mu & 1) multiply(out, gammas[mu], out);
}

/* s of gt G^+ gt = s G. */
static double bar_sign(uint32_t n) {
  spin_t g, bar;
  gamma_product(n, g);
  for (int i = 0; i < 4; i++)
    for (int j = 0; j < 4; j++) bar[i][j] = conj(g[j][i]);
  multiply(gammas[3], bar, bar);
  multiply(bar, gammas[3], bar);
  for (int i = 0; i < 16; i++) {
    const double complex x = (&g[0][0])[i], y = (&bar[0][0])[i];
    if (x == 0) continue;
    cr_assert(cabs(y - x) < 1e-14 || cabs(y + x) < 1e-14);
    return cabs(y - x) < 1e-14 ? 1 : -1;
  }
  cr_assert_fail("gamma %u is zero", n);
  return 0;
}

static qk_channels_t parse(const char *text) {
  qk_channels_t c;
  qk_err_t err = {0};
  cr_assert_eq(qk_channels_parse(text, &c, &err), QK_OK, "%s", err.text);
  return c;
}

Test(channels, mesons_are_the_mean_over_polarisations_with_the_sign_of_the_bar) {
  static const struct {
    const char *name;
    int n;
    uint32_t gamma[3];
  } want[] = {{"pion", 1, {15}},
              {"a4", 1, {7}},
              {"a0", 1, {0}},
              {"rho", 3, {1, 2, 4}},
              {"rho_t", 3, {9, 10, 12}},
              {"a1", 3, {14, 13, 11}},
              {"b1", 3, {3, 5, 6}}};
  qk_channels_t c = parse("rho,pion, a4 a0,rho_t,a1\n b1");
  cr_assert_eq(c.n, 7);
  cr_assert_eq(c.nraw, 15);
  double complex raw[15 * NMOM * NT], out[7 * NMOM * NT];
  /* Channel sink = source = g is worth g + 1 + i p + 100 t. */
  for (uint32_t r = 0; r < c.nraw; r++) {
    cr_assert(c.raw[r].kind == QUARK_MESON && c.raw[r].sink == c.raw[r].source);
    for (int p = 0; p < NMOM; p++)
      for (int t = 0; t < NT; t++)
        raw[((int)r * NMOM + p) * NT + t] = c.raw[r].sink + 1 + I * p + 100 * t;
  }
  qk_channels_evaluate(&c, raw, NMOM, NT, -1, out);
  for (int i = 0; i < c.n; i++) {
    int k = 0;
    while (strcmp(want[k].name, qk_channels_name(&c, i)) != 0) k++;
    cr_expect(qk_channel_is_symmetric(want[k].name));
    for (int p = 0; p < NMOM; p++)
      for (int t = 0; t < NT; t++) {
        double complex mean = 0;
        for (int j = 0; j < want[k].n; j++)
          mean -= bar_sign(want[k].gamma[j]) * (want[k].gamma[j] + 1 + I * p + 100 * t) / want[k].n;
        cr_expect_lt(cabs(out[(i * NMOM + p) * NT + t] - mean), 1e-10, "%s", want[k].name);
      }
  }
  qk_channels_fini(&c);
}

/* Spin and taste; the sign is that of the square of the spin's matrix. */
Test(channels, tastes_are_pions_of_colour_vectors) {
  static const struct {
    const char *name;
    uint32_t spin, shift;
  } want[] = {{"pion", 15, 0},   {"a4", 7, 0},    {"pioni5", 15, 1}, {"pionij", 7, 1},
              {"pioni0", 15, 6}, {"pioni", 7, 6}, {"pion0", 15, 7},  {"pions", 7, 7}};
  qk_channels_t c = parse("tastes"), none = parse("pion,g5-gxgt");
  double complex raw[16 * NT], out[8 * NT];
  cr_assert(c.n == 8 && c.nraw == 16 && c.tastes && !none.tastes);
  uint32_t seen = 0;
  for (uint32_t r = 0; r < c.nraw; r++) {
    cr_expect(c.raw[r].kind == QUARK_MESON && qk_channel_shift(&c.raw[r]) <= 7);
    seen |= 1u << c.raw[r].source; /* each of the sixteen tastes once */
    for (int t = 0; t < NT; t++) raw[(int)r * NT + t] = c.raw[r].sink == 15 ? 1 : -1;
  }
  cr_expect_eq(seen, 0xffff);
  qk_channels_evaluate(&c, raw, 1, NT, -1, out);
  for (int i = 0; i < c.n; i++) {
    cr_expect_str_eq(qk_channels_name(&c, i), want[i].name);
    cr_expect(qk_channel_is_symmetric(want[i].name) && out[i * NT] == 1, "%s", want[i].name);
  }
  for (int i = 2; i < 8; i++) {
    qk_channels_t one = parse(want[i].name);
    cr_expect(one.raw[0].sink == want[i].spin && qk_channel_shift(&one.raw[0]) == want[i].shift,
              "%s: %u, %u", want[i].name, one.raw[0].sink, qk_channel_shift(&one.raw[0]));
    qk_channels_fini(&one);
  }
  qk_channels_fini(&c);
  qk_channels_fini(&none);
}

Test(channels, a_wall_makes_what_has_one_sign_on_a_time_slice) {
  qk_channels_t good = parse("pion,8-8,nucleon_corner"), bad = parse("a4,a0,rho,rho_t,a1,b1,pions");
  for (uint32_t r = 0; r < good.nraw; r++) cr_expect(qk_channel_is_of_walls(&good.raw[r]));
  for (uint32_t r = 0; r < bad.nraw; r++) cr_expect(!qk_channel_is_of_walls(&bad.raw[r]), "%u", r);
  qk_channels_fini(&good);
  qk_channels_fini(&bad);
}

/* (1 + sign gt)/2 times a number, added to m. */
static void add_projector(double sign, double complex factor, double complex m[16]) {
  for (int i = 0; i < 4; i++) {
    m[4 * i + i] += factor / 2;
    m[4 * i + (i + 2) % 4] += sign * factor / 2;
  }
}

Test(channels, baryons_run_forward_and_come_back_with_the_phase_of_the_boundary) {
  const double m = 0.7, heavy = 1.3;
  const double complex phases[] = {-1, 1, cexp(0.4 * I)};
  qk_channels_t c = parse("nucleon,nucleon_minus");
  cr_assert(c.n == 2 && c.nraw == 1 && qk_channels_numbers(&c) == 16);
  cr_expect_not(qk_channel_is_symmetric("nucleon"));
  for (int k = 0; k < 3; k++) {
    const double complex around = phases[k] * phases[k] * phases[k];
    double complex raw[NT * 16] = {0}, out[2 * NT];
    /* The nucleon forwards and its partner, and both from the next source in time. */
    for (int t = 0; t < NT; t++) {
      add_projector(1, exp(-m * t), raw + 16 * t);
      add_projector(-1, -exp(-heavy * t), raw + 16 * t);
      if (t == 0) continue;
      add_projector(-1, around * exp(-m * (NT - t)), raw + 16 * t);
      add_projector(1, -around * exp(-heavy * (NT - t)), raw + 16 * t);
    }
    qk_channels_evaluate(&c, raw, 1, NT, phases[k], out);
    for (int t = 1; t < NT; t++) {
      const double complex ahead = exp(-m * t), partner = exp(-heavy * t),
                           wave = (around + conj(around)) / 2;
      /* tr of a projector is 2; what comes from beyond is the mean of both directions */
      const double complex back =
          (around * exp(-heavy * (NT - t)) + conj(around) * exp(-heavy * (NT - t))) / 2;
      cr_expect_lt(cabs(out[t] - (2 * ahead - 2 * back)), 1e-12, "t = %d, phase %d", t, k);
      cr_expect_lt(cabs(out[NT + t] - (2 * partner - 2 * wave * exp(-m * (NT - t)))), 1e-12);
    }
  }
  qk_channels_fini(&c);
}

Test(channels, the_delta_is_of_spin_three_halves) {
  qk_channels_t c = parse("delta");
  cr_assert(c.n == 1 && c.nraw == 1 && qk_channels_numbers(&c) == 144);
  double complex raw[NT * 144] = {0}, out[NT];
  /* Delta_ij = (delta_ij - gi gj / 3) f P+ + gi gj / 3 h P+: the second part is of spin 1/2. */
  for (int t = 0; t < NT; t++)
    for (int i = 0; i < 3; i++)
      for (int j = 0; j < 3; j++) {
        const double f = exp(-0.5 * t), h = 3 + t;
        spin_t gg, part = {{0}};
        double complex plus[16] = {0};
        add_projector(1, 1, plus);
        multiply(gammas[i], gammas[j], gg);
        for (int k = 0; k < 16; k++)
          (&part[0][0])[k] = (i == j && k % 5 == 0 ? f : 0) + (h - f) / 3 * (&gg[0][0])[k];
        multiply(part, *(const spin_t *)(const void *)plus, part);
        memcpy(raw + t * 144 + (i * 3 + j) * 16, part, sizeof part);
      }
  qk_channels_evaluate(&c, raw, 1, NT, -1, out);
  for (int t = 0; t < NT; t++) /* tr P = 2 x 2 of the projected matrix; nothing comes back */
    cr_expect_lt(cabs(out[t] - 4 * exp(-0.5 * t) / 2), 1e-12, "t = %d: %g", t, creal(out[t]));
  qk_channels_fini(&c);
}

Test(channels, pairs_are_handed_on_as_they_are) {
  qk_channels_t c = parse("g5-gxgt,15-9,id-g5 3-12");
  cr_assert_eq(c.n, 3);
  cr_expect_str_eq(qk_channels_name(&c, 0), "g5-gxgt");
  cr_expect_str_eq(qk_channels_name(&c, 1), "id-g5");
  cr_expect_str_eq(qk_channels_name(&c, 2), "gxgy-gzgt");
  cr_expect(c.raw[0].sink == 15 && c.raw[0].source == 9 && c.raw[2].sink == 3);
  cr_expect_not(qk_channel_is_symmetric("g5-gxgt"));
  double complex raw[3 * NT], out[3 * NT];
  for (int i = 0; i < 3 * NT; i++) raw[i] = i - 7 * I;
  qk_channels_evaluate(&c, raw, 1, NT, -1, out);
  for (int i = 0; i < 3 * NT; i++) cr_expect_eq(out[i], raw[i]);
  qk_channels_fini(&c);
}

Test(channels, lists_of_many_ask_for_each_contraction_once) {
  qk_channels_t c = parse("all,pairs,pion");
  cr_expect_eq(c.n, 10 + 256);
  cr_expect_eq(c.nraw, 258);
  cr_expect_eq(qk_channels_numbers(&c), 256 + 16 + 144);
  qk_channels_fini(&c);
}

static qk_status_t parse_bad(const char *text, bool *touched, qk_err_t *err) {
  qk_channels_t c = {.n = 77};
  const qk_status_t status = qk_channels_parse(text, &c, err);
  *touched = c.n != 77;
  return status;
}

Test(channels, unknown_words_are_refused_by_name) {
  const char *const bad[] = {"pionen", "pion,rh0", "g5", "g5-", "-g5", "g5-g6", "16-0", "gygx-g5"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    const char *comma = strchr(bad[i], ',');
    expect_refused(parse_bad, bad[i], comma ? comma + 1 : bad[i]);
  }
  qk_channels_t c;
  cr_expect_eq(qk_channels_parse(" ,", &c, NULL), QK_BAD_ARGUMENT);
}

Test(channels, momenta_are_triples) {
  uint32_t n = 0;
  int32_t(*p)[3] = NULL;
  cr_assert_eq(qk_momenta_parse("0,0,0; -1,2,+3 4,5,6;", &n, &p, NULL), QK_OK);
  const int32_t want[3][3] = {{0, 0, 0}, {-1, 2, 3}, {4, 5, 6}};
  cr_assert_eq(n, 3);
  cr_expect_eq(memcmp(p, want, sizeof want), 0);
  free(p);
  const char *const bad[] = {"", "0,0", "0,0,0,0", "0,0,a", "0 0 0", "0,0,0;1", "1,2,3x"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
    cr_expect_eq(qk_momenta_parse(bad[i], &n, &p, NULL), QK_BAD_ARGUMENT, "\"%s\"", bad[i]);
  char many[129 * 6 + 1] = "";
  for (int i = 0; i < 129; i++) strcat(many, "0,0,0;");
  qk_err_t err = {0};
  cr_expect_eq(qk_momenta_parse(many, &n, &p, &err), QK_BAD_ARGUMENT);
  cr_expect_not_null(strstr(err.text, "128"));
}
