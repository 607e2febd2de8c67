#include "client/quarkctl/topview.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/cli/operator.h"
#include "daemon/base/utf8.h"

enum { LINE = 1024, USERS_LEAST = 4, HEADS = 4, BAR = 24 };

void ctl_rates(const quark_report_t *before, const quark_report_t *now, ctl_rates_t *rates) {
  static const quark_report_t nothing;
  const bool follows = before && before->pid == now->pid && before->uptime < now->uptime;
  const quark_report_t *b = follows ? before : &nothing;
  const double seconds = now->uptime - b->uptime, per = seconds > 0 ? 1 / seconds : 0;
  *rates =
      (ctl_rates_t){.seconds = seconds,
                    .since_start = !follows,
                    .solves = per * (double)(now->counters.converged - b->counters.converged),
                    .iterations = per * (double)(now->counters.iterations - b->counters.iterations),
                    .bytes_in = per * (double)(now->counters.bytes_in - b->counters.bytes_in),
                    .bytes_out = per * (double)(now->counters.bytes_out - b->counters.bytes_out)};
}

/* ---- words ---- */

/* Bytes of text that fill at most so many columns. Each character counts as one column. */
static size_t prefix(const char *text, int columns) {
  size_t n = 0;
  const size_t all = strlen(text);
  for (int i = 0; i < columns && n < all; i++) {
    const size_t length = qk_utf8_char(text + n, all - n);
    n += length ? length : 1;
  }
  return n;
}

/* The text in exactly so many columns. */
static const char *column(char out[LINE], const char *text, int columns) {
  const size_t n = prefix(text, columns);
  int used = 0;
  for (size_t i = 0; i < n; used++) {
    const size_t length = qk_utf8_char(text + i, n - i);
    i += length ? length : 1;
  }
  snprintf(out, LINE, "%.*s%*s", (int)n, text, columns - used, "");
  return out;
}

