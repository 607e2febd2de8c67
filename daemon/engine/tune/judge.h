/*
 * judge.h: whether settings are better than the defaults, from turns that were measured one after
 * the other: defaults, settings, defaults, settings, ... Pure.
 *
 * What counts is the cost: seconds of a solve and its part of those of a setup. Settings are better
 * where the median of their costs is less than that of the defaults by more than the noise, which
 * is the greatest of: the spread (most - least) of the turns of either, that of solves of the
 * defaults before, and LEAST_GAIN. What the clock of a machine does over minutes touches both.
 */
#ifndef QK_TUNE_JUDGE_H
#define QK_TUNE_JUDGE_H

#include <stdbool.h>

enum { QK_TUNE_TURNS = 5, QK_TUNE_TURNS_LEAST = 2, QK_TUNE_TIMES = 64 };

/* Less is never called a gain. */
#define QK_TUNE_LEAST_GAIN 0.01

typedef struct qk_tune_turns {
  int n;
  double seconds[QK_TUNE_TURNS], setup[QK_TUNE_TURNS], alone[QK_TUNE_TURNS];
} qk_tune_turns_t;

/* The medians of turns. */
typedef struct qk_tune_side {
  double cost, seconds, setup, alone;
} qk_tune_side_t;

typedef enum qk_tune_part { QK_TUNE_BY_SOLVES, QK_TUNE_BY_SETUP, QK_TUNE_BY_BOTH } qk_tune_part_t;

typedef struct qk_tune_verdict {
  bool better;
  double gain;  /* 1 - cost of the settings / cost of the defaults */
  double noise; /* in the same units */
  qk_tune_side_t defaults, settings;
  qk_tune_part_t by; /* what has more weight in the gain, or in the loss */
} qk_tune_verdict_t;

/* n: 1 .. QK_TUNE_TIMES */
void qk_tune_sort(const double *v, int n, double *sorted);
double qk_tune_median(const double *v, int n);
/* noise: spread of the defaults before. At least one turn of each. */
void qk_tune_judge(const qk_tune_turns_t *defaults, const qk_tune_turns_t *settings, double noise,
                   double solves, qk_tune_verdict_t *verdict);

#endif
