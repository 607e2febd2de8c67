/* Sources, momenta and smearing: every limit from both sides, with the sentence that says it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "proto/column_check.h"

static const qk_shape_t USUAL = {{4, 6, 8, 10}, 24, 12}, COLOURS = {{4, 6, 8, 10}, 6, 3};

static void expect(qk_status_t is, qk_status_t should, const char *why, const char *text) {
  cr_expect_eq(is, should, "%s instead of %s", qk_status_name(is), qk_status_name(should));
  if (should != QK_OK) cr_expect_str_eq(why, text);
}

Test(column_check, sites_are_on_the_lattice) {
  static const struct {
    int64_t site[4];
    bool any_t;
    const char *why; /* NULL: legal */
  } cases[] = {
      {{0, 0, 0, 0}, false, NULL},
      {{3, 5, 7, 9}, false, NULL},
      {{0, 0, 0, -1}, true, NULL},
      {{0, 0, 0, -1}, false, "source: t = -1 is outside 0 .. 9"},
      {{0, 0, 0, -2}, true, "source: t = -2 is outside -1 .. 9"},
      {{4, 0, 0, 0}, false, "source: x = 4 is outside 0 .. 3"},
      {{0, -1, 0, 0}, true, "source: y = -1 is outside 0 .. 5"},
      {{0, 0, INT64_MAX, 0}, true, "source: z = 9223372036854775807 is outside 0 .. 7"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    char why[QK_WHY] = "";
    expect(qk_site_check(cases[i].site, cases[i].any_t, USUAL.dims, "source", why),
           cases[i].why ? QK_BAD_ARGUMENT : QK_OK, why, cases[i].why);
  }
}

Test(column_check, momenta_are_smaller_than_the_extents) {
  const int32_t most[3] = {-3, 5, -7}, over[3] = {0, -6, 0}, least[3] = {0, 0, INT32_MIN};
  char why[QK_WHY] = "";
  expect(qk_momentum_check(most, USUAL.dims, "source", why), QK_OK, why, NULL);
  expect(qk_momentum_check(over, USUAL.dims, "source", why), QK_BAD_ARGUMENT, why,
         "source: py = -6 is outside -5 .. 5");
  expect(qk_momentum_check(least, USUAL.dims, "source", why), QK_BAD_ARGUMENT, why,
         "source: pz = -2147483648 is outside -7 .. 7");
  expect(qk_t_every_check(10, USUAL.dims, "source", why), QK_OK, why, NULL);
  expect(qk_t_every_check(11, USUAL.dims, "source", why), QK_BAD_ARGUMENT, why,
         "source: t_every = 11 is outside 0 .. 10");
}

Test(column_check, spin_is_that_of_the_fields) {
  Quark__Column c = QUARK__COLUMN__INIT;
  char why[QK_WHY] = "";
  const Quark__SourceKind point = QUARK__SOURCE_KIND__SOURCE_POINT;
  c.spin = 3;
  c.colour = 2;
  expect(qk_column_check(point, &c, &USUAL, "column 5", why), QK_OK, why, NULL);
  expect(qk_column_check(point, &c, &COLOURS, "column 5", why), QK_BAD_ARGUMENT, why,
         "column 5: spin = 3 is outside 0 .. 0");
  c.spin = 4;
  expect(qk_column_check(point, &c, &USUAL, "column 5", why), QK_BAD_ARGUMENT, why,
         "column 5: spin = 4 is outside 0 .. 3");
  c.spin = 0;
  expect(qk_column_check(point, &c, &COLOURS, "column 5", why), QK_OK, why, NULL);
  c.colour = QK_COLUMN_EVERY;
  expect(qk_column_check(point, &c, &COLOURS, "column 5", why), QK_BAD_ARGUMENT, why,
         "column 5: colour = -1 is outside 0 .. 2");
  expect(qk_column_check(QUARK__SOURCE_KIND__SOURCE_Z2, &c, &COLOURS, "column 5", why), QK_OK, why,
         NULL);
}

Test(column_check, contractions_have_whole_momenta_and_an_origin_on_the_lattice) {
  Quark__Contraction c = QUARK__CONTRACTION__INIT;
  int32_t p[3 * QK_MOMENTA_MAX + 3] = {0}, origin[4] = {3, 5, 7, 9};
  char why[QK_WHY] = "";
  c.momentum = p;
  c.n_momentum = 3 * QK_MOMENTA_MAX;
  expect(qk_momenta_check(&c, USUAL.dims, why), QK_OK, why, NULL);
  p[4] = 6;
  expect(qk_momenta_check(&c, USUAL.dims, why), QK_BAD_ARGUMENT, why,
         "momentum 1: py = 6 is outside -5 .. 5");
  c.n_momentum = 3 * QK_MOMENTA_MAX + 3;
  expect(qk_momenta_check(&c, USUAL.dims, why), QK_TOO_LARGE, why,
         "129 momenta are over the limit of 128");
  c.n_momentum = 4;
  expect(qk_momenta_check(&c, USUAL.dims, why), QK_BAD_ARGUMENT, why,
         "momentum: 4 numbers: must be three for each momentum");
  c.origin = origin;
  c.n_origin = 4;
  expect(qk_origin_check(&c, USUAL.dims, why), QK_OK, why, NULL);
  origin[2] = 8;
  expect(qk_origin_check(&c, USUAL.dims, why), QK_BAD_ARGUMENT, why,
         "origin: z = 8 is outside 0 .. 7");
  c.n_origin = 3;
  expect(qk_origin_check(&c, USUAL.dims, why), QK_BAD_ARGUMENT, why,
         "origin: 3 numbers: must be x, y, z, t");
}

Test(column_check, smearing_has_limits) {
  Quark__Smearing s = QUARK__SMEARING__INIT;
  double param = 0.25;
  char why[QK_WHY] = "";
  expect(qk_smearing_check(NULL, "smear", why), QK_OK, why, NULL);
  s.alpha = -QK_SMEAR_ALPHA_MAX;
  s.steps = QK_SMEAR_STEPS_MAX;
  expect(qk_smearing_check(&s, "smear", why), QK_OK, why, NULL);
  s.steps++;
  expect(qk_smearing_check(&s, "smear", why), QK_TOO_LARGE, why,
         "smear: steps = 1001 is over the limit of 1000");
  s.steps = 1;
  s.alpha = NAN;
  cr_expect_eq(qk_smearing_check(&s, "smear", why), QK_BAD_ARGUMENT);
  s.alpha = -1 / 6.;
  cr_expect_eq(qk_smearing_check(&s, "smear", why), QK_BAD_ARGUMENT);
  s.alpha = 0.1;
  s.links = QUARK__LINK_SMEAR__LINK_SMEAR_STOUT;
  expect(qk_smearing_check(&s, "sink", why), QK_BAD_ARGUMENT, why,
         "sink: link_param has 0 entries: 1 for stout");
  s.link_param = &param;
  s.n_link_param = 1;
  expect(qk_smearing_check(&s, "sink", why), QK_OK, why, NULL);
  param = 0.26;
  expect(qk_smearing_check(&s, "sink", why), QK_BAD_ARGUMENT, why,
         "sink: link_param 0 = 0.26 is outside 0 .. 0.25 of stout");
}
