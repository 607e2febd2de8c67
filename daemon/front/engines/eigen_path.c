#include "daemon/front/engines/eigen_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/host/runtime.h"

/* "": there is none. */
static void folder_of(const qk_settings_t *s, char path[QK_PATH_MAX + 1]) {
  char given[QK_PATH_MAX + 8];
  path[0] = '\0';
  if (!s->state || snprintf(given, sizeof given, "%s/eigen", s->state) >= (int)sizeof given) return;
  if (qk_runtime_path("state", given, path, NULL) != QK_OK) path[0] = '\0';
}

void qk_eigen_path(const qk_settings_t *s, const char *setup, const char *name,
                   char path[QK_PATH_MAX + 1]) {
  char folder[QK_PATH_MAX + 1];
  folder_of(s, folder);
  path[0] = '\0';
  if (!folder[0]) return;
  /* names of setups have no '+' */
  const int n = name ? snprintf(path, QK_PATH_MAX + 1, "%s/%s+%s", folder, setup, name)
                     : snprintf(path, QK_PATH_MAX + 1, "%s/%s", folder, setup);
  if (n > QK_PATH_MAX) path[0] = '\0';
}

qk_status_t qk_eigen_folder_make(const qk_settings_t *s, qk_err_t *err) {
  char folder[QK_PATH_MAX + 1];
  folder_of(s, folder);
  if (!folder[0] || mkdir(folder, 0700) == 0 || errno == EEXIST) return QK_OK;
  return qk_fail(err, QK_IO_ERROR, "%s: %s", folder, strerror(errno));
}
