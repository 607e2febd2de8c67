#include "client/analysis/correlator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/measure.h"
#include "client/cli/table.h"

enum {
  OPT_SOURCE = 0x200,
  OPT_CHANNELS,
  OPT_CHANNEL,
  OPT_MOMENTA,
  OPT_SMEAR_SINK,
  OPT_PLOT,
  OPT_PNG
};

typedef struct options {
  ctl_solve_options_t solve;
  const char *text, *channels, *png, *argument[2]; /* text: of the source */
  qk_source_t source;
  qk_channels_t channel;
  uint32_t nmom;
  int32_t (*momentum)[3];
  bool plot, selects; /* selects: channels or momenta are given */
} options_t;

static const struct argp_option argp_options[] = {
    {"source", OPT_SOURCE, "SOURCE", 0,
     "point:X,Y,Z,T or wall:T[,p=PX:PY:PZ]: solve and contract in the daemon", 1},
    {"channels", OPT_CHANNELS, "LIST", 0,
     "pion (default), a4, a0, rho, rho_t, a1, b1, nucleon, nucleon_minus, delta, all, pairs, or "
     "SINK-SOURCE with gamma matrices such as g5-gxgt or 15-9",
     1},
    {"channel", OPT_CHANNEL, 0, OPTION_ALIAS, 0, 1},
    {"momenta", OPT_MOMENTA, "LIST", 0, "integer triples: \"0,0,0;1,0,0\" (0,0,0)", 1},
    {"smear-sink", OPT_SMEAR_SINK, "SMEARING", 0, "Gaussian smearing of the sinks, as --smear", 1},
    {"plot", OPT_PLOT, "FILE.png", OPTION_ARG_OPTIONAL,
     "plot C(t) and the effective mass with gnuplot, to FILE or in the terminal", 1},
    {"png", OPT_PNG, "FILE", 0, "the same as --plot=FILE", 1},
    {0},
};

/* ---- options ---- */

static void parse_source(const struct argp_state *state, const char *text, options_t *o) {
  ctl_source(state, text, &o->source);
  if (!ctl_can_measure(&o->source))
    argp_error(state, "--source=%s: must be a point or wall source with all spins and colours",
               text);
  o->text = text;
}

static void parse_lists(const struct argp_state *state, int key, const char *text, options_t *o) {
  qk_err_t err = {0};
  if (key == OPT_MOMENTA) {
    free(o->momentum);
    o->momentum = NULL;
    if (qk_momenta_parse(text, &o->nmom, &o->momentum, &err) != QK_OK)
      argp_error(state, "--momenta: %s", err.text);
    return;
  }
  qk_channels_fini(&o->channel);
  if (qk_channels_parse(text, &o->channel, &err) != QK_OK)
    argp_error(state, "--channels: %s", err.text);
  o->channels = text;
}

static bool is_png(const char *name) {
  const size_t n = strlen(name);
  return n > 4 && strcmp(name + n - 4, ".png") == 0;
}

