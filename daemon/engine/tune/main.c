/* main.c: the program quark-tune. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/base/clock.h"
#include "daemon/base/file.h"
#include "daemon/base/mem.h"
#include "daemon/engine/multigrid/mg_text.h"
#include "daemon/engine/setup/actions.h"
#include "daemon/engine/tool/tool.h"
#include "daemon/engine/tune/search.h"
#include "daemon/engine/tune/trial.h"
#include "proto/action/operator_text.h"

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
  KEY_SOLVES,
  KEY_START,
  KEY_OUT,
  MOST_TRIALS = 1024,
  MOST_SHOWN = 12
};

typedef struct options {
  qk_tool_options_t tool;
  const char *gauge, *out;
  const char *action; /* NULL: as csw says */
  qk_setting_t setting[QK_VALUES_PARAMS];
  int nsetting;
  qk_values_t values;
  double boundary_t, tol, budget, solves;
  int slots;
  qk_mg_params_t start;
} options_t;

typedef struct row {
  char what[64];
  double cost;
  qk_trial_result_t result;
  char error[120];
} row_t;

typedef struct tuning {
  qk_tool_t *tool;
  const options_t *options;
  qk_trial_t trial;
  double began;
  qk_status_t failed; /* what ends the search */
  qk_err_t *err;
  row_t *row;
  int nrow;
} tuning_t;

/* ---- options --------------------------------------------------------------------------------- */

static void set_start(options_t *o, const char *arg, struct argp_state *state) {
  char key[64];
  qk_err_t err = {0};
  size_t n = strcspn(arg, "=");
  if (arg[n] == '\0' || n >= sizeof key) argp_error(state, "--start=%s: KEY=VALUE is wanted", arg);
  snprintf(key, sizeof key, "%.*s", (int)n, arg);
  if (qk_mg_text_set(&o->start, key, arg + n + 1, &err) != QK_OK)
    argp_error(state, "--start=%s: %s", arg, err.text);
}

static void add_setting(options_t *o, const char *key, const char *value,
                        const struct argp_state *state) {
  if (o->nsetting == QK_VALUES_PARAMS)
    argp_error(state, "%s = %s: more than %d parameters", key, value, QK_VALUES_PARAMS);
  o->setting[o->nsetting++] = (qk_setting_t){key, value};
}

static void split_setting(options_t *o, char *arg, const struct argp_state *state) {
  qk_setting_t setting;
  char why[QK_WHY];
  if (!qk_setting_split(arg, &setting, why)) argp_error(state, "--set: %s", why);
  add_setting(o, setting.key, setting.value, state);
}

static void read_operator(options_t *o, const struct argp_state *state) {
  char why[QK_WHY];
  qk_err_t err = {0};
  if (!qk_values_read(&o->values, o->action, o->setting, (size_t)o->nsetting, why))
    argp_error(state, "%s", why);
  const qk_action_t *action = qk_action_of(&o->values);
  if (qk_action_solver(&o->values, "mg", &err) != QK_OK ||
      qk_action_check(action, &o->values, &err) != QK_OK)
    argp_error(state, "%s", err.text);
}

static error_t parse(int key, char *arg, struct argp_state *state) {
  options_t *o = state->input;
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
  case KEY_SOLVES:
    o->solves = qk_tool_real(state, "solves", arg, 1, 1e12);
    return 0;
  case KEY_START:
    set_start(o, arg, state);
    return 0;
  case KEY_OUT:
    o->out = arg;
    return 0;
  case ARGP_KEY_ARG:
    if (o->gauge) argp_error(state, "one argument too many: \"%s\"", arg);
    o->gauge = arg;
    return 0;
  case ARGP_KEY_END:
    if (!o->gauge) argp_error(state, "GAUGE is needed");
    read_operator(o, state);
    return 0;
  default:
    return qk_tool_parse_option(key, arg, state, &o->tool);
  }
}

/* ---- search ---------------------------------------------------------------------------------- */

/* Rank 0's clock and times decide for all ranks. */
static bool time_left(void *arg) {
  tuning_t *t = arg;
  int32_t left =
      t->failed == QK_OK && t->nrow < MOST_TRIALS && qk_clock_now() - t->began < t->options->budget;
  qk_status_t status = qk_comm_bcast(t->tool->comm, &left, sizeof left, 0);
  if (status != QK_OK) t->failed = status;
  return left && status == QK_OK;
}

static void show_progress(const tuning_t *t, const row_t *row) {
  if (!t->tool->root) return;
  fprintf(stderr, "%4.0f s  %-36s ", qk_clock_now() - t->began, row->what);
  if (isfinite(row->cost))
    fprintf(stderr, "%9.4f s per RHS, %5.1f iterations, setup %6.2f s\n", row->result.seconds,
            row->result.iterations, row->result.setup_seconds);
  else
    fprintf(stderr, "%s\n", row->error);
}

