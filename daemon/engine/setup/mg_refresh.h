/*
 * mg_refresh.h: when multigrid is refreshed, on rank 0. An engine of its own decides by its solves
 * (mg_health.h). Replicas of a setup tell the front what they would do, and the front tells all of
 * them, so that they stay equal (REFRESH of engine.proto).
 */
#ifndef QK_ENGINE_MG_REFRESH_H
#define QK_ENGINE_MG_REFRESH_H

#include "daemon/engine/setup/loaded.h"
#include "proto/engine.pb-c.h"

typedef struct qk_refresher {
  qk_mg_order_t wanted; /* once nothing is in flight; refresh NONE: nothing */
  double since;         /* fills wait for that; ms */
} qk_refresher_t;

static inline bool qk_refresh_is_wanted(const qk_refresher_t *r) {
  return r->wanted.refresh != QK_MG_REFRESH_NONE;
}

/* How a solve has ended. tol 0: other residuals were asked for, too. */
typedef struct qk_refresh_solve {
  qk_status_t status;
  int64_t iterations;
  double tol, residual;
  double now; /* ms */
} qk_refresh_solve_t;

/* REFRESH of the front. now: ms. */
void qk_refresh_receive(qk_refresher_t *r, qk_loaded_t *setup,
                        const Quark__Engine__Refresh *message, double now);
/* A solve has ended. True: there is news for the front. */
bool qk_refresh_watch(qk_refresher_t *r, qk_loaded_t *setup, const qk_refresh_solve_t *solve);
/* Whether fills wait no longer: *order is due now, or, as slots have run for too long, is dropped
 * (refresh NONE). Orders of the front are never dropped. running: slots run. */
bool qk_refresh_settle(qk_refresher_t *r, qk_loaded_t *setup, bool running, double now,
                       qk_mg_order_t *order);

#endif
