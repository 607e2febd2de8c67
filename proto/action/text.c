#include "proto/action/text.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void qk_real_text(double x, char text[QK_REAL_TEXT]) {
  text[0] = '\0';
  for (int digits = 1; digits <= 17; digits++) { /* 1e+02 has fewer digits, and 100 is shorter */
    char more[QK_REAL_TEXT];
    snprintf(more, sizeof more, "%.*g", digits, x);
    if (strtod(more, NULL) == x && (!text[0] || strlen(more) < strlen(text)))
      memcpy(text, more, sizeof more);
  }
  if (!text[0]) snprintf(text, QK_REAL_TEXT, "%g", x); /* not a number */
}

bool qk_real_scan(const char **text, double *x) {
  const char *digits = *text + (**text == '-' || **text == '+');
  char *end;
  if (!isdigit((unsigned char)*digits) && *digits != '.') return false;
  if (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X')) return false;
  const double v = strtod(*text, &end);
  if (end == *text || !isfinite(v)) return false;
  *x = v;
  *text = end;
  return true;
}

bool qk_real_parse(const char *text, double *x) {
  double v;
  if (!qk_real_scan(&text, &v) || *text) return false;
  *x = v;
  return true;
}

/* Texts come from outside: what is not printable becomes '?'. */
bool qk_refuse(char why[QK_WHY], const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(why, QK_WHY, format, args);
  va_end(args);
  for (char *p = why; *p; p++)
    if (*p < ' ' || *p > '~') *p = '?';
  return false;
}
