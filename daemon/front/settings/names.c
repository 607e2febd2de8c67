#include "daemon/front/settings/names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "proto/limits.h"

qk_status_t qk_names_check(const char *what, const char *name, qk_err_t *err) {
  char quoted[QK_SETUP_NAME_MAX + 1];
  bool legal = isalnum((unsigned char)name[0]) && strlen(name) <= QK_SETUP_NAME_MAX;
  for (const char *p = name; *p && legal; p++)
    legal = isalnum((unsigned char)*p) || strchr("._-", *p) != NULL;
  if (legal && strcmp(name, "default") != 0) return QK_OK;
  qk_err_quote(name, quoted, sizeof quoted);
  if (legal)
    return qk_fail(err, QK_BAD_ARGUMENT, "%s = default: that stands for whichever setup is", what);
  return qk_fail(err, QK_BAD_ARGUMENT,
                 "%s = \"%s\": 1 to %d letters, digits, '.', '_' or '-' are needed, the first a "
                 "letter or digit",
                 what, quoted, QK_SETUP_NAME_MAX);
}
