#include "client/analysis/correlator.h"
#include "client/analysis/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cli/measure.h"
#include "client/cli/table.h"
#include "client/quarkctl/ama.h"

typedef struct options {
  ctl_solve_options_t solve;
  const char *text, *channels, *png, *argument[2]; /* text: of the source */
  qk_source_t source;
  qk_channels_t channel;
  uint32_t nmom;
  int32_t (*momentum)[3];
  bool plot, selects; /* selects: channels or momenta are given */
  ctl_ama_t ama;
} options_t;

/* ---- options ---- */

static void take_source(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  options_t *o = values;
  ctl_source(state, text, &o->source);
  if (!ctl_can_measure(&o->source))
    argp_error(
        state,
        "--%s=%s: must be a point or wall source with all spins and colours, without a flavour",
        name, text);
  o->text = text;
}

static void parse_channels(const struct argp_state *state, const char *text, options_t *o) {
  qk_err_t err = {0};
  qk_channels_fini(&o->channel);
  if (qk_channels_parse(text, &o->channel, &err) != QK_OK)
    argp_error(state, "--channels: %s", err.text);
  o->channels = text;
}

static void take_channels(const struct argp_state *state, const char *name, char *text,
                          void *values) {
  options_t *o = values;
  (void)name;
  o->selects = true;
  parse_channels(state, text, o);
}

static void parse_momenta(const struct argp_state *state, const char *text, options_t *o) {
  qk_err_t err = {0};
  free(o->momentum);
  o->momentum = NULL;
  if (qk_momenta_parse(text, &o->nmom, &o->momentum, &err) != QK_OK)
    argp_error(state, "--momenta: %s", err.text);
}

static void take_momenta(const struct argp_state *state, const char *name, char *text,
                         void *values) {
  options_t *o = values;
  (void)name;
  o->selects = true;
  parse_momenta(state, text, o);
}

static void take_smear_sink(const struct argp_state *state, const char *name, char *text,
                            void *values) {
  options_t *o = values;
  ctl_smearing(state, name, text, &o->solve.sink);
}

static void take_plot(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  (void)state, (void)name;
  if (text)
    o->png = text;
  else
    o->plot = true;
}

static void take_ama(const struct argp_state *state, const char *name, char *text, void *values) {
  options_t *o = values;
  qk_err_t err = {0};
  qk_ama_part_t *part = strcmp(name, "ama") == 0 ? &o->ama.sloppy : &o->ama.exact;
  if (qk_ama_parse(text, part, &err) != QK_OK)
    argp_error(state, "--%s=%s: %s", name, text, err.text);
}

static void take_ama_seed(const struct argp_state *state, const char *name, char *text,
                          void *values) {
  options_t *o = values;
  const char *p = text;
  o->ama.has_seed = true;
  if (!qk_scan_uint64(&p, &o->ama.seed) || *p)
    argp_error(state, "--%s=%s: must be an integer from 0 to 2^64 - 1", name, text);
}

static void check_ama(const struct argp_state *state, const options_t *o) {
  const ctl_ama_t *ama = &o->ama;
  if (!ama->sloppy.n && !ama->exact.n) {
    if (ama->has_seed) argp_error(state, "--ama-seed is for --ama");
    return;
  }
  if (!ama->sloppy.n || !ama->exact.n)
    argp_error(state, "--ama and --exact belong together: one of them is missing");
  if (!o->text) argp_error(state, "--ama needs --source");
  if (o->solve.params.nmass > 0) argp_error(state, "--ama and --masses are both given");
  if (ama->exact.n > ama->sloppy.n)
    argp_error(state, "--exact: %d sources, of the %d of --ama", ama->exact.n, ama->sloppy.n);
  if (o->solve.has_tol || o->solve.params.tol_abs > 0 || o->solve.params.tol_hq > 0)
    argp_error(state, "--tol, --tol-abs, --tol-hq: the tolerances are in --ama and --exact");
}

static bool is_png(const char *name) {
  const size_t n = strlen(name);
  return n > 4 && strcmp(name + n - 4, ".png") == 0;
}

