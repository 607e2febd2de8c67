/* The rows of the actions: what operator_text and the man pages rely on. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "proto/action/operator_text.h"

static void check_param(const qk_action_row_t *row, const qk_param_t *p) {
  cr_expect(strlen(p->key) > 0 && strlen(p->key) <= QK_PARAM_KEY_MAX, "%s", p->key);
  cr_expect_null(strpbrk(p->key, "=; _"), "%s", p->key);
  cr_expect(strcmp(p->key, "kappa") != 0 || !row->has_kappa, "it stands for mass");
  cr_expect_str_neq(p->key, "action");
  cr_expect_lt(p->least, p->most, "%s", p->key);
  cr_expect(p->help && p->help[0] && p->help[strlen(p->help) - 1] != '.', "%s", p->key);
  if (p->type == QK_PARAM_WORD) cr_expect_leq(p->most, QK_PARAM_WORD_MAX, "%s", p->key);
  for (const qk_param_t *other = row->param; other != p; other++)
    cr_expect_str_neq(other->key, p->key);
  if (p->otherwise) { /* it is legal, and already as it would be written */
    qk_values_t v;
    char why[QK_WHY] = "", text[QK_OPERATOR_TEXT];
    cr_assert(qk_values_init(&v, row->name, why));
    cr_expect(qk_values_set(&v, p->key, p->otherwise, why), "%s", why);
    char setting[QK_OPERATOR_TEXT], given[QK_OPERATOR_TEXT + 1];
    snprintf(setting, sizeof setting, ";%s=%s", p->key, p->otherwise);
    snprintf(given, sizeof given, "%.100s%.3000s", row->name, setting);
    qk_values_text(&v, QK_TEXT_GIVEN, text);
    cr_expect_str_eq(text, given);
    qk_values_text(&v, QK_TEXT_CANONICAL, text);
    cr_expect_null(strstr(text, setting), "%s", text);
  }
}

Test(actions, rows_are_complete_and_fit_into_values) {
  for (int a = 0; qk_action_rows[a].name; a++) {
    const qk_action_row_t *row = &qk_action_rows[a];
    int n = 0, reals = 0, words = 0;
    bool mass = false;
    cr_assert(row->name && row->help && row->reference && row->param);
    cr_expect_leq(strlen(row->name), QK_PARAM_NAME_MAX);
    cr_expect_null(strpbrk(row->name, "=; "));
    for (int b = 0; b < a; b++) cr_expect_str_neq(row->name, qk_action_rows[b].name);
    for (; row->param[n].key; n++) {
      const qk_param_t *p = &row->param[n];
      check_param(row, p);
      words += p->type == QK_PARAM_WORD;
      reals += p->type == QK_PARAM_REALS ? QK_REALS_MAX : p->type != QK_PARAM_WORD;
      mass = mass || (strcmp(p->key, "mass") == 0 && p->type == QK_PARAM_REAL);
    }
    cr_expect_leq(n, QK_VALUES_PARAMS);
    cr_expect_leq(reals, QK_VALUES_REALS);
    cr_expect_leq(words, QK_VALUES_WORDS);
    cr_expect(mass || !row->has_kappa, "%s: kappa stands for a mass", row->name);
  }
}
