/*
 * stats.h: histograms of right-hand sides: where they spend their time, and how solves ended.
 */
#ifndef QK_FRONT_STATS_H
#define QK_FRONT_STATS_H

#include <stdint.h>

/* Where a right-hand side spends its time. */
typedef enum qk_phase {
  QK_PHASE_UPLOAD, /* from acceptance to the last byte; uploads, and files that are read */
  QK_PHASE_QUEUE,  /* to a slot */
  QK_PHASE_SOLVE,  /* to its end */
  QK_PHASE_FETCH,  /* to its acknowledgement */
  QK_PHASES
} qk_phase_t;

enum { QK_BUCKETS = 16 };

/* How often a quantity fell below each of fixed bounds, as Prometheus counts it. */
typedef struct qk_histogram {
  uint64_t count[QK_BUCKETS + 1]; /* up to bound i and above bound i - 1; last: above all */
  double sum;
} qk_histogram_t;

/* Upper bounds of the bins of a histogram: n <= QK_BUCKETS of them, rising. */
typedef struct qk_bounds {
  const double *at;
  int n;
} qk_bounds_t;

extern const qk_bounds_t QK_STATS_SECONDS, QK_STATS_ITERATIONS, QK_STATS_RESIDUALS;

/* Zeros: nothing has been seen. */
typedef struct qk_stats {
  qk_histogram_t seconds[QK_PHASES], iterations, residual;
} qk_stats_t;

void qk_stats_phase(qk_stats_t *stats, qk_phase_t phase, double seconds);
/* Of a solve that has ended with a solution. */
void qk_stats_solved(qk_stats_t *stats, uint64_t iterations, double true_residual);

#endif