static double cost_of(void *arg, const qk_mg_params_t *params, const qk_tune_axis_t *axis,
                      int word) {
  tuning_t *t = arg;
  row_t *row = &t->row[t->nrow];
  qk_err_t err = {0};
  *row = (row_t){.cost = INFINITY};
  if (!axis)
    snprintf(row->what, sizeof row->what, "start");
  else if (axis->level < 0)
    snprintf(row->what, sizeof row->what, "%s = %s", axis->key, axis->word[word]);
  else
    snprintf(row->what, sizeof row->what, "%s = %s on level %d", axis->key, axis->word[word],
             axis->level);
  qk_status_t status = qk_trial_run(&t->trial, params, &row->result, &err);
  double cost = row->result.seconds + row->result.setup_seconds / t->options->solves;
  if (status == QK_OK) status = qk_comm_bcast(t->tool->comm, &cost, sizeof cost, 0);
  if (status != QK_OK) {
    t->failed = status;
    *t->err = err;
    return INFINITY;
  }
  row->cost = cost;
  snprintf(row->error, sizeof row->error, "%.119s", err.text);
  t->nrow++;
  show_progress(t, row);
  return cost;
}

/* ---- results --------------------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b) {
  double x = ((const row_t *)a)->cost, y = ((const row_t *)b)->cost;
  return (x > y) - (x < y);
}

static void print_table(const tuning_t *t) {
  int n = t->nrow < MOST_SHOWN ? t->nrow : MOST_SHOWN;
  printf("%-40s %10s %10s %9s %9s\n", "changed last", "s per RHS", "iterations", "setup s",
         "device GB");
  for (int i = 0; i < n && isfinite(t->row[i].cost); i++)
    printf("%-40s %10.4f %10.1f %9.2f %9.2f\n", t->row[i].what, t->row[i].result.seconds,
           t->row[i].result.iterations, t->row[i].result.setup_seconds,
           1e-9 * (double)t->row[i].result.bytes);
}

static void print_json(const tuning_t *t) {
  json_t *trials = json_array();
  for (int i = 0; i < t->nrow; i++) {
    const row_t *r = &t->row[i];
    bool works = isfinite(r->cost);
    json_t *o = json_pack("{s:s, s:b, s:s}", "changed", r->what, "works", works, "error", r->error);
    if (works)
      json_object_update_new(o, json_pack("{s:f, s:f, s:f, s:I}", "seconds", r->result.seconds,
                                          "iterations", r->result.iterations, "setup_seconds",
                                          r->result.setup_seconds, "device_bytes",
                                          (json_int_t)r->result.bytes));
    json_array_append_new(trials, o);
  }
  qk_tool_print(t->tool, json_pack("{s:s, s:s, s:f, s:i, s:f, s:o}", "gauge", t->options->gauge,
                                   "action", qk_values_action(&t->options->values)->name, "kappa",
                                   qk_values_kappa(&t->options->values), "slots", t->options->slots,
                                   "tol", t->options->tol, "trials", trials));
}

/* As keys of quarkd. */
static void print_operator(const qk_values_t *values, FILE *out) {
  char text[QK_OPERATOR_TEXT];
  const char *action;
  qk_setting_t setting[QK_VALUES_PARAMS];
  qk_values_text(values, QK_TEXT_GIVEN, text);
  const int n = qk_operator_split(text, &action, setting);
  fprintf(out, "action = %s\n", action);
  for (int i = 0; i < n; i++) fprintf(out, "%s = %s\n", setting[i].key, setting[i].value);
}

static qk_status_t write_config(const tuning_t *t, const row_t *best, qk_err_t *err) {
  const options_t *o = t->options;
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return qk_fail(err, QK_NO_MEMORY, "%s: no memory", o->out);
  fprintf(out, "# quark-tune: %.4f s per right-hand side to %g, %.1f iterations, setup %.2f s\n",
          best->result.seconds, o->tol, best->result.iterations, best->result.setup_seconds);
  fprintf(out, "gauge = %s\n", o->gauge);
  print_operator(&o->values, out);
  fprintf(out, "boundary = 1,1,1,%g\n", o->boundary_t);
  fprintf(out, "solver = mg\nprecision = single\nslots = %d\n", o->slots);
  qk_mg_text_print(&best->result.params, out);
  const bool whole = !ferror(out);
  qk_status_t status = fclose(out) == 0 && whole
                           ? qk_file_replace(o->out, text, (int64_t)bytes, err)
                           : qk_fail(err, QK_NO_MEMORY, "%s: no memory", o->out);
  free(text);
  return status;
}