/* "1.25 M", "12.5 k"; base 1024, for bytes: "Mi", "Ki". */
static const char *scaled(char out[LINE], double x, double base) {
  static const char *const decimal[] = {"", "k", "M", "G", "T", "P"};
  static const char *const binary[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  int i = 0;
  for (; i < 5 && fabs(x) >= base; i++) x /= base;
  snprintf(out, LINE, i || x != floor(x) ? "%.3g %s" : "%.0f %s", x,
           (base > 1000 ? binary : decimal)[i]);
  return out;
}

static const char *span(char out[LINE], double seconds) {
  const uint64_t s = (uint64_t)fmax(seconds, 0);
  if (s >= 86400)
    snprintf(out, LINE, "%" PRIu64 " d %02" PRIu64 ":%02" PRIu64, s / 86400, s / 3600 % 24,
             s / 60 % 60);
  else
    snprintf(out, LINE, "%" PRIu64 ":%02" PRIu64 ":%02" PRIu64, s / 3600, s / 60 % 60, s % 60);
  return out;
}

static const char *bar(char out[LINE], double part, int columns) {
  const double full = isfinite(part) ? fmin(fmax(part, 0), 1) * columns : 0;
  for (int i = 0; i < columns; i++) out[i] = i + 0.5 < full ? '#' : '.';
  out[columns] = '\0';
  return out;
}

/* ---- lines ---- */

typedef struct page {
  FILE *out;
  int rows, columns, used; /* rows 0: no end */
} page_t;

static bool full(const page_t *page) {
  return page->rows > 0 && page->used >= page->rows;
}

/* Adds a line, cut at the edge of the screen. */
__attribute__((format(printf, 2, 3))) static void say(page_t *page, const char *fmt, ...) {
  char text[LINE];
  va_list ap;
  if (full(page)) return;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  qk_utf8_clean(text);
  fprintf(page->out, "%s%.*s", page->used++ ? "\n" : "", (int)prefix(text, page->columns), text);
}

static void say_head(page_t *page, const ctl_top_t *top) {
  const quark_report_t *r = &top->report;
  char time_text[16], up[LINE];
  const time_t now = time(NULL);
  struct tm local;
  localtime_r(&now, &local);
  strftime(time_text, sizeof time_text, "%H:%M:%S", &local);
  say(page, "%s   quarkd %s at %s   %s   up %s   pid %" PRIu64, time_text, r->version,
      top->endpoint, top->lost ? "no answer" : quark_state_name(r->state), span(up, r->uptime),
      r->pid);
  if (*r->trouble) say(page, "trouble: %s", r->trouble);
  if (*r->phase) say(page, "%s: %" PRIu64 " of %" PRIu64, r->phase, r->phase_done, r->phase_total);
}

static void say_setup(page_t *page, const quark_report_t *r) {
  const uint32_t *d = r->setup.dims;
  char dims[64] = "", op[CTL_OPERATOR_TEXT];
  if (d[0]) snprintf(dims, sizeof dims, "   %ux%ux%ux%u", d[0], d[1], d[2], d[3]);
  say(page, "setup    %s   %s%s   %s", r->setup.name, r->setup.gauge, dims,
      ctl_operator_text(r->setup.action, r->setup.parameters, r->setup.kappa, r->setup.csw,
                        CTL_OPERATOR_LINE, op));
  say(page, "solver   %s, %s inside   %s   %s   %u rank%s   engine restarts %u", r->setup.solver,
      r->setup.precision, r->engine.backend, r->engine.device, r->engine.ranks,
      r->engine.ranks == 1 ? "" : "s", r->engine.restarts);
}

static void say_load(page_t *page, const ctl_top_t *top) {
  const quark_report_t *r = &top->report;
  const ctl_rates_t *v = &top->rates;
  char a[LINE], b[LINE], c[LINE], d[LINE];
  const double busy =
      r->engine.slots ? (double)r->engine.slots_busy / (double)r->engine.slots : NAN;
  say(page, "slots    [%s] %u of %u   queued %" PRIu64 "   held %" PRIu64 "   clients %" PRIu64,
      bar(a, busy, BAR), r->engine.slots_busy, r->engine.slots, r->counters.queued,
      r->counters.held, r->counters.sessions);
  say(page, "rates    %ssolves/s   %siterations/s   in %sB/s   out %sB/s   (%s%.1f s)",
      scaled(a, v->solves, 1000), scaled(b, v->iterations, 1000), scaled(c, v->bytes_in, 1024),
      scaled(d, v->bytes_out, 1024), v->since_start ? "since the start, " : "of the last ",
      v->seconds);
  say(page,
      "memory   %sB of %sB   kept %sB   solved %" PRIu64 "   failed %" PRIu64
      "   cancelled %" PRIu64,
      scaled(a, (double)r->memory_used, 1024), scaled(b, (double)r->memory_limit, 1024),
      scaled(c, (double)r->counters.kept_bytes, 1024), r->counters.converged, r->counters.failed,
      r->counters.cancelled);
}

/* ---- tables ---- */

/* Describes a setup, or says why it does not serve. */
static const char *remark(char out[LINE], const quark_setup_t *s) {
  char op[CTL_OPERATOR_TEXT];
  if (s->state == QUARK_FAILED)
    snprintf(out, LINE, "%s: %s", quark_code_name(s->code), s->text);
  else if (*s->phase && s->phase_total > 0)
    snprintf(out, LINE, "%s: %" PRIu64 " of %" PRIu64, s->phase, s->phase_done, s->phase_total);
  else
    snprintf(out, LINE, "%.500s   %.500s",
             ctl_operator_text(s->action, s->parameters, s->kappa, s->csw, CTL_OPERATOR_CELL, op),
             s->gauge);
  return out;
}

static void say_setup_line(page_t *page, const quark_setup_t *s) {
  char name[LINE], what[LINE];
  say(page, "%c%s %-9s %8s %4u of %-4u %8" PRIu64 " %8" PRIu64 " %8u   %s",
      s->is_default ? '*' : ' ', column(name, s->name, 17), quark_state_name(s->state), s->solver,
      s->slots_busy, s->slots, s->queued, s->open, s->restarts, remark(what, s));
}

/* The table of setups, if there are several. */
static void say_setups(page_t *page, const ctl_top_t *top) {
  if (top->setups < 2) return;
  say(page, "%s", "");
  say(page, " SETUP             STATE       SOLVER        SLOTS   QUEUED     OPEN RESTARTS");
  for (uint32_t i = 0; i < top->setups; i++) say_setup_line(page, &top->setup[i]);
}

static void say_slot(page_t *page, const quark_slot_t *s) {
  char job[LINE], user[LINE], line[LINE];
  column(job, s->job, 18);
  column(user, s->user, 12);
  if (s->contraction) {
    say(page, "   - %s %s     -        -          -          - %8.1f   contraction", job, user,
        s->seconds);
    return;
  }
  if (s->work != QUARK_WORK_SOLVE) {
    say(page, "%4u %s %s %5u        -          -          - %8.1f   operator applied", s->slot, job,
        user, s->rhs, s->seconds);
    return;
  }
  say(page, "%4u %s %s %5u %8" PRIu64 " %10.2e %10.2e %8.1f   [%s]", s->slot, job, user, s->rhs,
      s->iterations, s->residual, s->tol, s->seconds,
      bar(line, log(s->residual) / log(s->tol), BAR));
}

static void say_user(page_t *page, const quark_user_t *u) {
  char name[LINE], work[LINE], memory[LINE];
  say(page, "%s %8" PRIu64 " %8u %10s %11sB", column(name, *u->name ? u->name : "(no name)", 24),
      u->queued, u->running, scaled(work, u->work, 1000), scaled(memory, (double)u->memory, 1024));
}

/* How many of `there` lines are shown in `room` lines. If not all are, the last line of the room
 * counts the others. */
static uint32_t shown(uint32_t there, int room) {
  return (int)there <= room ? there : (uint32_t)(room > 1 ? room - 1 : 0);
}

static void say_tables(page_t *page, const quark_activity_t *a) {
  const int room = page->rows > 0 ? page->rows - page->used - HEADS : INT32_MAX / 2;
  const int for_users = (int)a->users < USERS_LEAST ? (int)a->users : USERS_LEAST;
  const uint32_t slots = shown(a->slots, room - for_users);
  const int taken = (int)slots + (slots < a->slots);
  const uint32_t users = shown(a->users + (a->users_left_out > 0), room - taken);
  say(page, "%s", "");
  say(page, "SLOT JOB                USER           RHS     ITER   RESIDUAL  TOLERANCE  SECONDS"
            "   1 ... TOLERANCE");
  for (uint32_t i = 0; i < slots; i++) say_slot(page, &a->slot[i]);
  if (slots < a->slots) say(page, "     and %u more", a->slots - slots);
  say(page, "%s", "");
  say(page, "USER                       QUEUED  RUNNING       WORK       MEMORY");
  for (uint32_t i = 0; i < users && i < a->users; i++) say_user(page, &a->user[i]);
  if (users < a->users + a->users_left_out)
    say(page, "and %u more", a->users + a->users_left_out - users);
}

char *ctl_top_text(const ctl_top_t *top, int rows, int columns) {
  char *text = NULL;
  size_t size = 0;
  page_t page = {.out = open_memstream(&text, &size), .rows = rows, .columns = columns};
  if (!page.out) return NULL;
  say_head(&page, top);
  say_setup(&page, &top->report);
  say_load(&page, top);
  if (*top->report.engine.last_error && top->report.state != QUARK_READY)
    say(&page, "engine   %s", top->report.engine.last_error);
  if (*top->notice) say(&page, "%s", top->notice);
  if (!top->lost) say_setups(&page, top);
  if (!top->lost) say_tables(&page, &top->activity);
  if (fclose(page.out) == 0) return text;
  free(text);
  return NULL;
}
