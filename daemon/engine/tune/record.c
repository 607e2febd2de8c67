#include "daemon/engine/tune/record.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/utf8.h"
#include "daemon/engine/multigrid/mg_text.h"

static const char *const outcomes[] = {"good", "stopped", "failed"};
enum { NOUTCOME = sizeof outcomes / sizeof outcomes[0] };

/* ---- members --------------------------------------------------------------------------------- */

typedef enum kind { TEXT, WHOLE, REAL } kind_t;

/* A member, and where it stands in its struct. size: bytes of a TEXT; least, most: of a number. */
typedef struct member {
  const char *name;
  kind_t kind;
  size_t at, size;
  double least, most;
} member_t;

#define AT(type, field) offsetof(type, field), sizeof(((type *)0)->field)

static const member_t case_members[] = {
    {"operator", TEXT, AT(qk_tune_case_t, op), 0, 0},
    {"boundary_t", REAL, AT(qk_tune_case_t, boundary_t), -1, 1},
    {"tol", REAL, AT(qk_tune_case_t, tol), 0, 1},
    {"slots", WHOLE, AT(qk_tune_case_t, slots), 1, 1024},
    {"threads", WHOLE, AT(qk_tune_case_t, threads), 0, 1 << 20},
    {"backend", TEXT, AT(qk_tune_case_t, backend), 0, 0},
    {"device", TEXT, AT(qk_tune_case_t, device), 0, 0},
    {"precision", TEXT, AT(qk_tune_case_t, precision), 0, 0},
    {"version", TEXT, AT(qk_tune_case_t, version), 0, 0},
};
static const member_t record_members[] = {
    {"gauge", TEXT, AT(qk_tune_record_t, gauge), 0, 0},
    {"time", TEXT, AT(qk_tune_record_t, time), 0, 0},
    {"changed", TEXT, AT(qk_tune_record_t, what), 0, 0},
    {"error", TEXT, AT(qk_tune_record_t, error), 0, 0},
};
/* Not of a trial that failed. */
static const member_t figures[] = {
    {"seconds", REAL, AT(qk_tune_record_t, seconds), 0, 1e9},
    {"spread", REAL, AT(qk_tune_record_t, spread), -1, 1e9},
    {"seconds_alone", REAL, AT(qk_tune_record_t, alone), -1, 1e9},
    {"setup_seconds", REAL, AT(qk_tune_record_t, setup_seconds), 0, 1e9},
    {"iterations", REAL, AT(qk_tune_record_t, iterations), 0, 1e9},
    {"residual", REAL, AT(qk_tune_record_t, residual), 0, 1e300},
};
#define COUNT(table) ((int)(sizeof(table) / sizeof(table)[0]))

/* ---- reading --------------------------------------------------------------------------------- */

/* NULL, and QK_BAD_FORMAT, where there is none of that type. */
static const json_t *need(const json_t *object, const char *name, json_type type, const char *words,
                          qk_err_t *err) {
  const json_t *v = json_object_get(object, name);
  if (v && (json_typeof(v) == type || (type == JSON_REAL && json_is_number(v)))) return v;
  qk_fail(err, QK_BAD_FORMAT, "%s is %s: %s is wanted", name, v ? "of another type" : "not there",
          words);
  return NULL;
}

static qk_status_t read_text(const json_t *object, const member_t *m, char *to, qk_err_t *err) {
  const json_t *v = need(object, m->name, JSON_STRING, "a text", err);
  if (!v) return QK_BAD_FORMAT;
  if (json_string_length(v) >= m->size)
    return qk_fail(err, QK_TOO_LARGE, "%s has %zu bytes: at most %zu", m->name,
                   json_string_length(v), m->size - 1);
  memcpy(to, json_string_value(v), json_string_length(v) + 1);
  qk_utf8_clean(to);
  return QK_OK;
}

static qk_status_t read_number(const json_t *object, const member_t *m, void *to, qk_err_t *err) {
  const json_type type = m->kind == WHOLE ? JSON_INTEGER : JSON_REAL;
  const json_t *v = need(object, m->name, type, "a number", err);
  if (!v) return QK_BAD_FORMAT;
  const double number = json_number_value(v);
  if (!(number >= m->least && number <= m->most))
    return qk_fail(err, QK_BAD_FORMAT, "%s = %g: a number from %g to %g", m->name, number, m->least,
                   m->most);
  if (m->kind == WHOLE)
    *(int *)to = (int)json_integer_value(v);
  else
    *(double *)to = number;
  return QK_OK;
}

static qk_status_t read_members(const json_t *object, const member_t *m, int n, void *to,
                                qk_err_t *err) {
  qk_status_t status = QK_OK;
  for (const member_t *end = m + n; m < end && status == QK_OK; m++)
    status = m->kind == TEXT ? read_text(object, m, (char *)to + m->at, err)
                             : read_number(object, m, (char *)to + m->at, err);
  return status;
}

