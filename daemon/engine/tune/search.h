/*
 * search.h: a search over multigrid parameters, one axis after the other.
 *
 * An axis is one parameter (mg_text.h), of one level or of all, with the words that it may have.
 * From the starting point the search tries all words of each axis in turn, with the other axes at
 * the best values so far. Rounds are repeated until one gains less than MIN_GAIN, or the time is
 * up. The caller defines the cost of a point: lower is better, INFINITY: it does not work. Pure
 * except for the callbacks.
 */
#ifndef QK_TUNE_SEARCH_H
#define QK_TUNE_SEARCH_H

#include <stdbool.h>

#include "daemon/engine/multigrid/multigrid.h"

enum { QK_TUNE_WORDS = 6, QK_TUNE_AXES = 48, QK_TUNE_WORD = 24 };

typedef struct qk_tune_axis {
  const char *key;
  int level; /* -1: of the whole hierarchy */
  int nword;
  char word[QK_TUNE_WORDS][QK_TUNE_WORD];
} qk_tune_axis_t;

/* The axes worth trying on this lattice, those of the cycle first. start: complete parameters.
 * twisted: the operator has a twist (operator.h). */
int qk_tune_axes(const qk_geom_t *geom, const qk_mg_params_t *start, bool twisted,
                 qk_tune_axis_t *axis);

/* params with one word put in. QK_BAD_ARGUMENT as qk_mg_text_set. */
qk_status_t qk_tune_put(const qk_tune_axis_t *axis, int word, qk_mg_params_t *params,
                        qk_err_t *err);

typedef struct qk_tune_search {
  void *arg;
  /* Cost of a point, which differs from the best one so far in this word of the axis (NULL at
   * the start). */
  double (*cost)(void *arg, const qk_mg_params_t *params, const qk_tune_axis_t *axis, int word);
  bool (*time_left)(void *arg);
} qk_tune_search_t;

/* best: the start, then the result. Returns its cost. */
double qk_tune_run(const qk_tune_search_t *search, const qk_tune_axis_t *axis, int naxis,
                   qk_mg_params_t *best);

#endif
