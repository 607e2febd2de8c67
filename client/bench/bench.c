/* quarkctl bench: puts a load on a daemon and measures how fast it solves. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/bench/benchreport.h"
#include "client/cli/operator.h"
#include "client/cli/solving.h"

enum { USER_MAX = 48, CLOSED_CLIENTS = 4, OPEN_CLIENTS = 32, SECONDS = 30, LOOK_MS = 50 };

typedef struct options {
  ctl_common_t common;
  ctl_load_options_t load;
  const char *plot;
  bool progress, list, cut;
} options_t;

/* ---- options --------------------------------------------------------------------------------- */

static quark_source_t parse_source(const struct argp_state *state, const char *word) {
  static const quark_source_t kinds[] = {QUARK_UPLOAD, QUARK_POINT, QUARK_WALL, QUARK_Z2, QUARK_Z4};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(word, ctl_bench_source(kinds[i])) == 0) return kinds[i];
  argp_error(state, "--source=%s: must be point, wall, z2, z4 or upload", word);
  return QUARK_Z2;
}

/* Cuts the next word off a list; NULL: it has ended. */
static char *next_word(const struct argp_state *state, const char *name, char **rest, int n) {
  char *word = strsep(rest, ",");
  if (word && n == CTL_LOAD_MIX) argp_error(state, "--%s: at most %d values", name, CTL_LOAD_MIX);
  return word;
}

static void take_tol(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  l->ntol = 0;
  for (char *word; (word = next_word(state, name, &text, l->ntol));)
    l->tol[l->ntol++] = qk_option_real(state, name, word, 1e-16, 0.999);
}

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_load_options_t *l = values;
  l->nsource = 0;
  for (char *word; (word = next_word(state, name, &text, l->nsource));)
    l->source[l->nsource++] = parse_source(state, word);
}

static void take_rhs(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  char *max = strchr(text, ':');
  if (max) *max++ = '\0';
  l->rhs_min = (uint32_t)qk_option_integer(state, name, text, 1, 1024);
  l->rhs_max = max ? (uint32_t)qk_option_integer(state, name, max, l->rhs_min, 1024) : l->rhs_min;
}

static void take_think(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  char *how = strchr(text, ':');
  if (how) *how++ = '\0';
  if (how && strcmp(how, "fixed") != 0)
    argp_error(state, "--%s=%s:%s: only \"fixed\" may follow the colon", name, text, how);
  l->think = qk_option_real(state, name, text, 0, 1e6);
  l->think_fixed = how != NULL;
}

static void take_sink(const struct argp_state *state, const char *name, char *text, void *values) {
  static const char *const names[] = {"download", "none", "correlator"};
  ctl_load_options_t *l = values;
  for (int i = 0; i < 3; i++) {
    if (strcmp(text, names[i]) != 0) continue;
    l->sink = (ctl_sink_t)i;
    return;
  }
  argp_error(state, "--%s=%s: must be download, none or correlator", name, text);
}

static void take_dtype(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  l->dtype = ctl_either(state, name, text, "f32", "f64") ? QUARK_F64 : QUARK_F32;
}

static void take_seed(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  l->seed = qk_option_integer(state, name, text, 0, INT64_MAX);
}

static void take_user(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_load_options_t *l = values;
  if (strlen(text) > USER_MAX) argp_error(state, "--%s=%s: at most %d bytes", name, text, USER_MAX);
  l->user = text;
}

/* A pion needs a whole propagator. */
static void check_correlator(const struct argp_state *state, const ctl_load_options_t *l) {
  bool whole = l->rhs_min == CTL_LOAD_COLUMNS && l->rhs_max == CTL_LOAD_COLUMNS;
  for (int i = 0; i < l->nsource; i++)
    whole = whole && (l->source[i] == QUARK_POINT || l->source[i] == QUARK_WALL);
  if (!whole)
    argp_error(state, "--sink=correlator needs --rhs=%d and --source=point or wall",
               CTL_LOAD_COLUMNS);
}

