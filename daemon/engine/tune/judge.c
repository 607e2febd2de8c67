#include "daemon/engine/tune/judge.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void qk_tune_sort(const double *v, int n, double *sorted) {
  memcpy(sorted, v, (size_t)n * sizeof *v);
  qsort(sorted, (size_t)n, sizeof *sorted, by_size);
}

double qk_tune_median(const double *v, int n) {
  double sorted[QK_TUNE_TIMES];
  qk_tune_sort(v, n, sorted);
  return n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

/* Returns the spread of the costs, as a part of their median. */
static double summarize(const qk_tune_turns_t *t, double solves, qk_tune_side_t *side) {
  double cost[QK_TUNE_TURNS], least = INFINITY, most = 0;
  for (int i = 0; i < t->n; i++) {
    cost[i] = t->seconds[i] + t->setup[i] / solves;
    least = fmin(least, cost[i]);
    most = fmax(most, cost[i]);
  }
  side->cost = qk_tune_median(cost, t->n);
  side->seconds = qk_tune_median(t->seconds, t->n);
  side->setup = qk_tune_median(t->setup, t->n);
  side->alone = qk_tune_median(t->alone, t->n);
  return (most - least) / side->cost;
}

/* Which difference says what the sum says, and how much of it. */
static qk_tune_part_t decisive(const qk_tune_verdict_t *v, double solves) {
  const double seconds = v->defaults.seconds - v->settings.seconds;
  const double setup = (v->defaults.setup - v->settings.setup) / solves;
  if (seconds * setup > 0 && fabs(setup) > 0.25 * fabs(seconds) &&
      fabs(seconds) > 0.25 * fabs(setup))
    return QK_TUNE_BY_BOTH;
  return fabs(setup) > fabs(seconds) ? QK_TUNE_BY_SETUP : QK_TUNE_BY_SOLVES;
}

void qk_tune_judge(const qk_tune_turns_t *defaults, const qk_tune_turns_t *settings, double noise,
                   double solves, qk_tune_verdict_t *verdict) {
  qk_tune_verdict_t v = {.noise = fmax(noise, QK_TUNE_LEAST_GAIN)};
  v.noise = fmax(v.noise, summarize(defaults, solves, &v.defaults));
  v.noise = fmax(v.noise, summarize(settings, solves, &v.settings));
  v.gain = 1 - v.settings.cost / v.defaults.cost;
  v.better = v.gain > v.noise;
  v.by = decisive(&v, solves);
  *verdict = v;
}
