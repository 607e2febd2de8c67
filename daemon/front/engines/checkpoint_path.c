#include "daemon/front/engines/checkpoint_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/front/host/folder.h"
#include "daemon/front/host/runtime.h"

enum { CLAIMS_MAX = 64 };

bool qk_checkpoint_is_folder(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Whether path is nobody else's; its lock, where there can be one. */
static bool claim(const char *path, int *lock) {
  char name[QK_PATH_MAX + 8];
  qk_err_t err = {0};
  snprintf(name, sizeof name, "%s.lock", path);
  if (qk_folder_open(name, lock, &err) != QK_OK) {
    qk_warn("multigrid", "%s", err.text);
    *lock = -1;
    return true;
  }
  if (flock(*lock, LOCK_EX | LOCK_NB) == 0) return true;
  const bool taken = errno == EWOULDBLOCK;
  close(*lock);
  *lock = -1;
  return !taken;
}

qk_status_t qk_checkpoint_claim(qk_settings_t *settings, char path[QK_PATH_MAX + 1], int *lock,
                                qk_err_t *err) {
  char first[QK_PATH_MAX + 1];
  *lock = -1;
  if (strcmp(settings->mg_checkpoint, "auto") != 0 || settings->state) return QK_OK;
  const qk_status_t status = qk_runtime_checkpoint("auto", NULL, first, err);
  if (status != QK_OK || !first[0] || qk_checkpoint_is_folder(first)) return status;
  bool ours = false;
  for (int i = 1; i <= CLAIMS_MAX && !ours; i++) {
    const int n = i == 1 ? snprintf(path, QK_PATH_MAX + 1, "%s", first)
                         : snprintf(path, QK_PATH_MAX + 1, "%s.%d", first, i);
    ours = n <= QK_PATH_MAX && claim(path, lock);
  }
  if (!ours) path[0] = '\0';
  settings->multigrid = path;
  if (strcmp(path, first) != 0)
    qk_info("multigrid", "%s is another quarkd's: checkpoints are in %s", first,
            ours ? path : "no file");
  return QK_OK;
}

/* Files of setups beside the daemon's own have their names; a folder is for all. */
qk_status_t qk_checkpoint_path(const qk_settings_t *settings, const char *setup,
                               char path[QK_PATH_MAX + 1], qk_err_t *err) {
  qk_status_t status = QK_OK;
  if (settings->multigrid)
    snprintf(path, QK_PATH_MAX + 1, "%s", settings->multigrid);
  else
    status = qk_runtime_checkpoint(settings->mg_checkpoint, settings->state, path, err);
  if (status != QK_OK || !path[0] || !setup[0] || qk_checkpoint_is_folder(path)) return status;
  const size_t n = strlen(path), room = QK_PATH_MAX + 1 - n;
  if ((size_t)snprintf(path + n, room, "-%s", setup) >= room) path[0] = '\0';
  return QK_OK;
}