static void finish(const struct argp_state *state, void *values) {
  options_t *o = values;
  ctl_load_options_t *l = &o->load;
  if (l->rate > 0 && l->think > 0)
    argp_error(state, "--think is for closed loops, --rate for open ones");
  if (l->depth > 1 && (l->rate > 0 || l->think > 0 || l->verify))
    argp_error(state, "--depth is for closed loops without --think and --verify");
  if (l->verify && l->sink != CTL_SINK_DOWNLOAD)
    argp_error(state, "--verify needs solutions: only --sink=download has them");
  if (l->sink == CTL_SINK_CORRELATOR) check_correlator(state, l);
  if (l->clients == 0) l->clients = l->rate > 0 ? OPEN_CLIENTS : CLOSED_CLIENTS;
  if (l->users > l->clients)
    argp_error(state, "--users=%" PRIu64 ": there are %" PRIu64 " clients", l->users, l->clients);
  if (o->list && !l->requests) argp_error(state, "--list needs --requests");
  if (!l->duration && !l->requests) l->duration = SECONDS;
}

/* Of the requests and of the clients. */
#define AT(member) offsetof(ctl_load_options_t, member)
static const qk_option_row_t load_rows[] = {
    {"clients", QK_OPTION_UINT64, AT(clients), "N", .min = 1, .max = CTL_LOAD_CLIENTS,
     .help = "number of clients, each with --depth requests at a time (4; with --rate 32)"},
    {"depth", QK_OPTION_UINT64, AT(depth), "N", .min = 1, .max = CTL_LOAD_DEPTH,
     .help = "closed loop: open requests of each client; the next ones are uploaded while the "
             "first is solved (1)"},
    {"rate", QK_OPTION_REAL, AT(rate), "R", .min = 1e-6, .max = 1e6,
     .help = "open loop: R requests per second arrive at random, independent of the daemon's "
             "answers"},
    {"think", QK_OPTION_TAKEN, .form = "SECONDS[:fixed]", .take = take_think,
     .help = "closed loop: mean pause of a client before a request; fixed: always the same pause "
             "(0)"},
    {"rhs", QK_OPTION_TAKEN, .form = "MIN[:MAX]", .take = take_rhs,
     .help = "right-hand sides of a request (1)"},
    {"tol", QK_OPTION_TAKEN, .form = "TOL[,TOL...]", .take = take_tol,
     .help = "tolerances, of which each request draws one at random (1e-8)"},
    {"source", QK_OPTION_TAKEN, .form = "KIND[,KIND...]", .take = take_source,
     .help = "point, wall, z2, z4 or upload, of which each request draws one at random (z2)"},
    {"sink", QK_OPTION_TAKEN, .form = "download|none|correlator", .take = take_sink,
     .help = "what to do with solutions (download); correlator: the daemon keeps the 12 columns "
             "of a request and contracts them to a pion correlator"},
    {"dtype", QK_OPTION_TAKEN, .form = "f32|f64", .take = take_dtype,
     .help = "precision on the wire (f64)"},
    {"priority", QK_OPTION_INT, AT(priority), "N", .max = 9,
     .help = "priority of the requests, 0 to 9 (4)"},
    {"max-iter", QK_OPTION_UINT64, AT(max_iter), "N", .min = 1, .max = 1e9,
     .help = "limit of iterations of a right-hand side (10000)"},
    {"user", QK_OPTION_TAKEN, .form = "NAME", .take = take_user,
     .help = "user whose fair share the work counts to (this process's)"},
    {"users", QK_OPTION_UINT64, AT(users), "N", .min = 1, .max = CTL_LOAD_CLIENTS,
     .help = "spread the clients over N users NAME-0, NAME-1, ... (bench-0, ...) (1)"},
    {"duration", QK_OPTION_REAL, AT(duration), "SECONDS", .min = 1e-3, .max = 1e7,
     .help = "how long to measure (30; with --requests no limit)"},
    {"requests", QK_OPTION_UINT64, AT(requests), "N", .min = 1, .max = 1e8,
     .help = "how many requests to measure"},
    {"warmup", QK_OPTION_REAL, AT(warmup), "SECONDS", .max = 1e6,
     .help = "how long to send requests before the measurement (0)"},
    {"seed", QK_OPTION_TAKEN, .form = "N", .take = take_seed,
     .help = "seed of the requests; equal seeds give equal requests (1)"},
    {"verify", QK_OPTION_FLAG, AT(verify),
     .help = "check the norm of every solution, and solve some uploads a second time"},
    {0},
};
#undef AT
static const qk_option_table_t load_table = {.row = load_rows, .group = 1};

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"cut", QK_OPTION_FLAG, AT(cut), .help = "cancel open requests when the time is over"},
    {"plot", QK_OPTION_TEXT, AT(plot), "FILE.png",
     .help = "plot latencies and throughput over time with gnuplot"},
    {"progress", QK_OPTION_FLAG, AT(progress),
     .help = "show progress even if stderr is not a terminal"},
    {"list", QK_OPTION_FLAG, AT(list),
     .help = "print the first --requests requests as JSON and send none"},
    {NULL, QK_OPTION_TABLE, AT(load), .table = &load_table},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, common), .table = &ctl_common_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

