#include "client/bench/benchreport.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/plot.h"

/* ---- figures --------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double ctl_percentile(double *x, size_t n, double p) {
  qsort(x, n, sizeof *x, by_value);
  const size_t rank = (size_t)ceil(p / 100 * (double)n);
  return x[rank > 0 ? rank - 1 : 0];
}

typedef struct spread {
  size_t count;
  double mean, p50, p90, p99, max; /* NaN without samples */
} spread_t;

/* A quantity of a sample; NaN: the sample does not count. */
typedef double quantity_fn(const ctl_sample_t *s);

static double latency(const ctl_sample_t *s) {
  return s->ended - s->begun;
}
static double queue(const ctl_sample_t *s) {
  return s->queue;
}
static double solver(const ctl_sample_t *s) {
  return s->solver;
}
static double elsewhere(const ctl_sample_t *s) {
  return latency(s) - s->queue - s->solver;
}

enum { ALL_USERS = -1 };

/* Mean and percentiles of the samples that began during the measurement. */
static int spread(const ctl_samples_t *samples, quantity_fn *quantity, int user, spread_t *out) {
  *out = (spread_t){0, NAN, NAN, NAN, NAN, NAN};
  if (samples->count == 0) return 0;
  double *x = malloc(samples->count * sizeof *x), sum = 0;
  size_t n = 0;
  if (!x) {
    ctl_complain("no memory for %zu samples", samples->count);
    return EXIT_AGAIN;
  }
  for (size_t i = 0; i < samples->count; i++) {
    const ctl_sample_t *s = &samples->at[i];
    if (!s->measured || isnan(quantity(s)) || (user != ALL_USERS && s->user != (uint32_t)user))
      continue;
    sum += x[n++] = quantity(s);
  }
  if (n > 0)
    *out = (spread_t){n,
                      sum / (double)n,
                      ctl_percentile(x, n, 50),
                      ctl_percentile(x, n, 90),
                      ctl_percentile(x, n, 99),
                      x[n - 1]};
  free(x);
  return 0;
}

static bool ended_while_measured(const ctl_bench_t *b, const ctl_sample_t *s) {
  return s->ended >= b->from && s->ended <= b->until;
}

typedef struct totals {
  uint64_t requests, rhs, converged, iterations;
  double solver; /* slot-seconds */
} totals_t;

static totals_t totals_of(const ctl_bench_t *b) {
  totals_t t = {0};
  for (size_t i = 0; i < b->outcome->requests.count; i++)
    t.requests += ended_while_measured(b, &b->outcome->requests.at[i]);
  for (size_t i = 0; i < b->outcome->rhs.count; i++) {
    const ctl_sample_t *s = &b->outcome->rhs.at[i];
    if (!ended_while_measured(b, s)) continue;
    t.rhs++;
    t.converged += s->status == QUARK_OK;
    t.iterations += s->iterations;
    if (!isnan(s->solver)) t.solver += s->solver;
  }
  return t;
}

static double seconds_of(const ctl_bench_t *b) {
  return b->until - b->from;
}

/* Slot-seconds of the measurement. */
static double capacity(const ctl_bench_t *b) {
  return b->after->engine.slots * seconds_of(b);
}

/* The daemon's report for the time of the measurement, not since its start. */
static quark_report_t difference(const ctl_bench_t *b) {
  quark_report_t d = *b->after;
  d.occupancy.saturated -= b->before->occupancy.saturated;
  d.occupancy.solving -= b->before->occupancy.solving;
  d.occupancy.moving -= b->before->occupancy.moving;
  d.occupancy.idle -= b->before->occupancy.idle;
  d.counters.bytes_in -= b->before->counters.bytes_in;
  d.counters.bytes_out -= b->before->counters.bytes_out;
  return d;
}

static double megabytes(uint64_t bytes, double seconds) {
  return 1e-6 * (double)bytes / seconds;
}

const char *ctl_bench_source(quark_source_t source) {
  static const char *const names[] = {"upload", "point", "wall", "z2", "z4"};
  return names[source];
}

/* How many right-hand sides ended with each status. */
typedef struct status_count {
  quark_code_t status;
  uint64_t count;
} status_count_t;

