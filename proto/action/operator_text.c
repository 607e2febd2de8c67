#include "proto/action/operator_text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char KAPPA[] = "kappa", MASS[] = "mass", CSW[] = "csw";
static const double KAPPA_MOST = 1e6;

_Static_assert(QK_PARAM_NAME_MAX + QK_VALUES_PARAMS * (QK_PARAM_KEY_MAX + 2) +
                       QK_VALUES_REALS * QK_REAL_BYTES + QK_VALUES_WORDS * QK_PARAM_WORD_MAX <
                   QK_OPERATOR_TEXT,
               "an operator has room for all that values hold");

/* ---- errors -------------------------------------------------------------------------------- */

static void append(char *list, size_t size, const char *text) {
  const size_t n = strlen(list);
  if (n < size) snprintf(list + n, size - n, "%s%s", n ? ", " : "", text);
}

/* "mass (or kappa), csw": parameters without a value, or all of them. */
static void list_keys(const qk_values_t *v, bool missing, char list[QK_WHY / 2]) {
  const qk_action_row_t *row = &qk_action_rows[v->action];
  list[0] = '\0';
  for (int i = 0; row->param[i].key; i++) {
    char text[QK_PARAM_KEY_MAX + 16];
    const qk_param_t *p = &row->param[i];
    const bool kappa = row->has_kappa && strcmp(p->key, MASS) == 0;
    if (missing && (v->at[i].state != QK_VALUE_NONE || p->otherwise)) continue;
    snprintf(text, sizeof text, "%s%s", p->key, kappa ? " (or kappa)" : "");
    append(list, QK_WHY / 2, text);
  }
}

/* ---- relations ----------------------------------------------------------------------------- */

double qk_mass_of_kappa(double kappa) {
  return 0.5 / kappa - 4;
}

double qk_kappa_of_mass(double mass) {
  return 0.5 / (4 + mass);
}

/* ---- one value ----------------------------------------------------------------------------- */

/* Where its numbers or its word go. */
typedef struct room {
  double *real;
  char *word;
  int n, most;
} room_t;

static const char *wanted(const qk_param_t *p, char text[96]) {
  const char *from = p->above ? "above" : "from", *to = p->below   ? "and below"
                                                        : p->above ? "and at most"
                                                                   : "to";
  if (p->type == QK_PARAM_WORD)
    snprintf(text, 96, "must be %g to %g letters without blank, ';' and '='", p->least, p->most);
  else if (p->type == QK_PARAM_REALS)
    snprintf(text, 96, "must be %s%d numbers %s %g %s %g, with commas", p->count ? "" : "1 to ",
             p->count ? p->count : QK_REALS_MAX, from, p->least, to, p->most);
  else
    snprintf(text, 96, "must be %s %s %g %s %g",
             p->type == QK_PARAM_INTEGER ? "an integer" : "a number", from, p->least, to, p->most);
  return text;
}

static bool in_range(const qk_param_t *p, double x) {
  return x >= p->least && x <= p->most && !(p->above && x == p->least) &&
         !(p->below && x == p->most);
}

bool qk_action_takes(const qk_action_row_t *row, const char *key, double value, char why[QK_WHY]) {
  char text[96];
  for (const qk_param_t *p = row->param; p->key; p++) {
    if (strcmp(p->key, key) != 0) continue;
    return in_range(p, value) || qk_refuse(why, "%g: %s", value, wanted(p, text));
  }
  return qk_refuse(why, "%g: the action %s has no %s", value, row->name, key);
}

bool qk_action_takes_mass(const qk_action_row_t *row, double mass, char why[QK_WHY]) {
  const double least = row->least_of_masses, size = mass < 0 ? -mass : mass;
  if (!qk_action_takes(row, "mass", mass, why)) return false;
  if (least == 0 || (size >= least && size < 1)) return true;
  return qk_refuse(why, "%g: with others at once its modulus must be at least %g and below 1", mass,
                   least);
}

static bool is_integer(const char *text) {
  text += *text == '-' || *text == '+';
  return *text && !text[strspn(text, "0123456789")];
}

