#include "proto/action/links_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "proto/limits.h"

enum { PARAMS_MAX = 3, RECIPE_TEXT = 2 * (16 + PARAMS_MAX * QK_REAL_TEXT + 16) };

/* ---- one smearing ---------------------------------------------------------------------------- */

static bool in_range(const char *what, double value, double most, char why[QK_WHY]) {
  if (value >= 0 && value <= most) return true;
  return qk_refuse(why, "link smearing: %s = %g: must be 0 to %g", what, value, most);
}

bool qk_link_smear_fits(const qk_link_smear_t *smear, char why[QK_WHY]) {
  static const char *const hyp[2][3] = {{"HYP alpha1", "HYP alpha2", "HYP alpha3"},
                                        {"HEX alpha1", "HEX alpha2", "HEX alpha3"}};
  if (smear->kind < QK_LINK_SMEAR_NONE || smear->kind > QK_LINK_SMEAR_HYP)
    return qk_refuse(why, "link smearing: kind = %d: 0 (none) to 3 (HYP)", (int)smear->kind);
  if (smear->steps < 0 || smear->steps > QK_LINK_STEPS_MAX)
    return qk_refuse(why, "link smearing: steps = %d: must be 0 to %d", smear->steps,
                     QK_LINK_STEPS_MAX);
  if (smear->kind == QK_LINK_SMEAR_APE) return in_range("APE alpha", smear->param[0], 1, why);
  if (smear->kind == QK_LINK_SMEAR_STOUT) return in_range("stout rho", smear->param[0], 0.25, why);
  for (int i = 0; smear->kind == QK_LINK_SMEAR_HYP && i < 3; i++)
    if (!in_range(hyp[smear->hex][i], smear->param[i], 1, why)) return false;
  return true;
}

/* ---- recipes --------------------------------------------------------------------------------- */

typedef struct kind {
  const char *name;
  qk_link_smear_kind_t kind;
  int params;
  bool hex, directions, slinc;
} kind_t;

static const kind_t kinds[] = {
    {.name = "thin", .kind = QK_LINK_SMEAR_NONE},
    {.name = "ape", .kind = QK_LINK_SMEAR_APE, .params = 1, .directions = true},
    {.name = "stout", .kind = QK_LINK_SMEAR_STOUT, .params = 1, .directions = true},
    {.name = "hyp", .kind = QK_LINK_SMEAR_HYP, .params = 3},
    {.name = "hex", .kind = QK_LINK_SMEAR_HYP, .params = 3, .hex = true},
    {.name = "slinc", .kind = QK_LINK_SMEAR_STOUT, .params = 1, .slinc = true},
};

static const char FORMS[] = "thin, ape:ALPHA,STEPS[:xyz], stout:RHO,STEPS[:xyz], "
                            "hyp:A1,A2,A3,STEPS, hex:A1,A2,A3,STEPS, A/B or slinc:RHO,STEPS";

static const kind_t *kind_named(const char *name) {
  for (size_t i = 0; name && i < sizeof kinds / sizeof kinds[0]; i++)
    if (strcmp(kinds[i].name, name) == 0) return &kinds[i];
  return NULL;
}

/* "0.125,1": parameters and steps. */
static bool read_numbers(char *text, const kind_t *kind, qk_link_smear_t *smear) {
  double number[PARAMS_MAX + 1];
  const char *word;
  int n = 0;
  for (; (word = strsep(&text, ",")) != NULL; n++)
    if (n > kind->params || !qk_real_parse(word, &number[n])) return false;
  if (n != kind->params + 1 || !(fabs(number[n - 1]) <= 1e6)) return false;
  memcpy(smear->param, number, (size_t)kind->params * sizeof *number);
  smear->steps = (int)number[n - 1];
  return smear->steps == number[n - 1];
}

