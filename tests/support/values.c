#include "tests/support/values.h"

#include <stdio.h>
#include <stdlib.h>

qk_values_t values_of(const char *text) {
  qk_values_t values;
  char why[QK_WHY];
  if (!qk_values_parse(&values, text, why)) {
    fprintf(stderr, "%s: %s\n", text, why);
    abort();
  }
  return values;
}

qk_values_t values_wilson(double mass, double csw) {
  char m[QK_REAL_TEXT], c[QK_REAL_TEXT], why[QK_WHY];
  const qk_setting_t setting[] = {{"mass", m}, {"csw", c}};
  qk_values_t values;
  qk_real_text(mass, m);
  qk_real_text(csw, c);
  if (!qk_values_read(&values, NULL, setting, 2, why)) {
    fprintf(stderr, "mass %g, csw %g: %s\n", mass, csw, why);
    abort();
  }
  return values;
}

qk_action_params_t params_wilson(double mass, double csw, double phase_t) {
  return (qk_action_params_t){.values = values_wilson(mass, csw),
                              .phase = {{1, 0}, {1, 0}, {1, 0}, {phase_t, 0}},
                              .link_reals = {18, 12, 18},
                              .want = {true, true, true}};
}