/* ---- running --------------------------------------------------------------------------------- */

static int print_list(const ctl_load_options_t *o) {
  json_t *list = json_array();
  double arrival = 0;
  for (uint64_t i = 0; i < o->requests; i++) {
    const ctl_load_request_t r = ctl_load_request(o, i);
    char seed[24];
    arrival += r.gap;
    snprintf(seed, sizeof seed, "%016" PRIx64, r.seed);
    json_array_append_new(list, json_pack("{s:I, s:s, s:i, s:f, s:s, s:f, s:f}", "index",
                                          (json_int_t)r.index, "source", ctl_bench_source(r.source),
                                          "rhs", (int)r.nrhs, "tol", r.tol, "seed", seed, "arrival",
                                          arrival, "think", r.think));
  }
  return ctl_print(list);
}

static void pause_ms(long ms) {
  const struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
  nanosleep(&t, NULL);
}

static void show(ctl_progress_t *progress, const ctl_load_options_t *o, const ctl_load_t *load) {
  const double now = ctl_seconds() - ctl_load_measured_from(load);
  const uint64_t ended = ctl_load_ended(load);
  char text[160];
  if (now < 0)
    snprintf(text, sizeof text, "warming up: %" PRIu64 " right-hand sides", ended);
  else if (o->duration > 0)
    snprintf(text, sizeof text, "%.0f of %g s: %" PRIu64 " right-hand sides", now, o->duration,
             ended);
  else
    snprintf(text, sizeof text, "%.0f s: %" PRIu64 " right-hand sides", now, ended);
  ctl_progress_line(progress, text);
}

static int ask(quark_connection_t *conn, quark_report_t *report) {
  quark_error_t err;
  return quark_status(conn, report, &err) == QUARK_OK ? 0 : ctl_fail(&err);
}

/* Waits for the clients. Asks the daemon for its report when the measurement begins and when it
 * ends. before: its report before there were clients, which counts if there is no warm-up. */
static int watch(const options_t *o, quark_connection_t *conn, ctl_load_t *load, ctl_bench_t *b,
                 quark_report_t *before, quark_report_t *after) {
  ctl_progress_t progress;
  bool begun = o->load.warmup == 0, over = false;
  int code = 0;
  b->from = ctl_load_measured_from(load);
  b->until = o->load.duration > 0 ? b->from + o->load.duration : INFINITY;
  ctl_progress_begin(&progress, 0, o->progress);
  while (!ctl_load_done(load) && code == 0) {
    const double now = ctl_seconds();
    if (!begun && now >= b->from) {
      begun = true;
      code = ask(conn, before);
    }
    if (code == 0 && !over && now >= b->until) {
      over = true;
      code = ask(conn, after);
      if (o->cut) ctl_load_stop(load, true);
    }
    if (ctl_interrupted() && !b->interrupted) {
      b->interrupted = true;
      b->until = fmin(b->until, now);
      if (!over) code = ask(conn, after);
      over = true;
      ctl_load_stop(load, true);
    }
    show(&progress, &o->load, load);
    pause_ms(LOOK_MS);
  }
  ctl_progress_end(&progress);
  if (code) ctl_load_stop(load, true);
  if (code == 0 && !begun) *before = *after;
  if (code == 0 && !over) code = ask(conn, after);
  return code;
}

