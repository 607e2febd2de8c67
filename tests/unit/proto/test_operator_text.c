/* Parameters of the actions that there are: text to numbers and back, all that is refused. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "proto/action/operator_text.h"

#define READ(v, action, why, ...)                                                                  \
  qk_values_read(v, action, (const qk_setting_t[]){__VA_ARGS__},                                   \
                 sizeof((const qk_setting_t[]){__VA_ARGS__}) / sizeof(qk_setting_t), why)

static void expect_text(const qk_values_t *v, const char *canonical, const char *given) {
  char text[QK_OPERATOR_TEXT];
  qk_values_text(v, QK_TEXT_CANONICAL, text);
  cr_expect_str_eq(text, canonical);
  qk_values_text(v, QK_TEXT_GIVEN, text);
  cr_expect_str_eq(text, given);
}

/* All doubles but infinities and NaN, each exponent as likely as another. */
static double next_double(uint64_t *state) {
  double x;
  do {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    memcpy(&x, state, sizeof x);
  } while (!isfinite(x));
  return x;
}

Test(operator_text, a_number_reads_back_as_the_same_double) {
  const double special[] = {0,   5e-324, -5e-324, 2.2250738585072011e-308, 1.7976931348623157e308,
                            0.1, 1e22,   1e23,    9007199254740993.0,      -1.0 / 3};
  uint64_t state = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    const double x =
        i < 10 ? special[i] : ldexp(next_double(&state), i % 3 == 0 ? -1040 : 0); /* denormals */
    char text[QK_REAL_TEXT];
    double back = NAN;
    qk_real_text(x, text);
    cr_assert_lt(strlen(text), QK_REAL_BYTES, "%s", text);
    cr_assert(qk_real_parse(text, &back), "%s", text);
    cr_assert_eq(memcmp(&x, &back, sizeof x), 0, "%s for %a", text, x);
  }
}

Test(operator_text, a_number_is_as_short_as_it_can_be) {
  const struct {
    double x;
    const char *text;
  } row[] = {{0.1, "0.1"},     {100, "100"}, {1e6, "1e+06"}, {-0.25, "-0.25"},
             {1.769, "1.769"}, {0, "0"},     {1e-7, "1e-07"}};
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    char text[QK_REAL_TEXT];
    qk_real_text(row[i].x, text);
    cr_expect_str_eq(text, row[i].text);
  }
}

Test(operator_text, only_a_finite_decimal_number_is_one) {
  const char *const bad[] = {"",     " 1",  "1 ",  "nan", "inf", "-inf", "1e999", "0x10", "1,5",
                             "1.5.", "--1", "+-1", "e5",  ".",   "1p3",  "1e",    "-0x1", "1\n"};
  double x = 7;
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
    cr_expect(!qk_real_parse(bad[i], &x), "\"%s\"", bad[i]);
  cr_expect_eq(x, 7);
  cr_expect(qk_real_parse("+.5e1", &x) && x == 5);
}

Test(operator_text, mass_and_csw_make_the_canonical_text) {
  qk_values_t v;
  char why[QK_WHY] = "";
  cr_assert(READ(&v, "wilson-clover", why, {"csw", "1.7690"}, {"mass", "-0.250"}), "%s", why);
  expect_text(&v, "wilson-clover;mass=-0.25;csw=1.769", "wilson-clover;mass=-0.25;csw=1.769");
  cr_expect_eq(qk_value(&v, "mass"), -0.25);
  cr_expect_eq(qk_value(&v, "csw"), 1.769);
  cr_expect_eq(qk_values_kappa(&v), 1 / (2 * (4 + -0.25)));
  cr_expect_str_eq(qk_values_action(&v)->name, "wilson-clover");
}

