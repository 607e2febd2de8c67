/*
 * search.h: a search over multigrid parameters, one axis after the other.
 *
 * From the starting point the search walks along each axis (axes.h) in turn, with the others at the
 * best values so far: over all words, or, where they are ordered, away from the present one as long
 * as it does not get worse. Rounds are repeated until none moves, or the time is up; each has the
 * axes of the point that it starts from. The caller defines the cost of a point: lower is better,
 * INFINITY: it does not work. Knows nothing of solves; pure except for the callbacks.
 */
#ifndef QK_TUNE_SEARCH_H
#define QK_TUNE_SEARCH_H

#include "daemon/engine/tune/axes.h"

typedef struct qk_tune_search {
  void *arg;
  const qk_geom_t *geom;
  bool twisted;
  double margin; /* the best point moves where the cost falls by more than this part of it */
  /* Completes the parameters and returns their cost, or, of what is worse than `least`, a number
   * that is above that and below the cost. what: how they differ from the best so far. */
  double (*cost)(void *arg, qk_mg_params_t *params, const char *what, double least);
  /* The cost of the best so far, measured anew: before the best moves, so that a machine that got
   * faster is no gain, and after every few trials, so that one that got slower hides none. */
  double (*again)(void *arg, const qk_mg_params_t *best);
  bool (*time_left)(void *arg);
} qk_tune_search_t;

/* best: the start, complete, then the result; least: its cost. Returns that of the result. */
double qk_tune_run(const qk_tune_search_t *search, qk_mg_params_t *best, double least);

#endif
