/*
 * history.h: data for the plots of the status page, in bounded memory: the residual of a solve over
 * its iterations, and the service over the last minutes. No clock.
 */
#ifndef QK_FRONT_HISTORY_H
#define QK_FRONT_HISTORY_H

#include <stdint.h>

enum { QK_CURVE_POINTS = 256, QK_HISTORY_SAMPLES = 300, QK_HISTORY_SECONDS = 2 };

/* A solve from its beginning. When the curve is full, every second point is dropped, and from
 * then on only every second point is added. */
typedef struct qk_curve {
  int n;
  uint64_t seen, stride; /* every stride-th point that is seen is kept */
  struct {
    uint64_t iterations;
    double residual;
  } point[QK_CURVE_POINTS];
} qk_curve_t;

void qk_curve_clear(qk_curve_t *curve);
void qk_curve_add(qk_curve_t *curve, uint64_t iterations, double residual);

typedef struct qk_sample {
  double time;                                      /* seconds */
  uint64_t solved, iterations, bytes_in, bytes_out; /* since the start */
  double busy, slots, queued; /* now; in the history the mean since the sample before */
} qk_sample_t;

/* A ring of one sample for each QK_HISTORY_SECONDS. All zeros: empty. */
typedef struct qk_history {
  int n, first;
  qk_sample_t sample[QK_HISTORY_SAMPLES];
  qk_sample_t sum; /* of what was seen since the last of them */
  int seen;
} qk_history_t;

/* To be called several times in QK_HISTORY_SECONDS. */
void qk_history_see(qk_history_t *history, const qk_sample_t *now);
/* i: 0, the oldest, .. n - 1 */
const qk_sample_t *qk_history_at(const qk_history_t *history, int i);

#endif
