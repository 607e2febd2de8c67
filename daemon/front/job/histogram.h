/*
 * histogram.h: how often a quantity fell below each of fixed bounds, as Prometheus counts it.
 */
#ifndef QK_FRONT_HISTOGRAM_H
#define QK_FRONT_HISTOGRAM_H

#include <stdint.h>

enum { QK_BUCKETS = 16 };

typedef struct qk_histogram {
  uint64_t count[QK_BUCKETS + 1]; /* up to bound i and above bound i - 1; last: above all */
  double sum;
} qk_histogram_t;

/* bound: n <= QK_BUCKETS of them, rising. NaN counts as above all, and not in the sum. */
void qk_histogram_add(qk_histogram_t *h, const double *bound, int n, double value);

#endif