static int count_failed(const ctl_samples_t *rhs, status_count_t list[], int room) {
  int n = 0;
  for (size_t i = 0; i < rhs->count; i++) {
    const quark_code_t status = rhs->at[i].status;
    int k = 0;
    if (status == QUARK_OK) continue;
    while (k < n && list[k].status != status) k++;
    if (k == n && n < room) list[n++] = (status_count_t){.status = status};
    if (k < n) list[k].count++;
  }
  return n;
}

enum { STATUSES = 32 };

/* ---- text ------------------------------------------------------------------------------------ */

static void print_load(const ctl_bench_t *b) {
  const ctl_load_options_t *o = b->options;
  if (o->rate > 0)
    printf("load        open loop, %g requests/s, at most %" PRIu64 " at a time", o->rate,
           o->clients);
  else
    printf("load        closed loop, %" PRIu64 " clients", o->clients);
  if (o->depth > 1) printf(" with %" PRIu64 " requests under way each", o->depth);
  if (o->think > 0) printf(", thinking %g s%s", o->think, o->think_fixed ? "" : " on average");
  if (o->users > 1) printf(", %" PRIu64 " users", o->users);
  printf("; %u", o->rhs_min);
  if (o->rhs_max > o->rhs_min) printf(" to %u", o->rhs_max);
  printf(" right-hand sides each; tol");
  for (int i = 0; i < o->ntol; i++) printf(" %g", o->tol[i]);
  printf(";");
  for (int i = 0; i < o->nsource; i++) printf(" %s", ctl_bench_source(o->source[i]));
  printf("; seed %" PRIu64 "\n", o->seed);
}

static int print_spread(const char *name, const ctl_samples_t *samples, quantity_fn *quantity,
                        int user) {
  spread_t s;
  const int code = spread(samples, quantity, user, &s);
  if (code == 0 && s.count > 0)
    printf("%-22s %8zu %10.4f %10.4f %10.4f %10.4f %10.4f\n", name, s.count, s.mean, s.p50, s.p90,
           s.p99, s.max);
  return code;
}

static int print_latencies(const ctl_bench_t *b) {
  const ctl_load_outcome_t *o = b->outcome;
  printf("%-22s %8s %10s %10s %10s %10s %10s\n", "seconds", "samples", "mean", "50 %", "90 %",
         "99 %", "max");
  int code = print_spread("request", &o->requests, latency, ALL_USERS);
  if (code == 0) code = print_spread("right-hand side", &o->rhs, latency, ALL_USERS);
  if (code == 0) code = print_spread("  in the queue", &o->rhs, queue, ALL_USERS);
  if (code == 0) code = print_spread("  in the solver", &o->rhs, solver, ALL_USERS);
  if (code == 0) code = print_spread("  elsewhere", &o->rhs, elsewhere, ALL_USERS);
  for (int u = 0; code == 0 && b->options->users > 1 && u < (int)b->options->users; u++) {
    char name[32];
    snprintf(name, sizeof name, "  of user %d", u);
    code = print_spread(name, &o->rhs, latency, u);
  }
  return code;
}

static void print_mishaps(const ctl_bench_t *b) {
  const ctl_load_outcome_t *o = b->outcome;
  status_count_t failed[STATUSES];
  const int n = count_failed(&o->rhs, failed, STATUSES);
  if (o->rejected + o->retried + o->abandoned > 0)
    printf("requests    %" PRIu64 " rejected, %" PRIu64 " abandoned; %" PRIu64
           " times the daemon was full and asked again\n",
           o->rejected, o->abandoned, o->retried);
  if (o->late > 0)
    printf("late        %" PRIu64
           " requests found no client free: this rate needs more than --clients=%" PRIu64 "\n",
           o->late, b->options->clients);
  for (int i = 0; i < n; i++)
    printf("failed      %" PRIu64 " right-hand sides: %s\n", failed[i].count,
           quark_code_name(failed[i].status));
  if (o->correlators + o->spoilt > 0)
    printf("correlators %" PRIu64 " came, %" PRIu64 " could not be made\n", o->correlators,
           o->spoilt);
  if (o->norms > 0)
    printf("verified    %" PRIu64 " norms, off by %.1e at most; %" PRIu64
           " second solves, off by %.1e at most; %" PRIu64 " wrong\n",
           o->norms, o->worst_norm, o->solves, o->worst_solve, o->wrong);
}