/* NAME[:NUMBERS[:xyz]], cut in place; kind: that of the name. */
static bool read_smearing(char *text, const kind_t **kind, qk_link_smear_t *smear) {
  const kind_t *k = *kind = kind_named(strsep(&text, ":"));
  char *numbers = strsep(&text, ":");
  *smear = (qk_link_smear_t){0};
  if (!k || (k->params > 0) != (numbers != NULL)) return false;
  if (k->params > 0 && !read_numbers(numbers, k, smear)) return false;
  if (text && (!k->directions || strcmp(text, "xyz") != 0)) return false;
  smear->kind = k->kind;
  smear->hex = k->hex;
  smear->spatial = text != NULL;
  return true;
}

static bool read_recipe(char *text, qk_links_recipe_t *recipe) {
  const kind_t *hop, *clover = NULL;
  const char *first = strsep(&text, "/");
  *recipe = (qk_links_recipe_t){0};
  if (!read_smearing((char *)first, &hop, &recipe->hop)) return false;
  recipe->apart = text || hop->slinc;
  if (!text) {
    if (!hop->slinc) recipe->clover = recipe->hop;
    return true;
  }
  return !hop->slinc && read_smearing(text, &clover, &recipe->clover) && !clover->slinc;
}

static bool equal(const qk_link_smear_t *a, const qk_link_smear_t *b) {
  return a->kind == b->kind && a->hex == b->hex && a->spatial == b->spatial &&
         a->steps == b->steps && memcmp(a->param, b->param, sizeof a->param) == 0;
}

/* Appends the text of a smearing. */
static void write_smearing(const qk_link_smear_t *s, bool slinc, char text[RECIPE_TEXT]) {
  const kind_t *k = kinds;
  while (k->kind != s->kind || k->hex != s->hex || k->slinc != slinc) k++;
  size_t n = strlen(text);
  n += (size_t)snprintf(text + n, RECIPE_TEXT - n, "%s%s", k->name, k->params > 0 ? ":" : "");
  for (int i = 0; i < k->params; i++) {
    char number[QK_REAL_TEXT];
    qk_real_text(s->param[i], number);
    n += (size_t)snprintf(text + n, RECIPE_TEXT - n, "%s,", number);
  }
  if (k->params > 0)
    snprintf(text + n, RECIPE_TEXT - n, "%d%s", s->steps, s->spatial ? ":xyz" : "");
}

/* The one text of a recipe, which operators are told apart by. */
static void write_recipe(qk_links_recipe_t *r, char text[RECIPE_TEXT]) {
  if (r->hop.steps == 0) r->hop = (qk_link_smear_t){0};
  if (r->clover.steps == 0) r->clover = (qk_link_smear_t){0};
  r->apart = r->apart && !equal(&r->hop, &r->clover);
  const bool slinc = r->apart && r->hop.kind == QK_LINK_SMEAR_STOUT && !r->hop.spatial &&
                     r->clover.kind == QK_LINK_SMEAR_NONE;
  text[0] = '\0';
  write_smearing(&r->hop, slinc, text);
  if (!r->apart || slinc) return;
  strcat(text, "/");
  write_smearing(&r->clover, false, text);
}

bool qk_links_read(const char *text, qk_links_recipe_t *recipe, char why[QK_WHY]) {
  char cut[QK_PARAM_WORD_MAX + 1], canonical[RECIPE_TEXT], beyond[QK_WHY];
  snprintf(cut, sizeof cut, "%s", text);
  if (!read_recipe(cut, recipe)) return qk_refuse(why, "links = %.95s: must be %s", text, FORMS);
  if (!qk_link_smear_fits(&recipe->hop, beyond) || !qk_link_smear_fits(&recipe->clover, beyond))
    return qk_refuse(why, "links = %.95s: %.300s", text, beyond);
  write_recipe(recipe, canonical);
  if (strcmp(text, canonical) == 0) return true;
  return qk_refuse(why, "links = %.95s: write it as %.200s", text, canonical);
}

bool qk_links_fit(const char *text, char why[QK_WHY]) {
  qk_links_recipe_t recipe;
  return qk_links_read(text, &recipe, why);
}
