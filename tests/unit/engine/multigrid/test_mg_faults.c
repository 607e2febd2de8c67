/*
 * Every allocation and every device call of a multigrid setup with deflation, and of a cycle on it,
 * fails once: each failure comes back as its status and nothing stays behind.
 */
#include "daemon/engine/multigrid/cycle.h"
#include "tests/support/faults.h"
#include "tests/support/values.h"

enum { N = 3 };

static qk_status_t apply(qk_mg_t *mg) {
  const qk_device_t *dev = &mg->level[0].dev;
  qk_cycle_t *cycle = NULL;
  qk_field_t *z = NULL, *r = NULL;
  qk_status_t status = qk_cycle_create(mg, QK_SINGLE, N, &cycle, NULL);
  if (!status) status = qk_field_create(dev, QK_SINGLE, N, QK_EVEN, &z);
  if (!status) status = qk_field_create(dev, QK_SINGLE, N, QK_EVEN, &r);
  for (int i = 0; i < 2 && !status; i++) status = qk_cycle_apply(cycle, z, r, NULL, NULL);
  if (!status) status = dev->ops->queue_sync(dev->ctx, 0);
  qk_field_destroy(r);
  qk_field_destroy(z);
  qk_cycle_destroy(cycle);
  return status;
}

static qk_status_t life(qk_rig_t *rig, const void *params) {
  const qk_action_params_t wilson = params_wilson(0.1, 1, -1);
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_mg_t *mg = NULL;
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_operator_create(&rig->dev, work, rig->links, &wilson, &op, &err);
  if (!status) status = qk_mg_create(op, work, params, NULL, NULL, &mg, &err);
  if (!status) status = apply(mg);
  qk_mg_destroy(mg);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return status;
}

static void fail_everywhere(const char *point, qk_status_t expected) {
  static const qk_mg_params_t params = {.nlevel = 2,
                                        .deflate = 2,
                                        .level = {{.block = {2, 2, 2, 2},
                                                   .nvec = 4,
                                                   .ntest = 8,
                                                   .setup_iterations = 8,
                                                   .setup_passes = 1,
                                                   .post = 2},
                                                  {.iterations = 2}}};
  rig_fail_everywhere("builtin:weak:4x4x4x4:1", point, expected, 32, life, &params);
}

Test(mg_faults, device_memory) {
  fail_everywhere("device-alloc", QK_DEVICE_MEMORY);
}
Test(mg_faults, host_memory) {
  fail_everywhere("alloc", QK_NO_MEMORY);
}
Test(mg_faults, device_calls) {
  fail_everywhere("device-call", QK_DEVICE_ERROR);
}
