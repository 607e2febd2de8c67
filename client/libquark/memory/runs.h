/*
 * runs.h: runs of zeros in the stream of an upload, which are not kept in its ring and go to the
 * daemon as their length; and how they are found.
 *
 * Units    bytes; positions count from the start of the stream.
 * Threads  Those of request/upload.h; what looks at memory of the user: any.
 */
#ifndef QUARK_RUNS_H
#define QUARK_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { QUARK_RUN = 64 * 1024 }; /* fewer zeros than that go as they are */

typedef struct run {
  uint64_t begin, end;
  uint64_t before; /* zeros of all runs before it */
} run_t;

/* In order. Zeros: none. */
typedef struct runs {
  run_t *run;
  size_t first, n, room; /* those before `first` are forgotten */
  uint64_t all;          /* zeros of all runs there have been */
} runs_t;

/* Another one, behind all others; joins: it goes on with the last if that ends there. False, with
 * nothing changed: no memory. */
bool quark__runs_add(runs_t *runs, uint64_t begin, uint64_t end, bool joins);
/* The first one that ends behind the position; NULL: there is none. */
const run_t *quark__runs_next(const runs_t *runs, uint64_t position);
/* Zeros of runs before the position, which is not among those that are forgotten. */
uint64_t quark__runs_before(const runs_t *runs, uint64_t position);
/* Those that end there or before are not asked for any more. */
void quark__runs_forget(runs_t *runs, uint64_t position);
void quark__runs_fini(runs_t *runs);

/* How many zeros there are from the beginning on. -0.0 is none. */
size_t quark__zeros(const uint8_t *data, size_t bytes);
/* The first run of at least QUARK_RUN, [*begin, *end). False: there is none. */
bool quark__find_run(const uint8_t *data, size_t bytes, size_t *begin, size_t *end);

#endif
