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

enum {
  OPT_CLIENTS = 0x200,
  OPT_DEPTH,
  OPT_RATE,
  OPT_THINK,
  OPT_RHS,
  OPT_TOL,
  OPT_SOURCE,
  OPT_SINK,
  OPT_DTYPE,
  OPT_PRIORITY,
  OPT_MAX_ITER,
  OPT_USER,
  OPT_USERS,
  OPT_DURATION,
  OPT_REQUESTS,
  OPT_WARMUP,
  OPT_CUT,
  OPT_SEED,
  OPT_VERIFY,
  OPT_PLOT,
  OPT_PROGRESS,
  OPT_LIST
};

static const struct argp_option argp_options[] = {
    {"clients", OPT_CLIENTS, "N", 0,
     "number of clients, each with --depth requests at a time (4; with --rate 32)", 1},
    {"depth", OPT_DEPTH, "N", 0,
     "closed loop: open requests of each client; the next ones are uploaded while the first is "
     "solved (1)",
     1},
    {"rate", OPT_RATE, "R", 0,
     "open loop: R requests per second arrive at random, independent of the daemon's answers", 1},
    {"think", OPT_THINK, "SECONDS[:fixed]", 0,
     "closed loop: mean pause of a client before a request; fixed: always the same pause (0)", 1},
    {"rhs", OPT_RHS, "MIN[:MAX]", 0, "right-hand sides of a request (1)", 1},
    {"tol", OPT_TOL, "TOL[,TOL...]", 0,
     "tolerances, of which each request draws one at random (1e-8)", 1},
    {"source", OPT_SOURCE, "KIND[,KIND...]", 0,
     "point, wall, z2, z4 or upload, of which each request draws one at random (z2)", 1},
    {"sink", OPT_SINK, "download|none|correlator", 0,
     "what to do with solutions (download); correlator: the daemon keeps the 12 columns of a "
     "request and contracts them to a pion correlator",
     1},
    {"dtype", OPT_DTYPE, "f32|f64", 0, "precision on the wire (f64)", 1},
    {"priority", OPT_PRIORITY, "N", 0, "priority of the requests, 0 to 9 (4)", 1},
    {"max-iter", OPT_MAX_ITER, "N", 0, "limit of iterations of a right-hand side (10000)", 1},
    {"user", OPT_USER, "NAME", 0, "user whose fair share the work counts to (this process's)", 1},
    {"users", OPT_USERS, "N", 0,
     "spread the clients over N users NAME-0, NAME-1, ... (bench-0, ...) (1)", 1},
    {"duration", OPT_DURATION, "SECONDS", 0, "how long to measure (30; with --requests no limit)",
     1},
    {"requests", OPT_REQUESTS, "N", 0, "how many requests to measure", 1},
    {"warmup", OPT_WARMUP, "SECONDS", 0, "how long to send requests before the measurement (0)", 1},
    {"cut", OPT_CUT, 0, 0, "cancel open requests when the time is over", 1},
    {"seed", OPT_SEED, "N", 0, "seed of the requests; equal seeds give equal requests (1)", 1},
    {"verify", OPT_VERIFY, 0, 0,
     "check the norm of every solution, and solve some uploads a second time", 1},
    {"plot", OPT_PLOT, "FILE.png", 0, "plot latencies and throughput over time with gnuplot", 1},
    {"progress", OPT_PROGRESS, 0, 0, "show progress even if stderr is not a terminal", 1},
    {"list", OPT_LIST, 0, 0, "print the first --requests requests as JSON and send none", 1},
    {0},
};

static quark_source_t parse_source(const struct argp_state *state, const char *word) {
  static const quark_source_t kinds[] = {QUARK_UPLOAD, QUARK_POINT, QUARK_WALL, QUARK_Z2, QUARK_Z4};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(word, ctl_bench_source(kinds[i])) == 0) return kinds[i];
  argp_error(state, "--source=%s: must be point, wall, z2, z4 or upload", word);
  return QUARK_Z2;
}

/* Calls `take` for each word of a list. */
static void parse_list(const struct argp_state *state, const char *name, char *list,
                       void (*take)(const struct argp_state *, ctl_load_options_t *, int,
                                    const char *),
                       ctl_load_options_t *o, int *count) {
  char *rest = list;
  int n = 0;
  for (char *word; (word = strsep(&rest, ","));) {
    if (n == CTL_LOAD_MIX) argp_error(state, "--%s: at most %d values", name, CTL_LOAD_MIX);
    take(state, o, n++, word);
  }
  *count = n;
}

static void take_tol(const struct argp_state *state, ctl_load_options_t *o, int i,
                     const char *word) {
  o->tol[i] = ctl_real(state, "tol", word, 1e-16, 0.999);
}

static void take_source(const struct argp_state *state, ctl_load_options_t *o, int i,
                        const char *word) {
  o->source[i] = parse_source(state, word);
}

