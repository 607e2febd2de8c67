/*
 * benchreport.h: the results of a benchmark as a table, as JSON and as a picture.
 *
 * A percentile is a sample (nearest rank): the smallest one that p % of the samples do not exceed.
 * Rates count what ended during the measurement. Latencies are those of what began during the
 * measurement, even if it ended later.
 */
#ifndef QUARKCTL_BENCHREPORT_H
#define QUARKCTL_BENCHREPORT_H

#include "client/bench/load.h"

typedef struct ctl_bench {
  const ctl_load_options_t *options;
  const ctl_load_outcome_t *outcome;
  double from, until;                   /* of the measurement, by the clock */
  const quark_report_t *before, *after; /* of the daemon, at from and until */
  bool interrupted;
} ctl_bench_t;

/* Sorts x[n], n > 0, and takes the percentile 0 < p <= 100. */
double ctl_percentile(double *x, size_t n, double p);

/* Return 0, or an exit code after they have printed the reason. */
int ctl_bench_text(const ctl_bench_t *bench);
int ctl_bench_json(const ctl_bench_t *bench);
int ctl_bench_png(const ctl_bench_t *bench, const char *path);

/* The name of a source as in --source. */
const char *ctl_bench_source(quark_source_t source);

#endif
