/*
 * metrics.h: the daemon's metrics in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).
 *
 * Numbers that STATUS has come from the service; histograms come from job/stats.h.
 * docs/operations.md lists the names.
 */
#ifndef QK_FRONT_METRICS_H
#define QK_FRONT_METRICS_H

#include "daemon/front/service/service.h"

/* The whole page; malloc'd. NULL: no memory. */
char *qk_metrics_text(const qk_service_t *service);

#endif
