/*
 * Parameters of actions from any text. The first byte says how: a canonical text, or lines of
 * KEY=VALUE after an action or none. What is accepted reads back, bit by bit, from the canonical
 * text that it gives; what is refused comes with a sentence.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/action/operator_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void promise(bool kept) {
  if (!kept) abort();
}

static void is_sentence(const char why[QK_WHY]) {
  promise(why[0] && memchr(why, '\0', QK_WHY));
  for (const char *p = why; *p; p++) promise(*p >= ' ' && *p <= '~');
}

static void reads_back(const qk_values_t *values) {
  char text[QK_OPERATOR_TEXT], again[QK_OPERATOR_TEXT], why[QK_WHY] = "";
  qk_setting_t setting[QK_VALUES_PARAMS];
  const char *action;
  qk_values_t back, given;
  qk_values_text(values, QK_TEXT_CANONICAL, text);
  promise(strlen(text) < QK_OPERATOR_TEXT && qk_values_parse(&back, text, why));
  qk_values_text(&back, QK_TEXT_CANONICAL, again);
  promise(strcmp(text, again) == 0);
  promise(qk_value(&back, "mass") == qk_value(values, "mass") && qk_values_kappa(values) > 0);
  qk_values_text(values, QK_TEXT_GIVEN, text);
  const int n = qk_operator_split(text, &action, setting);
  promise(n >= 0 && qk_values_read(&given, action, setting, (size_t)n, why));
  qk_values_text(&given, QK_TEXT_CANONICAL, text);
  promise(strcmp(text, again) == 0);
}

static void settings(char *text, bool named) {
  enum { MOST = 100 };
  qk_setting_t setting[MOST];
  char why[QK_WHY] = "";
  size_t n = 0;
  qk_values_t values;
  const char *action = named ? strsep(&text, "\n") : NULL;
  for (char *line; n < MOST && (line = strsep(&text, "\n")); n++)
    if (!qk_setting_split(line, &setting[n], why)) {
      is_sentence(why);
      return;
    }
  if (qk_values_read(&values, action, setting, n, why))
    reads_back(&values);
  else
    is_sentence(why);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) return 0;
  char *text = malloc(size), why[QK_WHY] = "";
  double boundary[8];
  qk_values_t values;
  if (!text) return 0;
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  if (qk_boundary_parse(text, boundary, why))
    for (int mu = 0; mu < 4; mu++)
      promise(fabs(hypot(boundary[2 * mu], boundary[2 * mu + 1]) - 1) < 1e-12);
  else
    is_sentence(why);
  if (data[0] % 3 == 0) {
    if (qk_values_parse(&values, text, why))
      reads_back(&values);
    else
      is_sentence(why);
  } else {
    settings(text, data[0] % 3 == 1);
  }
  free(text);
  return 0;
}
