/*
 * plural.h: words of messages that go with a number.
 */
#ifndef QK_BASE_PLURAL_H
#define QK_BASE_PLURAL_H

static inline const char *qk_plural(long long n, const char *one, const char *more) {
  return n == 1 ? one : more;
}

#endif
