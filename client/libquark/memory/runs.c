#include "client/libquark/memory/runs.h"

#include <stdlib.h>
#include <string.h>

/* ---- the list ---- */

/* Room for one more: that of those that are forgotten, if these are the most. */
static bool make_room(runs_t *runs) {
  if (runs->n < runs->room) return true;
  if (runs->run && runs->first > runs->n / 2) {
    runs->n -= runs->first;
    memmove(runs->run, runs->run + runs->first, runs->n * sizeof *runs->run);
    runs->first = 0;
    return true;
  }
  const size_t room = runs->room ? 2 * runs->room : 16;
  run_t *run = realloc(runs->run, room * sizeof *run);
  if (!run) return false;
  runs->run = run;
  runs->room = room;
  return true;
}

bool quark__runs_add(runs_t *runs, uint64_t begin, uint64_t end, bool joins) {
  run_t *last = runs->n > runs->first ? &runs->run[runs->n - 1] : NULL;
  if (last && joins && last->end == begin)
    last->end = end;
  else if (make_room(runs))
    runs->run[runs->n++] = (run_t){begin, end, runs->all};
  else
    return false;
  runs->all += end - begin;
  return true;
}

const run_t *quark__runs_next(const runs_t *runs, uint64_t position) {
  size_t low = runs->first, high = runs->n;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (runs->run[middle].end > position)
      high = middle;
    else
      low = middle + 1;
  }
  return low < runs->n ? &runs->run[low] : NULL;
}

uint64_t quark__runs_before(const runs_t *runs, uint64_t position) {
  const run_t *run = quark__runs_next(runs, position);
  if (!run) return runs->all;
  return run->before + (position > run->begin ? position - run->begin : 0);
}

void quark__runs_forget(runs_t *runs, uint64_t position) {
  while (runs->first < runs->n && runs->run[runs->first].end <= position) runs->first++;
}

void quark__runs_fini(runs_t *runs) {
  free(runs->run);
  *runs = (runs_t){NULL};
}

/* ---- zeros in memory ---- */

enum { STEP = 4096, HALF = QUARK_RUN / 2 };

size_t quark__zeros(const uint8_t *data, size_t bytes) {
  static const uint8_t none[STEP];
  size_t n = 0;
  while (bytes - n >= STEP && memcmp(data + n, none, STEP) == 0) n += STEP;
  while (n < bytes && data[n] == 0) n++;
  return n;
}

/* Every run has a half of one, at a multiple of that, in it: of other bytes little is looked at. */
bool quark__find_run(const uint8_t *data, size_t bytes, size_t *begin, size_t *end) {
  size_t least = 0; /* where the last one that was too short ends */
  for (size_t at = 0; bytes - at >= HALF; at += HALF) {
    if (at < least || quark__zeros(data + at, HALF) < HALF) continue;
    *begin = at;
    while (*begin > least && data[*begin - 1] == 0) --*begin;
    *end = at + quark__zeros(data + at, bytes - at);
    if (*end - *begin >= QUARK_RUN) return true;
    least = *end;
  }
  return false;
}