static qk_status_t report(tuning_t *t, qk_err_t *err) {
  qsort(t->row, (size_t)t->nrow, sizeof *t->row, by_cost);
  if (t->nrow == 0 || !isfinite(t->row[0].cost))
    return qk_fail(err, QK_NOT_CONVERGED, "no parameters were found that work: %s",
                   t->nrow ? t->row[0].error : "no time");
  qk_status_t status = QK_OK;
  if (t->tool->root && t->options->out) status = write_config(t, &t->row[0], err);
  status = qk_comm_agree(t->tool->comm, status, err);
  if (status != QK_OK) return status;
  if (t->tool->json)
    print_json(t);
  else if (t->tool->root)
    print_table(t);
  if (t->tool->root && t->options->out && !t->tool->json)
    printf("%s: written; start the daemon with quarkd --config=%s\n", t->options->out,
           t->options->out);
  return QK_OK;
}

/* ---- program --------------------------------------------------------------------------------- */

static qk_status_t search(tuning_t *t, qk_work_t *work, qk_operator_t *op, qk_err_t *err) {
  const options_t *o = t->options;
  qk_tune_axis_t axis[QK_TUNE_AXES];
  qk_mg_params_t best = o->start;
  t->trial = (qk_trial_t){.op = op, .work = work, .tol = o->tol, .nrhs = o->slots};
  qk_status_t status = qk_mg_params_complete(&t->tool->geom, t->tool->ops->tuning, &best, err);
  if (status != QK_OK) return status;
  int naxis = qk_tune_axes(&t->tool->geom, &best, qk_operator_base(op)->twist != 0, axis);
  const qk_tune_search_t s = {.arg = t, .cost = cost_of, .time_left = time_left};
  t->began = qk_clock_now();
  qk_tune_run(&s, axis, naxis, &best);
  qk_trial_fini(&t->trial);
  return t->failed != QK_OK ? t->failed : report(t, err);
}

static qk_status_t tune(qk_tool_t *tool, const options_t *o, qk_err_t *err) {
  qk_tool_config_t config = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  tuning_t t = {.tool = tool, .options = o, .err = err};
  qk_status_t status = qk_tool_load(tool, o->gauge, &o->tool, &config, err);
  if (status == QK_OK)
    status = qk_tool_open_device(tool, o->tool.backend ? o->tool.backend : "auto", err);
  if (status == QK_OK) status = qk_work_create(&tool->dev, &work);
  if (status == QK_OK) {
    const qk_action_params_t p = {.values = o->values,
                                  .phase = {{1, 0}, {1, 0}, {1, 0}, {o->boundary_t, 0}},
                                  .link_reals = {18, 12, 18},
                                  .want = {true, true, true}};
    status = qk_operator_create(&tool->dev, work, config.links, &p, &op, err);
  }
  qk_free(config.links);
  t.row = qk_calloc(MOST_TRIALS, sizeof *t.row);
  if (status == QK_OK && !t.row) status = qk_fail(err, QK_NO_MEMORY, "no memory for the results");
  if (status == QK_OK) status = search(&t, work, op, err);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  qk_free(t.row);
  return qk_tool_explain(tool, status, err);
}

int main(int argc, char **argv) {
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
      {"solves", KEY_SOLVES, "N", 0, "solves that share one setup: its time counts as much (10000)",
       2},
      {"budget", KEY_BUDGET, "SECONDS", 0, "time to search (300); a trial under way is finished",
       2},
      {"start", KEY_START, "KEY=VALUE", 0,
       "parameter to start from, such as mg-vectors=24,32; may be given more than once", 3},
      {"out", KEY_OUT, "FILE", 0, "configuration for quarkd --config with the best parameters", 4},
      QK_TOOL_ROW_DIMS,
      QK_TOOL_ROW_BACKEND,
      QK_TOOL_ROW_GRID,
      QK_TOOL_ROW_JSON,
      {0}};
  static const struct argp argp = {
      .options = rows,
      .parser = parse,
      .args_doc = "GAUGE",
      .doc =
          "Find the multigrid parameters that solve fastest on a gauge configuration.\v"
          "Parameters are tried one after the other, those of the cycle first, with all others at "
          "the best found so far. Each trial is reported on stderr; the table of the best and, "
          "with --out, a configuration for quarkd come at the end."};
  options_t o = {.boundary_t = -1, .tol = 1e-10, .budget = 300, .solves = 1e4, .slots = 16};
  qk_tool_t tool;
  qk_err_t err = {0};
  qk_tool_parse(&argp, argc, argv, &o);
  qk_status_t status = qk_tool_begin(&tool, "quark-tune", &o.tool, argc, argv, &err);
  if (status == QK_OK) status = tune(&tool, &o, &err);
  return qk_tool_end(&tool, status, &err);
}
