/* Every allocation and device call of smearing fails once: each comes back as its
 * status, and nothing stays. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "daemon/base/fault.h"
#include "daemon/base/mem.h"
#include "tests/support/smear_kit.h"

/* Links smeared, and a block in two precisions smeared with them, stopping at the first failure.
 * Colour vectors are smeared in double alone. */
static qk_status_t life(qk_rig_t *rig, const qk_link_smear_t *smear) {
  qk_err_t err = {0};
  qk_work_t *work = NULL;
  qk_gaugefield_t *links = NULL;
  qk_gauss_t *gauss = NULL;
  qk_field_t *block[2] = {NULL};
  qk_status_t status = qk_work_create(&rig->dev, &work);
  if (!status) status = qk_gaugefield_create(&rig->dev, 1, &links);
  if (!status) status = qk_gaugefield_import(links, rig->links);
  if (!status) status = qk_link_smear_apply(links, smear, &err);
  if (!status) status = qk_gauss_create(&rig->dev, work, links, &gauss, &err);
  const int precisions = rig->geom.ncomp == QK_COLOUR_COMPONENTS ? 1 : 2;
  for (int i = 0; !status && i < precisions; i++) {
    status = qk_field_create(&rig->dev, i ? QK_SINGLE : QK_DOUBLE, 3, QK_FULL, &block[i]);
    if (!status) status = qk_gauss_apply(gauss, block[i], 0.3, 3);
  }
  if (!status) status = rig->dev.ops->queue_sync(rig->dev.ctx, 0);
  for (int i = 0; i < 2; i++) qk_field_destroy(block[i]);
  qk_gauss_destroy(gauss);
  qk_gaugefield_destroy(links);
  qk_work_destroy(work);
  return status;
}

static void fail_everywhere(const char *point, const char *spec, int ncomp, qk_status_t expected) {
  char faults[64];
  qk_status_t status = QK_INTERNAL;
  qk_link_smear_t smear;
  int n = 0;
  rig_must(qk_link_smear_parse(spec, &smear, NULL), spec, NULL);
  while (status && n < 1000) {
    qk_rig_t rig; /* a new one each time: a device that failed is lost */
    rig_open(&rig, NULL, "builtin:weak:2x2x2x4:1", NULL);
    rig.geom.ncomp = ncomp;
    int64_t host = qk_mem_bytes(), device = rig.dev.ops->allocated(rig.dev.ctx);
    snprintf(faults, sizeof faults, "%s:%d", point, ++n);
    cr_assert(qk_fault_set(faults) == 0);
    status = life(&rig, &smear);
    cr_assert(qk_fault_set(NULL) == 0);
    cr_assert(!status || status == expected, "%s: %s", faults, qk_status_name(status));
    cr_assert(qk_mem_bytes() == host && rig.dev.ops->allocated(rig.dev.ctx) == device,
              "%s, %s: %ld bytes of host, %ld of device memory stay", spec, faults,
              (long)(qk_mem_bytes() - host), (long)(rig.dev.ops->allocated(rig.dev.ctx) - device));
    rig_close(&rig);
  }
  cr_expect(!status && n > 8, "%s: %d places, then %s", point, n, qk_status_name(status));
}

Test(smear_faults, device_memory) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fail_everywhere("device-alloc", "hyp:0.75,0.6,0.3,1", 12, QK_DEVICE_MEMORY);
  fail_everywhere("device-alloc", "hyp:0.75,0.6,0.3,1", QK_COLOUR_COMPONENTS, QK_DEVICE_MEMORY);
}
Test(smear_faults, host_memory) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fail_everywhere("alloc", "hyp:0.75,0.6,0.3,1", 12, QK_NO_MEMORY);
  fail_everywhere("alloc", "ape:0.6,2", QK_COLOUR_COMPONENTS, QK_NO_MEMORY);
}
Test(smear_faults, device_calls) {
  if (!rig_backend_present()) cr_skip_test("no device");
  fail_everywhere("device-call", "ape:0.6,2", 12, QK_DEVICE_ERROR);
  fail_everywhere("device-call", "hyp:0.75,0.6,0.3,1", 12, QK_DEVICE_ERROR);
  fail_everywhere("device-call", "ape:0.6,2", QK_COLOUR_COMPONENTS, QK_DEVICE_ERROR);
}
