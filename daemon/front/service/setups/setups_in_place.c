/* setups_in_place.c: setups that take the place of others, with their engines: no new process, no
 * new pinned memory. They are private, so they have one replica. */
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/front/service/eigen.h"
#include "daemon/front/service/fields.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/service/setups/setups_impl.h"

static bool has_ended(const qk_setup_t *setup) {
  return setup->open == 0 && qk_setup_running(setup) == 0;
}

bool qk_setups_is_free(const qk_setup_t *setup) {
  const qk_replica_t *only = setup->replica;
  return has_ended(setup) && !only->returning && qk_supervisor_is_free(only->supervisor);
}

/* ---- the promise ----------------------------------------------------------------------------- */

qk_status_t qk_setups_succeed(qk_setup_t *before, qk_setup_t *setup, qk_err_t *err) {
  /* between the two the later one counts (qk_setups_bring_together) */
  qk_status_t status = qk_setups_record(setup, err);
  if (status == QK_OK && !before->dropping) status = qk_setups_record_end(before, err);
  if (status != QK_OK) return status;
  qk_setups_forget_successor(before);
  before->dropping = true;
  before->successor = setup;
  return QK_OK;
}

void qk_setups_forget_successor(qk_setup_t *setup) {
  qk_setup_t *successor = setup->successor;
  if (!successor) return;
  setup->successor = NULL;
  qk_setups_drop_record(successor);
  qk_setups_deflate_forget(successor);
  qk_fields_let_go(successor);
  qk_setup_release(successor);
}

/* ---- taking place ---------------------------------------------------------------------------- */

/* The setup leaves the table for its successor. */
static qk_setup_t *change_places(qk_setup_t *setup) {
  qk_setup_t *successor = setup->successor;
  qk_eigen_forget(setup);
  qk_setups_deflate_forget(setup);
  setup->successor = NULL;
  successor->index = setup->index;
  setup->service->setup[setup->index] = successor;
  successor->used_at = qk_service_now(setup->service);
  setup->index = -1;
  return successor;
}

void qk_setups_try_to_succeed(qk_setup_t *setup) {
  const qk_service_t *service = setup->service;
  const bool stopped = qk_setup_stopped(setup);
  if (service->draining || service->stopping || !has_ended(setup)) return;
  if (!stopped && !qk_setups_is_free(setup)) return;
  if (qk_setups_evolve_waits(setup->successor)) return;
  qk_queue_expire_all(setup);
  qk_setup_t *successor = change_places(setup);
  qk_supervisor_t *supervisor = setup->replica->supervisor;
  setup->replica->supervisor = NULL;
  qk_info("setups", "%s takes the place of %s%s", successor->site_name, setup->site_name,
          stopped ? ", whose engine has left" : ", with its engine");
  if (stopped) {
    qk_supervisor_destroy(supervisor);
  } else {
    qk_supervisor_t *own = successor->replica->supervisor;
    successor->replica->supervisor = supervisor;
    successor->started = successor->replica->begun = true;
    qk_supervisor_hand_over(supervisor, own);
  }
  qk_fields_let_go(setup);
  qk_setup_release(setup);
}

/* ---- after a restart ------------------------------------------------------------------------- */

static bool has_engine(const qk_adopted_t *left, int n, int64_t id) {
  for (int i = 0; i < n; i++)
    if (left[i].setup == id) return true;
  return false;
}

/* The latest of `gone` that the setup was to succeed: nothing has been asked of it, and the other
 * one has open requests, or its engine is there. */
static qk_setup_t *find_predecessor(const qk_setup_t *setup, qk_setup_t *gone,
                                    const qk_adopted_t *left, int n) {
  qk_setup_t *latest = NULL;
  if (!setup->owner[0] || setup->dropping || setup->holds > 1 || has_engine(left, n, setup->id))
    return NULL;
  for (qk_setup_t *g = gone; g; g = g->next) {
    if (strcmp(g->owner, setup->owner) != 0 || strcmp(g->name, setup->name) != 0) continue;
    if (g->id < setup->id && (!latest || g->id > latest->id)) latest = g;
  }
  const bool wanted = latest && (latest->index >= 0 || has_engine(left, n, latest->id));
  return wanted && qk_fields_bind_again(latest) ? latest : NULL;
}

void qk_setups_bring_together(qk_service_t *service, qk_setup_t *gone) {
  qk_adopted_t left[QK_ADOPTED_MAX];
  const int n = qk_adopt_list(service->journal, left);
  for (int m = 0; m < QK_SETUPS_MAX; m++) {
    qk_setup_t *setup = service->setup[m];
    qk_setup_t *before = setup ? find_predecessor(setup, gone, left, n) : NULL;
    if (!before) continue;
    service->setup[m] = NULL;
    setup->index = -1;
    if (before->index < 0) {
      before->index = m;
      service->setup[m] = before;
    }
    before->successor = setup;
  }
}

void qk_setups_supersede(qk_setup_t *setup) {
  setup->service->setup[setup->index] = NULL;
  setup->index = -1;
  setup->dropping = true;
  qk_setups_drop_record(setup);
}
