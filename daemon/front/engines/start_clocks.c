#include "daemon/front/engines/start_clocks.h"

#include <stdio.h>

/* Names become labels of metrics. */
static void make_printable(char *text) {
  for (; *text; text++)
    if (*text < ' ' || *text > '~') *text = '?';
}

void qk_start_clocks_read(qk_start_clocks_t *clocks, const Quark__Engine__Ready *ready) {
  clocks->n = 0;
  for (size_t i = 0; i < ready->n_clock && clocks->n < QK_START_CLOCKS_MAX; i++) {
    qk_start_clock_t *c = &clocks->clock[clocks->n++];
    snprintf(c->phase, sizeof c->phase, "%s", ready->clock[i]->phase);
    make_printable(c->phase);
    c->seconds = ready->clock[i]->seconds;
    c->beside = ready->clock[i]->beside;
  }
}
