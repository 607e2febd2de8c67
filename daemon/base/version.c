#include "daemon/base/version.h"

const char *qk_version(void) {
  return QK_VERSION;
}
