/*
 * refresh.h: when multigrid is refreshed, on rank 0. An engine of its own decides by its solves
 * (mg_health.h). Replicas of a setup tell the front what they would do, and the front tells all of
 * them, so that they stay equal (REFRESH of engine.proto).
 */
#ifndef QK_ENGINE_REFRESH_H
#define QK_ENGINE_REFRESH_H

#include "daemon/engine/serve/inflight.h"
#include "daemon/engine/setup/loaded.h"

typedef struct qk_refresher {
  qk_mg_order_t wanted; /* once nothing is in flight; refresh NONE: nothing */
  double since;         /* fills wait for that; ms */
} qk_refresher_t;

static inline bool qk_refresh_is_wanted(const qk_refresher_t *r) {
  return r->wanted.refresh != QK_MG_REFRESH_NONE;
}

/* REFRESH of the front. */
void qk_refresh_receive(qk_refresher_t *r, qk_loaded_t *setup,
                        const Quark__Engine__Refresh *message);
/* A solve has ended. True: there is news for the front. */
bool qk_refresh_watch(qk_refresher_t *r, qk_loaded_t *setup, const qk_result_t *result);
/* Whether fills wait no longer: *order is due now (running: slots run), or, as they have run for too
 * long, is dropped (refresh NONE). Orders of the front are never dropped. */
bool qk_refresh_settle(qk_refresher_t *r, qk_loaded_t *setup, bool running, qk_mg_order_t *order);

#endif
