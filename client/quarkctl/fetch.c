#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "client/cli/operator.h"
#include "client/cli/ticket.h"

enum { LOOK_MS = 200 };

typedef struct options {
  ctl_solve_options_t solve; /* common, out, progress */
  const char *path;
  bool status, no_wait;
} options_t;

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->path) argp_error(state, "a ticket is required");
}

static void take_format(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  ctl_field_format(state, name, text, &o->solve.format);
  o->solve.has_format = true;
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"out", QK_OPTION_TEXT, AT(solve.out), "FILE",
     .help = "file for the solutions (TICKET without .ticket)"},
    {"format", QK_OPTION_TAKEN, .form = "hdf5|scidac|usqcd", .take = take_format,
     .help = "its format (that of the command which left the ticket)"},
    {"status", QK_OPTION_FLAG, AT(status),
     .help = "only print how many right-hand sides have ended"},
    {"no-wait", QK_OPTION_FLAG, AT(no_wait),
     .help = "exit with 75 if not all right-hand sides have ended"},
    {"progress", QK_OPTION_FLAG, AT(solve.progress),
     .help = "show progress even if stderr is not a terminal"},
    {"TICKET", QK_OPTION_ARGUMENT, .offset = AT(path)},
    {NULL, QK_OPTION_TABLE, AT(solve.common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* ---- what is fetched ----------------------------------------------------------------------- */

typedef struct fetching {
  const options_t *options;
  ctl_ticket_t ticket;
  int lock;
  ctl_work_t work;
  quark_column_t *column;
  quark_result_t *result; /* nrhs */
  int64_t ended;
} fetching_t;

/* Two processes with one client id would take the session away from each other. */
static int lock_ticket(fetching_t *f) {
  f->lock = open(f->options->path, O_RDONLY | O_CLOEXEC);
  if (f->lock >= 0 && flock(f->lock, LOCK_EX | LOCK_NB) == 0) return 0;
  const bool busy = f->lock >= 0 && errno == EWOULDBLOCK;
  ctl_complain("%s: %s", f->options->path, busy ? "another fetch uses it" : strerror(errno));
  return busy ? EXIT_AGAIN : EXIT_DATA;
}

static int gone(const fetching_t *f, uint64_t request) {
  ctl_complain(
      "%s: request %llu is not with the daemon any more: it was fetched or cancelled, "
      "nobody came for it in %llu s, the daemon was restarted without --state, or a damaged "
      "state folder lost it (quarkctl status)",
      f->options->path, (unsigned long long)request, (unsigned long long)f->ticket.kept_s);
  return EXIT_DATA;
}

static int attach_part(fetching_t *f, const ctl_part_t *part, int64_t first) {
  quark_attached_t a;
  quark_error_t err;
  const quark_code_t code = quark_attach(f->work.conn, part->request, &a, &err);
  if (code == QUARK_NOT_FOUND) return gone(f, part->request);
  if (code != QUARK_OK) return ctl_fail(&err);
  if (a.contraction || a.params.nrhs != part->nrhs) {
    ctl_complain("%s: request %llu has %u right-hand sides, not %u: the ticket is not of this "
                 "daemon",
                 f->options->path, (unsigned long long)part->request, a.params.nrhs, part->nrhs);
    return EXIT_DATA;
  }
  const uint64_t bytes = a.bytes * part->nrhs;
  if (a.params.source == QUARK_UPLOAD && a.uploaded < bytes) {
    ctl_complain("request %llu: the daemon lacks %llu of its %llu bytes (not sent, or lost with "
                 "its memory): submit it again",
                 (unsigned long long)part->request, (unsigned long long)(bytes - a.uploaded),
                 (unsigned long long)bytes);
    return EXIT_DATA;
  }
  f->work.params = a.params;
  if (a.params.column) memcpy(f->column + first, a.params.column, part->nrhs * sizeof *f->column);
  return 0;
}

static int connect_as_client(fetching_t *f) {
  const ctl_ticket_t *t = &f->ticket;
  ctl_common_t common = f->options->solve.common;
  if (!common.has_endpoint) common.endpoint = t->endpoint;
  if (!common.server_key) common.server_key = t->server_key;
  const int code = ctl_connect(&common, t->client, false, &f->work.conn);
  if (code) return code;
  return quark_resumed(f->work.conn) ? 0 : gone(f, t->part[0].request);
}

/* Opens the file of right-hand sides, if it is still there: its columns are copied. */
static void open_input(fetching_t *f) {
  qk_fieldfile_t *in = NULL;
  qk_err_t err = {0};
  if (!f->ticket.input || (f->work.params.five_d ? qk_fieldfile_open_five : qk_fieldfile_open)(
                              f->ticket.input, NULL, &in, &err) != QK_OK)
    return;
  if (qk_fieldfile_nrhs(in) == f->work.nrhs)
    f->work.in = in;
  else
    qk_fieldfile_close(in);
}

/* Makes the work again as it was submitted. */
static int attach(fetching_t *f) {
  ctl_work_t *work = &f->work;
  const ctl_ticket_t *t = &f->ticket;
  work->options = &f->options->solve;
  work->mass = NAN;
  work->out = work->options->out;
  work->kind = t->kind;
  work->source = t->source;
  work->report = t->report;
  work->nrhs = ctl_ticket_nrhs(t);
  f->column = calloc((size_t)work->nrhs, sizeof *f->column);
  f->result = calloc((size_t)work->nrhs, sizeof *f->result);
  if (!f->column || !f->result) {
    ctl_complain("no memory for %lld right-hand sides", (long long)work->nrhs);
    return EXIT_AGAIN;
  }
  int code = connect_as_client(f);
  int64_t first = 0;
  for (int i = 0; i < t->parts && code == 0; i++) {
    code = attach_part(f, &t->part[i], first);
    first += t->part[i].nrhs;
  }
  if (code == 0) code = ctl_operator_check_five(&work->report, work->params.five_d);
  if (code) return code;
  work->described = work->params.smear;
  if (work->params.source != QUARK_UPLOAD && work->params.source != QUARK_FILE)
    work->column = f->column;
  open_input(f);
  return 0;
}

/* Index in the work of the right-hand side of a result; -1: of another request. */
static int64_t index_of(const ctl_ticket_t *t, const quark_result_t *result) {
  int64_t first = 0;
  for (int i = 0; i < t->parts; i++) {
    if (t->part[i].request == result->request) return first + result->rhs;
    first += t->part[i].nrhs;
  }
  return -1;
}

/* ---- looking ------------------------------------------------------------------------------- */

/* Notes the results that are there now. They come after the answer to ATTACH and before the answer
 * to STATUS. */
static int look(fetching_t *f) {
  quark_report_t report;
  quark_event_t event;
  quark_error_t err;
  if (quark_status(f->work.conn, &report, &err) != QUARK_OK) return ctl_fail(&err);
  do {
    if (quark_event_next(f->work.conn, 0, &event, &err) != QUARK_OK) return ctl_fail(&err);
    const int64_t i = event.kind == QUARK_EVENT_RESULT ? index_of(&f->ticket, &event.result) : -1;
    if (i >= 0) f->result[i] = event.result;
    f->ended += i >= 0;
  } while (event.kind != QUARK_EVENT_NONE);
  return 0;
}

static int print_status(const fetching_t *f) {
  char client[2 * QUARK_CLIENT_ID_BYTES + 1];
  const int64_t nrhs = f->work.nrhs;
  int64_t converged = 0;
  for (int64_t i = 0; i < nrhs; i++)
    converged += f->result[i].request > 0 && f->result[i].status == QUARK_OK;
  ctl_ticket_client(&f->ticket, client);
  if (!f->options->solve.common.json) {
    printf("%lld of %lld right-hand sides have ended, %lld converged; kept for %llu s\n",
           (long long)f->ended, (long long)nrhs, (long long)converged,
           (unsigned long long)f->ticket.kept_s);
    return 0;
  }
  return ctl_print(json_pack("{s:s, s:o, s:I, s:I, s:I, s:b, s:I}", "client", client, "requests",
                             ctl_ticket_parts(&f->ticket), "rhs", (json_int_t)nrhs, "ended",
                             (json_int_t)f->ended, "converged", (json_int_t)converged, "complete",
                             f->ended == nrhs, "kept_seconds", (json_int_t)f->ticket.kept_s));
}

static int still_running(const fetching_t *f) {
  if (f->ended == f->work.nrhs) return 0;
  if (!f->options->status)
    ctl_complain("still running: %lld of %lld right-hand sides have ended", (long long)f->ended,
                 (long long)f->work.nrhs);
  return EXIT_AGAIN;
}

/* ---- fetching ------------------------------------------------------------------------------ */

static int take_event(const fetching_t *f, ctl_outcome_t *outcome, ctl_progress_t *progress) {
  quark_event_t event;
  quark_error_t err;
  if (quark_event_next(f->work.conn, LOOK_MS, &event, &err) != QUARK_OK) return ctl_fail(&err);
  int code = 0;
  const int64_t i = event.kind == QUARK_EVENT_RESULT ? index_of(&f->ticket, &event.result) : -1;
  if (i >= 0) code = ctl_outcome_take(outcome, i, &event.result);
  if (i >= 0 || event.kind == QUARK_EVENT_PROGRESS) ctl_progress_show(progress, &event);
  return code;
}

/* Takes the results that are noted, then the others as they come. */
static int take_all(const fetching_t *f, ctl_outcome_t *outcome, ctl_progress_t *progress) {
  int code = 0;
  for (int64_t i = 0; i < f->work.nrhs && code == 0; i++) {
    if (f->result[i].request == 0) continue;
    code = ctl_outcome_take(outcome, i, &f->result[i]);
    ctl_progress_show(progress, &(quark_event_t){.kind = QUARK_EVENT_RESULT});
  }
  while (outcome->ended < f->work.nrhs && code == 0) {
    if (ctl_interrupted()) {
      ctl_complain("interrupted: nothing is written, and the daemon keeps all solutions");
      return EXIT_AGAIN;
    }
    code = ctl_outcome_check(outcome);
    if (code == 0) code = take_event(f, outcome, progress);
  }
  return code;
}

/* Releases the requests, then removes the ticket: it is the only way to them while they exist. */
static int let_go(const fetching_t *f, int code) {
  quark_error_t err;
  if (ctl_ticket_release(&f->ticket, f->work.conn, &err)) {
    unlink(f->options->path);
    return code;
  }
  ctl_complain(
      "%s is written, but the daemon has not confirmed that it deleted the solutions (%s): %s "
      "stays; fetch again, or remove it: the daemon then deletes them in %llu s",
      f->options->solve.out, err.text, f->options->path, (unsigned long long)f->ticket.kept_s);
  return code ? code : EXIT_AGAIN;
}

/* The requests are released and the ticket is removed only when the file is there. Until then all
 * can be fetched again. */
static int fetch(const fetching_t *f) {
  ctl_outcome_t outcome;
  ctl_progress_t progress;
  bool written = false;
  ctl_catch_signals();
  int code = ctl_outcome_open(&f->work, false, &outcome);
  if (code == 0) {
    ctl_progress_begin(&progress, f->work.nrhs, f->options->solve.progress);
    code = take_all(f, &outcome, &progress);
    ctl_progress_end(&progress);
    if (code == 0) code = ctl_outcome_finish(&outcome, &written);
  }
  ctl_outcome_close(&outcome);
  return written ? let_go(f, code) : code;
}

/* The output without --out: the name of the ticket without its suffix. */
static int find_out(options_t *o, char path[QK_PATH_MAX]) {
  static const char suffix[] = ".ticket";
  const size_t n = strlen(o->path), k = sizeof suffix - 1;
  if (o->solve.out) return 0;
  if (n <= k || n >= QK_PATH_MAX || strcmp(o->path + n - k, suffix) != 0) {
    ctl_complain("%s does not end with %s: --out is needed", o->path, suffix);
    return EXIT_USAGE;
  }
  memcpy(path, o->path, n - k);
  path[n - k] = '\0';
  o->solve.out = path;
  return 0;
}

/* As the command would have written it, unless the options say otherwise. */
static void take_ticket_format(const ctl_ticket_t *ticket, ctl_solve_options_t *o) {
  if (!o->has_format && ticket->format)
    o->has_format = qk_field_format_parse(ticket->format, &o->format);
}

int ctl_fetch(int argc, char **argv) {
  static const char about[] =
      "Waits for the solutions of a command that was run with --detach and writes the same "
      "file as that command. Then the daemon deletes them, and the ticket is removed.\v"
      "Exit codes: 65 the solutions are lost, or a right-hand side did not reach the "
      "tolerance, 69 no daemon, 75 not all have ended.";
  options_t o = {.path = NULL};
  char out[QK_PATH_MAX];
  ctl_solve_options_init(&o.solve);
  qk_options_parse(&table, "TICKET", about, argc, argv, &o);
  fetching_t f = {.options = &o, .lock = -1};
  int code = find_out(&o, out);
  if (code == 0) code = ctl_ticket_read(o.path, &f.ticket);
  if (code == 0) take_ticket_format(&f.ticket, &o.solve);
  if (code == 0) code = lock_ticket(&f);
  if (code == 0) code = attach(&f);
  if (code == 0 && (o.status || o.no_wait)) code = look(&f);
  if (code == 0 && o.status) code = print_status(&f);
  if (code == 0 && (o.status || o.no_wait)) code = still_running(&f);
  if (code == 0 && !o.status) code = fetch(&f);
  ctl_work_end(&f.work);
  ctl_ticket_fini(&f.ticket);
  if (f.lock >= 0) close(f.lock);
  free(f.column);
  free(f.result);
  return code;
}
