/*
 * ama.h: `quarkctl correlator --ama`: all-mode averaging (client/analysis/ama.h) of what
 * client/cli/measure.h makes of a source.
 */
#ifndef QUARKCTL_AMA_H
#define QUARKCTL_AMA_H

#include "client/analysis/ama.h"
#include "client/cli/measure.h"

typedef struct ctl_ama {
  qk_ama_part_t sloppy, exact; /* n = 0: not given */
  bool has_seed;
  uint64_t seed; /* else: the digest of the links */
} ctl_ama_t;

/* Measures at all places and writes the file `out`. what: the measurement of the source before the
 * offset; its tolerances are not used. Returns an exit code, and has printed the reason. */
int ctl_ama_run(quark_connection_t *conn, const quark_report_t *report,
                const ctl_measurement_t *what, const ctl_ama_t *ama, const char *out,
                bool progress);

#endif