static bool read_numbers(const qk_param_t *p, const char *text, room_t *room) {
  if (p->type == QK_PARAM_INTEGER && !is_integer(text)) return false;
  for (room->n = 0; room->n < room->most; room->n++) {
    double x;
    if (!qk_real_scan(&text, &x) || !in_range(p, x)) return false;
    room->real[room->n] = x + 0.0; /* -0 is 0 */
    if (!*text) return ++room->n == p->count || !p->count;
    if (p->type != QK_PARAM_REALS || *text++ != ',') return false;
  }
  return false;
}

static bool read_word(const qk_param_t *p, const char *text, room_t *room) {
  const size_t n = strlen(text);
  if ((double)n < p->least || (double)n > p->most || room->most < 1) return false;
  for (const char *c = text; *c; c++)
    if (*c <= ' ' || *c > '~' || *c == ';' || *c == '=') return false;
  memcpy(room->word, text, n + 1);
  room->n = 1;
  return true;
}

static bool read_value(const qk_param_t *p, const char *text, room_t *room) {
  return p->type == QK_PARAM_WORD ? read_word(p, text, room) : read_numbers(p, text, room);
}

static room_t room_of(qk_values_t *v, const qk_param_t *p) {
  if (p->type == QK_PARAM_WORD)
    return (room_t){.word = v->word[v->nword < QK_VALUES_WORDS ? v->nword : 0],
                    .most = QK_VALUES_WORDS - v->nword};
  const int left = QK_VALUES_REALS - v->nreal;
  return (room_t){.real = v->real + v->nreal, .most = left < QK_REALS_MAX ? left : QK_REALS_MAX};
}

static void keep(qk_values_t *v, int i, const room_t *room, int state) {
  int32_t *used = room->word ? &v->nword : &v->nreal;
  v->at[i].state = (uint8_t)state;
  v->at[i].first = *used;
  v->at[i].n = room->n;
  *used += room->n;
}

/* ---- reading ------------------------------------------------------------------------------- */

const qk_action_row_t *qk_action_named(const char *name) {
  for (const qk_action_row_t *row = qk_action_rows; row->name; row++)
    if (strcmp(name, row->name) == 0) return row;
  return NULL;
}

bool qk_values_init(qk_values_t *v, const char *action, char why[QK_WHY]) {
  char list[QK_WHY / 2] = "";
  const qk_action_row_t *row = qk_action_named(action);
  if (row) {
    memset(v, 0, sizeof *v);
    v->action = (int32_t)(row - qk_action_rows);
    return true;
  }
  for (row = qk_action_rows; row->name; row++) append(list, sizeof list, row->name);
  return qk_refuse(why, "action = \"%.40s\": must be one of %s", action, list);
}

static int find(const qk_values_t *v, const char *key) {
  const qk_param_t *param = qk_action_rows[v->action].param;
  for (int i = 0; param[i].key; i++)
    if (strcmp(param[i].key, key) == 0) return i;
  return -1;
}

static bool set_kappa(qk_values_t *v, const char *text, char why[QK_WHY]) {
  const int i = find(v, MASS);
  const qk_param_t *p = &qk_action_rows[v->action].param[i];
  double kappa;
  if (v->at[i].state == QK_VALUE_GIVEN)
    return v->by_kappa ? qk_refuse(why, "kappa is given twice")
                       : qk_refuse(why, "kappa and mass are both given: give only one of them");
  if (!qk_real_parse(text, &kappa) || !(kappa > 0) || kappa > KAPPA_MOST)
    return qk_refuse(why, "kappa = %.60s: must be a number above 0 and at most %g", text,
                     KAPPA_MOST);
  room_t room = room_of(v, p);
  room.real[room.n++] = qk_mass_of_kappa(kappa);
  if (!in_range(p, room.real[0]))
    return qk_refuse(
        why, "kappa = %.60s: the mass 1 / (2 kappa) - 4 = %g is outside its range, %g to %g", text,
        room.real[0], p->least, p->most);
  keep(v, i, &room, QK_VALUE_GIVEN);
  v->by_kappa = true;
  v->kappa = kappa;
  return true;
}

