/*
 * benchreport.h: what a load has shown, as a table, as JSON and as a picture.
 *
 * Percentiles are of the samples themselves (nearest rank): the smallest sample that is not exceeded by p % of them.
 * Rates are of what ended while it was measured; latencies of what began then, whenever it ended.
 */
#ifndef QUARKCTL_BENCHREPORT_H
#define QUARKCTL_BENCHREPORT_H

#include "client/bench/load.h"

typedef struct ctl_bench {
  const ctl_load_options_t *options;
  const ctl_load_outcome_t *outcome;
  double from, until;                   /* of what was measured, by the clock */
  const quark_report_t *before, *after; /* the daemon then */
  bool interrupted;
} ctl_bench_t;

/* Sorts x[n], n > 0, and takes the percentile 0 < p <= 100. */
double ctl_percentile(double *x, size_t n, double p);

/* 0, or an exit code, the reason being printed. */
int ctl_bench_text(const ctl_bench_t *bench);
int ctl_bench_json(const ctl_bench_t *bench);
int ctl_bench_png(const ctl_bench_t *bench, const char *path);

/* Names of sources as options have them. */
const char *ctl_bench_source(quark_source_t source);

#endif
