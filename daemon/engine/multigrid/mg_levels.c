#include "daemon/engine/multigrid/mg_levels.h"

#include <string.h>

void qk_mg_drop_levels(qk_mg_t *mg, int l) {
  for (int k = mg->nlevel - 1; k > l; k--) {
    qk_mg_level_t *level = &mg->level[k];
    if (level->op) level->op->ops->destroy(level->op);
    level->op = NULL;
    qk_field_destroy(mg->level[k - 1].null);
    mg->level[k - 1].null = NULL;
    qk_prolongator_destroy(mg->level[k - 1].down);
    mg->level[k - 1].down = NULL;
    if (level->work) qk_work_trim(level->work);
  }
}

qk_status_t qk_mg_all_minus(const qk_device_t *dev, int n, void **minus) {
  uint8_t one[QK_MAX_RHS];
  memset(one, 1, sizeof one);
  qk_status_t status = dev->ops->alloc(dev->ctx, (size_t)n, minus);
  if (status) return status;
  status = dev->ops->copy(dev->ctx, *minus, one, (size_t)n, QK_COPY_TO_DEVICE, 0);
  return status ? status : dev->ops->queue_sync(dev->ctx, 0);
}
