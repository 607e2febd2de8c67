/*
 * clocks.h: what the time of a start went on, by phases of its progress (progress.h).
 *
 * Phases follow one another and are counted once each, however often they are entered; what ran
 * beside them is noted apart. Not collective.
 */
#ifndef QK_ENGINE_CLOCKS_H
#define QK_ENGINE_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>

enum { QK_CLOCKS_MAX = 24, QK_CLOCK_NAME = 24 };

typedef struct qk_clock {
  char name[QK_CLOCK_NAME];
  double seconds;
  bool beside; /* it ran while other phases did */
} qk_clock_t;

/* {0}: nothing has been measured. */
typedef struct qk_clocks {
  int n;
  int now; /* the phase that runs: its index + 1; 0: none */
  double since;
  qk_clock_t clock[QK_CLOCKS_MAX]; /* in the order in which they were entered first */
} qk_clocks_t;

/* The phase that runs ends, and this one begins; NULL: none does. Phases beyond QK_CLOCKS_MAX are
 * counted with the last one. */
void qk_clocks_enter(qk_clocks_t *clocks, const char *phase);
void qk_clocks_beside(qk_clocks_t *clocks, const char *name, double seconds);
/* "read 0.61 s, check 0.20 s (beside them file 0.35 s)"; cut to `size`. */
void qk_clocks_text(const qk_clocks_t *clocks, char *text, size_t size);

#endif
