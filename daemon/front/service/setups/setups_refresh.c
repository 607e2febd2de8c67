/* setups_refresh.c: refreshes of multigrid in a setup with several replicas. Their engines only
 * say that they wish one; the front orders it of all, by number, each does it as soon as its slots
 * are empty, and one of them writes the checkpoint. So all have the same hierarchy and give the
 * same bits, an engine that was started again as well: where its checkpoint is older than the
 * others it gets the orders that it lacks, and where these cannot be told any more all of them set
 * multigrid up again, from a seed that is the order's. */
#include "daemon/base/log.h"
#include "daemon/front/service/setups/setups_impl.h"

enum { REFINE = 1, REBUILD = 2 }; /* kinds of REFRESH */

static bool has_multigrid(const qk_replica_t *r) {
  return qk_replica_is_ready(r) && qk_supervisor_info(r->supervisor)->multigrid;
}

bool qk_setups_refreshes(const qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup)
  if (has_multigrid(r) && r->refreshed < setup->refresh.number) return true;
  return false;
}

static void order(qk_setup_t *setup, uint32_t kind, const char *why) {
  setup->refresh.number++;
  setup->refresh.kind = kind;
  setup->refresh.written = false;
  qk_info("setups", "%s: multigrid of all replicas is %s: %s", setup->site_name,
          kind == REFINE ? "refined" : "set up again", why);
}

static void send_order(qk_replica_t *r) {
  qk_refresh_state_t *of = &r->setup->refresh;
  size_t bytes;
  uint8_t *message = qk_engine_encode_refresh(of->kind, of->number, !of->written, &bytes);
  if (!qk_supervisor_send(r->supervisor, message, bytes)) return;
  of->written = true;
  r->ordered = of->number;
}

void qk_setups_tick_refresh(qk_setup_t *setup) {
  qk_refresh_state_t *of = &setup->refresh;
  if (!qk_setups_refreshes(setup)) return;
  QK_EACH_REPLICA(r, setup) {
    if (!has_multigrid(r) || r->refreshed == of->number || r->ordered == of->number) continue;
    if (of->kind != REBUILD && (of->kind != REFINE || r->refreshed + 1 != of->number)) {
      order(setup, REBUILD, "one of them cannot be made as the others are");
      return;
    }
    send_order(r);
  }
}

/* What is in the checkpoint. */
static void note_checkpoint(const qk_replica_t *r) {
  const Quark__MultigridReport *mg = qk_supervisor_info(r->supervisor)->multigrid;
  qk_refresh_state_t *of = &r->setup->refresh;
  if (mg->checkpoint_written && !mg->checkpoint_writing && r->refreshed > of->saved)
    of->saved = r->refreshed;
}

void qk_setups_refresh_ready(qk_replica_t *r) {
  const qk_engine_info_t *e = qk_supervisor_info(r->supervisor);
  qk_refresh_state_t *of = &r->setup->refresh;
  r->ordered = 0;
  r->refreshed = e->refresh;
  if (r->setup->replicas == 1 || !e->multigrid) return;
  if (e->refresh == 0 && e->multigrid->restored) r->refreshed = of->saved;
  if (r->refreshed > of->number) of->number = r->refreshed; /* as the front before has ordered */
  if (e->refresh > 0) note_checkpoint(r);
}

void qk_setups_refresh_news(qk_replica_t *r, const Quark__Engine__MultigridNews *news) {
  qk_setup_t *setup = r->setup;
  if (setup->replicas == 1) return;
  if (news->refresh == r->ordered && r->ordered > r->refreshed) r->refreshed = r->ordered;
  if (news->refresh > 0) note_checkpoint(r);
  if ((news->wish == REFINE || news->wish == REBUILD) && !qk_setups_refreshes(setup))
    order(setup, news->wish, "solves of one have become slow");
}
