/*
 * clock.h: the monotonic clock of all deadlines of libquark.
 *
 * Milliseconds since an arbitrary start, as the condition variable of a connection counts them too.
 */
#ifndef QUARK_CLOCK_H
#define QUARK_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t quark__now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#endif
