#include "daemon/front/measure/stats.h"

#include <math.h>

#define BOUNDS(array)                                                                              \
  { array, (int)(sizeof array / sizeof *array) }

static const double SECONDS[] = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,  1,
                                 3,     10,    30,   100,  300, 1000, 3000};
static const double ITERATIONS[] = {1, 3, 10, 20, 30, 50, 100, 300, 1000, 3000, 10000, 30000};
static const double RESIDUALS[] = {1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8,
                                   1e-7,  1e-6,  1e-5,  1e-4,  1e-3,  1e-2, 1e-1};

const qk_bounds_t QK_STATS_SECONDS = BOUNDS(SECONDS), QK_STATS_ITERATIONS = BOUNDS(ITERATIONS),
                  QK_STATS_RESIDUALS = BOUNDS(RESIDUALS);

/* NaN counts as above all, and not in the sum. */
static void add(qk_histogram_t *h, const qk_bounds_t *bounds, double value) {
  int i = 0;
  while (i < bounds->n && !(value <= bounds->at[i])) i++;
  h->count[i]++;
  if (!isnan(value)) h->sum += value;
}

void qk_stats_phase(qk_stats_t *stats, qk_phase_t phase, double seconds) {
  add(&stats->seconds[phase], &QK_STATS_SECONDS, seconds);
}

void qk_stats_solved(qk_stats_t *stats, uint64_t iterations, double true_residual) {
  add(&stats->iterations, &QK_STATS_ITERATIONS, (double)iterations);
  add(&stats->residual, &QK_STATS_RESIDUALS, true_residual);
}