bool qk_values_set(qk_values_t *v, const char *key, const char *text, char why[QK_WHY]) {
  const qk_action_row_t *row = &qk_action_rows[v->action];
  const int i = find(v, key);
  char list[QK_WHY / 2], need[96];
  if (strlen(text) > QK_PARAM_TEXT_MAX)
    return qk_refuse(why, "%.40s: a value of %zu bytes, and the limit is %d", key, strlen(text),
                     QK_PARAM_TEXT_MAX);
  if (row->has_kappa && strcmp(key, KAPPA) == 0) return set_kappa(v, text, why);
  if (i < 0) {
    list_keys(v, false, list);
    return qk_refuse(why, "%.40s: %s has no such parameter: it has %s", key, row->name, list);
  }
  if (v->at[i].state == QK_VALUE_GIVEN)
    return v->by_kappa && strcmp(key, MASS) == 0
               ? qk_refuse(why, "kappa and mass are both given: give only one of them")
               : qk_refuse(why, "%s is given twice", key);
  room_t room = room_of(v, &row->param[i]);
  if (!read_value(&row->param[i], text, &room))
    return qk_refuse(why, "%s = %.60s: %s", key, text, wanted(&row->param[i], need));
  if (row->param[i].fits && !row->param[i].fits(room.word, why)) return false;
  keep(v, i, &room, QK_VALUE_GIVEN);
  return true;
}

/* What no parameter says alone. */
static bool fit_together(const qk_values_t *v, char why[QK_WHY]) {
  const double open = qk_value(v, "open");
  const char *links = qk_value_word(v, "links");
  if (!(open > 0) || links == NULL || strcmp(links, "thin") == 0) return true;
  return qk_refuse(why,
                   "links = %s: must be thin with an open boundary (open = %.15g), where smearing "
                   "is not defined",
                   links, open);
}

bool qk_values_complete(qk_values_t *v, char why[QK_WHY]) {
  const qk_action_row_t *row = &qk_action_rows[v->action];
  char list[QK_WHY / 2];
  list_keys(v, true, list);
  if (list[0]) return qk_refuse(why, "%s needs %s: not given", row->name, list);
  for (int i = 0; row->param[i].key; i++) {
    room_t room = room_of(v, &row->param[i]);
    if (v->at[i].state != QK_VALUE_NONE) continue;
    if (!read_value(&row->param[i], row->param[i].otherwise, &room))
      return qk_refuse(why, "%s: its default is not legal", row->param[i].key);
    keep(v, i, &room, QK_VALUE_DEFAULT);
  }
  return fit_together(v, why);
}

/* What is meant where no action is named. */
static const char *action_by_csw(const qk_setting_t *setting, size_t n) {
  double csw = 0;
  for (size_t i = 0; i < n; i++)
    if (strcmp(setting[i].key, CSW) == 0 && (!qk_real_parse(setting[i].value, &csw) || csw != 0))
      return qk_action_rows[QK_ACTION_WILSON_CLOVER].name;
  return qk_action_rows[QK_ACTION_WILSON].name;
}

bool qk_values_read_at(qk_values_t *values, const char *action, const qk_setting_t *setting,
                       size_t n, size_t *at, char why[QK_WHY]) {
  qk_values_t v = {0};
  int zeros = 0; /* csw = 0 where no action is named: what wilson is without it */
  *at = n;
  if (!qk_values_init(&v, action ? action : action_by_csw(setting, n), why)) return false;
  for (size_t i = 0; i < n; i++) {
    *at = i;
    if (!action && v.action == QK_ACTION_WILSON && strcmp(setting[i].key, CSW) == 0) {
      if (zeros++ > 0) return qk_refuse(why, "csw is given twice");
    } else if (!qk_values_set(&v, setting[i].key, setting[i].value, why)) {
      return false;
    }
  }
  *at = n;
  if (!qk_values_complete(&v, why)) return false;
  *values = v;
  return true;
}

bool qk_values_read(qk_values_t *values, const char *action, const qk_setting_t *setting, size_t n,
                    char why[QK_WHY]) {
  size_t at;
  return qk_values_read_at(values, action, setting, n, &at, why);
}

bool qk_setting_split(char *text, qk_setting_t *setting, char why[QK_WHY]) {
  char *equals = strchr(text, '=');
  if (!equals || equals == text) return qk_refuse(why, "%.60s: must be KEY=VALUE", text);
  *equals = '\0';
  *setting = (qk_setting_t){text, equals + 1};
  return true;
}

