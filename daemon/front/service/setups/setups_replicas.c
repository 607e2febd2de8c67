/* setups_replicas.c: when the engines of a setup start. Where the first of them writes files that
 * the others can read, its multigrid or the vectors that solves begin with, they wait for it; if it
 * is lost the next one does that, and if it cannot write they make theirs from the same seed. */
#include <string.h>

#include "daemon/front/service/setups/setups_impl.h"

/* Whether engines of the setup read what another one has written. */
static bool shares_files(const qk_setup_t *setup) {
  const char *solver = qk_settings_solver(&setup->settings);
  if (setup->vectors[0]) return true;
  return qk_supervisor_checkpoint(setup->replica->supervisor)[0] &&
         (strcmp(solver, "mg") == 0 || strcmp(solver, "auto") == 0);
}

/* Whether another replica is about to have such files: it loads for the first time since its last
 * loss, is to refresh what it has, or writes it. */
static bool is_making(const qk_replica_t *r) {
  switch (qk_supervisor_state(r->supervisor)) {
  case QK_SUPERVISOR_STARTING:
  case QK_SUPERVISOR_LOADING:
    return qk_supervisor_failures(r->supervisor) == 0;
  case QK_SUPERVISOR_READY:
    return qk_supervisor_saving(r->supervisor) || r->refreshed < r->setup->refresh.number;
  default:
    return false;
  }
}

static bool is_there(const qk_replica_t *r) {
  return qk_replica_is_ready(r) && !is_making(r);
}

/* Of a replica that has no engine. */
static bool has_to_wait(const qk_replica_t *replica) {
  bool made = false;
  QK_EACH_REPLICA(r, replica->setup) {
    if (r == replica || !r->begun) continue;
    if (is_there(r)) return false;
    made |= is_making(r);
  }
  if (!made || !shares_files(replica->setup)) return false;
  return true;
}

static bool others_serve(const qk_replica_t *replica) {
  QK_EACH_REPLICA(r, replica->setup) if (r != replica && qk_replica_is_ready(r)) return true;
  return false;
}

static void tick(qk_replica_t *replica, double now) {
  const bool down = qk_supervisor_state(replica->supervisor) == QK_SUPERVISOR_DOWN;
  const bool waits = down && replica->setup->replicas > 1 && has_to_wait(replica);
  if (!waits) replica->begun = true;
  replica->waits = waits;
  if (replica->again_at > 0 && now >= replica->again_at) {
    replica->again_at = 0;
    qk_supervisor_load_again(replica->supervisor);
  }
  qk_supervisor_hold(replica->supervisor, waits, !others_serve(replica));
  qk_supervisor_tick(replica->supervisor, now);
}

void qk_setups_tick_replicas(qk_setup_t *setup, double now) {
  QK_EACH_REPLICA(r, setup) tick(r, now);
  qk_setups_tick_refresh(setup);
}
