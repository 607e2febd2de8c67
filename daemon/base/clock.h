/*
 * clock.h: the time, in seconds.
 */
#ifndef QK_BASE_CLOCK_H
#define QK_BASE_CLOCK_H

#include <time.h>

static inline double qk_clock_read(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Since an arbitrary start; never set back: for intervals and deadlines. */
static inline double qk_clock_now(void) {
  return qk_clock_read(CLOCK_MONOTONIC);
}

/* Since 1970, as people and batch systems tell the time. It may be set forth or back. */
static inline double qk_clock_wall(void) {
  return qk_clock_read(CLOCK_REALTIME);
}

#endif
