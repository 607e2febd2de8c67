/*
 * show.h: output of long work: a table on stdout (of a chain, the plaquette of every sweep; of
 * gauge fixing, each look at theta), and a progress bar of a chain on stderr if that is a terminal.
 * For rank 0.
 */
#ifndef QK_GAUGE_TOOL_SHOW_H
#define QK_GAUGE_TOOL_SHOW_H

#include <stdbool.h>
#include <stdint.h>

typedef struct qk_show {
  bool table, bar;
  int64_t first, total; /* sweeps done at the beginning, and at the end */
  double begun, last;   /* seconds */
} qk_show_t;

/* table: wanted on stdout; bar: wanted on stderr, if that is a terminal. */
void qk_show_begin(qk_show_t *show, bool table, bool bar, int64_t first, int64_t total);
void qk_show_sweep(qk_show_t *show, int64_t sweep, double plaquette);
/* A line of the table that begins with "# ". */
__attribute__((format(printf, 2, 3))) void qk_show_note(qk_show_t *show, const char *fmt, ...);
/* A line of the table. */
__attribute__((format(printf, 2, 3))) void qk_show_row(qk_show_t *show, const char *fmt, ...);
void qk_show_end(qk_show_t *show);

#endif