static void parse_rhs(const struct argp_state *state, char *text, ctl_load_options_t *o) {
  char *max = strchr(text, ':');
  if (max) *max++ = '\0';
  o->rhs_min = (uint32_t)ctl_integer(state, "rhs", text, 1, 1024);
  o->rhs_max = max ? (uint32_t)ctl_integer(state, "rhs", max, o->rhs_min, 1024) : o->rhs_min;
}

static void parse_think(const struct argp_state *state, char *text, ctl_load_options_t *o) {
  char *how = strchr(text, ':');
  if (how) *how++ = '\0';
  if (how && strcmp(how, "fixed") != 0)
    argp_error(state, "--think=%s:%s: only \"fixed\" may follow the colon", text, how);
  o->think = ctl_real(state, "think", text, 0, 1e6);
  o->think_fixed = how != NULL;
}

static ctl_sink_t parse_sink(const struct argp_state *state, const char *text) {
  static const char *const names[] = {"download", "none", "correlator"};
  for (int i = 0; i < 3; i++)
    if (strcmp(text, names[i]) == 0) return (ctl_sink_t)i;
  argp_error(state, "--sink=%s: must be download, none or correlator", text);
  return CTL_SINK_DOWNLOAD;
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

/* One of two words; true: the second. */
static bool parse_either(const struct argp_state *state, const char *name, const char *text,
                         const char *first, const char *second) {
  if (strcmp(text, first) != 0 && strcmp(text, second) != 0)
    argp_error(state, "--%s=%s: must be %s or %s", name, text, first, second);
  return strcmp(text, second) == 0;
}

static void finish(const struct argp_state *state, options_t *o) {
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

/* Options of the requests and of the clients. */
static error_t parse_load(int key, char *arg, const struct argp_state *state,
                          ctl_load_options_t *l) {
  switch (key) {
  case OPT_CLIENTS:
    l->clients = ctl_integer(state, "clients", arg, 1, CTL_LOAD_CLIENTS);
    return 0;
  case OPT_DEPTH:
    l->depth = ctl_integer(state, "depth", arg, 1, CTL_LOAD_DEPTH);
    return 0;
  case OPT_RATE:
    l->rate = ctl_real(state, "rate", arg, 1e-6, 1e6);
    return 0;
  case OPT_THINK:
    parse_think(state, arg, l);
    return 0;
  case OPT_RHS:
    parse_rhs(state, arg, l);
    return 0;
  case OPT_TOL:
    parse_list(state, "tol", arg, take_tol, l, &l->ntol);
    return 0;
  case OPT_SOURCE:
    parse_list(state, "source", arg, take_source, l, &l->nsource);
    return 0;
  case OPT_SINK:
    l->sink = parse_sink(state, arg);
    return 0;
  case OPT_DTYPE:
    l->dtype = parse_either(state, "dtype", arg, "f32", "f64") ? QUARK_F64 : QUARK_F32;
    return 0;
  case OPT_PRIORITY:
    l->priority = (int)ctl_integer(state, "priority", arg, 0, 9);
    return 0;
  case OPT_MAX_ITER:
    l->max_iter = ctl_integer(state, "max-iter", arg, 1, 1000000000);
    return 0;
  case OPT_USER:
    if (strlen(arg) > USER_MAX) argp_error(state, "--user=%s: at most %d bytes", arg, USER_MAX);
    l->user = arg;
    return 0;
  case OPT_USERS:
    l->users = ctl_integer(state, "users", arg, 1, CTL_LOAD_CLIENTS);
    return 0;
  case OPT_SEED:
    l->seed = ctl_integer(state, "seed", arg, 0, INT64_MAX);
    return 0;
  case OPT_VERIFY:
    l->verify = true;
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  ctl_load_options_t *l = &o->load;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->common;
    return 0;
  case OPT_DURATION:
    l->duration = ctl_real(state, "duration", arg, 1e-3, 1e7);
    return 0;
  case OPT_REQUESTS:
    l->requests = ctl_integer(state, "requests", arg, 1, 100000000);
    return 0;
  case OPT_WARMUP:
    l->warmup = ctl_real(state, "warmup", arg, 0, 1e6);
    return 0;
  case OPT_CUT:
    o->cut = true;
    return 0;
  case OPT_PLOT:
    o->plot = arg;
    return 0;
  case OPT_PROGRESS:
    o->progress = true;
    return 0;
  case OPT_LIST:
    o->list = true;
    return 0;
  case ARGP_KEY_ARG:
    argp_usage(state);
    return 0;
  case ARGP_KEY_END:
    finish(state, o);
    return 0;
  default:
    return parse_load(key, arg, state, l);
  }
}

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
  if (code == 0) code = ctl_operator_check(&before);
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
  static const struct argp_child children[] = {{&ctl_common_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = argp_options,
      .parser = parse,
      .doc =
          "Puts a load on the daemon and prints throughput, latencies and occupancy.\v"
          "If interrupted, it prints what it has measured so far. Exit codes: 65 right-hand sides "
          "failed or were wrong, 69 no daemon, 75 the daemon was full or lost its engine.",
      .children = children,
  };
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
  ctl_parse(&argp, argc, argv, &o);
  return o.list ? print_list(&o.load) : run(&o);
}
