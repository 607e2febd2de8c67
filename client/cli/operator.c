#include "client/cli/operator.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- what is given -------------------------------------------------------------------------- */

/* NULL: this program does not know it. No action stands for that of the daemon. */
static const qk_action_row_t *row_of(const char *action) {
  return action ? qk_action_named(action) : NULL;
}

static bool is_number(const qk_action_row_t *row, const char *key) {
  if (row->has_kappa && strcmp(key, "kappa") == 0) return true;
  for (const qk_param_t *p = row->param; p->key; p++)
    if (strcmp(p->key, key) == 0) return p->type == QK_PARAM_REAL || p->type == QK_PARAM_INTEGER;
  return false;
}

static void take_action(const struct argp_state *state, const char *name, char *text,
                        void *values) {
  ctl_operator_t *o = values;
  if (!*text || strpbrk(text, " \t\r\n;="))
    argp_error(state, "--%s=%s: must be a name; quarkctl actions lists them", name, text);
  o->action = text;
}

static void take_set(const struct argp_state *state, const char *name, char *text, void *values) {
  ctl_operator_t *o = values;
  char why[QK_WHY];
  qk_setting_t s;
  const size_t bytes = strlen(text);
  if (bytes == 0 || text[bytes - 1] == '=' || strpbrk(text, " \t\r\n;") ||
      !qk_setting_split(text, &s, why))
    argp_error(state, "--%s=%s: must be KEY=VALUE, without blanks and ';'", name, text);
  for (uint32_t i = 0; i < o->n; i++)
    if (strcmp(o->parameter[i].key, s.key) == 0)
      argp_error(state, "--%s: %s is given twice: %s and %s", name, s.key, o->parameter[i].value,
                 s.value);
  if (o->n == CTL_PARAMETERS)
    argp_error(state, "--%s: more than %d parameters are given", name, CTL_PARAMETERS);
  o->parameter[o->n++] = (quark_parameter_t){s.key, s.value};
}

static void check(const struct argp_state *state, void *values) {
  const ctl_operator_t *o = values;
  const qk_action_row_t *row = row_of(o->action);
  double x;
  for (uint32_t i = 0; i < o->n && row; i++)
    if (is_number(row, o->parameter[i].key) && !qk_real_parse(o->parameter[i].value, &x))
      argp_error(state, "--set=%s=%s: must be a number", o->parameter[i].key,
                 o->parameter[i].value);
}

static const qk_option_row_t rows[] = {
    {"action", QK_OPTION_TAKEN, .form = "NAME", .take = take_action,
     .help = "fermion action with all its parameters that have no default; quarkctl actions lists "
             "them"},
    {"set", QK_OPTION_TAKEN, .form = "KEY=VALUE", .take = take_set,
     .help = "a parameter of the action; may be repeated"},
    {0},
};

const qk_option_table_t ctl_operator_table = {.row = rows, .group = 1, .finish = check};

void ctl_operator_exclude(const struct argp_state *state, const ctl_operator_t *given,
                          const char *key) {
  for (uint32_t i = 0; i < given->n; i++)
    if (strcmp(given->parameter[i].key, key) == 0)
      argp_error(state, "--%s and --set=%s=%s are both given: give only one of them", key, key,
                 given->parameter[i].value);
}

/* ---- what a daemon says --------------------------------------------------------------------- */

/* The pairs of parameters, which fit into a copy of it. */
static uint32_t split(const char *parameters, char copy[QUARK_PARAMETER_TEXT],
                      quark_parameter_t pair[CTL_PARAMETERS]) {
  snprintf(copy, QUARK_PARAMETER_TEXT, "%s", parameters);
  const uint32_t n = quark_parameters_split(copy, CTL_PARAMETERS, pair);
  return n < CTL_PARAMETERS ? n : CTL_PARAMETERS;
}

const char *ctl_operator_text(const char *action, const char *parameters, double kappa, double csw,
                              ctl_operator_form_t form, char text[CTL_OPERATOR_TEXT]) {
  const char *gap = form == CTL_OPERATOR_LINE ? "   " : " ",
             *is = form == CTL_OPERATOR_LINE ? " " : "=";
  char copy[QUARK_PARAMETER_TEXT];
  quark_parameter_t pair[CTL_PARAMETERS];
  if (!*action) {
    snprintf(text, CTL_OPERATOR_TEXT, "kappa%s%.10g%scsw%s%.10g", is, kappa, gap, is, csw);
    return text;
  }
  size_t used = (size_t)snprintf(text, CTL_OPERATOR_TEXT, "%s", action);
  const uint32_t n = split(parameters, copy, pair);
  for (uint32_t i = 0; i < n; i++)
    used += (size_t)snprintf(text + used, CTL_OPERATOR_TEXT - used, "%s%s%s%s", gap, pair[i].key,
                             is, pair[i].value);
  return text;
}

