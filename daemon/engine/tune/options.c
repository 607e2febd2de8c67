#include "daemon/engine/tune/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/setup/actions.h"

enum {
  KEY_ACTION = QK_TOOL_OWN,
  KEY_SET,
  KEY_KAPPA,
  KEY_MASS,
  KEY_CSW,
  KEY_BOUNDARY_T,
  KEY_TOL,
  KEY_SLOTS,
  KEY_BUDGET,
  KEY_TRIALS,
  KEY_SOLVES,
  KEY_START,
  KEY_PROTOCOL,
  KEY_FROM,
  KEY_SHOW,
  KEY_OUT
};

static void set_start(qk_tune_options_t *o, const char *arg, struct argp_state *state) {
  char key[64];
  qk_err_t err = {0};
  size_t n = strcspn(arg, "=");
  if (arg[n] == '\0' || n >= sizeof key) argp_error(state, "--start=%s: KEY=VALUE is wanted", arg);
  snprintf(key, sizeof key, "%.*s", (int)n, arg);
  if (qk_mg_text_set(&o->start, key, arg + n + 1, &err) != QK_OK)
    argp_error(state, "--start=%s: %s", arg, err.text);
  o->has_start = true;
}

static void add_setting(qk_tune_options_t *o, const char *key, const char *value,
                        const struct argp_state *state) {
  if (o->nsetting == QK_VALUES_PARAMS)
    argp_error(state, "%s = %s: more than %d parameters", key, value, QK_VALUES_PARAMS);
  o->setting[o->nsetting++] = (qk_setting_t){key, value};
}

static void split_setting(qk_tune_options_t *o, char *arg, const struct argp_state *state) {
  qk_setting_t setting;
  char why[QK_WHY];
  if (!qk_setting_split(arg, &setting, why)) argp_error(state, "--set: %s", why);
  add_setting(o, setting.key, setting.value, state);
}

static void add_from(qk_tune_options_t *o, const char *arg, const struct argp_state *state) {
  if (o->nfrom == QK_TUNE_FROM)
    argp_error(state, "--from=%s: more than %d files", arg, QK_TUNE_FROM);
  o->from[o->nfrom++] = arg;
}

static void read_operator(qk_tune_options_t *o, const struct argp_state *state) {
  char why[QK_WHY];
  qk_err_t err = {0};
  if (!qk_values_read(&o->values, o->action, o->setting, (size_t)o->nsetting, why))
    argp_error(state, "%s", why);
  const qk_action_t *action = qk_action_of(&o->values);
  if (qk_action_solver(&o->values, "mg", &err) != QK_OK ||
      qk_action_check(action, &o->values, &err) != QK_OK)
    argp_error(state, "%s", err.text);
}

/* What a run that only shows a protocol has no use for. */
static void finish(qk_tune_options_t *o, const struct argp_state *state) {
  if (o->show) {
    const char *other = o->gauge      ? o->gauge
                        : o->protocol ? "--protocol"
                        : o->nfrom    ? "--from"
                        : o->out      ? "--out"
                                      : NULL;
    if (other) argp_error(state, "--show=%s: not with %s", o->show, other);
    return;
  }
  if (!o->gauge) argp_error(state, "GAUGE is needed");
  if (o->tool.json) qk_tool_need_utf8(state, o->gauge);
  read_operator(o, state);
}

