/*
 * axes.h: what quark-tune varies: one axis for each parameter of multigrid (mg_text.h) and each
 * level that has it, with the words that it may take. Another one is a line of the table in axes.c.
 * Pure.
 */
#ifndef QK_TUNE_AXES_H
#define QK_TUNE_AXES_H

#include <stdbool.h>

#include "daemon/engine/multigrid/multigrid.h"

enum { QK_TUNE_WORDS = 6, QK_TUNE_AXES = 64, QK_TUNE_WORD = 24, QK_TUNE_WHAT = 64 };

typedef struct qk_tune_axis {
  const char *key;
  int level;    /* -1: of the whole hierarchy */
  bool ordered; /* the words ascend: where one is worse than its neighbour, those beyond are too */
  int nword;
  char word[QK_TUNE_WORDS][QK_TUNE_WORD];
} qk_tune_axis_t;

/* The axes worth trying on this lattice, in the order of the table. What an axis changes, but for
 * the number of levels, changes only axes behind it. start: complete parameters. twisted: the
 * operator has a twist (operator.h). */
int qk_tune_axes(const qk_geom_t *geom, const qk_mg_params_t *start, bool twisted,
                 qk_tune_axis_t axis[QK_TUNE_AXES]);

/* params with one word put in; where that changes them, what depends on it becomes 0, to be
 * completed anew. QK_BAD_ARGUMENT as qk_mg_text_set. */
qk_status_t qk_tune_put(const qk_tune_axis_t *axis, int word, qk_mg_params_t *params,
                        qk_err_t *err);

/* "mg-post = 4 on level 0" */
void qk_tune_what(const qk_tune_axis_t *axis, int word, char what[QK_TUNE_WHAT]);

#endif