static qk_status_t read_extents(const json_t *object, const char *name, int to[4], qk_err_t *err) {
  const json_t *v = need(object, name, JSON_ARRAY, "a list of four numbers", err);
  if (!v) return QK_BAD_FORMAT;
  bool good = json_array_size(v) == 4;
  for (size_t mu = 0; mu < 4 && good; mu++) {
    const json_int_t n = json_integer_value(json_array_get(v, mu)); /* 0: no integer */
    good = n >= 1 && n <= 1 << 20;
    to[mu] = good ? (int)n : 0;
  }
  return good ? QK_OK
              : qk_fail(err, QK_BAD_FORMAT, "%s: four numbers from 1 to %d are wanted", name,
                        1 << 20);
}

/* The parts of a line, one after the other. */
typedef qk_status_t part_fn(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                            qk_err_t *err);

static qk_status_t read_links(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                              qk_err_t *err) {
  (void)r;
  const json_t *v = need(object, "links", JSON_STRING, "a text", err);
  if (!v) return QK_BAD_FORMAT;
  const char *text = json_string_value(v);
  if (json_string_length(v) != 16 || strspn(text, "0123456789abcdef") != 16)
    return qk_fail(err, QK_BAD_FORMAT, "links: 16 hexadecimal digits are wanted");
  of->links = strtoull(text, NULL, 16);
  return QK_OK;
}

static qk_status_t read_case(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                             qk_err_t *err) {
  qk_status_t status = read_extents(object, "lattice", of->dims, err);
  if (status) return status;
  status = read_extents(object, "grid", of->grid, err);
  if (status) return status;
  status = read_members(object, case_members, COUNT(case_members), of, err);
  return status ? status : read_members(object, record_members, COUNT(record_members), r, err);
}

static qk_status_t read_settings(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                                 qk_err_t *err) {
  (void)of;
  const json_t *settings = need(object, "settings", JSON_OBJECT, "an object", err);
  const char *key;
  json_t *value;
  if (!settings) return QK_BAD_FORMAT;
  json_object_foreach((json_t *)settings, key, value) {
    char shown[64];
    qk_err_quote(key, shown, sizeof shown);
    if (!json_is_string(value))
      return qk_fail(err, QK_BAD_FORMAT, "settings: %s: a text is wanted", shown);
    qk_err_t why = {0};
    if (qk_mg_text_set(&r->params, key, json_string_value(value), &why) == QK_OK) continue;
    char text[sizeof why.text];
    qk_err_quote(why.text, text, sizeof text);
    return qk_fail(err, QK_BAD_ARGUMENT, "settings: %s", text);
  }
  if (r->params.nlevel == 0) return qk_fail(err, QK_BAD_FORMAT, "settings: mg-levels is not there");
  return qk_tune_settings(&r->params, r->settings)
             ? QK_OK
             : qk_fail(err, QK_TOO_LARGE, "settings: more than %d bytes", QK_TUNE_SETTINGS - 1);
}

static qk_status_t read_outcome(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                                qk_err_t *err) {
  (void)of;
  const json_t *v = need(object, "result", JSON_STRING, "a text", err);
  if (!v) return QK_BAD_FORMAT;
  int i = 0;
  while (i < NOUTCOME && strcmp(json_string_value(v), outcomes[i]) != 0) i++;
  if (i == NOUTCOME) return qk_fail(err, QK_BAD_FORMAT, "result: good, stopped or failed");
  r->outcome = (qk_tune_outcome_t)i;
  r->spread = r->alone = -1;
  if (r->outcome == QK_TUNE_FAILED) return QK_OK;
  const json_t *bytes = json_object_get(object, "device_bytes");
  r->bytes = json_integer_value(bytes); /* 0: no integer */
  if (r->bytes < 0) return qk_fail(err, QK_BAD_FORMAT, "device_bytes: a positive number is wanted");
  qk_status_t status = read_members(object, figures, COUNT(figures), r, err);
  if (status == QK_OK && r->outcome == QK_TUNE_GOOD && r->seconds == 0)
    status = qk_fail(err, QK_BAD_FORMAT, "seconds = 0: more is wanted");
  return status;
}

static qk_status_t read_version(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                                qk_err_t *err) {
  (void)of;
  (void)r;
  const json_t *version = need(object, "quark-tune", JSON_INTEGER, "a number", err);
  if (!version) return QK_BAD_FORMAT;
  if (json_integer_value(version) == QK_TUNE_VERSION) return QK_OK;
  return qk_fail(err, QK_UNSUPPORTED, "version %lld: this is version %d",
                 (long long)json_integer_value(version), QK_TUNE_VERSION);
}