int ctl_bench_text(const ctl_bench_t *b) {
  const totals_t t = totals_of(b);
  const quark_report_t daemon = difference(b);
  const double seconds = seconds_of(b);
  print_load(b);
  printf("measured    %.1f s%s: %" PRIu64 " requests, %" PRIu64 " right-hand sides, %" PRIu64
         " converged\n",
         seconds, b->interrupted ? ", interrupted" : "", t.requests, t.rhs, t.converged);
  printf("throughput  %.3f RHS/s   %.2f MB/s in   %.2f MB/s out   %.1f iterations each\n",
         (double)t.rhs / seconds, megabytes(daemon.counters.bytes_in, seconds),
         megabytes(daemon.counters.bytes_out, seconds),
         t.rhs ? (double)t.iterations / (double)t.rhs : 0);
  printf("solver      %.1f of %.1f slot-seconds (%u slots): %.1f %%\n", t.solver, capacity(b),
         b->after->engine.slots, 100 * t.solver / capacity(b));
  ctl_occupancy_print(&daemon);
  print_mishaps(b);
  return print_latencies(b);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *spread_json(const ctl_samples_t *samples, quantity_fn *quantity, int user) {
  spread_t s;
  if (spread(samples, quantity, user, &s)) return NULL;
  return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "samples", (json_int_t)s.count, "mean",
                   ctl_number(s.mean), "p50", ctl_number(s.p50), "p90", ctl_number(s.p90), "p99",
                   ctl_number(s.p99), "max", ctl_number(s.max));
}

static json_t *load_json(const ctl_load_options_t *o) {
  json_t *tol = json_array(), *source = json_array();
  for (int i = 0; i < o->ntol; i++) json_array_append_new(tol, json_real(o->tol[i]));
  for (int i = 0; i < o->nsource; i++)
    json_array_append_new(source, json_string(ctl_bench_source(o->source[i])));
  return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:i, s:i, s:o, s:o, s:I}", "loop",
                   o->rate > 0 ? "open" : "closed", "clients", (json_int_t)o->clients, "depth",
                   (json_int_t)o->depth, "users", (json_int_t)o->users, "rate",
                   o->rate > 0 ? json_real(o->rate) : json_null(), "think", json_real(o->think),
                   "rhs_min", (int)o->rhs_min, "rhs_max", (int)o->rhs_max, "tol", tol, "source",
                   source, "seed", (json_int_t)o->seed);
}

static json_t *failed_json(const ctl_samples_t *rhs) {
  status_count_t failed[STATUSES];
  json_t *object = json_object();
  const int n = count_failed(rhs, failed, STATUSES);
  for (int i = 0; i < n; i++)
    json_object_set_new(object, quark_code_name(failed[i].status),
                        json_integer((json_int_t)failed[i].count));
  return object;
}

static json_t *latency_json(const ctl_bench_t *b) {
  const ctl_load_outcome_t *o = b->outcome;
  json_t *users = json_array();
  for (int u = 0; u < (int)b->options->users; u++)
    json_array_append_new(users, spread_json(&o->rhs, latency, u));
  return json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:o}", "request", spread_json(&o->requests, latency, ALL_USERS),
      "rhs", spread_json(&o->rhs, latency, ALL_USERS), "queue",
      spread_json(&o->rhs, queue, ALL_USERS), "solver", spread_json(&o->rhs, solver, ALL_USERS),
      "elsewhere", spread_json(&o->rhs, elsewhere, ALL_USERS), "rhs_by_user", users);
}