Test(operator_text, kappa_becomes_the_mass_and_is_shown_as_it_was_given) {
  qk_values_t v;
  char why[QK_WHY] = "";
  cr_assert(READ(&v, "wilson", why, {"kappa", "0.1250"}), "%s", why);
  expect_text(&v, "wilson;mass=0", "wilson;kappa=0.125");
  cr_assert(READ(&v, "wilson", why, {"kappa", "0.1345"}), "%s", why);
  cr_expect_eq(qk_value(&v, "mass"), 1 / (2 * 0.1345) - 4);
  cr_expect_eq(qk_values_kappa(&v), 0.1345);
}

Test(operator_text, lists_of_a_fixed_length_have_no_other) {
  qk_values_t v;
  char why[QK_WHY] = "";
  int n = 0;
  cr_assert(READ(&v, "wilson", why, {"mass", "0"}, {"hop", "0.5,0.50,5e-1,1"}), "%s", why);
  expect_text(&v, "wilson;mass=0;hop=0.5,0.5,0.5,1", "wilson;mass=0;hop=0.5,0.5,0.5,1");
  cr_expect(qk_value_reals(&v, "hop", &n)[3] == 1 && n == 4);
  cr_assert(READ(&v, "wilson", why, {"mass", "0"}, {"hop", "1,1.0,1,1"}), "%s", why);
  expect_text(&v, "wilson;mass=0", "wilson;mass=0;hop=1,1,1,1");
  for (const char *const *bad = (const char *const[]){"1,1,1", "1,1,1,1,1", "1,1,1,0", "1", NULL};
       *bad; bad++) {
    char want[QK_WHY];
    snprintf(want, sizeof want, "hop = %s: must be 4 numbers above 0 and at most 1000, with commas",
             *bad);
    cr_expect(!READ(&v, "wilson", why, {"mass", "0"}, {"hop", *bad}));
    cr_expect_str_eq(why, want);
  }
}

Test(operator_text, mass_and_kappa_are_inverse) {
  cr_expect_eq(qk_mass_of_kappa(0.125), 0);
  cr_expect_eq(qk_kappa_of_mass(0), 0.125);
  cr_expect_float_eq(qk_kappa_of_mass(qk_mass_of_kappa(0.1345)), 0.1345, 1e-16);
}

Test(operator_text, without_a_name_csw_tells_the_action) {
  qk_values_t v;
  char why[QK_WHY] = "";
  cr_assert(READ(&v, NULL, why, {"mass", "0.1"}), "%s", why);
  expect_text(&v, "wilson;mass=0.1", "wilson;mass=0.1");
  cr_assert(READ(&v, NULL, why, {"mass", "0.1"}, {"csw", "-0.0"}), "%s", why);
  expect_text(&v, "wilson;mass=0.1", "wilson;mass=0.1");
  cr_assert(READ(&v, NULL, why, {"mass", "0.1"}, {"csw", "1"}), "%s", why);
  expect_text(&v, "wilson-clover;mass=0.1;csw=1", "wilson-clover;mass=0.1;csw=1");
  cr_expect(!READ(&v, NULL, why, {"mass", "0.1"}, {"csw", "0"}, {"csw", "0"}));
  cr_expect_str_eq(why, "csw is given twice");
}

Test(operator_text, minus_zero_is_zero) {
  qk_values_t v;
  char why[QK_WHY] = "";
  cr_assert(READ(&v, "wilson-clover", why, {"mass", "-0"}, {"csw", "-0.0"}), "%s", why);
  expect_text(&v, "wilson-clover;mass=0;csw=0", "wilson-clover;mass=0;csw=0");
}

Test(operator_text, a_text_of_random_values_reads_back_bit_by_bit) {
  uint64_t state = 1181783497276652981u;
  for (int i = 0; i < 20000; i++) {
    char mass[QK_REAL_TEXT], csw[QK_REAL_TEXT], text[QK_OPERATOR_TEXT], why[QK_WHY] = "";
    const double m = fmod(next_double(&state), 3.5), c = fmod(next_double(&state), 1000);
    qk_values_t v, back;
    qk_real_text(m, mass);
    qk_real_text(c, csw);
    cr_assert(READ(&v, "wilson-clover", why, {"mass", mass}, {"csw", csw}), "%s", why);
    qk_values_text(&v, QK_TEXT_CANONICAL, text);
    cr_assert(qk_values_parse(&back, text, why), "%s", why);
    cr_assert_eq(qk_value(&back, "mass"), m);
    cr_assert_eq(qk_value(&back, "csw"), c);
    cr_assert_eq(memcmp(&v, &back, sizeof v), 0);
  }
}

