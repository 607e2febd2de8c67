#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/solving.h"

enum { BAR = 30 };
static const double LEAST_INTERVAL = 0.1; /* seconds between two lines */

double ctl_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ctl_progress_begin(ctl_progress_t *progress, int64_t total, bool wanted) {
  const bool terminal = isatty(STDERR_FILENO) == 1;
  *progress = (ctl_progress_t){
      .shown = wanted || terminal, .terminal = terminal, .total = total, .begun = ctl_seconds()};
}

void ctl_progress_show(ctl_progress_t *progress, const quark_event_t *event) {
  if (event->kind == QUARK_EVENT_RESULT) progress->ended++;
  const double now = ctl_seconds();
  if (!progress->shown ||
      (now - progress->last < LEAST_INTERVAL && progress->ended < progress->total))
    return;
  progress->last = now;
  char bar[BAR + 1];
  for (int i = 0; i < BAR; i++) bar[i] = progress->ended * BAR > i * progress->total ? '#' : '.';
  bar[BAR] = 0;
  fprintf(stderr, "%s[%s] %lld of %lld", progress->terminal ? "\r\033[K" : "", bar,
          (long long)progress->ended, (long long)progress->total);
  if (event->kind == QUARK_EVENT_PROGRESS && isfinite(event->residual))
    fprintf(stderr, "   %u running, %llu iterations, residual %.2e", event->running,
            (unsigned long long)event->iterations, event->residual);
  fprintf(stderr, "   %.1f s%s", now - progress->begun, progress->terminal ? "" : "\n");
  fflush(stderr);
}

void ctl_progress_line(ctl_progress_t *progress, const char *text) {
  const double now = ctl_seconds();
  if (!progress->shown || now - progress->last < (progress->terminal ? LEAST_INTERVAL : 1)) return;
  progress->last = now;
  fprintf(stderr, "%s%s%s", progress->terminal ? "\r\033[K" : "", text,
          progress->terminal ? "" : "\n");
  fflush(stderr);
}

void ctl_progress_end(ctl_progress_t *progress) {
  if (progress->shown && progress->terminal) fputc('\n', stderr);
}
