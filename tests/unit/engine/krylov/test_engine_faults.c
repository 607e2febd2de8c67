/*
 * Every allocation and every device call of setting up an operator, solving, and cancelling fails
 * once: each failure comes back as its status and nothing stays behind.
 */
#include "daemon/engine/krylov/multishift/multishift.h"
#include "tests/support/faults.h"
#include "tests/support/values.h"

/* All that an engine does with one operator and one solver, stopping at the first failure. */
static qk_status_t life(qk_rig_t *rig, const void *method) {
  const double tol[2] = {0.05, 0.02};
  const int64_t limit[2] = {50, 50};
  const int slot[2] = {0, 1};
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_solver_t *solver = NULL;
  qk_action_params_t wilson = params_wilson(0.5, 1, -1);
  wilson.link_reals[QK_HALF] = 8;
  wilson.want[QK_SINGLE] = false;
  qk_solver_params_t params = {
      .method = method, .inner = QK_HALF, .nslot = 2, .check = 2, .gcr_keep = 2};
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_operator_create(&rig->dev, work, rig->links, &wilson, &op, &err);
  if (!status) status = qk_solver_create(op, work, &params, &solver, &err);
  for (int i = 0; !status && i < 2; i++) {
    status = qk_solver_set_group(solver, i, 1);
    if (status) break;
    qk_source_args_t s = {.lat = rig->geom.lat, .field = qk_solver_rhs(solver, i)->v};
    s.colour = i;
    status = rig->dev.ops->source(rig->dev.ctx, &s);
  }
  if (!status) status = qk_solver_fill_many(solver, slot, 2, tol, limit);
  if (!status) status = qk_solver_step(solver);
  if (!status) qk_solver_cancel(solver, 0);
  if (!status) status = qk_solver_step(solver); /* says so if cancel failed */
  while (!status && qk_solver_running(solver)) status = qk_solver_step(solver);
  if (!status && qk_solver_slot(solver, 1)->status != QK_OK) status = QK_INTERNAL;
  qk_solver_destroy(solver);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return status;
}

static void fail_everywhere(const char *point, const char *method, qk_status_t expected) {
  rig_fail_everywhere("builtin:weak:2x2x2x4:1", point, expected, 0, life, method);
}

Test(engine_faults, device_memory) {
  fail_everywhere("device-alloc", "gcr", QK_DEVICE_MEMORY);
}
Test(engine_faults, host_memory) {
  fail_everywhere("alloc", "cg", QK_NO_MEMORY);
}

Test(engine_faults, memory_of_block_cg) {
  fail_everywhere("device-alloc", "block-cg", QK_DEVICE_MEMORY);
  fail_everywhere("alloc", "block-cg", QK_NO_MEMORY);
}

Test(engine_faults, device_calls_of_block_cg) {
  fail_everywhere("device-call", "block-cg", QK_DEVICE_ERROR);
}
Test(engine_faults, device_calls_of_bicgstab) {
  fail_everywhere("device-call", "bicgstab", QK_DEVICE_ERROR);
}
Test(engine_faults, device_calls_of_gcr) {
  fail_everywhere("device-call", "gcr", QK_DEVICE_ERROR);
}

static qk_status_t make_fields(const qk_operator_t *op, qk_field_t **field, int n) {
  for (int i = 0; i < n; i++) {
    const qk_status_t status = qk_field_create(op->dev, QK_DOUBLE, 1, op->system, &field[i]);
    if (status) return status;
  }
  return QK_OK;
}

static qk_status_t life_of_multishift(qk_rig_t *rig, const void *unused) {
  (void)unused;
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_multishift_t *solver = NULL;
  qk_field_t *f[3] = {NULL};
  qk_shifted_t result[2];
  const qk_action_params_t wilson = params_wilson(0.5, 1, -1);
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_operator_create(&rig->dev, work, rig->links, &wilson, &op, &err);
  if (status) goto end;
  const qk_multishift_params_t params = {.system = qk_normal_system(op),
                                         .inner = QK_SINGLE,
                                         .nrhs = 1,
                                         .nshift = 2,
                                         .shift = {0, 0.5}};
  status = qk_multishift_create(&params, &solver, &err);
  if (!status) status = make_fields(op, f, 3);
  if (!status) status = qk_multishift_solve(solver, f[0], f + 1, 0.01, 4, result, NULL);
  for (int i = 0; i < 3; i++) qk_field_destroy(f[i]);
  qk_multishift_destroy(solver);
  op->ops->destroy(op);
end:
  qk_work_destroy(work);
  return status;
}

Test(engine_faults, of_multishift) {
  static const char gauge[] = "builtin:weak:2x2x2x4:1";
  rig_fail_everywhere(gauge, "device-call", QK_DEVICE_ERROR, 0, life_of_multishift, NULL);
  rig_fail_everywhere(gauge, "device-alloc", QK_DEVICE_MEMORY, 0, life_of_multishift, NULL);
}

/* Exponential clover with an open boundary: what an operator makes for these alone. */
static qk_status_t life_of_an_exponential(qk_rig_t *rig, const void *text) {
  qk_err_t err = {0};
  char why[QK_WHY];
  qk_operator_t *op = NULL;
  qk_action_params_t p = params_wilson(0.5, 1, -1);
  if (!qk_values_parse(&p.values, text, why)) return QK_INTERNAL;
  const qk_status_t status = qk_operator_create(&rig->dev, rig->work, rig->links, &p, &op, &err);
  if (op) op->ops->destroy(op);
  return status;
}

Test(engine_faults, of_an_exponential_with_an_open_boundary) {
  static const char text[] = "exp-clover;mass=0.5;csw=1;open=0.9",
                    gauge[] = "builtin:weak:2x2x2x4:1";
  rig_fail_everywhere(gauge, "device-call", QK_DEVICE_ERROR, 0, life_of_an_exponential, text);
}
