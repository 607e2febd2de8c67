#include "daemon/front/service/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/log.h"

enum {
  SHM_SHARE = 2,
  ROOM_SHARE = 4
}; /* parts of what there is, one of which is ours by default */

static const double ROOM_SECONDS = 1; /* how long a look at the cgroup is good for */

static void look_at_room(qk_server_t *server) {
  const double now = server->loop_ready ? qk_server_now(server) : 0;
  if (server->room.limit > 0 && now - server->room_at < ROOM_SECONDS) return;
  qk_room_read("", &server->room);
  server->room_at = now;
}

int64_t qk_limits_free(qk_server_t *server, const char **by) {
  const int64_t shm = qk_shm_free_bytes(&server->space);
  look_at_room(server);
  *by = "/dev/shm";
  if (!server->room.bounded || server->room.free >= shm) return shm;
  *by = server->room.by;
  return server->room.free;
}

/* A /dev/shm of the usual size is half of the machine's memory; engines have the rest of what there
 * is. */
static int64_t default_memory(qk_server_t *server, const char **by) {
  const int64_t used = server->budget.used,
                shm = (qk_shm_free_bytes(&server->space) + used) / SHM_SHARE,
                room = (server->room.free + used) / ROOM_SHARE;
  *by = room < shm ? server->room.by : "/dev/shm";
  return room < shm ? room : shm;
}

void qk_limits_memory(qk_server_t *server) {
  const qk_settings_t *s = server->settings;
  const char *by = "max-memory", *least;
  look_at_room(server);
  server->budget.limit = s->max_memory ? s->max_memory : default_memory(server, &by);
  snprintf(server->memory_by, sizeof server->memory_by, "%s", by);
  const int64_t room = qk_limits_free(server, &least) + server->budget.used;
  if (server->budget.limit > room)
    qk_warn("server", "max-memory = %lld is over the %lld bytes that are free (%s)",
            (long long)server->budget.limit, (long long)room, least);
  else
    qk_info("server", "%lld bytes for uploads and results (%s)", (long long)server->budget.limit,
            by);
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

static double wall_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static qk_status_t read_end(const char *path, double *end, qk_err_t *err) {
  char text[32], *rest;
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  const ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
  const int e = errno;
  if (fd >= 0) close(fd);
  if (n < 0) return qk_fail(err, QK_IO_ERROR, "walltime-file = %s: %s", path, strerror(e));
  text[n] = '\0';
  *end = strtod(text, &rest);
  if (rest == text || rest[strspn(rest, " \n")] != '\0' || !isfinite(*end))
    return qk_fail(err, QK_BAD_FORMAT,
                   "walltime-file = %s: \"%.20s\": seconds since 1970 are needed", path, text);
  return QK_OK;
}

qk_status_t qk_limits_walltime(qk_server_t *server, qk_err_t *err) {
  const qk_settings_t *s = server->settings;
  double end = INFINITY;
  if (!s->walltime_file) {
    server->ends = s->walltime > 0 ? server->started + s->walltime : INFINITY;
    return QK_OK;
  }
  const qk_status_t status = read_end(s->walltime_file, &end, err);
  if (status == QK_OK) server->ends = qk_server_now(server) + end - wall_clock();
  return status;
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
  if (qk_limits_walltime(server, &err) != QK_OK) qk_error("settings", "%s", err.text);
  qk_log_set_level((qk_level_t)s->log_level);
  if (s->max_memory != max_memory) qk_limits_memory(server);
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (server->mount[m]) {
      server->mount[m]->settings.engine_timeout = s->engine_timeout;
      server->mount[m]->settings.start_timeout = s->start_timeout;
    }
  for (int i = 0; i < server->sessions.count; i++) limit_user(server, server->sessions.at[i]->user);
}