static void finish(const struct argp_state *state, void *values) {
  options_t *o = values;
  const int last = o->argument[1] ? 1 : 0;
  if (o->plot && o->argument[last] && is_png(o->argument[last])) {
    o->png = o->argument[last];
    o->argument[last] = NULL;
    o->plot = false;
  }
  if (!o->channels) parse_channels(state, "pion", o);
  if (!o->momentum) parse_momenta(state, "0,0,0", o);
  if (o->argument[1]) argp_error(state, "one argument too many: \"%s\"", o->argument[1]);
  if (o->text && o->argument[0])
    argp_error(state, "\"%s\": either a file or --source, not both", o->argument[0]);
  if (!o->text && !o->argument[0]) argp_error(state, "a file or --source is required");
  if (o->argument[0] && o->solve.out) argp_error(state, "--out is for --source");
  if (o->text && !o->solve.out) argp_error(state, "--out is required with --source");
  if (o->text && o->solve.params.basis != QUARK_DEGRAND_ROSSI)
    argp_error(state, "--basis: must be degrand-rossi; correlators do not depend on it");
  if (o->solve.params.nmass > 0 && !o->text) argp_error(state, "--masses is for --source");
  if (o->solve.params.nmass > 0 && o->png) argp_error(state, "--masses and --png are both given");
  check_ama(state, o);
}

#define AT(member) offsetof(options_t, member)
static const qk_option_row_t rows[] = {
    {"source", QK_OPTION_TAKEN, .form = "SOURCE", .take = take_source,
     .help = "point:X,Y,Z,T or wall:T[,p=PX:PY:PZ]: solve and contract in the daemon"},
    {"channels", QK_OPTION_TAKEN, .form = "LIST", .take = take_channels,
     .help = "pion (default), a4, a0, rho, rho_t, a1, b1, nucleon, nucleon_minus, delta, all, "
             "pairs, or SINK-SOURCE with gamma matrices such as g5-gxgt or 15-9; "
             "of staggered fermions nucleon_corner, pioni5, pionij, pioni0, pioni, pion0, pions, "
             "tastes for all pions, or SPIN-TASTE"},
    {"channel", QK_OPTION_TAKEN, .take = take_channels, .flags = OPTION_ALIAS},
    {"momenta", QK_OPTION_TAKEN, .form = "LIST", .take = take_momenta,
     .help = "integer triples: \"0,0,0;1,0,0\" (0,0,0)"},
    {"smear-sink", QK_OPTION_TAKEN, .form = "SMEARING", .take = take_smear_sink,
     .help = "Gaussian smearing of the sinks, as --smear"},
    {"ama", QK_OPTION_TAKEN, .form = "N:TOL", .take = take_ama,
     .help = "all-mode averaging: N sources all over the lattice, solved to TOL; with --exact"},
    {"exact", QK_OPTION_TAKEN, .form = "M:TOL", .take = take_ama,
     .help = "M of them are solved to this TOL too, and correct the mean of all"},
    {"ama-seed", QK_OPTION_TAKEN, .form = "SEED", .take = take_ama_seed,
     .help = "of the random offset of the sources (the digest of the configuration)"},
    {"plot", QK_OPTION_TAKEN, .form = "FILE.png", .take = take_plot, .flags = OPTION_ARG_OPTIONAL,
     .help = "plot C(t) and the effective mass with gnuplot, to FILE or in the terminal"},
    {"png", QK_OPTION_TEXT, AT(png), "FILE", .help = "the same as --plot=FILE"},
    {"FILE", QK_OPTION_ARGUMENT, .offset = AT(argument[0])},
    {"FILE", QK_OPTION_ARGUMENT, .offset = AT(argument[1])},
    {NULL, QK_OPTION_TABLE, offsetof(options_t, solve), .table = &ctl_solve_table},
    {0},
};

