#include "daemon/front/engines/checkpoint_path.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/host/runtime.h"

bool qk_checkpoint_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Files of setups beside the daemon's own have their names; a folder is for all. */
qk_status_t qk_checkpoint_path(const qk_settings_t *settings, const char *setup,
                               char path[QK_PATH_MAX + 1], qk_err_t *err) {
  const qk_status_t status =
      qk_runtime_checkpoint(settings->mg_checkpoint, settings->state, path, err);
  if (status != QK_OK || !path[0] || !setup[0] || qk_checkpoint_is_folder(path)) return status;
  const size_t n = strlen(path), room = QK_PATH_MAX + 1 - n;
  if ((size_t)snprintf(path + n, room, "-%s", setup) >= room) path[0] = '\0';
  return QK_OK;
}
