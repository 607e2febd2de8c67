#include "client/analysis/scan.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool qk_scan_word(const char **text, const char *word) {
  const size_t n = strlen(word);
  if (strncmp(*text, word, n) != 0) return false;
  *text += n;
  return true;
}

bool qk_scan_real(const char **text, double *value) {
  char *end;
  if (isspace((unsigned char)**text)) return false;
  const double x = strtod(*text, &end);
  if (end == *text || !isfinite(x)) return false;
  *value = x;
  *text = end;
  return true;
}

bool qk_scan_int(const char **text, int64_t min, int64_t max, int64_t *value) {
  char *end;
  const char *digits = *text + (**text == '-' || **text == '+');
  if (!isdigit((unsigned char)*digits)) return false;
  errno = 0;
  const long long x = strtoll(*text, &end, 10);
  if (errno || x < min || x > max) return false;
  *value = x;
  *text = end;
  return true;
}

bool qk_scan_uint64(const char **text, uint64_t *value) {
  char *end;
  if (!isdigit((unsigned char)**text)) return false;
  errno = 0;
  const unsigned long long x = strtoull(*text, &end, 10);
  if (errno) return false;
  *value = x;
  *text = end;
  return true;
}

void qk_scan_blanks(const char **text) {
  while (isspace((unsigned char)**text)) (*text)++;
}