json_t *ctl_parameters_json(const char *parameters) {
  char copy[QUARK_PARAMETER_TEXT];
  quark_parameter_t pair[CTL_PARAMETERS];
  json_t *object = json_object();
  const uint32_t n = split(parameters, copy, pair);
  for (uint32_t i = 0; i < n; i++)
    json_object_set_new(object, pair[i].key, json_string(pair[i].value));
  return object;
}

json_t *ctl_kappa_json(double kappa) {
  return kappa == 0 ? json_null() : ctl_number(kappa);
}

json_t *ctl_csw_json(double kappa, double csw) {
  return kappa == 0 && csw == 0 ? json_null() : ctl_number(csw);
}

void ctl_operator_set_mass(double mass, char text[QK_OPERATOR_TEXT]) {
  char copy[QK_OPERATOR_TEXT], number[QK_REAL_TEXT], why[QK_WHY];
  const char *action;
  qk_setting_t setting[QK_VALUES_PARAMS];
  qk_values_t values;
  snprintf(copy, sizeof copy, "%s", text);
  qk_real_text(mass, number);
  const int n = qk_operator_split(copy, &action, setting);
  for (int i = 0; i < n; i++)
    if (strcmp(setting[i].key, "mass") == 0) setting[i].value = number;
  if (n >= 0 && qk_values_read(&values, action, setting, (size_t)n, why))
    qk_values_text(&values, QK_TEXT_CANONICAL, text);
}

void ctl_operator_canonical(const quark_report_t *report, char text[QK_OPERATOR_TEXT]) {
  const char *action = report->setup.action;
  char copy[QUARK_PARAMETER_TEXT], kappa[QK_REAL_TEXT], csw[QK_REAL_TEXT], why[QK_WHY];
  quark_parameter_t pair[CTL_PARAMETERS];
  qk_setting_t setting[CTL_PARAMETERS];
  qk_values_t values;
  uint32_t n = split(report->setup.parameters, copy, pair);
  for (uint32_t i = 0; i < n; i++) setting[i] = (qk_setting_t){pair[i].key, pair[i].value};
  if (!*action) {
    qk_real_text(report->setup.kappa, kappa);
    qk_real_text(report->setup.csw, csw);
    setting[0] = (qk_setting_t){"kappa", kappa};
    setting[1] = (qk_setting_t){"csw", csw};
    n = 2;
  }
  if (qk_values_read(&values, *action ? action : NULL, setting, n, why))
    qk_values_text(&values, QK_TEXT_CANONICAL, text);
  else if (snprintf(text, QK_OPERATOR_TEXT, "%s;%s", action, report->setup.parameters) >=
           QK_OPERATOR_TEXT)
    snprintf(text, QK_OPERATOR_TEXT, "%s", action); /* rather than half of a number */
}

static bool same_value(const char *a, const char *b) {
  double x, y;
  if (strcmp(a, b) == 0) return true;
  return qk_real_parse(a, &x) && qk_real_parse(b, &y) && fabs(x - y) <= 1e-12 * (1 + fabs(y));
}

bool ctl_operator_same(const char *a, const char *b) {
  char copy[2][QK_OPERATOR_TEXT];
  const char *action[2];
  qk_setting_t setting[2][QK_VALUES_PARAMS];
  if (strcmp(a, b) == 0) return true;
  snprintf(copy[0], sizeof copy[0], "%s", a);
  snprintf(copy[1], sizeof copy[1], "%s", b);
  const int n = qk_operator_split(copy[0], &action[0], setting[0]);
  if (n < 0 || n != qk_operator_split(copy[1], &action[1], setting[1]) ||
      strcmp(action[0], action[1]) != 0)
    return false;
  for (int i = 0; i < n; i++)
    if (strcmp(setting[0][i].key, setting[1][i].key) != 0 ||
        !same_value(setting[0][i].value, setting[1][i].value))
      return false;
  return true;
}

