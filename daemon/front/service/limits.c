#include "daemon/front/service/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/front/service/sessions.h"

/* Parts of what there is, one of which is ours by default: of /dev/shm, of what a cgroup or Slurm
 * allows, of a machine without such a limit. */
enum { SHM_SHARE = 2, BOUND_SHARE = 2, MACHINE_SHARE = 4, EIGEN_SHARE = 2 };

static const double ROOM_SECONDS = 1; /* how long a look at the cgroup is good for */

static void look_at_room(qk_service_t *service) {
  const double now = service->loop ? qk_service_now(service) : 0;
  if (service->room.limit > 0 && now - service->room_at < ROOM_SECONDS) return;
  qk_room_read("", &service->room);
  service->room_at = now;
}

int64_t qk_limits_free(qk_service_t *service, const char **by) {
  const int64_t shm = qk_shm_free_bytes(&service->space);
  look_at_room(service);
  *by = "/dev/shm";
  if (!service->room.bounded || service->room.free >= shm) return shm;
  *by = service->room.by;
  return service->room.free;
}

/* A /dev/shm of the usual size is half of the machine's memory, also in a container that may have
 * less of it; engines have the rest of what there is. */
static int64_t default_memory(qk_service_t *service, const char **by) {
  const int64_t used = service->budget.used,
                share = service->room.bounded ? BOUND_SHARE : MACHINE_SHARE,
                shm = (qk_shm_free_bytes(&service->space) + used) / SHM_SHARE,
                room = (service->room.free + used) / share;
  *by = room < shm ? service->room.by : "/dev/shm";
  return room < shm ? room : shm;
}

void qk_limits_memory(qk_service_t *service) {
  const qk_settings_t *s = service->settings;
  const char *by = "max-memory", *least;
  look_at_room(service);
  service->budget.limit = s->max_memory ? s->max_memory : default_memory(service, &by);
  snprintf(service->memory_by, sizeof service->memory_by, "%s", by);
  const int64_t room = qk_limits_free(service, &least) + service->budget.used;
  if (service->budget.limit > room)
    qk_warn("server", "max-memory = %lld is over the %lld bytes that are free (%s)",
            (long long)service->budget.limit, (long long)room, least);
  else
    qk_info("server", "%lld bytes for uploads and results (%s)", (long long)service->budget.limit,
            by);
}

void qk_limits_eigen(qk_service_t *service) {
  const int64_t given = service->settings->eigen_memory;
  look_at_room(service);
  service->eigen_limit = given ? given : service->room.free / EIGEN_SHARE;
}

static int64_t keep_memory(const qk_service_t *service) {
  const int64_t given = service->settings->keep_memory;
  return given ? given : service->budget.limit / 4 * 3;
}

static void limit_user(qk_service_t *service, qk_sched_user_t *user) {
  qk_budget_t *memory = qk_sched_user_memory(user);
  qk_sched_user_kept(user)->limit = keep_memory(service);
  memory->limit = service->settings->user_memory ? service->settings->user_memory : INT64_MAX;
  memory->above = &service->budget;
}

void qk_limits_session(qk_service_t *service, qk_session_t *session) {
  session->lease = service->settings->lease;
  limit_user(service, session->user);
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
    return qk_fail(err, QK_BAD_FORMAT, "walltime-file = %s: \"%.20s\": must be seconds since 1970",
                   path, text);
  return QK_OK;
}

qk_status_t qk_limits_walltime(qk_service_t *service, qk_err_t *err) {
  const qk_settings_t *s = service->settings;
  double end = INFINITY;
  if (!s->walltime_file) {
    service->ends = s->walltime > 0 ? service->started + s->walltime : INFINITY;
    return QK_OK;
  }
  const qk_status_t status = read_end(s->walltime_file, &end, err);
  if (status == QK_OK) service->ends = qk_service_now(service) + end - qk_clock_wall();
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

void qk_limits_reread(qk_service_t *service) {
  qk_settings_t *s = service->settings;
  const int64_t max_memory = s->max_memory, eigen_memory = s->eigen_memory;
  int changed = 0;
  qk_err_t err = {0};
  if (qk_settings_reread(s, tell, &changed, &err) != QK_OK) {
    qk_error("settings", "no setting is changed: %s", err.text);
    return;
  }
  if (changed == 0) qk_info("settings", "read again: nothing has changed");
  if (qk_limits_walltime(service, &err) != QK_OK) qk_error("settings", "%s", err.text);
  qk_log_set_level((qk_level_t)s->log_level);
  if (s->max_memory != max_memory) qk_limits_memory(service);
  if (s->eigen_memory != eigen_memory) qk_limits_eigen(service);
  for (int m = 0; m < QK_SETUPS_MAX; m++)
    if (service->setup[m]) {
      service->setup[m]->settings.engine_timeout = s->engine_timeout;
      service->setup[m]->settings.start_timeout = s->start_timeout;
      qk_setup_t *successor = service->setup[m]->successor;
      if (successor) {
        successor->settings.engine_timeout = s->engine_timeout;
        successor->settings.start_timeout = s->start_timeout;
      }
    }
  for (int i = 0; i < service->sessions.count; i++)
    limit_user(service, service->sessions.at[i]->user);
  qk_sessions_look(service);
}