int qk_operator_split(char *text, const char **action, qk_setting_t setting[QK_VALUES_PARAMS]) {
  char why[QK_WHY], *rest = text;
  int n = 0;
  *action = strsep(&rest, ";");
  for (; rest; n++)
    if (n == QK_VALUES_PARAMS || !qk_setting_split(strsep(&rest, ";"), &setting[n], why)) return -1;
  return n;
}

bool qk_values_parse(qk_values_t *values, const char *text, char why[QK_WHY]) {
  char cut[QK_OPERATOR_TEXT], again[QK_OPERATOR_TEXT];
  qk_setting_t setting[QK_VALUES_PARAMS];
  const char *action;
  qk_values_t v;
  if (strlen(text) >= sizeof cut)
    return qk_refuse(why, "an operator of %zu bytes: the limit is %d", strlen(text),
                     QK_OPERATOR_TEXT - 1);
  memcpy(cut, text, strlen(text) + 1);
  const int n = qk_operator_split(cut, &action, setting);
  if (n < 0) return qk_refuse(why, "%.200s: must be NAME;key=value;...", text);
  if (!qk_values_read(&v, action, setting, (size_t)n, why)) return false;
  qk_values_text(&v, QK_TEXT_CANONICAL, again);
  if (strcmp(text, again) != 0)
    return qk_refuse(why, "%.200s is not in canonical form, which is %.200s", text, again);
  *values = v;
  return true;
}

/* ---- values -------------------------------------------------------------------------------- */

const qk_action_row_t *qk_values_action(const qk_values_t *v) {
  return &qk_action_rows[v->action];
}

static int find_value(const qk_values_t *v, const char *key, bool word) {
  const int i = find(v, key);
  const bool fits = i >= 0 && v->at[i].state != QK_VALUE_NONE &&
                    (qk_action_rows[v->action].param[i].type == QK_PARAM_WORD) == word;
  return fits ? i : -1;
}

const double *qk_value_reals(const qk_values_t *v, const char *key, int *n) {
  const int i = find_value(v, key, false);
  *n = i < 0 ? 0 : v->at[i].n;
  return i < 0 ? NULL : &v->real[v->at[i].first];
}

double qk_value(const qk_values_t *v, const char *key) {
  int n;
  const double *x = qk_value_reals(v, key, &n);
  return n == 1 ? *x : (double)NAN;
}

const char *qk_value_word(const qk_values_t *v, const char *key) {
  const int i = find_value(v, key, true);
  return i < 0 ? NULL : v->word[v->at[i].first];
}

