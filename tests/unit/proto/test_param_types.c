/* Parameters of each type, with the rows of made_actions.c: integers, lists, words, defaults. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/action/operator_text.h"

#define READ(v, action, why, ...)                                                                  \
  qk_values_read(v, action, (const qk_setting_t[]){__VA_ARGS__},                                   \
                 sizeof((const qk_setting_t[]){__VA_ARGS__}) / sizeof(qk_setting_t), why)

static void expect_canonical(const qk_values_t *v, const char *text) {
  char is[QK_OPERATOR_TEXT], why[QK_WHY] = "";
  qk_values_t back;
  qk_values_text(v, QK_TEXT_CANONICAL, is);
  cr_expect_str_eq(is, text);
  cr_expect(qk_values_parse(&back, is, why), "%s", why);
}

Test(param_types, what_is_not_given_has_its_default) {
  qk_values_t v;
  char why[QK_WHY] = "";
  int n;
  cr_assert(READ(&v, "fifth", why, {"mass", "0.1"}, {"Ls", "8"}), "%s", why);
  expect_canonical(&v, "fifth;mass=0.1;Ls=8");
  cr_expect_eq(qk_value(&v, "Ls"), 8);
  cr_expect_eq(qk_value_reals(&v, "hop", &n)[3], 1);
  cr_expect_eq(n, 4);
  cr_expect(isnan(qk_value(&v, "hop")), "a list is no number");
  cr_expect_eq(qk_value(&v, "b"), 1);
  cr_expect_str_eq(qk_value_word(&v, "links"), "thin");
  cr_expect_eq(qk_values_kappa(&v), 0);
}

Test(param_types, what_equals_its_default_is_left_out_and_shown_as_given) {
  qk_values_t v;
  char why[QK_WHY] = "", text[QK_OPERATOR_TEXT];
  cr_assert(READ(&v, "fifth", why, {"links", "thin"}, {"hop", "1,1.0,1,10e-1"}, {"Ls", "+012"},
                 {"mass", "1"}, {"b", "1,1"}),
            "%s", why);
  expect_canonical(&v, "fifth;mass=1;Ls=12;b=1,1");
  qk_values_text(&v, QK_TEXT_GIVEN, text);
  cr_expect_str_eq(text, "fifth;mass=1;Ls=12;b=1,1;hop=1,1,1,1;links=thin");
}

Test(param_types, the_longest_values_fit) {
  char list[QK_PARAM_TEXT_MAX + 1] = "", word[96], why[QK_WHY] = "", text[QK_OPERATOR_TEXT];
  qk_values_t v, back;
  int n;
  for (int i = 0; i < QK_REALS_MAX; i++)
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s-1.2345678901234567e-30%d",
             i ? "," : "", i % 8);
  memset(word, 'x', 95);
  word[95] = '\0';
  cr_assert(READ(&v, "fifth", why, {"mass", "-1.2345678901234567e-300"}, {"Ls", "48"}, {"b", list},
                 {"c", list}, {"hop", "1,2,3,4.4"}, {"links", word}),
            "%s", why);
  cr_assert_not_null(qk_value_reals(&v, "c", &n));
  cr_expect_eq(n, QK_REALS_MAX);
  qk_values_text(&v, QK_TEXT_CANONICAL, text);
  cr_expect_gt(strlen(text), 1400);
  cr_assert(qk_values_parse(&back, text, why), "%s", why);
  cr_expect_eq(memcmp(&v, &back, sizeof v), 0);
}

/* Setting one value of "fifth" is refused with words that begin so. */
static void expect_refused(const char *key, const char *value, const char *words) {
  char why[QK_WHY] = "";
  qk_values_t v;
  cr_assert(qk_values_init(&v, "fifth", why));
  cr_expect(!qk_values_set(&v, key, value, why), "%s = %s", key, value);
  cr_expect_eq(strncmp(why, words, strlen(words)), 0, "%s", why);
}

Test(param_types, a_list_is_refused_with_what_is_accepted) {
  char many[2 * QK_REALS_MAX + 2] = "1";
  for (int i = 0; i < QK_REALS_MAX; i++) strcat(many, ",1");
  expect_refused("hop", "1,1,1,0",
                 "hop = 1,1,1,0: must be 1 to 28 numbers above 0 and at most 10, with commas");
  expect_refused("b", "1,", "b = 1,: must be 1 to 28 numbers from -10 to 10, with commas");
  expect_refused("b", ",1", "b = ,1: must be 1 to 28 numbers");
  expect_refused("b", "1 1", "b = 1 1: must be 1 to 28 numbers");
  expect_refused("b", many, "b = 1,1,1");
  expect_refused("kappa", "0.1",
                 "kappa: fifth has no such parameter: it has mass, Ls, b, c, hop, links");
}

Test(param_types, an_integer_is_refused_with_what_is_accepted) {
  expect_refused("Ls", "8.0", "Ls = 8.0: must be an integer from 2 to 48");
  expect_refused("Ls", "1e1", "Ls = 1e1: must be an integer from 2 to 48");
  expect_refused("Ls", "1", "Ls = 1: must be an integer from 2 to 48");
  expect_refused("Ls", "99999999999999999999",
                 "Ls = 99999999999999999999: must be an integer from 2 to 48");
  expect_refused("Ls", "-", "Ls = -: must be an integer");
  expect_refused("Ls", "8,8", "Ls = 8,8: must be an integer");
}

Test(param_types, a_word_is_refused_with_what_is_accepted) {
  expect_refused("links", "", "links = : must be 1 to 95 letters without blank, ';' and '='");
  expect_refused("links", "a b", "links = a b: must be 1 to 95 letters");
  expect_refused("links", "a;b", "links = a;b: must be 1 to 95 letters");
  expect_refused("links", "a=b", "links = a=b: must be 1 to 95 letters");
  expect_refused("links", "\xc3\xa4", "links = ??: must be 1 to 95 letters");
}

Test(param_types, the_length_of_a_word_has_limits) {
  qk_values_t v;
  char why[QK_WHY] = "";
  cr_expect(READ(&v, "words", why, {"w", "abc"}), "%s", why);
  expect_canonical(&v, "words;w=abc");
  cr_expect(!READ(&v, "words", why, {"w", "abcd"}));
  cr_expect(!READ(&v, "words", why, {"w", "a"}));
}
