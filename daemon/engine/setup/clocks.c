#include "daemon/engine/setup/clocks.h"

#include <stdio.h>
#include <string.h>

#include "daemon/base/clock.h"

static int find(qk_clocks_t *c, const char *name, bool beside) {
  for (int i = 0; i < c->n; i++)
    if (strcmp(c->clock[i].name, name) == 0 && c->clock[i].beside == beside) return i;
  if (c->n == QK_CLOCKS_MAX) return c->n - 1;
  snprintf(c->clock[c->n].name, QK_CLOCK_NAME, "%s", name);
  c->clock[c->n].beside = beside;
  return c->n++;
}

void qk_clocks_enter(qk_clocks_t *clocks, const char *phase) {
  const double now = qk_clock_now();
  if (clocks->now > 0) clocks->clock[clocks->now - 1].seconds += now - clocks->since;
  clocks->since = now;
  clocks->now = phase != NULL ? find(clocks, phase, false) + 1 : 0;
}

void qk_clocks_beside(qk_clocks_t *clocks, const char *name, double seconds) {
  clocks->clock[find(clocks, name, true)].seconds += seconds;
}

/* Those that ran beside others, or not; returns how many. */
static int append(const qk_clocks_t *c, bool beside, const char *first, char *text, size_t size) {
  int n = 0;
  for (int i = 0; i < c->n; i++) {
    const size_t length = strlen(text);
    if (c->clock[i].beside != beside) continue;
    snprintf(text + length, size - length, "%s%s %.2f s", n == 0 ? first : ", ", c->clock[i].name,
             c->clock[i].seconds);
    n++;
  }
  return n;
}

void qk_clocks_text(const qk_clocks_t *clocks, char *text, size_t size) {
  text[0] = '\0';
  append(clocks, false, "", text, size);
  if (append(clocks, true, " (beside them ", text, size) == 0) return;
  const size_t length = strlen(text);
  snprintf(text + length, size - length, ")");
}
