/* What settings limit: when a session begins, and again on SIGHUP. */
#include "daemon/base/log.h"
#include "daemon/front/server.h"

void qk_limits_memory(qk_server_t *server) {
  const qk_settings_t *s = server->settings;
  server->budget.limit =
      s->max_memory ? s->max_memory : (qk_shm_free_bytes(&server->space) + server->budget.used) / 2;
}

static int64_t keep_memory(const qk_server_t *server) {
  const int64_t given = server->settings->keep_memory;
  return given ? given : server->budget.limit / 4 * 3;
}

static void limit_user(qk_server_t *server, qk_sched_user_t *user) {
  qk_budget_t *memory = qk_sched_user_memory(user);
  qk_sched_user_kept(user)->limit = keep_memory(server);
  memory->limit = server->settings->user_memory ? server->settings->user_memory : INT64_MAX;
  memory->above = &server->budget;
}

void qk_limits_session(qk_server_t *server, qk_session_t *session) {
  session->lease = server->settings->lease;
  limit_user(server, session->user);
}

static void tell(void *arg, const qk_config_row_t *row, const char *old, const char *now) {
  int *changed = arg;
  if (row->type & QK_CONFIG_LIVE)
    qk_info("settings", "%s: %s instead of %s", row->key, now, old);
  else
    qk_warn("settings", "%s: \"%s\" instead of \"%s\" needs a restart", row->key, now, old);
  ++*changed;
}

void qk_limits_reread(qk_server_t *server) {
  qk_settings_t *s = server->settings;
  const int64_t max_memory = s->max_memory;
  int changed = 0;
  qk_err_t err = {0};
  if (qk_settings_reread(s, tell, &changed, &err) != QK_OK) {
    qk_error("settings", "nothing is changed: %s", err.text);
    return;
  }
  if (changed == 0) qk_info("settings", "read again: nothing has changed");
  qk_log_set_level((qk_level_t)s->log_level);
  if (s->max_memory != max_memory) qk_limits_memory(server);
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m]) server->mount[m]->settings.engine_timeout = s->engine_timeout;
  for (int i = 0; i < server->sessions.count; i++) limit_user(server, server->sessions.at[i]->user);
}
