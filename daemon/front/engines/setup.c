#include "daemon/front/engines/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/utf8.h"

qk_status_t qk_setup_create(struct qk_service *service, const char *name,
                            const qk_settings_t *settings, double now, qk_setup_t **out,
                            qk_err_t *err) {
  qk_setup_t *setup = qk_calloc(1, sizeof *setup);
  if (!setup) return qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  setup->service = service;
  snprintf(setup->name, sizeof setup->name, "%s", name);
  snprintf(setup->site_name, sizeof setup->site_name, "%s", name);
  setup->index = -1;
  setup->used_at = now;
  setup->holds = 1;
  setup->shape = qk_shape_usual();
  setup->start = (qk_engine_start_t){setup->evolve_from, setup->evolve_path, setup->memory,
                                     setup->term_memory, setup->vectors};
  setup->settings = *settings;
  qk_operator_list(&settings->op, QK_TEXT_GIVEN, &setup->shown);
  qk_link_init(&setup->quarantined);
  qk_link_init(&setup->waiting);
  qk_link_init(&setup->eigen);
  qk_link_init(&setup->eigen_away);
  *out = setup;
  return QK_OK;
}

void qk_setup_site_name(const char *name, const char *owner, char site[QK_SETUP_NAME_MAX + 12]) {
  if (*owner)
    snprintf(site, QK_SETUP_NAME_MAX + 12, "%s@%08x", name,
             (unsigned)qk_checksum(owner, strlen(owner)));
  else
    snprintf(site, QK_SETUP_NAME_MAX + 12, "%s", name);
}

void qk_setup_set_owner(qk_setup_t *setup, const char *owner) {
  if (!owner || !*owner) return;
  snprintf(setup->owner, sizeof setup->owner, "%s", owner);
  snprintf(setup->owner_shown, sizeof setup->owner_shown, "%s", owner);
  qk_utf8_clean(setup->owner_shown);
  qk_setup_site_name(setup->name, owner, setup->site_name);
}

qk_setup_t *qk_setup_hold(qk_setup_t *setup) {
  if (setup) setup->holds++;
  return setup;
}

void qk_setup_release(qk_setup_t *setup) {
  if (!setup || --setup->holds > 0) return;
  qk_supervisor_destroy(setup->supervisor);
  qk_setup_release(setup->source);
  free(setup->load);
  qk_free(setup);
}

bool qk_setup_serves(const qk_setup_t *setup) {
  return setup->failed == QK_OK && !setup->dropping && !setup->ending;
}

const char *qk_setup_solver(const qk_setup_t *setup) {
  const qk_engine_info_t *e = qk_supervisor_info(setup->supervisor);
  return e->loaded ? e->solver : qk_settings_solver(&setup->settings);
}

int qk_setup_inflight(const qk_setup_t *setup) {
  int n = 0;
  for (int k = 0; k < QK_INFLIGHT_MAX; k++) n += setup->inflight[k].rhs != NULL;
  return n;
}

int qk_setup_busy(const qk_setup_t *setup) {
  const int slots = (int)qk_supervisor_info(setup->supervisor)->slots,
            inflight = qk_setup_inflight(setup);
  return inflight < slots ? inflight : slots;
}

int qk_setup_running(const qk_setup_t *setup) {
  return qk_setup_inflight(setup) + (setup->inflight[QK_CONTRACT_ENTRY].rhs != NULL) +
         (setup->inflight[QK_EIGEN_ENTRY].rhs != NULL);
}