/* Without a duration the measurement ends with the last right-hand side. */
static void settle_end(ctl_bench_t *b) {
  if (isfinite(b->until)) return;
  b->until = b->from;
  for (size_t i = 0; i < b->outcome->requests.count; i++)
    b->until = fmax(b->until, b->outcome->requests.at[i].ended);
}

/* The exit code of the worst failure. Those that a second try may avoid count only if there is no
 * other. */
static int verdict(const ctl_load_outcome_t *o) {
  int code = 0;
  if (o->wrong + o->spoilt > 0) return EXIT_DATA;
  for (size_t i = 0; i < o->rhs.count; i++) {
    const quark_code_t status = o->rhs.at[i].status;
    if (status != QUARK_OK && !quark_code_retryable(status)) return EXIT_DATA;
    if (status != QUARK_OK) code = EXIT_AGAIN;
  }
  if (o->lost.code != QUARK_OK) return ctl_fail(&o->lost);
  return o->rejected > 0 ? EXIT_AGAIN : code;
}

static int report(const options_t *o, ctl_bench_t *b) {
  settle_end(b);
  if (b->until <= b->from) {
    ctl_complain("nothing was measured");
    return b->outcome->lost.code ? verdict(b->outcome) : EXIT_AGAIN;
  }
  int code = o->common.json ? ctl_bench_json(b) : ctl_bench_text(b);
  if (code == 0 && o->plot) code = ctl_bench_png(b, o->plot);
  return code ? code : verdict(b->outcome);
}

static int run(const options_t *o) {
  static quark_report_t before, after;
  quark_connection_t *conn = NULL;
  ctl_load_t *load;
  ctl_load_outcome_t outcome;
  ctl_catch_signals();
  int code = ctl_connect(&o->common, NULL, false, &conn);
  if (code == 0) code = ctl_report(&o->common, conn, false, &before);
  if (code == 0)
    code = o->load.sink == CTL_SINK_CORRELATOR ? ctl_operator_check_single(&before, "contractions")
                                               : ctl_operator_check(&before);
  if (code == 0) code = ctl_load_begin(&o->common, &o->load, &before, &load);
  if (code == 0) {
    ctl_bench_t b = {.options = &o->load, .outcome = &outcome, .before = &before, .after = &after};
    code = watch(o, conn, load, &b, &before, &after);
    ctl_load_wait(load, &outcome);
    if (code == 0) code = report(o, &b);
    ctl_load_outcome_fini(&outcome);
  }
  quark_close(conn);
  return code;
}

int ctl_bench(int argc, char **argv) {
  static const char about[] =
      "Puts a load on the daemon and prints throughput, latencies and occupancy.\v"
      "If interrupted, it prints what it has measured so far. Exit codes: 65 right-hand sides "
      "failed or were wrong, 69 no daemon, 75 the daemon was full or lost its engine.";
  options_t o = {.load = {.users = 1,
                          .depth = 1,
                          .seed = 1,
                          .rhs_min = 1,
                          .rhs_max = 1,
                          .ntol = 1,
                          .tol = {1e-8},
                          .nsource = 1,
                          .source = {QUARK_Z2},
                          .dtype = QUARK_F64,
                          .priority = 4,
                          .max_iter = 10000}};
  ctl_common_init(&o.common);
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  return o.list ? print_list(&o.load) : run(&o);
}
