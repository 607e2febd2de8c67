#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/channels.h"
#include "client/analysis/smearing.h"
#include "client/cli/measure.h"
#include "client/cli/operator.h"

typedef struct options {
  ctl_solve_options_t solve;
  const char *text;
  qk_source_t source;
  quark_column_t sink;   /* of every sequential source, but for what it goes through */
  int32_t first_flavour; /* 0: that of the second propagator */
  bool has_time;
} options_t;

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  (void)name;
  ctl_source(state, text, &o->source);
  o->text = text;
}

static void take_gamma(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  if (!qk_gamma_parse(text, &o->sink.gamma))
    argp_error(state, "--%s=%s: must be id, g5, a product such as gxgt, or 0 to 15", name, text);
}

static void take_time(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  o->has_time = true;
  o->sink.t = strcmp(text, "all") == 0
                  ? -1
                  : (int32_t)qk_option_integer(state, name, text, 0, QK_H5FILE_MAX_EXTENT - 1);
}

static void take_momentum(const struct argp_state *state, const char *name, char *text,
                          void *values) {
  options_t *o = values;
  uint32_t n = 0;
  int32_t(*p)[3];
  qk_err_t err = {0};
  if (qk_momenta_parse(text, &n, &p, &err) != QK_OK) argp_error(state, "--%s: %s", name, err.text);
  if (n != 1) argp_error(state, "--%s=%s: must be one momentum", name, text);
  o->sink.px = p[0][0];
  o->sink.py = p[0][1];
  o->sink.pz = p[0][2];
  free(p);
}

static void take_smear_sink(const struct argp_state *state, const char *name, char *text,
                            void *values) {
  options_t *o = values;
  ctl_smearing(state, name, text, &o->solve.sink);
}

static void take_first_flavour(const struct argp_state *state, const char *name, char *text,
                               void *values) {
  options_t *o = values;
  ctl_flavour(state, name, text, &o->first_flavour);
}

static void finish(const struct argp_state *state, void *values) {
  const options_t *o = values;
  if (!o->text || !o->has_time) argp_error(state, "--source and --sink-time are required");
}

static const qk_option_row_t rows[] = {
    {"source", QK_OPTION_TAKEN, .form = "SOURCE", .take = take_source,
     .help = "source of the first propagator, as for the command propagator (required)"},
    {"gamma", QK_OPTION_TAKEN, .form = "GAMMA", .take = take_gamma,
     .help = "gamma matrix of the sequential source: id, g5 (default), gx, gxgt, ..., or 0 to 15"},
    {"sink-time", QK_OPTION_TAKEN, .form = "T|all", .take = take_time,
     .help = "time slice of the sequential source (required)"},
    {"sink-momentum", QK_OPTION_TAKEN, .form = "PX,PY,PZ", .take = take_momentum,
     .help = "momentum p of the sequential source, a phase exp(i 2 pi p x / L) (0,0,0)"},
    {"first-flavour", QK_OPTION_TAKEN, .form = "+1|-1", .take = take_first_flavour,
     .help = "flavour of the first propagator (that of --flavour, which is that of the second)"},
    {"smear-sink", QK_OPTION_TAKEN, .form = "SMEARING", .take = take_smear_sink,
     .help = "Gaussian smearing of the sequential source, as --smear"},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, solve), .table = &ctl_solve_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

static int check_sink(const options_t *o, const quark_report_t *report) {
  const int32_t p[3] = {o->sink.px, o->sink.py, o->sink.pz};
  if (o->sink.t >= (int32_t)report->setup.dims[3]) {
    ctl_complain("--sink-time=%d: outside the lattice (0 to %u)", o->sink.t,
                 report->setup.dims[3] - 1);
    return EXIT_USAGE;
  }
  for (int j = 0; j < 3; j++)
    if (abs(p[j]) >= (int32_t)report->setup.dims[j]) {
      ctl_complain("--sink-momentum: p%c = %d, must be within +-%u", "xyz"[j], p[j],
                   report -> setup.dims[j] - 1);
      return EXIT_USAGE;
    }
  return 0;
}

