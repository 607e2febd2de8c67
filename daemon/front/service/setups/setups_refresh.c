/* setups_refresh.c: refreshes of multigrid in a setup with several replicas. Their engines only
 * say that they wish one. The front tells one to do it, as soon as its slots are empty, and to
 * write the checkpoint, and then the others to read that. So all have the same hierarchy and give
 * the same bits, as does an engine that is started again. Where there is no checkpoint all do the
 * same from what they have, and one that was started again sets all of them up again, from a seed
 * that is the order's. */
#include "daemon/base/log.h"
#include "daemon/front/service/setups/setups_impl.h"

enum { REFINE = 1, REBUILD = 2, RELOAD = 3 }; /* kinds of REFRESH */

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
  setup->refresh.writer = -1;
  qk_info("setups", "%s: multigrid of all replicas is %s: %s", setup->site_name,
          kind == REFINE ? "refined" : "set up again", why);
}

static void send_order(qk_replica_t *r, uint32_t kind, bool write) {
  qk_refresh_state_t *of = &r->setup->refresh;
  size_t bytes;
  uint8_t *message = qk_engine_encode_refresh(kind, of->number, write, &bytes);
  if (!qk_supervisor_send(r->supervisor, message, bytes)) return;
  r->ordered = of->number;
  if (write) of->writer = r->number;
}

static bool can_do(const qk_replica_t *r) {
  const qk_refresh_state_t *of = &r->setup->refresh;
  return of->kind == REBUILD || (of->kind == REFINE && r->refreshed + 1 == of->number);
}

/* The one that does it first; it may have been lost since. */
static const qk_replica_t *writer_of(const qk_setup_t *setup) {
  const qk_replica_t *r = setup->refresh.writer < 0 ? NULL : &setup->replica[setup->refresh.writer];
  return r && has_multigrid(r) && r->ordered == setup->refresh.number ? r : NULL;
}

static void choose_writer(qk_setup_t *setup) {
  QK_EACH_REPLICA(r, setup) {
    if (!has_multigrid(r) || !can_do(r)) continue;
    send_order(r, setup->refresh.kind, true);
    return;
  }
  order(setup, REBUILD, "none of them can be made as the others are");
}

/* True: it has been told, or need not be. */
static bool tell(qk_replica_t *r) {
  const qk_refresh_state_t *of = &r->setup->refresh;
  if (!has_multigrid(r) || r->refreshed == of->number || r->ordered == of->number) return true;
  if (of->saved != of->number && !can_do(r)) return false;
  send_order(r, of->saved == of->number ? RELOAD : of->kind, false);
  return true;
}

void qk_setups_tick_refresh(qk_setup_t *setup) {
  const qk_refresh_state_t *of = &setup->refresh;
  if (!qk_setups_refreshes(setup)) return;
  const qk_replica_t *writer = writer_of(setup);
  if (of->saved != of->number && !writer) {
    bool done = false;
    QK_EACH_REPLICA(r, setup) done |= has_multigrid(r) && r->refreshed == of->number;
    if (!done) choose_writer(setup);
    if (!done) return;
  }
  if (writer && writer->refreshed < of->number) return;
  QK_EACH_REPLICA(r, setup) {
    if (tell(r)) continue;
    order(setup, REBUILD, "one of them cannot be made as the others are");
    return;
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
