#include "proto/action/fix_text.h"

#include <stdio.h>
#include <string.h>

static const double LEAST = 1e-26, USUAL = 1e-12;

bool qk_fix_read(const char *text, qk_fix_recipe_t *recipe, char why[QK_WHY]) {
  char word[QK_FIX_TEXT_MAX + 1] = "none", *rest = word;
  qk_fix_recipe_t r = {.theta = USUAL};
  if (text && strlen(text) > QK_FIX_TEXT_MAX)
    return qk_refuse(why, "fix-gauge of %zu bytes: at most %d", strlen(text), QK_FIX_TEXT_MAX);
  if (text) strcpy(word, text);
  const char *name = strsep(&rest, ":");
  r.landau = strcmp(name, "landau") == 0;
  r.coulomb = strcmp(name, "coulomb") == 0;
  if (!r.landau && !r.coulomb && (rest || strcmp(name, "none") != 0))
    return qk_refuse(why, "fix-gauge = %s: must be none, landau[:THETA] or coulomb[:THETA]", text);
  if (rest && !(qk_real_parse(rest, &r.theta) && r.theta >= LEAST && r.theta <= 1))
    return qk_refuse(why, "fix-gauge = %s: THETA must be %g to 1", text, LEAST);
  *recipe = r;
  return true;
}

char *qk_fix_text(const qk_fix_recipe_t *recipe, char text[QK_FIX_TEXT_MAX + 1]) {
  char theta[QK_REAL_TEXT];
  qk_real_text(recipe->theta, theta);
  snprintf(text, QK_FIX_TEXT_MAX + 1, recipe->landau || recipe->coulomb ? "%s:%s" : "%s",
           recipe->landau    ? "landau"
           : recipe->coulomb ? "coulomb"
                             : "none",
           theta);
  return text;
}
