#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/analysis/channels.h"
#include "client/analysis/smearing.h"
#include "client/cli/measure.h"

enum { OPT_SOURCE = 0x200, OPT_GAMMA, OPT_TIME, OPT_MOMENTUM, OPT_SMEAR_SINK };

typedef struct options {
  ctl_solve_options_t solve;
  const char *text;
  qk_source_t source;
  quark_column_t sink; /* of every sequential source, but for what it goes through */
  bool has_time;
} options_t;

static const struct argp_option argp_options[] = {
    {"source", OPT_SOURCE, "SOURCE", 0,
     "source of the first propagator, as for the command propagator (required)", 1},
    {"gamma", OPT_GAMMA, "GAMMA", 0,
     "gamma matrix of the sequential source: id, g5 (default), gx, gxgt, ..., or 0 to 15", 1},
    {"sink-time", OPT_TIME, "T|all", 0, "time slice of the sequential source (required)", 1},
    {"sink-momentum", OPT_MOMENTUM, "PX,PY,PZ", 0,
     "momentum p of the sequential source, a phase exp(i 2 pi p x / L) (0,0,0)", 1},
    {"smear-sink", OPT_SMEAR_SINK, "SMEARING", 0,
     "Gaussian smearing of the sequential source, as --smear", 1},
    {0},
};

static void parse_momentum(const struct argp_state *state, const char *text, quark_column_t *sink) {
  uint32_t n = 0;
  int32_t(*p)[3];
  qk_err_t err = {0};
  if (qk_momenta_parse(text, &n, &p, &err) != QK_OK)
    argp_error(state, "--sink-momentum: %s", err.text);
  if (n != 1) argp_error(state, "--sink-momentum=%s: must be one momentum", text);
  sink->px = p[0][0];
  sink->py = p[0][1];
  sink->pz = p[0][2];
  free(p);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->solve;
    return 0;
  case OPT_SOURCE:
    ctl_source(state, arg, &o->source);
    o->text = arg;
    return 0;
  case OPT_GAMMA:
    if (!qk_gamma_parse(arg, &o->sink.gamma))
      argp_error(state, "--gamma=%s: must be id, g5, a product such as gxgt, or 0 to 15", arg);
    return 0;
  case OPT_TIME:
    o->has_time = true;
    o->sink.t = strcmp(arg, "all") == 0
                    ? -1
                    : (int32_t)ctl_integer(state, "sink-time", arg, 0, QK_H5FILE_MAX_EXTENT - 1);
    return 0;
  case OPT_MOMENTUM:
    parse_momentum(state, arg, &o->sink);
    return 0;
  case OPT_SMEAR_SINK:
    ctl_smearing(state, "smear-sink", arg, &o->solve.sink);
    return 0;
  case ARGP_KEY_ARG:
    argp_usage(state);
    return 0;
  case ARGP_KEY_END:
    if (!o->text || !o->has_time) argp_error(state, "--source and --sink-time are required");
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

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
  snprintf(text, sizeof text, "gamma=%s,t=%d,p=%d:%d:%d,smear=%.64s", gamma, o->sink.t, o->sink.px,
           o->sink.py, o->sink.pz, smear);
  work->column = columns;
  work->kind = "propagator";
  work->source = o->text;
  work->sequential = text;
  work->params.source = QUARK_SEQUENTIAL;
  work->params.smear = o->solve.sink;
  return ctl_work_run(work);
}

int ctl_sequential(int argc, char **argv) {
  static const struct argp_child children[] = {{&ctl_solve_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = argp_options,
      .parser = parse,
      .doc =
          "Solves for a propagator, which the daemon keeps. For each of its columns x it then "
          "solves M y = gamma exp(ipx) x, with x restricted to a time slice, and writes the "
          "columns y.\v"
          "Exit codes: 65 a column did not reach the tolerance, 69 no daemon, 75 try again later.",
      .children = children,
  };
  options_t o = {.sink = {.gamma = 15}};
  ctl_solve_options_init(&o.solve);
  o.solve.can_file = true;
  ctl_parse(&argp, argc, argv, &o);
  ctl_work_t work;
  quark_column_t *columns = NULL;
  uint64_t request = 0;
  int code = ctl_work_begin(&work, &o.solve);
  if (code == 0) code = check_sink(&o, &work.report);
  if (code == 0) code = ctl_columns(&o.source, o.text, &work.report, &work.nrhs, &columns);
  if (code == 0) code = keep_first(&o, &work, columns, &request);
  if (code == 0) {
    code = solve_second(&o, &work, columns, request);
    quark_release(work.conn, request, NULL);
  }
  ctl_work_end(&work);
  free(columns);
  return code;
}
