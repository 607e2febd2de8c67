/*
 * metrics.h: what the daemon measures of itself, in the text format of Prometheus
 * (https://prometheus.io/docs/instrumenting/exposition_formats, version 0.0.4).
 *
 * Numbers that STATUS has are taken from the server as they stand; histograms are those of job/stats.h. docs/operations.md lists the
 * names.
 */
#ifndef QK_FRONT_METRICS_H
#define QK_FRONT_METRICS_H

struct qk_server;
/* The whole page; malloc'd. NULL: no memory. */
char *qk_metrics_text(const struct qk_server *server);

#endif
