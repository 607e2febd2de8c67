#include "daemon/front/view/pages.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/service/upload.h"
#include "daemon/front/view/metrics.h"
#include "daemon/front/view/page.h"
#include "daemon/front/view/watch.h"

static const double LATE =
    30; /* seconds without an outer step while slots run; less where --engine-timeout is short */

static const char PLAIN[] = "text/plain; charset=utf-8";

static char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));
static char *text_of(const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  if (vasprintf(&text, format, list) < 0) text = NULL;
  va_end(list);
  return text;
}

static qk_page_t plain(unsigned code, char *text) {
  return (qk_page_t){.code = code, .type = PLAIN, .body = text};
}

/* For how many seconds a replica has made no step with something to do; 0: it gets on. */
static double stands(const qk_replica_t *replica, double now, double late) {
  const qk_engine_info_t *e = qk_supervisor_info(replica->supervisor);
  const double still = now - fmax(e->stepped_at, replica->busy_since);
  return qk_replica_running(replica) > 0 && still > late ? still : 0;
}

/* The least of those that are ready: one that gets on is enough. */
static double all_stand(const qk_setup_t *setup, double now, double late) {
  double least = INFINITY;
  QK_EACH_REPLICA(r, setup)
  if (qk_replica_is_ready(r)) least = fmin(least, stands(r, now, late));
  return isfinite(least) ? least : 0;
}

/* Ready: work would be accepted now, and what is accepted gets on. */
static qk_page_t readiness(const qk_service_t *service) {
  const qk_setup_t *setup = service->primary;
  const double late = fmin(LATE, service->settings->engine_timeout / 2);
  const double still = all_stand(setup, qk_service_now(service), late);
  const char *last = qk_supervisor_last_error(qk_setup_lead(setup)->supervisor);
  const char *trouble = qk_upload_trouble(service);
  if (service->draining || service->stopping) return plain(503, text_of("draining\n"));
  if (trouble) return plain(503, text_of("%s\n", trouble));
  if (qk_setup_state(setup) != QK_SUPERVISOR_READY)
    return plain(503, text_of("no setup is loaded%s%s\n", last[0] ? ": " : "", last));
  if (still > 0) return plain(503, text_of("no step of the solver for %.0f s\n", still));
  return plain(200, text_of("ready\n"));
}

/* Alive: it answers, and what it does outlives it. */
static qk_page_t health(const qk_service_t *service) {
  const char *trouble = qk_journal_trouble(service->journal);
  return trouble ? plain(503, text_of("%s\n", trouble)) : plain(200, text_of("alive\n"));
}

qk_page_t qk_pages_show(void *arg, const char *path) {
  qk_view_t *view = arg;
  const qk_service_t *service = view->service;
  if (strcmp(path, "/metrics") == 0)
    return (qk_page_t){.code = 200,
                       .type = "text/plain; version=0.0.4; charset=utf-8",
                       .body = qk_metrics_text(service)};
  if (strcmp(path, "/healthz") == 0) return health(service);
  if (strcmp(path, "/readyz") == 0) return readiness(service);
  if (strcmp(path, "/status.json") == 0)
    return (qk_page_t){.code = 200, .type = "application/json", .body = qk_watch_json(view)};
  if (strcmp(path, "/") == 0)
    return (qk_page_t){.code = 200,
                       .type = "text/html; charset=utf-8",
                       .body = strdup(QK_PAGE),
                       .policy = QK_PAGE_POLICY};
  return plain(
      404, text_of("no such page: /, /status.json, /metrics, /healthz and /readyz are there\n"));
}
