#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/cli/ctl.h"
#include "client/cli/solving.h"
#include "client/quarkctl/terminal.h"
#include "client/quarkctl/topview.h"

enum { COLUMNS = 132, ANSWER_MS = 1000 };
static const double NOTICE_SECONDS = 30;

typedef struct options {
  ctl_common_t common;
  bool once;
  double interval;
} options_t;

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t option_rows[] = {
    {"once", QK_OPTION_FLAG, AT(once),
     .help = "print once (default if stdout is not a terminal and without --json)"},
    {"interval", QK_OPTION_REAL, AT(interval), "SECONDS", .min = 0.1, .max = 3600,
     .help = "time between two updates (default 2)"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t table = {.row = option_rows, .group = 1};

/* ---- as JSON ---- */

static json_t *slots_json(const quark_activity_t *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->slots; i++) {
    const quark_slot_t *s = &a->slot[i];
    const bool solves = !s->contraction && s->work == QUARK_WORK_SOLVE;
    json_array_append_new(
        list,
        json_pack("{s:o, s:s, s:s, s:i, s:I, s:o, s:o, s:o, s:o}", "slot",
                  s->contraction ? json_null() : json_integer(s->slot), "job", s->job, "user",
                  s->user, "rhs", (int)s->rhs, "iterations", (json_int_t)s->iterations, "residual",
                  s->contraction || solves ? ctl_number(s->residual) : json_null(), "tol",
                  solves ? ctl_number(ctl_asked(s->tol)) : json_null(), "seconds",
                  ctl_number(s->seconds), "flavour",
                  s->flavour ? json_integer(s->flavour) : json_null()));
  }
  return list;
}

static json_t *users_json(const quark_activity_t *a) {
  json_t *list = json_array();
  for (uint32_t i = 0; i < a->users; i++) {
    const quark_user_t *u = &a->user[i];
    json_array_append_new(list, json_pack("{s:s, s:I, s:i, s:o, s:I}", "name", u->name, "queued",
                                          (json_int_t)u->queued, "running", (int)u->running, "work",
                                          ctl_number(u->work), "memory", (json_int_t)u->memory));
  }
  return list;
}

/* One object a line: that of `quarkctl status`, with slots and users. */
static int print_json(const ctl_top_t *top) {
  const ctl_rates_t *r = &top->rates;
  json_t *object = top->lost ? json_object() : ctl_status_json(&top->report);
  json_object_set_new(object, "answers", json_boolean(!top->lost));
  json_object_set_new(object, "notice", *top->notice ? json_string(top->notice) : json_null());
  json_object_set_new(object, "daemon_restarts", json_integer(top->restarts));
  if (!top->lost) {
    json_object_set_new(object, "rates",
                        json_pack("{s:o, s:b, s:o, s:o, s:o, s:o}", "seconds",
                                  ctl_number(r->seconds), "since_start", r->since_start, "solves",
                                  ctl_number(r->solves), "iterations", ctl_number(r->iterations),
                                  "bytes_in", ctl_number(r->bytes_in), "bytes_out",
                                  ctl_number(r->bytes_out)));
    json_object_set_new(object, "setups", ctl_setups_json(top->setup, top->setups));
    json_object_set_new(object, "slots", slots_json(&top->activity));
    json_object_set_new(object, "users", users_json(&top->activity));
    json_object_set_new(object, "users_left_out", json_integer(top->activity.users_left_out));
  }
  const bool failed = json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(17)) ||
                      putchar('\n') == EOF || fflush(stdout) != 0;
  json_decref(object);
  if (failed) ctl_complain("cannot write to stdout: %s", strerror(errno));
  return failed ? EXIT_DATA : 0;
}

/* ---- looking ---- */

typedef struct watch {
  const options_t *options;
  ctl_where_t where;
  quark_connection_t *conn; /* NULL: to be made anew */
  quark_report_t before;
  bool looked;
  double lost_at, notice_until; /* lost_at 0: there is an answer */
  ctl_top_t top;
} watch_t;

