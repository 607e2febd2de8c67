#include "daemon/engine/gauge_tool/show.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/base/clock.h"

enum { WIDTH = 30 };
static const double LEAST_INTERVAL = 0.1; /* seconds between two bars */

void qk_show_begin(qk_show_t *show, bool table, bool bar, int64_t first, int64_t total) {
  *show = (qk_show_t){.table = table,
                      .bar = bar && isatty(STDERR_FILENO),
                      .first = first,
                      .total = total,
                      .begun = qk_clock_now()};
}

static void wipe(const qk_show_t *show) {
  if (show->bar) fputs("\r\033[K", stderr);
}

static void draw(qk_show_t *show, int64_t sweep, double plaquette) {
  double now = qk_clock_now();
  if (now - show->last < LEAST_INTERVAL && sweep < show->total) return;
  show->last = now;
  double rate = (double)(sweep - show->first) / (now - show->begun);
  char bar[WIDTH + 1];
  for (int i = 0; i < WIDTH; i++) bar[i] = sweep * WIDTH > i * show->total ? '#' : '.';
  bar[WIDTH] = '\0';
  fprintf(stderr,
          "\r\033[K[%s] %" PRId64 " of %" PRId64 "   plaquette %.6f   %.3g sweeps/s   %.0f s left",
          bar, sweep, show->total, plaquette, rate, (double)(show->total - sweep) / rate);
}

void qk_show_sweep(qk_show_t *show, int64_t sweep, double plaquette) {
  if (show->table) {
    wipe(show);
    printf("%8" PRId64 "  %.15f\n", sweep, plaquette);
    fflush(stdout);
  }
  if (show->bar) draw(show, sweep, plaquette);
}

void qk_show_note(qk_show_t *show, const char *fmt, ...) {
  if (!show->table) return;
  va_list ap;
  wipe(show);
  fputs("# ", stdout);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  fflush(stdout);
}

void qk_show_row(qk_show_t *show, const char *fmt, ...) {
  if (!show->table) return;
  va_list ap;
  wipe(show);
  va_start(ap, fmt);
  vprintf(fmt, ap);
  va_end(ap);
  putchar('\n');
  fflush(stdout);
}

void qk_show_end(qk_show_t *show) {
  wipe(show);
  show->bar = false;
}
