/*
 * start_clocks.h: what the start of an engine went on, as its READY says it.
 */
#ifndef QK_FRONT_START_CLOCKS_H
#define QK_FRONT_START_CLOCKS_H

#include <stdbool.h>

#include "proto/engine.pb-c.h"

enum { QK_START_CLOCKS_MAX = 24 };

typedef struct qk_start_clock {
  char phase[24]; /* printable ASCII */
  double seconds;
  bool beside; /* other phases */
} qk_start_clock_t;

typedef struct qk_start_clocks {
  int n;
  qk_start_clock_t clock[QK_START_CLOCKS_MAX];
} qk_start_clocks_t;

/* Those of the message, as many as there is room for; in place of others. */
void qk_start_clocks_read(qk_start_clocks_t *clocks, const Quark__Engine__Ready *ready);

#endif
