#include "daemon/front/settings/operator.h"

#include <math.h>
#include <string.h>

/* Settings that are collected from several places. */
enum { SETTINGS_MOST = 2 * QK_VALUES_PARAMS + 3 };

typedef struct list {
  qk_setting_t at[SETTINGS_MOST];
  size_t n;
  char number[3][QK_REAL_TEXT]; /* of short forms */
} list_t;

static void add_number(list_t *list, int i, const char *key, double x) {
  qk_real_text(x, list->number[i]);
  list->at[list->n++] = (qk_setting_t){key, list->number[i]};
}

static qk_status_t read(qk_values_t *values, const char *action, const list_t *list,
                        qk_err_t *err) {
  char why[QK_WHY];
  if (qk_values_read(values, action, list->at, list->n, why)) return QK_OK;
  return qk_fail(err, QK_BAD_ARGUMENT, "%s", why);
}

static bool is_named(const list_t *list, const char *key) {
  for (size_t i = 0; i < list->n; i++)
    if (strcmp(list->at[i].key, key) == 0) return true;
  return false;
}

/* Kappa and mass stand for each other. */
static bool is_replaced(const list_t *list, const char *key) {
  const bool mass = strcmp(key, "mass") == 0 || strcmp(key, "kappa") == 0;
  return is_named(list, key) || (mass && (is_named(list, "mass") || is_named(list, "kappa")));
}

/* Its own settings, with NaN and what is no number in short forms as what they are. */
static qk_status_t collect(const Quark__Load *load, list_t *list, qk_err_t *err) {
  if (load->n_parameter > QK_VALUES_PARAMS)
    return qk_fail(err, QK_BAD_ARGUMENT, "parameter: %zu are given, the limit is %d",
                   load->n_parameter, QK_VALUES_PARAMS);
  for (size_t i = 0; i < load->n_parameter; i++)
    list->at[list->n++] = (qk_setting_t){load->parameter[i]->key, load->parameter[i]->value};
  if (load->has_kappa) add_number(list, 0, "kappa", load->kappa);
  if (load->has_mass) add_number(list, 1, "mass", load->mass);
  if (load->has_csw) add_number(list, 2, "csw", load->csw);
  return QK_OK;
}

qk_status_t qk_operator_of_load(const Quark__Load *load, const qk_values_t *base,
                                qk_values_t *values, qk_err_t *err) {
  list_t list = {.n = 0};
  const qk_status_t status = collect(load, &list, err);
  if (status != QK_OK) return status;
  if (load->action) return read(values, load->action, &list, err);
  if (list.n == 0) {
    *values = *base;
    return QK_OK;
  }
  char text[QK_OPERATOR_TEXT];
  qk_setting_t before[QK_VALUES_PARAMS];
  const char *action;
  bool by_csw = is_named(&list, "csw") && base->action <= QK_ACTION_WILSON_CLOVER;
  qk_values_text(base, QK_TEXT_GIVEN, text);
  const int n = qk_operator_split(text, &action, before);
  for (int i = 0; i < n; i++) /* which only one of the two has */
    by_csw = by_csw && strcmp(before[i].key, "clover-plane") != 0;
  const list_t own = list;
  for (int i = 0; i < n; i++)
    if (!is_replaced(&own, before[i].key)) list.at[list.n++] = before[i];
  return read(values, by_csw ? NULL : action, &list, err);
}

void qk_operator_list(const qk_values_t *values, qk_text_form_t form, qk_operator_fields_t *f) {
  qk_setting_t setting[QK_VALUES_PARAMS];
  const char *action;
  qk_values_text(values, form, f->text);
  const int n = qk_operator_split(f->text, &action, setting);
  f->action = f->text;
  f->n_parameter = n > 0 ? (size_t)n : 0;
  for (size_t i = 0; i < f->n_parameter; i++) {
    f->setting[i] = (Quark__Setting)QUARK__SETTING__INIT;
    f->setting[i].key = (char *)setting[i].key;
    f->setting[i].value = (char *)setting[i].value;
    f->parameter[i] = &f->setting[i];
  }
}

static double number_or_zero(const qk_values_t *values, const char *key) {
  const double x = qk_value(values, key);
  return isnan(x) ? 0 : x;
}

double qk_operator_mass(const qk_values_t *values) {
  return number_or_zero(values, "mass");
}

double qk_operator_csw(const qk_values_t *values) {
  return number_or_zero(values, "csw");
}

int qk_operator_slices(const qk_values_t *values) {
  return qk_values_action(values)->has_slices ? (int)qk_value(values, "Ls") : 1;
}
