#include "daemon/base/formats/tag.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/base/formats/parse.h"

static const char blanks[] = " \t\r\n";

qk_status_t qk_tag_value(const char *text, const char *tag, char *value, size_t size, bool *found,
                         qk_err_t *err) {
  const size_t ntag = strlen(tag);
  *found = false;
  for (const char *p = strchr(text, '<'); p != NULL; p = strchr(p + 1, '<')) {
    const char *q = p + 1 + ntag;
    if (strncmp(p + 1, tag, ntag) != 0 || (*q != '>' && strchr(blanks, *q) == NULL)) continue;
    q += strcspn(q, "<>");
    if (*q != '>') return qk_fail(err, QK_BAD_FORMAT, "<%s> is not closed", tag);
    q += 1 + strspn(q + 1, blanks);
    const char *end = q + strcspn(q, "<");
    if (end[0] == '\0' || end[1] != '/')
      return qk_fail(err, QK_BAD_FORMAT, "<%s> holds more than a value", tag);
    while (end > q && strchr(blanks, end[-1]) != NULL) end--;
    if (*found) return qk_fail(err, QK_BAD_FORMAT, "<%s> appears twice", tag);
    if ((size_t)(end - q) >= size) return qk_fail(err, QK_BAD_FORMAT, "<%s> is too long", tag);
    memcpy(value, q, (size_t)(end - q));
    value[end - q] = '\0';
    if (!qk_parse_printable(value)) return qk_fail(err, QK_BAD_FORMAT, "<%s> is not text", tag);
    *found = true;
  }
  return QK_OK;
}

qk_status_t qk_tag_need(const char *text, const char *tag, char value[QK_TAG_VALUE],
                        qk_err_t *err) {
  bool found;
  const qk_status_t status = qk_tag_value(text, tag, value, QK_TAG_VALUE, &found, err);
  if (status != QK_OK) return status;
  if (!found) return qk_fail(err, QK_BAD_FORMAT, "<%s> is missing", tag);
  return QK_OK;
}

qk_status_t qk_tag_int(const char *text, const char *tag, int64_t *v, qk_err_t *err) {
  char value[QK_TAG_VALUE];
  qk_status_t status = qk_tag_need(text, tag, value, err);
  if (status == QK_OK && !qk_parse_int(value, 0, INT64_MAX, v))
    status = qk_fail(err, QK_BAD_FORMAT, "<%s> = \"%s\" is not a number", tag, value);
  return status;
}

qk_status_t qk_tag_dims(const char *text, int64_t dims[4], qk_err_t *err) {
  char value[QK_TAG_VALUE], *save = NULL;
  int64_t volfmt, d[4];
  int n = 0;
  qk_status_t status = qk_tag_int(text, "volfmt", &volfmt, err);
  if (status != QK_OK) return status;
  if (volfmt != 0)
    return qk_fail(err, QK_UNSUPPORTED, "<volfmt> = %" PRId64 ": only 0, one file, is read",
                   volfmt);
  status = qk_tag_need(text, "dims", value, err);
  if (status != QK_OK) return status;
  for (char *w = strtok_r(value, blanks, &save); w; w = strtok_r(NULL, blanks, &save), n++) {
    if (n == 4 || !qk_parse_int(w, 0, INT64_MAX, &d[n]))
      return qk_fail(err, QK_BAD_GEOMETRY, "<dims> are not four numbers, at \"%s\"", w);
  }
  if (n != 4) return qk_fail(err, QK_BAD_GEOMETRY, "<dims> are %d numbers, not four", n);
  memcpy(dims, d, sizeof d);
  return QK_OK;
}
