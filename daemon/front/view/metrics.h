/*
 * metrics.h: what the daemon measures of itself, in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).
 *
 * Numbers that STATUS has are taken from the server as they stand; histograms are kept here. docs/operations.md lists the
 * names.
 */
#ifndef QK_FRONT_METRICS_H
#define QK_FRONT_METRICS_H

#include "daemon/front/job/histogram.h"
#include "daemon/front/job/job.h"

/* Where a right-hand side spends its time. */
typedef enum qk_phase {
  QK_PHASE_UPLOAD, /* from acceptance to the last byte; uploads only */
  QK_PHASE_QUEUE,  /* to a slot */
  QK_PHASE_SOLVE,  /* to its end */
  QK_PHASE_FETCH,  /* to its acknowledgement */
  QK_PHASES
} qk_phase_t;

typedef struct qk_metrics {
  qk_histogram_t seconds[QK_PHASES], iterations, residual;
} qk_metrics_t;

void qk_metrics_phase(qk_metrics_t *m, qk_phase_t phase, double seconds);
/* Of a solve that has ended with a solution. */
void qk_metrics_solved(qk_metrics_t *m, const qk_outcome_t *outcome);

struct qk_server;
/* The whole page; malloc'd. NULL: no memory. */
char *qk_metrics_text(const struct qk_server *server);

#endif
