/* Every allocation and every device call of making an overlap operator and of applying it fails
 * once: each failure comes back as its status and nothing stays behind. */
#include "daemon/engine/overlap/fractions.h"
#include "tests/support/faults.h"
#include "tests/support/values.h"

/* D^+ of noise, or the partial fractions. */
static qk_status_t apply(qk_rig_t *rig, qk_work_t *work, qk_operator_t *op,
                         const qk_fractions_t *f) {
  static const double tol[] = {1e-3, 1e-2};
  qk_field_t *in = NULL, *out = NULL;
  qk_status_t status = qk_work_reserve(work, QK_SINGLE, 2, QK_FULL, &in);
  if (!status) status = qk_work_reserve(work, QK_SINGLE, 2, QK_FULL, &out);
  qk_noise_args_t noise = {.lat = rig->geom.lat, .rhs = -1, .seed = 3};
  if (!status) noise.field = in->v;
  if (!status) status = rig->dev.ops->noise(rig->dev.ctx, &noise);
  if (!status && !f) status = op->ops->apply(op, out, in, true, NULL, 0);
  if (!status && f) qk_fractions_apply(f, tol, out, in);
  if (!status) status = qk_dev_status(&rig->dev);
  qk_work_release(work, out);
  qk_work_release(work, in);
  return status;
}

static qk_status_t life(qk_rig_t *rig, const void *text) {
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_action_params_t p = params_wilson(0, 0, -1);
  p.values = values_of(text);
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_operator_create(&rig->dev, work, rig->links, &p, &op, &err);
  if (!status) status = apply(rig, work, op, NULL);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return status;
}

/* Of partial fractions alone, without the eigenvectors that each operator begins with. */
static qk_status_t fractions_life(qk_rig_t *rig, const void *arg) {
  (void)arg;
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_operator_t *op = NULL;
  qk_fractions_t *f = NULL;
  qk_zolotarev_t z;
  const qk_action_params_t p = params_wilson(-1.3, 0, -1);
  qk_status_t status = qk_zolotarev_init(0.5, 7, 1e-2, &z);
  if (!status) status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_operator_create(&rig->dev, work, rig->links, &p, &op, &err);
  if (!status) status = qk_fractions_create(op, &z, &f, &err);
  if (!status) status = apply(rig, work, op, f);
  qk_fractions_destroy(f);
  if (op) op->ops->destroy(op);
  qk_work_destroy(work);
  return status;
}

static const char gauge[] = "builtin:weak:2x2x2x4:1";
static const char series[] = "overlap;mass=0.2;M=1.3;modes=2;sign-tol=0.01";
static const char fractions[] = "overlap;mass=0.2;M=1.3;modes=0;sign-tol=0.01;sign=zolotarev";

/* What an operator with partial fractions does when one fails is looked at by samples. */
static void fail_everywhere(const char *point, qk_status_t expected, int sample) {
  rig_fail_everywhere(gauge, point, expected, sample, life, series);
  rig_fail_everywhere(gauge, point, expected, sample, fractions_life, NULL);
  rig_fail_everywhere(gauge, point, expected, 10, life, fractions);
}

Test(overlap_faults, device_memory, .timeout = 300) {
  fail_everywhere("device-alloc", QK_DEVICE_MEMORY, 0);
}

Test(overlap_faults, host_memory, .timeout = 300) {
  fail_everywhere("alloc", QK_NO_MEMORY, 0);
}

Test(overlap_faults, device_calls, .timeout = 300) {
  fail_everywhere("device-call", QK_DEVICE_ERROR, 8);
}