static const qk_option_table_t table = {.row = rows, .group = 1, .finish = finish};

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
  qk_fieldfile_t *file = NULL;
  qk_correlator_t corr = {0};
  qk_err_t err = {0};
  int code;
  if (o->channel.n != 1 || strcmp(qk_channels_name(&o->channel, 0), "pion") != 0) {
    ctl_complain("--channels=%s: of a propagator file pion only; others are contracted by the "
                 "daemon (--source)",
                 o->channels);
    return EXIT_USAGE;
  }
  if (qk_fieldfile_open(o->argument[0], NULL, &file, &err) != QK_OK) return ctl_fail_file(&err);
  if (qk_correlator_compute(file, "pion", &corr, &err) != QK_OK) {
    qk_err_prefix(&err, "%s", o->argument[0]);
    code = ctl_fail_file(&err);
  } else {
    const char *source = qk_fieldfile_meta(file)->source;
    code = show_pion(o, *source ? source : corr.source, &corr);
  }
  qk_correlator_fini(&corr);
  qk_fieldfile_close(file);
  return code;
}

/* ---- pieces of correlators ---- */

/* Parts of an average are shown by their mean alone, but for JSON. */
static bool is_part(const qk_corrpiece_t *piece) {
  return *piece->meta.part && strcmp(piece->meta.part, "mean") != 0;
}

typedef struct shown {
  json_t *list;
  qk_corrpiece_t error; /* of the mean that comes next, by the order of names */
  int parts;
  bool drawn;
} shown_t;

static const qk_corrpiece_t *error_of(const qk_corrpiece_t *mean, const shown_t *shown) {
  const qk_corrmeta_t *m = &mean->meta, *e = &shown->error.meta;
  const bool same = strcmp(m->config, e->config) == 0 && strcmp(m->quark, e->quark) == 0;
  return *m->part && shown->error.c && same ? &shown->error : NULL;
}

/* piece: is taken from there if it is kept. */
static int show_piece(const options_t *o, qk_corrpiece_t *piece, shown_t *shown) {
  int code = 0;
  if (is_part(piece)) {
    shown->parts++;
    if (!o->solve.common.json && strcmp(piece->meta.part, "error") == 0) {
      qk_corrpiece_fini(&shown->error);
      shown->error = *piece;
      *piece = (qk_corrpiece_t){0};
    }
    if (!o->solve.common.json) return 0;
  } else if (o->png) {
    code = ctl_table_png(o->png, piece, &shown->drawn);
  }
  if (code == 0 && o->solve.common.json)
    json_array_append_new(shown->list, ctl_table_json(piece));
  else if (code == 0)
    code = ctl_table_print(piece, error_of(piece, shown), o->plot);
  return code;
}

/* A plot has room for one. */
static int check_one(const options_t *o, const char *path, const qk_corrfile_t *file) {
  int n = 0;
  for (int i = 0; o->png && i < qk_corrfile_count(file); i++) {
    qk_corrpiece_t piece;
    qk_err_t err = {0};
    if (qk_corrfile_read(file, i, &piece, &err) != QK_OK) return ctl_fail_file(&err);
    n += !is_part(&piece);
    qk_corrpiece_fini(&piece);
  }
  if (!o->png || n == 1) return 0;
  ctl_complain("%s: has %d correlators, a plot needs exactly one", path, n);
  return EXIT_DATA;
}

/* All pieces of a file. */
static int show_pieces(const options_t *o, const char *path) {
  qk_corrfile_t *file;
  qk_err_t err = {0};
  if (qk_corrfile_open(path, &file, &err) != QK_OK) return ctl_fail_file(&err);
  shown_t shown = {.list = json_array()};
  int code = check_one(o, path, file);
  for (int i = 0; i < qk_corrfile_count(file) && code == 0; i++) {
    qk_corrpiece_t piece;
    if (qk_corrfile_read(file, i, &piece, &err) != QK_OK) {
      code = ctl_fail_file(&err);
      break;
    }
    code = show_piece(o, &piece, &shown);
    qk_corrpiece_fini(&piece);
  }
  qk_corrfile_close(file);
  qk_corrpiece_fini(&shown.error);
  if (code || !o->solve.common.json) {
    if (code == 0 && shown.parts > 0)
      printf("# the mean of %s, with %d parts in it: sloppy, exact, correction, error\n", path,
             shown.parts);
    json_decref(shown.list);
    return code;
  }
  return ctl_print(json_pack("{s:s, s:o, s:o}", "file", path, "png",
                             shown.drawn ? json_string(o->png) : json_null(), "pieces",
                             shown.list));
}

