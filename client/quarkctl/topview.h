/*
 * topview.h: one frame of quarkctl top as text, without control codes.
 *
 * The functions are pure, but for the time of day in the frame.
 */
#ifndef QUARKCTL_TOPVIEW_H
#define QUARKCTL_TOPVIEW_H

#include "client/quark.h"
#include "proto/limits.h"

/* Rates between two reports of the daemon. */
typedef struct ctl_rates {
  double seconds; /* between the reports */
  bool since_start;
  double solves, iterations, bytes_in, bytes_out; /* a second */
} ctl_rates_t;

/* before: an earlier report. NULL, or of another daemon: the rates since the start of the daemon.
 */
void ctl_rates(const quark_report_t *before, const quark_report_t *now, ctl_rates_t *rates);

typedef struct ctl_top {
  const char *endpoint;
  quark_report_t report;
  quark_activity_t activity;
  quark_setup_t setup[QK_SETUPS_MAX];
  uint32_t setups;
  ctl_rates_t rates;
  int restarts;      /* times that another daemon took its place */
  char notice[1024]; /* "": none */
  bool lost;         /* there is no answer; the rest is the last known state */
} ctl_top_t;

/* rows 0: no limit. The text is malloc'ed and has no newline at its end; NULL: no memory. */
char *ctl_top_text(const ctl_top_t *top, int rows, int columns);

#endif
