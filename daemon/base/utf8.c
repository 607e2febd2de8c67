#include "daemon/base/utf8.h"

#include <stdbool.h>
#include <string.h>

size_t qk_utf8_char(const char *text, size_t n) {
  const unsigned char *s = (const unsigned char *)text;
  if (s[0] < 0x80) return 1;
  /* The range [low, high] of the second byte excludes overlong forms, surrogates and numbers
   * that are too large. */
  const size_t length = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
  const unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
  if (length == 0 || length > n || s[1] < low || s[1] > high) return 0;
  for (size_t i = 2; i < length; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  return length;
}

void qk_utf8_clean(char *text) {
  const size_t n = strlen(text);
  for (size_t i = 0; i < n;) {
    const size_t length = qk_utf8_char(text + i, n - i);
    const unsigned char first = (unsigned char)text[i], second = (unsigned char)text[i + 1];
    const bool control = length == 1   ? first < 0x20 || first == 0x7f
                         : length == 2 ? first == 0xc2 && second < 0xa0
                                       : length == 0;
    if (control) memset(text + i, '?', length ? length : 1);
    i += length ? length : 1;
  }
}