static error_t parse_file(int key, char *arg, struct argp_state *state) {
  qk_tune_options_t *o = state->input;
  switch (key) {
  case KEY_START:
    set_start(o, arg, state);
    return 0;
  case KEY_PROTOCOL:
    o->protocol = arg;
    return 0;
  case KEY_FROM:
    add_from(o, arg, state);
    return 0;
  case KEY_SHOW:
    o->show = arg;
    return 0;
  case KEY_OUT:
    o->out = arg;
    return 0;
  case ARGP_KEY_ARG:
    if (o->gauge) argp_error(state, "one argument too many: \"%s\"", arg);
    o->gauge = arg;
    return 0;
  case ARGP_KEY_END:
    finish(o, state);
    return 0;
  default:
    return qk_tool_parse_option(key, arg, state, &o->tool);
  }
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  qk_tune_options_t *o = state->input;
  switch (key) {
  case KEY_ACTION:
    o->action = arg;
    return 0;
  case KEY_KAPPA:
    add_setting(o, "kappa", arg, state);
    return 0;
  case KEY_MASS:
    add_setting(o, "mass", arg, state);
    return 0;
  case KEY_CSW:
    add_setting(o, "csw", arg, state);
    return 0;
  case KEY_SET:
    split_setting(o, arg, state);
    return 0;
  case KEY_BOUNDARY_T:
    o->boundary_t = qk_tool_real(state, "boundary-t", arg, -1, 1);
    if (fabs(o->boundary_t) != 1) argp_error(state, "--boundary-t=%s: 1 or -1", arg);
    return 0;
  case KEY_TOL:
    o->tol = qk_tool_real(state, "tol", arg, 1e-14, 0.1);
    return 0;
  case KEY_SLOTS:
    o->slots = (int)qk_tool_integer(state, "slots", arg, 1, QK_MAX_RHS);
    return 0;
  case KEY_BUDGET:
    o->budget = qk_tool_real(state, "budget", arg, 1, 1e6);
    return 0;
  case KEY_TRIALS:
    o->trials = (int)qk_tool_integer(state, "trials", arg, 1, 1000000);
    return 0;
  case KEY_SOLVES:
    o->solves = qk_tool_real(state, "solves", arg, 1, 1e12);
    return 0;
  default:
    return parse_file(key, arg, state);
  }
}

static const struct argp_option rows[] = {
    {"action", KEY_ACTION, "NAME", 0,
     "fermion action: `quarkctl actions` lists them (wilson-clover; wilson if csw is 0)", 1},
    {"set", KEY_SET, "KEY=VALUE", 0, "parameter of the action; may be given more than once", 1},
    {"kappa", KEY_KAPPA, "K", 0, "hopping parameter, in place of the mass", 1},
    {"mass", KEY_MASS, "M", 0, "bare quark mass: short for --set mass=M", 1},
    {"csw", KEY_CSW, "C", 0, "clover coefficient: short for --set csw=C (0)", 1},
    {"boundary-t", KEY_BOUNDARY_T, "1|-1", 0, "boundary factor in t (-1)", 1},
    {"tol", KEY_TOL, "TOL", 0, "relative residual that solves are wanted to (1e-10)", 2},
    {"slots", KEY_SLOTS, "N", 0, "right-hand sides solved at a time (16)", 2},
    {"solves", KEY_SOLVES, "N", 0, "solves that share one setup: its time counts as much (1000)",
     2},
    {"budget", KEY_BUDGET, "SECONDS", 0,
     "time for all of it (300); a trial under way and the comparison at the end are finished", 2},
    {"trials", KEY_TRIALS, "N", 0,
     "trials after which the search ends, if there is time for so many (1000000)", 2},
    {"start", KEY_START, "KEY=VALUE", 0,
     "parameter to start from, such as mg-vectors=24,32; may be given more than once", 3},
    {"protocol", KEY_PROTOCOL, "FILE", 0,
     "file that every trial is appended to, and that is gone on from if it is there", 3},
    {"from", KEY_FROM, "FILE", 0,
     "protocol to take starting points from; may be given more than once", 3},
    {"out", KEY_OUT, "FILE", 0, "configuration for quarkd --config with the best parameters", 4},
    {"show", KEY_SHOW, "FILE", 0, "print the trials of a protocol, the fastest first, and end", 4},
    QK_TOOL_ROW_DIMS,
    QK_TOOL_ROW_BACKEND,
    QK_TOOL_ROW_GRID,
    QK_TOOL_ROW_JSON,
    {0}};

void qk_tune_options(int argc, char **argv, qk_tune_options_t *options) {
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "GAUGE\n--show=FILE",
      .doc = "Find multigrid parameters that solve faster than the defaults on a gauge "
             "configuration, or say that there are none.\v"
             "The defaults are measured, then parameters are tried one after the other with all "
             "others at the best found so far, and at the end the best is compared with the "
             "defaults in turns. Each trial is reported on stderr; the table of the best, the "
             "verdict and, with --out, a configuration for quarkd come at the end. Exit status 1: "
             "nothing better than the defaults was found."};
  *options = (qk_tune_options_t){.boundary_t = -1,
                                 .tol = 1e-10,
                                 .budget = 300,
                                 .solves = 1000,
                                 .slots = 16,
                                 .trials = 1000000};
  qk_tool_parse(&argp, argc, argv, options);
}