/* The file of piece k. */
static int name_out(const options_t *o, uint32_t k, char name[CTL_OUT_MAX]) {
  if (o->solve.params.nmass > 0) return ctl_mass_file(o->solve.out, o->solve.params.mass[k], name);
  snprintf(name, CTL_OUT_MAX, "%s", o->solve.out);
  return 0;
}

static int measure(const options_t *o, const ctl_measurement_t *what, quark_connection_t *conn,
                   const quark_report_t *report) {
  const uint32_t n = ctl_measurement_pieces(what);
  qk_corrpiece_t piece[QK_MASSES_MAX];
  qk_corrmeta_t names;
  char out[CTL_OUT_MAX];
  qk_err_t err = {0};
  int code = 0;
  for (uint32_t k = 0; k < n && code == 0; k++) code = name_out(o, k, out);
  if (code) return code;
  qk_corrmeta_init(&names);
  ctl_name_piece(report, report->setup.gauge, o->text, what->params.flavour, &names);
  ctl_progress_t progress;
  ctl_progress_begin(&progress, ctl_measurement_columns(what, report), o->solve.progress);
  code = ctl_measure(conn, report, what, &names, &progress, piece);
  ctl_progress_end(&progress);
  if (code) return code;
  for (uint32_t k = 0; k < n; k++) {
    if (code == 0 && (code = name_out(o, k, out)) == 0 &&
        qk_corrfile_write(out, &piece[k], &err) != QK_OK)
      code = ctl_fail_file(&err);
    qk_corrpiece_fini(&piece[k]);
  }
  return code;
}

static int show_all(const options_t *o) {
  const uint32_t n = o->solve.params.nmass > 0 ? o->solve.params.nmass : 1;
  char out[CTL_OUT_MAX];
  int code = 0;
  for (uint32_t k = 0; k < n && code == 0; k++)
    if ((code = name_out(o, k, out)) == 0) code = show_pieces(o, out);
  return code;
}

static int ask_daemon(const options_t *o) {
  quark_connection_t *conn;
  quark_report_t report;
  const ctl_common_t *common = &o->solve.common;
  const ctl_measurement_t what = {.params = o->solve.params,
                                  .sink = o->solve.sink,
                                  .text = o->text,
                                  .source = o->source,
                                  .channels = &o->channel,
                                  .nmom = o->nmom,
                                  .momentum = (const int32_t(*)[3])o->momentum,
                                  .patience = isnan(common->timeout) ? 300 : common->timeout};
  int code = ctl_connect(common, o->solve.has_client ? o->solve.client : NULL, false, &conn);
  if (code) return code;
  code = ctl_report(common, conn, false, &report);
  ctl_catch_signals();
  if (code == 0)
    code = o->ama.sloppy.n
               ? ctl_ama_run(conn, &report, &what, &o->ama, o->solve.out, o->solve.progress)
               : measure(o, &what, conn, &report);
  quark_close(conn);
  return code ? code : show_all(o);
}

static int read_file(const options_t *o) {
  if (!qk_corrfile_is(o->argument[0])) return contract_file(o);
  if (!o->selects) return show_pieces(o, o->argument[0]);
  ctl_complain("--channels, --momenta: %s is a file of correlators, which is shown whole",
               o->argument[0]);
  return EXIT_USAGE;
}

int ctl_correlator(int argc, char **argv) {
  static const char about[] =
      "With --source: the daemon solves for a propagator and contracts it; this command "
      "fetches the correlators. With FILE (no daemon needed): contracts a propagator file to a "
      "pion, or shows a file of correlators.\v"
      "Propagator files must have 12 converged columns, or noise, which is averaged. Exit "
      "codes: 65 bad data, or a column did not reach the tolerance, 69 no daemon, 75 try "
      "again later.";
  options_t o = {.text = NULL};
  ctl_solve_options_init(&o.solve);
  o.solve.out_optional = o.solve.can_masses = true;
  qk_options_parse(&table, "FILE\n--source=SOURCE --out=FILE", about, argc, argv, &o);
  const int code = o.text ? ask_daemon(&o) : read_file(&o);
  qk_channels_fini(&o.channel);
  free(o.momentum);
  return code;
}
