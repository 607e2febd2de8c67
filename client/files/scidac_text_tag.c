/* scidac_text_tag.c: reads the tag <quarkd> (scidac_text.h) of a SciDAC file. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/files/scidac_text.h"
#include "daemon/base/formats/tag.h"
#include "daemon/base/mem.h"

enum { VALUE = QK_OPERATOR_TEXT, WORDS = 18 };

/* A number with a sign, all of the word. */
static bool parse_integer(const char *word, int64_t lo, int64_t hi, int64_t *value) {
  char *end;
  errno = 0;
  const long long v = strtoll(word, &end, 10);
  if (end == word || *end != '\0' || errno != 0 || v < lo || v > hi) return false;
  *value = v;
  return true;
}

static bool parse_int32(const char *word, int32_t *value) {
  int64_t v;
  if (!parse_integer(word, INT32_MIN, INT32_MAX, &v)) return false;
  *value = (int32_t)v;
  return true;
}

static bool parse_unsigned(const char *word, uint64_t *value) {
  char *end;
  errno = 0;
  const unsigned long long v = strtoull(word, &end, 10);
  if (*word < '0' || *word > '9' || *end != '\0' || errno != 0) return false;
  *value = v;
  return true;
}

/* NaN is one, too: what is not known. */
static bool parse_number(const char *word, double *value) {
  char *end;
  const double v = strtod(word, &end);
  if (end == word || *end != '\0' || isinf(v)) return false;
  *value = v;
  return true;
}

static bool parse_numbers(char *text, const qk_h5attr_t *m, char *at) {
  char *save = NULL;
  char *word = strtok_r(text, " ", &save);
  int n = 0;
  for (; word; word = strtok_r(NULL, " ", &save), n++) {
    if (n == m->count) return false;
    if (m->kind == QK_H5_REAL ? !parse_number(word, (double *)at + n)
                              : !parse_int32(word, (int32_t *)at + n))
      return false;
  }
  return n == m->count;
}

static qk_status_t read_member(const char *text, const qk_h5attr_t *m, qk_h5meta_t *meta,
                               qk_err_t *err) {
  char value[VALUE], *at = (char *)meta + m->offset;
  const bool is_text = m->kind == QK_H5_TEXT;
  bool found;
  const qk_status_t status =
      qk_tag_value(text, m->name, value, is_text ? (size_t)m->count : sizeof value, &found, err);
  if (status != QK_OK || !found) return status;
  if (is_text)
    strcpy(at, value);
  else if (!parse_numbers(value, m, at))
    return qk_fail(err, QK_BAD_FORMAT, "<%s> is not %d number%s", m->name, m->count,
                   m->count == 1 ? "" : "s");
  return QK_OK;
}

static bool parse_column(char *text, qk_h5column_t *c) {
  char *word[WORDS + 1], *save = NULL;
  int n = 0;
  for (char *w = strtok_r(text, " ", &save); w && n <= WORDS; w = strtok_r(NULL, " ", &save))
    word[n++] = w;
  if (n != WORDS || !qk_h5column_status(word[0], &c->status) ||
      !parse_number(word[1], &c->true_residual) ||
      !parse_integer(word[2], 0, INT64_MAX, &c->iterations) ||
      !parse_number(word[3], &c->seconds) || strlen(word[4]) >= sizeof c->source ||
      !parse_unsigned(word[11], &c->seed))
    return false;
  strcpy(c->source, strcmp(word[4], "-") == 0 ? "" : word[4]);
  int32_t *const number[] = {c->site,    c->site + 1, c->site + 2, c->site + 3,     &c->spin,
                             &c->colour, NULL,        c->momentum, c->momentum + 1, c->momentum + 2,
                             &c->every,  &c->gamma,   &c->flavour};
  for (int i = 0; i < WORDS - 5; i++)
    if (number[i] && !parse_int32(word[5 + i], number[i])) return false;
  return true;
}

static qk_status_t read_column(const char *text, int i, qk_h5column_t *column, qk_err_t *err) {
  char tag[32], value[512];
  bool found;
  snprintf(tag, sizeof tag, "column%d", i);
  const qk_status_t status = qk_tag_value(text, tag, value, sizeof value, &found, err);
  if (status != QK_OK || !found) return status;
  if (parse_column(value, column)) return QK_OK;
  return qk_fail(err, QK_BAD_FORMAT, "<%s> is not a column", tag);
}

static qk_status_t read_all(const char *text, qk_h5meta_t *meta, qk_h5column_t *column, int columns,
                            qk_err_t *err) {
  int64_t version;
  int n;
  const qk_h5attr_t *member = qk_h5meta_members(&n);
  qk_status_t status = qk_tag_int(text, "tag_version", &version, err);
  if (status != QK_OK) return status;
  if (version != 1)
    return qk_fail(err, QK_UNSUPPORTED, "version %lld, this program reads 1", (long long)version);
  for (int i = 0; i < n && status == QK_OK; i++) status = read_member(text, &member[i], meta, err);
  for (int i = 0; i < columns && status == QK_OK; i++)
    status = read_column(text, i, &column[i], err);
  return status;
}

qk_status_t qk_scidac_read_tag(const char *text, qk_h5meta_t *meta, qk_h5column_t *column,
                               int columns, bool *found, qk_err_t *err) {
  static const char opens[] = "<quarkd>", closes[] = "</quarkd>";
  const char *begin = strstr(text, opens);
  *found = begin != NULL;
  if (!begin) return QK_OK;
  const char *end = strstr(begin, closes);
  if (!end || strstr(end, opens))
    return qk_fail(err, QK_BAD_FORMAT, "<quarkd> is not closed, or appears twice");
  begin += sizeof opens - 1;
  const size_t n = (size_t)(end - begin);
  char *copy = qk_malloc(n + 1);
  if (!copy) return qk_fail(err, QK_NO_MEMORY, "no memory for %zu bytes", n);
  memcpy(copy, begin, n);
  copy[n] = '\0';
  const qk_status_t status = read_all(copy, meta, column, columns, err);
  if (status != QK_OK) qk_err_prefix(err, "<quarkd>");
  qk_free(copy);
  return status;
}