bool ctl_operator_has(const quark_report_t *report, const char *key, const char *value) {
  char copy[QUARK_PARAMETER_TEXT], theirs[QK_OPERATOR_TEXT], ours[QK_OPERATOR_TEXT], why[QK_WHY];
  quark_parameter_t pair[CTL_PARAMETERS];
  qk_setting_t setting[CTL_PARAMETERS + 1];
  qk_values_t values;
  size_t n = 0;
  const uint32_t given = split(report->setup.parameters, copy, pair);
  for (uint32_t i = 0; i < given; i++)
    if (strcmp(pair[i].key, key) != 0) setting[n++] = (qk_setting_t){pair[i].key, pair[i].value};
  setting[n++] = (qk_setting_t){key, value};
  if (!qk_values_read(&values, report->setup.action, setting, n, why)) return false;
  qk_values_text(&values, QK_TEXT_CANONICAL, ours);
  ctl_operator_canonical(report, theirs);
  return ctl_operator_same(ours, theirs);
}

double ctl_operator_kappa(const quark_report_t *report) {
  return report->setup.kappa == 0 ? NAN : report->setup.kappa;
}

double ctl_operator_csw(const quark_report_t *report) {
  return report->setup.kappa == 0 && report->setup.csw == 0 ? NAN : report->setup.csw;
}

/* -1 was accepted: it has flavours, also where this program does not know it. */
int32_t ctl_operator_flavour(const quark_report_t *report, int32_t flavour) {
  const qk_action_row_t *row = row_of(report->setup.action);
  if (flavour < 0) return -1;
  return row && row->has_flavours;
}

qk_shape_t ctl_operator_shape(const quark_report_t *report) {
  qk_shape_t shape = {.site_reals = report->setup.site_reals, .columns = report->setup.columns};
  memcpy(shape.dims, report->setup.dims, sizeof shape.dims);
  return shape;
}

int32_t ctl_operator_slices(const quark_report_t *report) {
  const qk_action_row_t *row = row_of(report->setup.action);
  char copy[QUARK_PARAMETER_TEXT];
  quark_parameter_t pair[CTL_PARAMETERS];
  double slices = 0;
  if (row && !row->has_slices) return 0;
  const uint32_t n = split(report->setup.parameters, copy, pair);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(pair[i].key, "Ls") == 0 && !qk_real_parse(pair[i].value, &slices)) return 0;
  return slices >= 1 && slices <= QK_H5FILE_MAX_SLICES ? (int32_t)slices : 0;
}

int ctl_operator_check_five(const quark_report_t *report, bool five) {
  if (!five || ctl_operator_slices(report) > 0) return 0;
  ctl_complain("--five-d: setup %s, %s: this action has no fifth dimension", report->setup.name,
               report->setup.action);
  return EXIT_USAGE;
}

int ctl_operator_check(const quark_report_t *report) {
  const qk_shape_t shape = ctl_operator_shape(report), usual = qk_shape_usual();
  if (qk_shape_is_usual(&shape) || qk_shape_vectors(&shape) == 2 || qk_shape_is_colour(&shape))
    return 0;
  ctl_complain(
      "setup %s, %s: its fields have %u real numbers at a site and its propagators %u "
      "columns; this quarkctl knows those with %u and %u, doublets with twice as many, and "
      "those of colour alone with 6 and 3",
      report->setup.name, report->setup.action, shape.site_reals, shape.columns, usual.site_reals,
      usual.columns);
  return EXIT_DATA;
}

int ctl_operator_check_single(const quark_report_t *report, const char *what) {
  const qk_shape_t shape = ctl_operator_shape(report);
  if (qk_shape_vectors(&shape) == 1) return ctl_operator_check(report);
  ctl_complain("setup %s, %s: its right-hand sides have two flavours, for which %s are not "
               "defined; quarkctl propagator, solve and fetch work",
               report->setup.name, report->setup.action, what);
  return EXIT_DATA;
}

int ctl_operator_check_usual(const quark_report_t *report, const char *what) {
  const qk_shape_t shape = ctl_operator_shape(report);
  if (!qk_shape_is_colour(&shape)) return ctl_operator_check_single(report, what);
  ctl_complain("setup %s, %s: its fields have colour alone, for which %s are not defined",
               report->setup.name, report->setup.action, what);
  return EXIT_DATA;
}
