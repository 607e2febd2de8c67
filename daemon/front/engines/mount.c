#include "daemon/front/engines/mount.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"

qk_status_t qk_mount_create(struct qk_service *service, const char *name,
                            const qk_settings_t *settings, double now, qk_mount_t **out,
                            qk_err_t *err) {
  qk_mount_t *mount = qk_calloc(1, sizeof *mount);
  if (!mount) return qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  mount->service = service;
  snprintf(mount->name, sizeof mount->name, "%s", name);
  mount->lane = -1;
  mount->used_at = now;
  mount->holds = 1;
  mount->settings = *settings;
  qk_link_init(&mount->suspects);
  qk_link_init(&mount->waiting);
  *out = mount;
  return QK_OK;
}

qk_mount_t *qk_mount_hold(qk_mount_t *mount) {
  if (mount) mount->holds++;
  return mount;
}

void qk_mount_release(qk_mount_t *mount) {
  if (!mount || --mount->holds > 0) return;
  qk_worker_destroy(mount->worker);
  free(mount->load);
  qk_free(mount);
}

bool qk_mount_serves(const qk_mount_t *mount) {
  return mount->failed == QK_OK && !mount->dropping && !mount->ending;
}

const char *qk_mount_solver(const qk_mount_t *mount) {
  const qk_engine_info_t *e = qk_worker_info(mount->worker);
  return e->loaded ? e->solver : qk_settings_solver(&mount->settings);
}

int qk_mount_seated(const qk_mount_t *mount) {
  int n = 0;
  for (int k = 0; k < QK_SEATS_MAX; k++) n += mount->slot[k].rhs != NULL;
  return n;
}

int qk_mount_busy(const qk_mount_t *mount) {
  const int slots = (int)qk_worker_info(mount->worker)->slots, seated = qk_mount_seated(mount);
  return seated < slots ? seated : slots;
}

int qk_mount_running(const qk_mount_t *mount) {
  return qk_mount_seated(mount) + (mount->slot[QK_CONTRACT_PLACE].rhs != NULL);
}