int ctl_bench_json(const ctl_bench_t *b) {
  const totals_t t = totals_of(b);
  const quark_report_t daemon = difference(b);
  const double seconds = seconds_of(b);
  const ctl_load_outcome_t *o = b->outcome;
  json_t *requests =
      json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "done", (json_int_t)t.requests, "rejected",
                (json_int_t)o->rejected, "retried", (json_int_t)o->retried, "abandoned",
                (json_int_t)o->abandoned, "late", (json_int_t)o->late, "correlators",
                (json_int_t)o->correlators, "spoilt", (json_int_t)o->spoilt);
  json_t *rhs = json_pack("{s:I, s:I, s:I, s:o}", "done", (json_int_t)t.rhs, "converged",
                          (json_int_t)t.converged, "iterations", (json_int_t)t.iterations, "failed",
                          failed_json(&o->rhs));
  json_t *rate =
      json_pack("{s:o, s:o, s:o}", "rhs", ctl_number((double)t.rhs / seconds), "megabytes_in",
                ctl_number(megabytes(daemon.counters.bytes_in, seconds)), "megabytes_out",
                ctl_number(megabytes(daemon.counters.bytes_out, seconds)));
  json_t *solver_share =
      json_pack("{s:i, s:o, s:o, s:o}", "slots", (int)b->after->engine.slots, "slot_seconds",
                ctl_number(t.solver), "capacity", ctl_number(capacity(b)), "share",
                ctl_number(t.solver / capacity(b)));
  json_t *verified =
      json_pack("{s:I, s:I, s:I, s:o, s:o}", "norms", (json_int_t)o->norms, "solves",
                (json_int_t)o->solves, "wrong", (json_int_t)o->wrong, "worst_norm",
                ctl_number(o->worst_norm), "worst_solve", ctl_number(o->worst_solve));
  return ctl_print(json_pack("{s:o, s:o, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "load",
                             load_json(b->options), "seconds", ctl_number(seconds), "interrupted",
                             b->interrupted, "requests", requests, "rhs", rhs, "per_second", rate,
                             "latency", latency_json(b), "solver", solver_share, "occupancy",
                             ctl_occupancy_json(&daemon), "verified", verified));
}

/* ---- picture --------------------------------------------------------------------------------- */

enum { MOST_BINS = 60, FEWEST_BINS = 5, SAMPLES_A_BIN = 10 };

static void write_rates(FILE *to, const ctl_bench_t *b) {
  uint64_t count[MOST_BINS] = {0};
  const int bins =
      (int)fmin(MOST_BINS, fmax(FEWEST_BINS, (double)b->outcome->rhs.count / SAMPLES_A_BIN));
  const double width = seconds_of(b) / bins;
  for (size_t i = 0; i < b->outcome->rhs.count; i++) {
    const ctl_sample_t *s = &b->outcome->rhs.at[i];
    const double bin = (s->ended - b->from) / width;
    if (bin >= 0 && bin < bins) count[(int)bin]++;
  }
  fputs("$rate << EOD\n", to);
  for (int i = 0; i < bins; i++)
    fprintf(to, "%g %g\n", (i + 0.5) * width, (double)count[i] / width);
  fputs("EOD\n", to);
}

/* Share of right-hand sides whose latency is at most x. */
static void write_distribution(FILE *to, const char *name, const ctl_samples_t *samples,
                               quantity_fn *quantity) {
  spread_t s;
  double *x = malloc((samples->count + 1) * sizeof *x);
  size_t n = 0;
  fprintf(to, "$%s << EOD\n", name);
  if (x && spread(samples, quantity, ALL_USERS, &s) == 0 && s.count > 0) {
    for (size_t i = 0; i < samples->count; i++)
      if (samples->at[i].measured && !isnan(quantity(&samples->at[i])))
        x[n++] = quantity(&samples->at[i]);
    qsort(x, n, sizeof *x, by_value);
    for (size_t i = 0; i < n; i++) fprintf(to, "%g %g\n", x[i], (double)(i + 1) / (double)n);
  } else {
    fputs("0 0\n", to);
  }
  fputs("EOD\n", to);
  free(x);
}

static void write_script(FILE *to, const void *arg) {
  const ctl_bench_t *b = arg;
  fputs("set terminal pngcairo size 900,900 noenhanced font 'sans,11'\n", to);
  write_rates(to, b);
  write_distribution(to, "rhs", &b->outcome->rhs, latency);
  write_distribution(to, "queue", &b->outcome->rhs, queue);
  write_distribution(to, "solver", &b->outcome->rhs, solver);
  fputs("set multiplot layout 2,1\nset grid\nset lmargin 12\n"
        "set xlabel 'seconds'\nset ylabel 'share of right-hand sides'\nset key bottom right\n"
        "plot $rhs with steps lw 2 title 'latency', $queue with steps title 'in the queue', "
        "$solver with steps title 'in the solver'\n"
        "set ylabel 'right-hand sides / s'\nset yrange [0:*]\nunset key\n"
        "plot $rate with steps lw 2\nunset multiplot\n",
        to);
}

int ctl_bench_png(const ctl_bench_t *bench, const char *path) {
  qk_err_t err = {0};
  return ctl_plot_script(path, write_script, bench, &err) == QK_OK ? 0 : ctl_fail_file(&err);
}