static quark_code_t ask(watch_t *w, quark_error_t *err) {
  quark_options_t o;
  quark_options_init(&o);
  o.timeout_ms = ANSWER_MS;
  o.reconnect_ms = ANSWER_MS;
  o.program = "quarkctl top";
  o.setup = w->options->common.setup;
  quark_code_t code = QUARK_OK;
  if (!w->conn) code = quark_connect(w->where.endpoint, &o, &w->conn, err);
  if (code != QUARK_OK) return code;
  code = quark_activity(w->conn, &w->top.report, &w->top.activity, err);
  if (code == QUARK_OK)
    code = quark_setup_list(w->conn, w->top.setup, QK_SETUPS_MAX, &w->top.setups, err);
  if (w->top.setups > QK_SETUPS_MAX) w->top.setups = QK_SETUPS_MAX;
  if (code == QUARK_OK) return code;
  quark_close(w->conn);
  w->conn = NULL;
  return code;
}

static void look(watch_t *w) {
  ctl_top_t *top = &w->top;
  quark_error_t err;
  const double now = ctl_seconds();
  top->lost = ask(w, &err) != QUARK_OK;
  if (top->lost) {
    if (w->lost_at == 0) w->lost_at = now;
    snprintf(top->notice, sizeof top->notice, "no answer for %.0f s (%s): trying again",
             now - w->lost_at, err.text);
    return;
  }
  if (w->lost_at > 0 || now > w->notice_until) *top->notice = '\0';
  w->lost_at = 0;
  if (w->looked && w->before.pid != top->report.pid) {
    top->restarts++;
    w->notice_until = now + NOTICE_SECONDS;
    snprintf(top->notice, sizeof top->notice, "the daemon was restarted: process %llu, before %llu",
             (unsigned long long)top->report.pid, (unsigned long long)w->before.pid);
  }
  ctl_rates(w->looked ? &w->before : NULL, &top->report, &top->rates);
  w->before = top->report;
  w->looked = true;
}

static int print_once(const ctl_top_t *top) {
  char *text = ctl_top_text(top, 0, COLUMNS);
  const bool failed = !text || puts(text) == EOF || fflush(stdout) != 0;
  free(text);
  if (failed) ctl_complain("cannot write to stdout: %s", strerror(errno));
  return failed ? EXIT_DATA : 0;
}

static int print_stream(watch_t *w) {
  const double interval = w->options->interval;
  const struct timespec pause = {.tv_sec = (time_t)interval,
                                 .tv_nsec = (long)(fmod(interval, 1) * 1e9)};
  int code = print_json(&w->top);
  while (code == 0) {
    nanosleep(&pause, NULL);
    look(w);
    code = print_json(&w->top);
  }
  return code;
}

static void show(const ctl_top_t *top) {
  int rows, columns;
  ctl_terminal_size(&rows, &columns);
  char *text = ctl_top_text(top, rows, columns);
  if (text) ctl_terminal_show(text);
  free(text);
}

static int live(watch_t *w) {
  double next = ctl_seconds() + w->options->interval;
  int key = CTL_RESIZED;
  while (key != 'q' && key != 'Q' && key != CTL_NO_TERMINAL) {
    if (key == CTL_TIME_IS_OVER || key == ' ') {
      look(w);
      next = ctl_seconds() + w->options->interval;
    }
    show(&w->top);
    key = ctl_terminal_wait(fmax(next - ctl_seconds(), 0));
  }
  ctl_terminal_close();
  return 0;
}

int ctl_top(int argc, char **argv) {
  static const char about[] =
      "Shows continuously what the daemon does. Keys: q quits, space updates at once.\v"
      "With --json it prints one object per line for each update. If the daemon is gone, it "
      "waits for it.";
  options_t o = {.interval = 2};
  ctl_common_init(&o.common);
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  watch_t *w = calloc(1, sizeof *w);
  if (!w) {
    ctl_complain("no memory");
    return EXIT_AGAIN;
  }
  w->options = &o;
  w->top.endpoint = w->where.endpoint;
  /* --timeout is for the first answer. Later ones have to come soon, as keys wait for them. */
  int code = ctl_connect(&o.common, NULL, false, &w->conn);
  quark_close(w->conn);
  w->conn = NULL;
  if (code == 0) code = ctl_where(o.common.endpoint, &w->where);
  if (code == 0) {
    look(w);
    if (o.common.json)
      code = o.once ? print_json(&w->top) : print_stream(w);
    else
      code = o.once || !ctl_terminal_open() ? print_once(&w->top) : live(w);
    if (o.once && w->top.lost) code = EXIT_UNAVAILABLE;
  }
  quark_close(w->conn);
  free(w);
  return code;
}