static void finish_options(const struct argp_state *state, options_t *o) {
  const int last = o->argument[1] ? 1 : 0;
  if (o->plot && o->argument[last] && is_png(o->argument[last])) {
    o->png = o->argument[last];
    o->argument[last] = NULL;
    o->plot = false;
  }
  if (!o->channels) parse_lists(state, OPT_CHANNELS, "pion", o);
  if (!o->momentum) parse_lists(state, OPT_MOMENTA, "0,0,0", o);
  if (!o->text == !o->argument[0] || o->argument[1]) argp_usage(state);
  if (o->argument[0] && o->solve.out) argp_error(state, "--out is for --source");
  if (o->text && !o->solve.out) argp_error(state, "--out is required with --source");
  if (o->text && o->solve.params.basis != QUARK_DEGRAND_ROSSI)
    argp_error(state, "--basis: must be degrand-rossi; correlators do not depend on it");
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case ARGP_KEY_INIT:
    state->child_inputs[0] = &o->solve;
    return 0;
  case OPT_SOURCE:
    parse_source(state, arg, o);
    return 0;
  case OPT_CHANNELS:
  case OPT_CHANNEL:
  case OPT_MOMENTA:
    o->selects = true;
    parse_lists(state, key, arg, o);
    return 0;
  case OPT_SMEAR_SINK:
    ctl_smearing(state, "smear-sink", arg, &o->solve.sink);
    return 0;
  case OPT_PLOT:
    if (arg)
      o->png = arg;
    else
      o->plot = true;
    return 0;
  case OPT_PNG:
    o->png = arg;
    return 0;
  case ARGP_KEY_ARG:
    if (o->argument[1]) argp_usage(state);
    o->argument[o->argument[0] ? 1 : 0] = arg;
    return 0;
  case ARGP_KEY_END:
    finish_options(state, o);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

/* ---- a propagator file ---- */

static void print_mass(double m) {
  if (isfinite(m))
    printf("  %14.8f", m);
  else
    printf("  %14s", "-");
}

static void print_pion(const char *source, const qk_correlator_t *corr) {
  printf("# pion, source %s, t counted from t0 = %d\n# %3s  %22s  %14s  %14s\n", source, corr->t0,
         "t", "C(t)", "m_eff (cosh)", "m_eff (log)");
  for (int t = 0; t < corr->nt; t++) {
    printf("  %3d  %22.15e", t, corr->c[t]);
    print_mass(corr->meff[t]);
    print_mass(corr->mlog[t]);
    putchar('\n');
  }
}

static int show_pion(const options_t *o, const char *source, const qk_correlator_t *corr) {
  const ctl_curve_t curve = {.label = "pion", .nt = corr->nt, .c = corr->c, .mass = corr->meff};
  bool drawn = false;
  if (o->png) {
    const int code = ctl_picture(o->png, source, 1, &curve, &drawn);
    if (code) return code;
  }
  if (o->solve.common.json)
    return ctl_print(json_pack(
        "{s:{s:{s:o, s:o, s:o}}, s:i, s:i, s:s, s:s, s:o}", "channels", "pion", "C",
        ctl_numbers(corr->c, corr->nt), "meff", ctl_numbers(corr->meff, corr->nt), "mlog",
        ctl_numbers(corr->mlog, corr->nt), "T", corr->nt, "t0", corr->t0, "source", source, "file",
        o->argument[0], "png", drawn ? json_string(o->png) : json_null()));
  print_pion(source, corr);
  if (o->plot) ctl_plot_terminal(stdout, &curve);
  return 0;
}

static int contract_file(const options_t *o) {
  qk_h5file_t *file = NULL;
  qk_correlator_t corr = {0};
  qk_err_t err = {0};
  int code;
  if (o->channel.n != 1 || strcmp(qk_channels_name(&o->channel, 0), "pion") != 0) {
    ctl_complain("--channels=%s: of a propagator file pion only; others are contracted by the "
                 "daemon (--source)",
                 o->channels);
    return EXIT_USAGE;
  }
  if (qk_h5file_open(o->argument[0], NULL, &file, &err) != QK_OK) return ctl_fail_file(&err);
  if (qk_correlator_compute(file, "pion", &corr, &err) != QK_OK) {
    qk_err_prefix(&err, "%s", o->argument[0]);
    code = ctl_fail_file(&err);
  } else {
    const char *source = qk_h5file_meta(file)->source;
    code = show_pion(o, *source ? source : corr.source, &corr);
  }
  qk_correlator_fini(&corr);
  qk_h5file_close(file);
  return code;
}

/* ---- pieces of correlators ---- */

/* All pieces of a file. */
static int show_pieces(const options_t *o, const char *path) {
  qk_corrfile_t *file;
  qk_err_t err = {0};
  if (qk_corrfile_open(path, &file, &err) != QK_OK) return ctl_fail_file(&err);
  json_t *list = json_array();
  bool drawn = false;
  int code = 0;
  if (o->png && qk_corrfile_count(file) != 1) {
    ctl_complain("%s: has %d correlators, a plot needs exactly one", path, qk_corrfile_count(file));
    code = EXIT_DATA;
  }
  for (int i = 0; i < qk_corrfile_count(file) && code == 0; i++) {
    qk_corrpiece_t piece;
    if (qk_corrfile_read(file, i, &piece, &err) != QK_OK) {
      code = ctl_fail_file(&err);
      break;
    }
    if (o->png) code = ctl_table_png(o->png, &piece, &drawn);
    if (code == 0 && o->solve.common.json)
      json_array_append_new(list, ctl_table_json(&piece));
    else if (code == 0)
      code = ctl_table_print(&piece, o->plot);
    qk_corrpiece_fini(&piece);
  }
  qk_corrfile_close(file);
  if (code || !o->solve.common.json) {
    json_decref(list);
    return code;
  }
  return ctl_print(json_pack("{s:s, s:o, s:o}", "file", path, "png",
                             drawn ? json_string(o->png) : json_null(), "pieces", list));
}

static int measure(const options_t *o, quark_connection_t *conn, const quark_report_t *report,
                   qk_corrpiece_t *piece) {
  const ctl_common_t *common = &o->solve.common;
  const ctl_measurement_t what = {.params = o->solve.params,
                                  .sink = o->solve.sink,
                                  .text = o->text,
                                  .source = o->source,
                                  .channels = &o->channel,
                                  .nmom = o->nmom,
                                  .momentum = (const int32_t(*)[3])o->momentum,
                                  .patience = isnan(common->timeout) ? 300 : common->timeout};
  qk_corrmeta_t names;
  qk_corrmeta_init(&names);
  ctl_name_piece(report, report->setup.gauge, o->text, &names);
  ctl_progress_t progress;
  ctl_catch_signals();
  ctl_progress_begin(&progress, QK_SOURCE_COMPONENTS, o->solve.progress);
  const int code = ctl_measure(conn, report, &what, &names, &progress, piece);
  ctl_progress_end(&progress);
  return code;
}

static int ask_daemon(const options_t *o) {
  quark_connection_t *conn;
  quark_report_t report;
  qk_corrpiece_t piece;
  qk_err_t err = {0};
  int code =
      ctl_connect(&o->solve.common, o->solve.has_client ? o->solve.client : NULL, false, &conn);
  if (code) return code;
  code = ctl_report(&o->solve.common, conn, false, &report);
  if (code == 0) code = measure(o, conn, &report, &piece);
  quark_close(conn);
  if (code) return code;
  if (qk_corrfile_write(o->solve.out, &piece, &err) != QK_OK) code = ctl_fail_file(&err);
  qk_corrpiece_fini(&piece);
  return code ? code : show_pieces(o, o->solve.out);
}

static int read_file(const options_t *o) {
  if (!qk_corrfile_is(o->argument[0])) return contract_file(o);
  if (!o->selects) return show_pieces(o, o->argument[0]);
  ctl_complain("--channels, --momenta: %s is a file of correlators, which is shown whole",
               o->argument[0]);
  return EXIT_USAGE;
}

int ctl_correlator(int argc, char **argv) {
  static const struct argp_child children[] = {{&ctl_solve_argp, 0, NULL, 0}, {0}};
  static const struct argp argp = {
      .options = argp_options,
      .parser = parse,
      .args_doc = "FILE\n--source=SOURCE --out=FILE",
      .doc =
          "With --source: the daemon solves for a propagator and contracts it; this command "
          "fetches the correlators. With FILE (no daemon needed): contracts a propagator file to a "
          "pion, or shows a file of correlators.\v"
          "Propagator files must have 12 converged columns, or noise, which is averaged. Exit "
          "codes: 65 bad data, or a column did not reach the tolerance, 69 no daemon, 75 try "
          "again later.",
      .children = children,
  };
  options_t o = {.text = NULL};
  ctl_solve_options_init(&o.solve);
  o.solve.out_optional = true;
  ctl_parse(&argp, argc, argv, &o);
  const int code = o.text ? ask_daemon(&o) : read_file(&o);
  qk_channels_fini(&o.channel);
  free(o.momentum);
  return code;
}