/* Solves for the first propagator, which the daemon keeps. */
static int keep_first(const options_t *o, ctl_work_t *work, const quark_column_t *columns,
                      uint64_t *request) {
  const ctl_common_t *common = &o->solve.common;
  quark_params_t params = work->params;
  ctl_progress_t progress;
  quark_result_t *result = calloc((size_t)work->nrhs, sizeof *result);
  if (!result) {
    ctl_complain("no memory for %lld results", (long long)work->nrhs);
    return EXIT_AGAIN;
  }
  params.source = o->source.kind;
  if (o->first_flavour) params.flavour = o->first_flavour;
  params.sink_file.path = NULL; /* this one stays with the daemon */
  ctl_catch_signals();
  ctl_progress_begin(&progress, work->nrhs, o->solve.progress);
  const int code = ctl_keep(work->conn, &params, work->nrhs, columns,
                            ctl_seconds() + (isnan(common->timeout) ? 300 : common->timeout),
                            &progress, request, result);
  ctl_progress_end(&progress);
  free(result);
  return code;
}

/* Turns the columns into sequential sources through the kept ones, and solves. */
static int solve_second(const options_t *o, ctl_work_t *work, quark_column_t *columns,
                        uint64_t request) {
  char gamma[QK_GAMMA_NAME], smear[QK_SMEARING_TEXT], text[128];
  for (int64_t i = 0; i < work->nrhs; i++) {
    columns[i] = o->sink;
    columns[i].request = request;
    columns[i].rhs = (uint32_t)i;
  }
  qk_gamma_print(o->sink.gamma, gamma);
  qk_smearing_print(&o->solve.sink, smear);
  const int32_t first = o->first_flavour ? o->first_flavour : work->params.flavour;
  snprintf(text, sizeof text, "gamma=%s,t=%d,p=%d:%d:%d,smear=%.64s%s", gamma, o->sink.t,
           o->sink.px, o->sink.py, o->sink.pz, smear, first < 0 ? ",flavour=-1" : "");
  work->column = columns;
  work->sequential = text;
  work->params.source = QUARK_SEQUENTIAL;
  work->params.smear = o->solve.sink;
  return ctl_work_run(work);
}

/* Before anything is solved. */
static int check_output(const options_t *o, ctl_work_t *work) {
  work->kind = "propagator";
  work->source = o->text;
  work->sequential = "gamma"; /* until it is in words */
  return ctl_outcome_fits(work);
}

int ctl_sequential(int argc, char **argv) {
  static const char about[] =
      "Solves for a propagator, which the daemon keeps. For each of its columns x it then "
      "solves M y = gamma exp(ipx) x, with x restricted to a time slice, and writes the "
      "columns y.\v"
      "Exit codes: 65 a column did not reach the tolerance, 69 no daemon, 75 try again later.";
  options_t o = {.sink = {.gamma = 15}};
  ctl_solve_options_init(&o.solve);
  o.solve.can_file = true;
  qk_options_parse(&table, NULL, about, argc, argv, &o);
  ctl_work_t work;
  quark_column_t *columns = NULL;
  uint64_t request = 0;
  int code = ctl_work_begin(&work, &o.solve);
  if (code == 0) code = ctl_operator_check_usual(&work.report, "sequential sources");
  if (code == 0) code = check_sink(&o, &work.report);
  if (code == 0) code = ctl_columns(&o.source, o.text, &work.report, &work.nrhs, &columns);
  if (code == 0) code = check_output(&o, &work);
  if (code == 0) code = keep_first(&o, &work, columns, &request);
  if (code == 0) {
    code = solve_second(&o, &work, columns, request);
    quark_release(work.conn, request, NULL);
  }
  ctl_work_end(&work);
  free(columns);
  return code;
}
