#include "daemon/engine/gauge_tool/pattern.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const int MAX_WIDTH = 18;

/* What follows a % that is no %%: true with the digits it asks for, *p behind it. */
static bool parse_conversion(const char **p, int *width) {
  const char *s = *p;
  int w = 0;
  if (*s == '0') {
    s++;
    while (*s >= '0' && *s <= '9' && w <= MAX_WIDTH) w = 10 * w + *s++ - '0';
    if (w < 1 || w > MAX_WIDTH) return false;
  }
  if (*s != 'd') return false;
  *p = s + 1;
  *width = w;
  return true;
}

static const char *last_component(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash == NULL ? path : slash + 1;
}

static qk_status_t fail(const char *text, const char *what, qk_err_t *err) {
  return qk_fail(err, QK_BAD_ARGUMENT, "\"%.150s\": %s", text, what);
}

qk_status_t qk_pattern_parse(const char *text, qk_pattern_t *pattern, qk_err_t *err) {
  qk_pattern_t out = {.width = -1};
  char *put = out.head;
  if (strlen(text) > QK_PATTERN_TEXT) return fail(text, "a path has at most 3500 bytes", err);
  if (strlen(last_component(text)) > QK_PATTERN_NAME)
    return fail(text, "the name of a file has at most 200 bytes here", err);
  for (const char *p = text; *p != '\0';) {
    if (*p != '%' || p[1] == '%') {
      p += *p == '%';
      *put++ = *p++;
      continue;
    }
    if (p < last_component(text))
      return fail(text, "the number belongs into the name of the file, not of a folder", err);
    if (out.width >= 0) return fail(text, "there must be one %d (or %0Nd), not two", err);
    p++;
    if (!parse_conversion(&p, &out.width))
      return fail(text, "only %d, %0Nd with N from 1 to 18, and %% are understood", err);
    put = out.tail;
  }
  if (out.width < 0)
    return fail(
        text, "there must be a %d (or %0Nd) for the number of the sweep, as in cfg.%05d.lime", err);
  *pattern = out;
  return QK_OK;
}

void qk_pattern_path(const qk_pattern_t *pattern, int64_t number, char path[QK_PATTERN_PATH]) {
  snprintf(path, QK_PATTERN_PATH, "%s%0*" PRId64 "%s", pattern->head, pattern->width, number,
           pattern->tail);
}

void qk_pattern_folder(const qk_pattern_t *pattern, char folder[QK_PATTERN_PATH]) {
  int n = (int)(last_component(pattern->head) - pattern->head);
  snprintf(folder, QK_PATTERN_PATH, "%.*s", n, pattern->head);
}

void qk_pattern_stem(const qk_pattern_t *pattern, char stem[QK_PATTERN_PATH]) {
  const char *name = last_component(pattern->head);
  size_t n = strlen(name);
  while (n > 0 && strchr("._-", name[n - 1]) != NULL) n--;
  snprintf(stem, QK_PATTERN_PATH, "%.*s%.*s", (int)(name - pattern->head), pattern->head,
           n > 0 ? (int)n : 5, n > 0 ? name : "chain");
}