/* What is refused leaves the values as they were, and says what would be accepted. */
Test(operator_text, what_is_wrong_is_named_with_what_is_accepted) {
  char longest[QK_PARAM_TEXT_MAX + 2];
  memset(longest, '1', sizeof longest);
  longest[sizeof longest - 1] = '\0';
  const struct {
    const char *action;
    qk_setting_t setting[3];
    const char *why;
  } row[] = {
      {"twisted", {{0}}, "action = \"twisted\": must be one of wilson, wilson-clover"},
      {"", {{0}}, "action = \"\": must be one of"},
      {"wilson", {{"csw", "1"}}, "csw: wilson has no such parameter: it has mass (or kappa)"},
      {NULL, {{"mu", "1"}}, "mu: wilson has no such parameter"},
      {"wilson", {{"", "1"}}, ": wilson has no such parameter"},
      {"wilson", {{"ma\nss", "1"}}, "ma?ss: wilson has no such parameter"},
      {"wilson", {{"mass", "1"}, {"mass", "1"}}, "mass is given twice"},
      {"wilson", {{"kappa", "0.1"}, {"kappa", "0.1"}}, "kappa is given twice"},
      {"wilson", {{"kappa", "0.1"}, {"mass", "1"}}, "kappa and mass are both given"},
      {"wilson", {{"mass", "1"}, {"kappa", "0.1"}}, "kappa and mass are both given"},
      {"wilson", {{0}}, "wilson needs mass (or kappa): not given"},
      {NULL, {{0}}, "wilson needs mass (or kappa): not given"},
      {"wilson-clover", {{0}}, "wilson-clover needs mass (or kappa), csw: not given"},
      {"wilson-clover", {{"kappa", "0.1"}}, "wilson-clover needs csw: not given"},
      {"wilson", {{"mass", "-4"}}, "mass = -4: must be a number above -4 and at most 1e+06"},
      {"overlap", {{"mass", "1"}, {"M", "1"}}, "mass = 1: must be a number above -1 and below 1"},
      {"overlap", {{"mass", "0.1"}, {"M", "2"}}, "M = 2: must be a number above 0 and below 2"},
      {"wilson", {{"mass", "1.1e6"}}, "mass = 1.1e6: must be a number above -4"},
      {"wilson", {{"mass", "nan"}}, "mass = nan: must be a number above -4"},
      {"wilson", {{"mass", ""}}, "mass = : must be a number above -4"},
      {"wilson", {{"mass", "0.1x"}}, "mass = 0.1x: must be a number above -4"},
      {"wilson", {{"mass", "0.1,0.2"}}, "mass = 0.1,0.2: must be a number above -4"},
      {"wilson", {{"mass", "\x01"}}, "mass = ?: must be a number above -4"},
      {"wilson", {{"mass", longest}}, "mass: a value of 701 bytes, and the limit is 700"},
      {"wilson", {{"kappa", "0"}}, "kappa = 0: must be a number above 0 and at most 1e+06"},
      {"wilson", {{"kappa", "-0.1"}}, "kappa = -0.1: must be a number above 0"},
      {"wilson", {{"kappa", "x"}}, "kappa = x: must be a number above 0"},
      {"wilson", {{"kappa", "1e-300"}}, "kappa = 1e-300: the mass 1 / (2 kappa) - 4 = 5e+299"},
      {NULL, {{"mass", "1"}, {"csw", "x"}}, "csw = x: must be a number from -1000 to 1000"},
      {NULL, {{"mass", "1"}, {"csw", "2000"}}, "csw = 2000: must be a number from -1000 to 1000"},
      {"wilson", {{"mass", "1"}, {"links", "fat"}}, "links = fat: must be thin, ape:ALPHA,STEPS"},
      {"wilson",
       {{"mass", "1"}, {"links", "stout:0.1,1"}, {"open", "1"}},
       "links = stout:0.1,1: must be thin with an open boundary (open = 1)"},
      {"wilson", {{"links", "stout:0.3,1"}}, "links = stout:0.3,1: link smearing: stout rho = 0.3"},
      {"wilson",
       {{"links", "stout:0.1,1/thin"}},
       "links = stout:0.1,1/thin: write it as slinc:0.1,1"},
  };
  for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
    char why[QK_WHY] = "";
    qk_values_t v = {.action = 77};
    size_t n = 0;
    while (n < 3 && row[i].setting[n].key) n++;
    cr_expect(!qk_values_read(&v, row[i].action, row[i].setting, n, why), "%zu", i);
    cr_expect_eq(strncmp(why, row[i].why, strlen(row[i].why)), 0, "\"%s\", not \"%s\"", why,
                 row[i].why);
    cr_expect_eq(v.action, 77);
  }
}

