#include "daemon/front/engines/setup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/mem.h"
#include "daemon/base/utf8.h"

qk_status_t qk_setup_create(struct qk_service *service, const char *name,
                            const qk_settings_t *settings, double now, qk_setup_t **out,
                            qk_err_t *err) {
  const int replicas = settings->replicas > 1 ? (int)settings->replicas : 1;
  qk_setup_t *setup = qk_calloc(1, sizeof *setup);
  if (setup) setup->replica = qk_calloc((size_t)replicas, sizeof *setup->replica);
  if (!setup || !setup->replica) {
    qk_free(setup);
    return qk_fail(err, QK_NO_MEMORY, "no memory for a setup");
  }
  setup->replicas = replicas;
  setup->refresh.writer = -1;
  for (int r = 0; r < replicas; r++) {
    setup->replica[r].setup = setup;
    setup->replica[r].number = r;
  }
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
  if (settings->fix.landau || settings->fix.coulomb) qk_fix_text(&settings->fix, setup->fix_gauge);
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
  QK_EACH_REPLICA(r, setup) qk_supervisor_destroy(r->supervisor);
  qk_free(setup->replica);
  qk_setup_release(setup->source);
  free(setup->load);
  qk_free(setup);
}

bool qk_setup_serves(const qk_setup_t *setup) {
  return setup->failed == QK_OK && !setup->dropping && !setup->ending;
}

const char *qk_setup_solver(const qk_setup_t *setup) {
  const qk_engine_info_t *e = qk_setup_info(setup);
  return e->loaded ? e->solver : qk_settings_solver(&setup->settings);
}

/* ---- all replicas ---------------------------------------------------------------------------- */

static const qk_replica_t *first_in(const qk_setup_t *setup, qk_supervisor_state_t state) {
  QK_EACH_REPLICA(r, setup) if (qk_supervisor_state(r->supervisor) == state) return r;
  return NULL;
}

const qk_replica_t *qk_setup_lead(const qk_setup_t *setup) {
  if (setup->replicas == 1) return setup->replica;
  const qk_replica_t *lead = first_in(setup, QK_SUPERVISOR_READY);
  if (!lead) lead = first_in(setup, QK_SUPERVISOR_LOADING);
  return lead ? lead : setup->replica;
}

const qk_engine_info_t *qk_setup_info(const qk_setup_t *setup) {
  return qk_supervisor_info(qk_setup_lead(setup)->supervisor);
}

qk_supervisor_state_t qk_setup_state(const qk_setup_t *setup) {
  return qk_supervisor_state(qk_setup_lead(setup)->supervisor);
}

int qk_setup_slots(const qk_setup_t *setup) {
  const bool ready = qk_setup_state(setup) == QK_SUPERVISOR_READY;
  int n = 0;
  QK_EACH_REPLICA(r, setup)
  if (!ready || qk_replica_is_ready(r)) n += (int)qk_supervisor_info(r->supervisor)->slots;
  return n;
}

int qk_setup_busy(const qk_setup_t *setup) {
  int n = 0;
  QK_EACH_REPLICA(r, setup) n += qk_replica_busy(r);
  return n;
}

int qk_setup_running(const qk_setup_t *setup) {
  int n = 0;
  QK_EACH_REPLICA(r, setup) n += qk_replica_running(r);
  return n;
}

int qk_setup_restarts(const qk_setup_t *setup) {
  int n = 0;
  QK_EACH_REPLICA(r, setup) n += qk_supervisor_restarts(r->supervisor);
  return n;
}

qk_occupancy_t qk_setup_occupancy(const qk_setup_t *setup) {
  qk_occupancy_t sum = {0};
  QK_EACH_REPLICA(r, setup) {
    sum.saturated += r->occupancy.saturated / setup->replicas;
    sum.solving += r->occupancy.solving;
    sum.moving += r->occupancy.moving;
    sum.idle += r->occupancy.idle;
  }
  return sum;
}

bool qk_setup_stopped(const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup)
  if (qk_supervisor_state(r->supervisor) != QK_SUPERVISOR_STOPPED) return false;
  return true;
}

bool qk_setup_saving(const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup) if (qk_supervisor_saving(r->supervisor)) return true;
  return false;
}

void qk_setup_stop(qk_setup_t *setup, double now) {
  QK_EACH_REPLICA(r, setup) qk_supervisor_stop(r->supervisor, now);
}
