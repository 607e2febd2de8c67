#include "daemon/base/formats/parse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

bool qk_parse_printable(const char *text) {
  while (*text >= ' ' && *text <= '~') text++;
  return *text == '\0';
}

bool qk_parse_int(const char *text, int64_t lo, int64_t hi, int64_t *value) {
  size_t n = strlen(text), digits = strspn(text, "0123456789");
  if (n == 0 || n > 18 || digits != n) return false;
  int64_t v = strtoll(text, NULL, 10);
  if (v < lo || v > hi) return false;
  *value = v;
  return true;
}

bool qk_parse_hex(const char *text, uint32_t *value) {
  size_t n = strlen(text);
  if (n == 0 || n > 8 || strspn(text, "0123456789abcdefABCDEF") != n) return false;
  *value = (uint32_t)strtoul(text, NULL, 16);
  return true;
}

bool qk_parse_real(const char *text, double *value, double *unit) {
  const char *p = text + (*text == '-' || *text == '+');
  size_t whole = strspn(p, "0123456789"), decimals = 0;
  p += whole;
  if (*p == '.') {
    decimals = strspn(++p, "0123456789");
    p += decimals;
  }
  if (whole + decimals == 0 || whole + decimals > 40) return false;
  long exponent = 0;
  if (*p == 'e' || *p == 'E') {
    p++;
    size_t sign = *p == '-' || *p == '+', n = strspn(p + sign, "0123456789");
    if (n == 0 || n > 3) return false;
    exponent = strtol(p, NULL, 10);
    p += sign + n;
  }
  if (*p != '\0') return false;
  double v = strtod(text, NULL);
  if (!isfinite(v)) return false;
  *value = v;
  *unit = pow(10.0, (double)(exponent - (long)decimals));
  return true;
}