Test(operator_text, only_the_canonical_text_is_read_back) {
  const char *const good[] = {"wilson;mass=0", "wilson;mass=-3.9999999999999996",
                              "wilson-clover;mass=1e+06;csw=-1000"};
  const char *const bad[] = {"",
                             "wilson",
                             "wilson;",
                             "wilson;mass",
                             "wilson;=1",
                             "wilson;mass=0.10",
                             "wilson;mass=0;",
                             "wilson;mass=0;mass=0",
                             "wilson;kappa=0.125",
                             "wilson-clover;csw=1;mass=0",
                             "Wilson;mass=0",
                             "wilson;mass=1e6",
                             "wilson;mass=0;;",
                             "wilson;mass=+1",
                             "wilson;mass=-0",
                             " wilson;mass=0",
                             "wilson-clover;mass=0",
                             "wilson;a=;b=;c=;d=;e=;f=;g=;h=;i=;j=;k=;l=;m=;n=;o=;p=;q=;r="};
  qk_values_t v = {.action = 77};
  char why[QK_WHY], text[QK_OPERATOR_TEXT], huge[2 * QK_OPERATOR_TEXT];
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    why[0] = '\0';
    cr_expect(!qk_values_parse(&v, bad[i], why) && why[0], "%s", bad[i]);
  }
  memset(huge, 'w', sizeof huge);
  huge[sizeof huge - 1] = '\0';
  cr_expect(!qk_values_parse(&v, huge, why));
  cr_expect_eq(v.action, 77);
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    cr_assert(qk_values_parse(&v, good[i], why), "%s", why);
    qk_values_text(&v, QK_TEXT_CANONICAL, text);
    cr_expect_str_eq(text, good[i]);
  }
}

Test(operator_text, an_action_without_a_parameter_has_no_value_of_it) {
  qk_values_t v;
  char why[QK_WHY] = "";
  int n = 5;
  cr_assert(READ(&v, "wilson", why, {"mass", "1"}), "%s", why);
  cr_expect(isnan(qk_value(&v, "csw")));
  cr_expect_null(qk_value_reals(&v, "csw", &n));
  cr_expect_eq(n, 0);
  cr_expect_null(qk_value_word(&v, "mass"));
  cr_expect_null(qk_value_word(&v, "spin"));
}

Test(operator_text, a_setting_is_split_at_its_first_equals_sign) {
  char good[] = "a=b=c", empty[] = "a=", none[] = "abc", first[] = "=c", why[QK_WHY];
  qk_setting_t s;
  cr_assert(qk_setting_split(good, &s, why));
  cr_expect_str_eq(s.key, "a");
  cr_expect_str_eq(s.value, "b=c");
  cr_assert(qk_setting_split(empty, &s, why));
  cr_expect_str_eq(s.value, "");
  cr_expect(!qk_setting_split(none, &s, why));
  cr_expect_str_eq(why, "abc: must be KEY=VALUE");
  cr_expect(!qk_setting_split(first, &s, why));
}

