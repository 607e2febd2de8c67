#include "daemon/engine/setup/mg_refresh.h"

#include "daemon/base/log.h"

enum { PATIENCE_MS = 30000 };

static const char *word(qk_mg_refresh_t refresh) {
  return refresh == QK_MG_REFINE ? "refined" : refresh == QK_MG_RELOAD ? "read" : "set up again";
}

void qk_refresh_receive(qk_refresher_t *r, qk_loaded_t *setup,
                        const Quark__Engine__Refresh *message, double now) {
  const qk_mg_refresh_t refresh = message->kind == QK_MG_REFINE || message->kind == QK_MG_RELOAD
                                      ? message->kind
                                      : QK_MG_REBUILD;
  if (setup == NULL || setup->mg == NULL || message->number <= setup->mg->refresh) return;
  r->wanted = (qk_mg_order_t){refresh, message->number, message->write};
  r->since = now;
  setup->mg->wish = QK_MG_REFRESH_NONE;
  qk_info("worker", "multigrid is to be %s, as in all replicas", word(refresh));
}

bool qk_refresh_watch(qk_refresher_t *r, qk_loaded_t *setup, const qk_refresh_solve_t *solve) {
  qk_mg_service_t *mg = setup->mg;
  if (mg == NULL) return false;
  const qk_mg_refresh_t refresh =
      qk_mg_health_add(&mg->health, solve->status, solve->iterations, solve->tol, solve->residual);
  if (refresh == QK_MG_REFRESH_NONE || qk_refresh_is_wanted(r) || mg->wish == refresh) return false;
  qk_warn("worker", "%.3g outer iterations a digit, %.3g when multigrid was new: to be %s",
          mg->health.lately, mg->health.first, word(refresh));
  if (setup->replicas > 1) {
    mg->wish = refresh;
    return true;
  }
  r->wanted = (qk_mg_order_t){.refresh = refresh};
  r->since = solve->now;
  return false;
}

bool qk_refresh_settle(qk_refresher_t *r, qk_loaded_t *setup, bool running, double now,
                       qk_mg_order_t *order) {
  *order = (qk_mg_order_t){.refresh = QK_MG_REFRESH_NONE};
  if (!qk_refresh_is_wanted(r)) return false;
  if (!running) {
    *order = r->wanted;
  } else if (r->wanted.number == 0 && now - r->since > PATIENCE_MS) {
    qk_warn("worker", "multigrid is not refreshed now: slots have run for %d s since it was due",
            PATIENCE_MS / 1000);
    qk_mg_health_refreshed(&setup->mg->health, r->wanted.refresh);
  } else {
    return false;
  }
  r->wanted.refresh = QK_MG_REFRESH_NONE;
  return true;
}
