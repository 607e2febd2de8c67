#include "client/correlator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "client/quarkctl/ctl.h"
#include "client/quarkctl/plot.h"

enum { OPT_CHANNEL = 0x200, OPT_PLOT, OPT_PNG, OPT_JSON };

typedef struct options {
  const char *file, *channel, *png;
  bool plot, json;
} options_t;

static const struct argp_option argp_options[] = {
    {"channel", OPT_CHANNEL, "NAME", 0, "pion (default)", 1},
    {"plot", OPT_PLOT, 0, 0, "draw C(t) in the terminal, too", 1},
    {"png", OPT_PNG, "FILE", 0, "draw C(t) and the effective mass with gnuplot", 1},
    {"json", OPT_JSON, 0, 0, "print one JSON object", 1},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
  switch (key) {
  case OPT_CHANNEL:
    o->channel = arg;
    if (strcmp(arg, "pion") != 0) argp_error(state, "--channel=%s: must be pion", arg);
    return 0;
  case OPT_PLOT:
    o->plot = true;
    return 0;
  case OPT_PNG:
    o->png = arg;
    return 0;
  case OPT_JSON:
    o->json = true;
    return 0;
  case ARGP_KEY_ARG:
    if (o->file) argp_usage(state);
    o->file = arg;
    return 0;
  case ARGP_KEY_END:
    if (!o->file) argp_usage(state);
    return 0;
  default:
    return ARGP_ERR_UNKNOWN;
  }
}

static json_t *numbers(const double *x, int n) {
  json_t *list = json_array();
  for (int i = 0; i < n; i++) json_array_append_new(list, ctl_number(x[i]));
  return list;
}

static int print_json(const options_t *o, const char *source, bool drawn,
                      const qk_correlator_t *corr) {
  json_t *channel = json_pack("{s:o, s:o, s:o}", "C", numbers(corr->c, corr->nt), "meff",
                              numbers(corr->meff, corr->nt), "mlog", numbers(corr->mlog, corr->nt));
  return ctl_print(json_pack("{s:{s:o}, s:i, s:i, s:s, s:s, s:o}", "channels", o->channel, channel,
                             "T", corr->nt, "t0", corr->t0, "source", source, "file", o->file,
                             "png", drawn ? json_string(o->png) : json_null()));
}

static void print_mass(double m) {
  if (isfinite(m))
    printf("  %14.8f", m);
  else
    printf("  %14s", "-");
}

static void print_text(const options_t *o, const char *source, const qk_correlator_t *corr) {
  printf("# %s, source %s, t counted from t0 = %d\n# %3s  %22s  %14s  %14s\n", o->channel, source,
         corr->t0, "t", "C(t)", "m_eff (cosh)", "m_eff (log)");
  for (int t = 0; t < corr->nt; t++) {
    printf("  %3d  %22.15e", t, corr->c[t]);
    print_mass(corr->meff[t]);
    print_mass(corr->mlog[t]);
    putchar('\n');
  }
  if (o->plot) ctl_plot_terminal(stdout, o->channel, corr);
}

static int show(const options_t *o, const char *source, const qk_correlator_t *corr) {
  qk_err_t err = {0};
  bool drawn = false;
  if (o->png) {
    const qk_status_t status = ctl_plot_png(o->png, o->channel, corr, &err);
    if (status == QK_NOT_FOUND)
      ctl_complain("no picture: %s", err.text);
    else if (status != QK_OK)
      return ctl_fail_file(&err);
    drawn = status == QK_OK;
  }
  if (o->json) return print_json(o, source, drawn, corr);
  print_text(o, source, corr);
  return 0;
}

int ctl_correlator(int argc, char **argv) {
  static const struct argp argp = {
      .options = argp_options,
      .parser = parse,
      .args_doc = "FILE",
      .doc = "Contracts a propagator file to a two-point function. Needs no daemon.\v"
             "Point and wall sources need 12 converged columns; noise sources are averaged. m_eff "
             "of t and t + 1.",
  };
  options_t o = {.channel = "pion"};
  ctl_parse(&argp, argc, argv, &o);
  qk_h5file_t *file = NULL;
  qk_correlator_t corr = {0};
  qk_err_t err = {0};
  if (qk_h5file_open(o.file, NULL, &file, &err) != QK_OK) return ctl_fail_file(&err);
  int code;
  if (qk_correlator_compute(file, o.channel, &corr, &err) != QK_OK) {
    qk_err_prefix(&err, "%s", o.file);
    code = ctl_fail_file(&err);
  } else {
    const char *source = qk_h5file_meta(file)->source;
    code = show(&o, *source ? source : corr.source, &corr);
  }
  qk_correlator_fini(&corr);
  qk_h5file_close(file);
  return code;
}