Test(operator_text, a_boundary_is_four_signs_or_phases) {
  const char *const bad[] = {"",         "1",         "1,1,1",     "1,1,1,1,",  "2,1,1,1",
                             "1,1,1,1 ", "0.5,1,1,1", "1;1;1;1",   "nan,1,1,1", "1,1,1,pi",
                             "perio",    "1,,1,1",    "1,1,1,0xpi"};
  double z[8] = {0}, before[8];
  char why[QK_WHY];
  cr_assert(qk_boundary_parse("1,-1,0.5pi,-0.25pi", z, why));
  cr_expect_eq(z[2], -1);
  cr_expect_float_eq(z[5], 1, 1e-15);
  cr_expect_float_eq(z[7], -sqrt(0.5), 1e-15);
  memcpy(before, z, sizeof z);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    cr_expect(!qk_boundary_parse(bad[i], z, why), "%s", bad[i]);
    cr_expect_not_null(strstr(why, "four of 1, -1 or a phase"));
  }
  cr_expect_eq(memcmp(z, before, sizeof z), 0);
  cr_assert(qk_boundary_parse("antiperiodic", z, why));
  cr_expect(z[0] == 1 && z[6] == -1 && z[7] == 0);
  cr_assert(qk_boundary_parse("periodic", z, why));
  cr_expect_eq(z[6], 1);
}

static bool share_vectors(const char *one, const char *other) {
  qk_values_t a, b;
  char why[QK_WHY];
  cr_assert(qk_values_parse(&a, one, why), "%s", why);
  cr_assert(qk_values_parse(&b, other, why), "%s", why);
  return qk_values_share_vectors(&a, &b);
}

Test(operator_text, colour_vectors_of_another_mass_share_their_eigenvectors) {
  cr_expect(share_vectors("staggered;mass=0.1", "staggered;mass=0.1"));
  cr_expect(share_vectors("staggered;mass=0.1", "staggered;mass=0.001"));
  cr_expect(share_vectors("hisq;mass=0.1;epsilon=-0.1", "hisq;mass=1;epsilon=-0.1"));
  cr_expect_not(share_vectors("hisq;mass=0.1;epsilon=-0.1", "hisq;mass=0.1"));
  cr_expect_not(share_vectors("asqtad;mass=0.1;u0=0.9", "asqtad;mass=0.1;u0=0.8"));
  cr_expect_not(share_vectors("staggered;mass=0.1;links=stout:0.1,1", "staggered;mass=0.1"));
  cr_expect_not(share_vectors("staggered;mass=0.1", "hisq;mass=0.1"));
  cr_expect_not(share_vectors("wilson;mass=0.1", "wilson;mass=0.2"));
}

Test(operator_text, overlap_projects_eigenvectors_of_a_wilson_operator) {
  qk_values_t v, kernel;
  char why[QK_WHY], text[QK_OPERATOR_TEXT];
  cr_assert(qk_values_parse(&v, "overlap;mass=0.1;M=1.3;modes=200;links=stout:0.1,2", why), "%s",
            why);
  cr_assert(qk_values_kernel(&v, &kernel));
  qk_values_text(&kernel, QK_TEXT_CANONICAL, text);
  cr_expect_str_eq(text, "wilson;mass=-1.3;links=stout:0.1,2");
  cr_assert(qk_values_parse(&v, "overlap;mass=0.1;M=1.4", why), "%s", why);
  cr_assert(qk_values_kernel(&v, &kernel));
  qk_values_text(&kernel, QK_TEXT_CANONICAL, text);
  cr_expect_str_eq(text, "wilson;mass=-1.4");
  cr_expect_not(qk_values_kernel(&kernel, &v));
}