static qk_status_t read_object(const json_t *object, qk_tune_case_t *of, qk_tune_record_t *r,
                               qk_err_t *err) {
  static part_fn *const parts[] = {read_version, read_links, read_case, read_settings,
                                   read_outcome};
  qk_status_t status = QK_OK;
  for (int i = 0; i < COUNT(parts) && status == QK_OK; i++) status = parts[i](object, of, r, err);
  return status;
}

qk_status_t qk_tune_record_read(const char *line, size_t n, qk_tune_case_t *of,
                                qk_tune_record_t *record, qk_err_t *err) {
  qk_tune_case_t c = {0};
  qk_tune_record_t r = {0};
  json_error_t why;
  if (n > QK_TUNE_LINE) return qk_fail(err, QK_TOO_LARGE, "more than %d bytes", QK_TUNE_LINE);
  json_t *object = json_loadb(line, n, JSON_REJECT_DUPLICATES, &why);
  if (!object) return qk_fail(err, QK_BAD_FORMAT, "no JSON object (column %d)", why.column);
  qk_status_t status = json_is_object(object) ? read_object(object, &c, &r, err)
                                              : qk_fail(err, QK_BAD_FORMAT, "JSON, but no object");
  json_decref(object);
  if (status != QK_OK) return status;
  *of = c;
  *record = r;
  return QK_OK;
}

/* ---- writing --------------------------------------------------------------------------------- */

bool qk_tune_settings(const qk_mg_params_t *params, char text[QK_TUNE_SETTINGS]) {
  FILE *out = fmemopen(text, QK_TUNE_SETTINGS, "w");
  if (!out) return false;
  qk_mg_text_print(params, out);
  const bool whole = fflush(out) == 0 && ftell(out) < QK_TUNE_SETTINGS - 1;
  return fclose(out) == 0 && whole;
}

static json_t *clean_text(const char *text, size_t size) {
  char copy[QK_OPERATOR_TEXT];
  snprintf(copy, size < sizeof copy ? size : sizeof copy, "%s", text);
  qk_utf8_clean(copy);
  return json_string(copy);
}

/* What is not there, or out of JSON's reach, is NULL, which json_object_set_new refuses. */
static bool put_members(json_t *object, const member_t *m, int n, const void *from) {
  bool good = true;
  for (const member_t *end = m + n; m < end && good; m++) {
    const char *at = (const char *)from + m->at;
    double number = 0;
    if (m->kind == REAL) memcpy(&number, at, sizeof number);
    json_t *v = m->kind == TEXT    ? clean_text(at, m->size)
                : m->kind == WHOLE ? json_integer(*(const int *)at)
                                   : json_real(number);
    good = json_object_set_new(object, m->name, v) == 0;
  }
  return good;
}

json_t *qk_tune_settings_object(const char *settings) {
  char text[QK_TUNE_SETTINGS], *rest = NULL;
  json_t *object = json_object();
  snprintf(text, sizeof text, "%s", settings);
  for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
    char *value = strstr(line, " = ");
    if (!value) continue;
    *value = '\0';
    json_object_set_new(object, line, json_string(value + 3));
  }
  return object;
}

/* For people: the operator has the mass. Where the action has no kappa there is none. */
static bool put_kappa(json_t *object, const char *op) {
  qk_values_t values;
  char why[QK_WHY];
  if (!qk_values_parse(&values, op, why) || !(qk_values_kappa(&values) > 0)) return true;
  return json_object_set_new(object, "kappa", json_real(qk_values_kappa(&values))) == 0;
}

static bool put_all(json_t *object, const qk_tune_case_t *of, const qk_tune_record_t *r) {
  char links[17];
  const int *l = of->dims, *g = of->grid;
  snprintf(links, sizeof links, "%016llx", (unsigned long long)of->links);
  return json_object_set_new(object, "quark-tune", json_integer(QK_TUNE_VERSION)) == 0 &&
         put_members(object, record_members, COUNT(record_members), r) &&
         json_object_set_new(object, "links", json_string(links)) == 0 &&
         json_object_set_new(object, "lattice", json_pack("[i,i,i,i]", l[0], l[1], l[2], l[3])) ==
             0 &&
         json_object_set_new(object, "grid", json_pack("[i,i,i,i]", g[0], g[1], g[2], g[3])) == 0 &&
         put_members(object, case_members, COUNT(case_members), of) && put_kappa(object, of->op) &&
         json_object_set_new(object, "settings", qk_tune_settings_object(r->settings)) == 0 &&
         json_object_set_new(object, "result", json_string(outcomes[r->outcome])) == 0;
}

char *qk_tune_record_line(const qk_tune_case_t *of, const qk_tune_record_t *record) {
  json_t *object = json_object();
  bool good = object && put_all(object, of, record);
  if (good && record->outcome != QK_TUNE_FAILED)
    good = put_members(object, figures, COUNT(figures), record) &&
           json_object_set_new(object, "device_bytes", json_integer(record->bytes)) == 0;
  char *line = good ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
  json_decref(object);
  return line;
}
