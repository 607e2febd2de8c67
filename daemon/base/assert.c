#include "daemon/base/assert.h"

#include <stdlib.h>

#include "daemon/base/log.h"

void qk_assert_failed(const char *expr, const char *file, int line) {
  qk_error("assert", "%s:%d: assertion failed: %s", file, line, expr);
  abort();
}
