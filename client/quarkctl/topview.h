/*
 * topview.h: one frame of quarkctl top as text, without control codes. Pure but for the clock on the wall.
 */
#ifndef QUARKCTL_TOPVIEW_H
#define QUARKCTL_TOPVIEW_H

#include "client/quark.h"

/* What happened in a second, from one look to the next. */
typedef struct ctl_rates {
  double seconds; /* between the looks */
  bool since_start;
  double solves, iterations, bytes_in, bytes_out;
} ctl_rates_t;

/* now and the look before; before NULL, or of another daemon: since the start of the daemon. */
void ctl_rates(const quark_report_t *before, const quark_report_t *now, ctl_rates_t *rates);

typedef struct ctl_top {
  const char *endpoint;
  quark_report_t report;
  quark_activity_t activity;
  quark_setup_t setup[QUARK_SETUPS];
  uint32_t setups;
  ctl_rates_t rates;
  int restarts;      /* daemons that took the place of another */
  char notice[1024]; /* "": none */
  bool lost;         /* there is no answer: the rest is what was known last */
} ctl_top_t;

/* rows 0: as many as there are. Malloc'd, without a newline at the end; NULL: no memory. */
char *ctl_top_text(const ctl_top_t *top, int rows, int columns);

#endif
