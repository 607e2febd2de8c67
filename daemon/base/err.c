#include "daemon/base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

qk_status_t qk_fail(qk_err_t *err, qk_status_t code, const char *fmt, ...) {
  if (err != NULL && err->code == QK_OK) {
    va_list ap;
    va_start(ap, fmt);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
  }
  return code;
}

void qk_err_quote(const char *text, char *out, size_t size) {
  size_t i = 0;
  for (; text && text[i] && i + 1 < size; i++)
    out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
  out[i] = '\0';
}

void qk_err_prefix(qk_err_t *err, const char *fmt, ...) {
  if (err == NULL || err->code == QK_OK) return;
  char text[sizeof err->text];
  va_list ap;
  va_start(ap, fmt);
  int n = vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  if (n < 0 || (size_t)n >= sizeof text) return;
  const size_t room = sizeof text - (size_t)n - 1;
  snprintf(text + n, room + 1, ": %.*s", (int)room, err->text);
  memcpy(err->text, text, sizeof text);
}
