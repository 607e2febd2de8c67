/* Links that are brought to a gauge when they are read: every allocation and device call fails
 * once, comes back as its status, and nothing stays behind. */
#include "daemon/base/mem.h"
#include "daemon/engine/setup/read_links.h"
#include "tests/support/faults.h"

static const char GAUGE[] = "builtin:weak:4x4x4x4:1";

static void nobody(void *arg, const char *phase, int64_t done, int64_t total) {
  (void)arg, (void)phase, (void)done, (void)total;
}

static qk_status_t read_fixed(qk_rig_t *rig, double theta, qk_gauge_check_t *check, qk_err_t *err) {
  static qk_load_t load;
  qk_clocks_t clocks = {0};
  qk_gauge_info_t info;
  load = (qk_load_t){.fix = {.landau = true, .theta = theta}};
  strcpy(load.gauge, GAUGE);
  char why[QK_WHY];
  cr_assert(qk_values_parse(&load.values, "wilson;mass=0.1", why), "%s", why);
  qk_status_t status = qk_gauge_probe(GAUGE, NULL, &info, err);
  double *links = status ? NULL : qk_malloc((size_t)rig->geom.local_volume * 72 * sizeof(double));
  if (!status && !links) status = QK_NO_MEMORY;
  if (!status)
    status = qk_read_links(&load, &rig->dev, &info, &clocks, nobody, NULL, links, check, err);
  qk_free(links);
  return status;
}

/* A failure that left something behind would be met by the next configuration, in place. */
static qk_status_t life(qk_rig_t *rig, const void *arg) {
  (void)arg;
  qk_err_t err = {0};
  qk_gauge_check_t check;
  qk_status_t status = QK_OK;
  for (int i = 0; i < 6 && status == QK_OK; i++) status = read_fixed(rig, 1e-3, &check, &err);
  return status;
}

Test(read_links, survive_every_failure) {
  rig_fail_everywhere(GAUGE, "device-alloc", QK_DEVICE_MEMORY, 0, life, NULL);
  rig_fail_everywhere(GAUGE, "alloc", QK_NO_MEMORY, 0, life, NULL);
  rig_fail_everywhere(GAUGE, "device-call", QK_DEVICE_ERROR, 0, life, NULL);
}

Test(read_links, a_theta_that_cannot_be_reached_is_told) {
  qk_rig_t rig;
  qk_err_t err = {0};
  qk_gauge_check_t check;
  rig_open(&rig, NULL, GAUGE, NULL);
  cr_expect_eq(read_fixed(&rig, 0, &check, &err), QK_NOT_CONVERGED);
  cr_expect(strstr(err.text, "in Landau gauge after 20000 iterations"), "%s", err.text);
  rig_close(&rig);
}