double qk_values_kappa(const qk_values_t *v) {
  if (v->by_kappa) return v->kappa;
  if (find(v, KAPPA) >= 0) return qk_value(v, KAPPA);
  return qk_action_rows[v->action].has_kappa ? qk_kappa_of_mass(qk_value(v, MASS)) : 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

/* Adds to a text that has room for it: the limits of operator_text.h see to that. */
__attribute__((format(printf, 2, 3))) static void add(char text[QK_OPERATOR_TEXT],
                                                      const char *format, ...) {
  const size_t n = strlen(text);
  va_list args;
  va_start(args, format);
  vsnprintf(text + n, QK_OPERATOR_TEXT - n, format, args);
  va_end(args);
}

static void add_value(const qk_values_t *v, int i, char text[QK_OPERATOR_TEXT]) {
  const qk_param_t *p = &qk_action_rows[v->action].param[i];
  add(text, ";%s=", p->key);
  if (p->type == QK_PARAM_WORD) add(text, "%s", v->word[v->at[i].first]);
  for (int k = 0; k < v->at[i].n && p->type != QK_PARAM_WORD; k++) {
    char number[QK_REAL_TEXT];
    const double x = v->real[v->at[i].first + k];
    if (p->type == QK_PARAM_INTEGER)
      snprintf(number, sizeof number, "%.0f", x);
    else
      qk_real_text(x, number);
    add(text, "%s%s", k ? "," : "", number);
  }
}

static bool is_default(const qk_values_t *v, int i) {
  const qk_param_t *p = &qk_action_rows[v->action].param[i];
  double real[QK_REALS_MAX];
  char word[QK_PARAM_WORD_MAX + 1];
  room_t room = {.real = real, .word = word, .most = QK_REALS_MAX};
  if (v->at[i].state == QK_VALUE_DEFAULT) return true;
  if (!p->otherwise || !read_value(p, p->otherwise, &room)) return false;
  if (p->type == QK_PARAM_WORD) return strcmp(v->word[v->at[i].first], word) == 0;
  if (room.n != v->at[i].n) return false;
  for (int k = 0; k < room.n; k++)
    if (v->real[v->at[i].first + k] != real[k]) return false;
  return true;
}

bool qk_values_are_plain(const qk_values_t *v) {
  const qk_param_t *param = qk_action_rows[v->action].param;
  for (int i = 0; param[i].key; i++)
    if (strcmp(param[i].key, MASS) != 0 && strcmp(param[i].key, CSW) != 0 && !is_default(v, i))
      return false;
  return v->action <= QK_ACTION_WILSON_CLOVER;
}

void qk_values_text(const qk_values_t *v, qk_text_form_t form, char text[QK_OPERATOR_TEXT]) {
  const qk_action_row_t *row = &qk_action_rows[v->action];
  text[0] = '\0';
  add(text, "%s", row->name);
  for (int i = 0; row->param[i].key; i++) {
    if (form == QK_TEXT_CANONICAL ? is_default(v, i) : v->at[i].state != QK_VALUE_GIVEN) continue;
    if (form == QK_TEXT_GIVEN && v->by_kappa && strcmp(row->param[i].key, MASS) == 0) {
      char number[QK_REAL_TEXT];
      qk_real_text(v->kappa, number);
      add(text, ";%s=%s", KAPPA, number);
    } else {
      add_value(v, i, text);
    }
  }
}

bool qk_values_share_vectors(const qk_values_t *a, const qk_values_t *b) {
  char own[QK_OPERATOR_TEXT], theirs[QK_OPERATOR_TEXT];
  qk_values_t other = *b;
  if (a->action != b->action || !qk_action_rows[a->action].colour) return false;
  const int mass = find(a, MASS);
  if (mass < 0 || a->at[mass].n != 1 || b->at[mass].n != 1) return false;
  other.real[other.at[mass].first] = qk_value(a, MASS);
  qk_values_text(a, QK_TEXT_CANONICAL, own);
  qk_values_text(&other, QK_TEXT_CANONICAL, theirs);
  return strcmp(own, theirs) == 0;
}

bool qk_values_kernel(const qk_values_t *values, qk_values_t *kernel) {
  char why[QK_WHY], mass[QK_REAL_BYTES + 1];
  qk_values_t made = {0};
  if (!qk_values_action(values)->is_dense) return false;
  snprintf(mass, sizeof mass, "%.17g", -qk_value(values, "M"));
  if (!qk_values_init(&made, qk_action_rows[QK_ACTION_WILSON].name, why) ||
      !qk_values_set(&made, MASS, mass, why) ||
      !qk_values_set(&made, "links", qk_value_word(values, "links"), why) ||
      !qk_values_complete(&made, why))
    return false;
  *kernel = made;
  return true;
}

/* ---- boundary ------------------------------------------------------------------------------ */

/* One entry: 1, -1, or a phase such as 0.5pi. */
static bool scan_phase(const char **p, double z[2]) {
  double v;
  if (!qk_real_scan(p, &v)) return false;
  if (strncmp(*p, "pi", 2) == 0) {
    z[0] = cos(M_PI * v);
    z[1] = sin(M_PI * v);
    *p += 2;
    return true;
  }
  z[0] = v;
  z[1] = 0;
  return v == 1 || v == -1;
}

bool qk_boundary_parse(const char *text, double boundary[8], char why[QK_WHY]) {
  double z[8];
  const char *p = strcmp(text, "periodic") == 0       ? "1,1,1,1"
                  : strcmp(text, "antiperiodic") == 0 ? "1,1,1,-1"
                                                      : text;
  for (int mu = 0; mu < 4; mu++)
    if (!scan_phase(&p, z + 2 * mu) || *p++ != (mu < 3 ? ',' : '\0'))
      return qk_refuse(why, "boundary = %.60s: must be four of 1, -1 or a phase such as 0.5pi",
                       text);
  memcpy(boundary, z, sizeof z);
  return true;
}
