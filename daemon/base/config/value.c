#include "daemon/base/config/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

qk_config_type_t qk_config_type_of(const qk_config_row_t *row) {
  return (qk_config_type_t)(row->type & ~(QK_CONFIG_LIVE | QK_CONFIG_FILE_ONLY));
}

static bool parse_bool(const char *text, bool *out) {
  static const char *const yes[] = {"yes", "true", "on", "1"}, *const no[] = {"no", "false", "off",
                                                                              "0"};
  for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
    if (strcmp(text, yes[i]) == 0 || strcmp(text, no[i]) == 0) {
      *out = strcmp(text, yes[i]) == 0;
      return true;
    }
  }
  return false;
}

static bool parse_integer(const char *text, bool suffix, int64_t *out) {
  char *end;
  errno = 0;
  long long v = strtoll(text, &end, 10);
  if (errno != 0 || end == text || isspace((unsigned char)*text)) return false;
  if (suffix && *end != '\0') {
    const char *const units = "KMGT", *unit = strchr(units, *end++);
    if (unit == NULL) return false;
    int64_t scale = (int64_t)1 << (10 * (unit - units + 1)), scaled;
    if (__builtin_mul_overflow((int64_t)v, scale, &scaled)) return false;
    v = scaled;
  }
  *out = v;
  return *end == '\0';
}

static bool parse_double(const char *text, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && *end == '\0' && !isspace((unsigned char)*text) && isfinite(*out);
}

/* Index of text among the words of "a|b|c", or -1. */
static int parse_choice(const char *text, const char *form) {
  const size_t n = strlen(text);
  for (int index = 0;; index++) {
    size_t word = strcspn(form, "|");
    if (word == n && memcmp(form, text, n) == 0) return index;
    if (form[word] == '\0') return -1;
    form += word + 1;
  }
}

const char *qk_config_limit_text(const qk_config_row_t *row, double limit, char out[32]) {
  const char *suffix = "\0KMGT";
  while (qk_config_type_of(row) == QK_CONFIG_SIZE && limit != 0 && suffix[1] &&
         fmod(limit, 1024) == 0) {
    limit /= 1024;
    suffix++;
  }
  snprintf(out, 32, "%.12g%.1s", limit, suffix);
  return out;
}

static qk_status_t outside(const qk_config_row_t *row, const char *where, const char *text,
                           qk_err_t *err) {
  char min[32], max[32];
  return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = %.80s: must be %s .. %s", where, row->key, text,
                 qk_config_limit_text(row, row->min, min),
                 qk_config_limit_text(row, row->max, max));
}

static bool has_blank(const char *text) {
  return strpbrk(text, " \t\r\n\v\f") != NULL;
}

static qk_status_t set_number(const qk_config_row_t *row, void *value, const char *where,
                              const char *text, qk_err_t *err) {
  int64_t integer = 0;
  double real = 0;
  bool ok = qk_config_type_of(row) == QK_CONFIG_DOUBLE
                ? parse_double(text, &real)
                : parse_integer(text, qk_config_type_of(row) == QK_CONFIG_SIZE, &integer);
  if (!ok) {
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.80s\": not %s%s", where, row->key, text,
                   qk_config_type_of(row) == QK_CONFIG_DOUBLE ? "a finite number"
                   : qk_config_type_of(row) == QK_CONFIG_SIZE
                       ? "a size in bytes (suffix K, M, G, T)"
                       : "an integer",
                   has_blank(text) ? ": take the blanks away" : "");
  }
  const double v = qk_config_type_of(row) == QK_CONFIG_DOUBLE ? real : (double)integer;
  if (row->min < row->max && (v < row->min || v > row->max)) return outside(row, where, text, err);
  if (qk_config_type_of(row) == QK_CONFIG_DOUBLE) {
    memcpy(value, &real, sizeof real);
  } else {
    memcpy(value, &integer, sizeof integer);
  }
  return QK_OK;
}

static qk_status_t set_word(const qk_config_row_t *row, void *value, const char *where,
                            const char *text, qk_err_t *err) {
  bool flag = false;
  int index = 0;
  bool ok = qk_config_type_of(row) == QK_CONFIG_BOOL ? parse_bool(text, &flag)
                                                     : (index = parse_choice(text, row->form)) >= 0;
  if (!ok) {
    return qk_fail(err, QK_BAD_ARGUMENT, "%s: %s = \"%.80s\": must be %s", where, row->key, text,
                   qk_config_type_of(row) == QK_CONFIG_BOOL ? "yes or no" : row->form);
  }
  if (qk_config_type_of(row) == QK_CONFIG_BOOL) {
    memcpy(value, &flag, sizeof flag);
  } else {
    memcpy(value, &index, sizeof index);
  }
  return QK_OK;
}

qk_status_t qk_config_value_set(const qk_config_row_t *row, void *value, const char *where,
                                const char *text, qk_err_t *err) {
  const qk_config_type_t type = qk_config_type_of(row);
  return type == QK_CONFIG_BOOL || type == QK_CONFIG_CHOICE
             ? set_word(row, value, where, text, err)
             : set_number(row, value, where, text, err);
}

static void show_list(const qk_config_list_t *list, char *out, size_t size) {
  size_t n = 0;
  out[0] = '\0';
  for (int i = 0; i < list->n && n < size; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%s", i ? ", " : "", list->item[i].text);
}

void qk_config_value_show(const qk_config_row_t *row, const void *value, char *out, size_t size) {
  const char *string, *word = row->form;
  int64_t integer;
  double real;
  bool flag;
  int index;
  switch (qk_config_type_of(row)) {
  case QK_CONFIG_STRING:
    memcpy(&string, value, sizeof string);
    snprintf(out, size, "%s", string != NULL ? string : "");
    return;
  case QK_CONFIG_LIST:
    show_list(value, out, size);
    return;
  case QK_CONFIG_DOUBLE:
    memcpy(&real, value, sizeof real);
    snprintf(out, size, "%.12g", real);
    return;
  case QK_CONFIG_BOOL:
    memcpy(&flag, value, sizeof flag);
    snprintf(out, size, "%s", flag ? "yes" : "no");
    return;
  case QK_CONFIG_CHOICE:
    memcpy(&index, value, sizeof index);
    while (index-- > 0) word = strchr(word, '|') + 1;
    snprintf(out, size, "%.*s", (int)strcspn(word, "|"), word);
    return;
  default:
    memcpy(&integer, value, sizeof integer);
    snprintf(out, size, "%lld", (long long)integer);
  }
}
