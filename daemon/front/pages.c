/* What HTTP shows of the server. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/server.h"

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

/* Ready: work would be accepted now, and what is accepted gets on. */
static qk_page_t readiness(const qk_server_t *server) {
  const qk_engine_info_t *e = qk_worker_info(server->worker);
  const double still = qk_server_now(server) - fmax(e->stepped_at, server->busy_since);
  const double late = fmin(LATE, server->settings->engine_timeout / 2);
  const char *last = qk_worker_last_error(server->worker);
  if (server->draining || server->stopping) return (qk_page_t){503, PLAIN, text_of("draining\n")};
  if (qk_worker_state(server->worker) != QK_WORKER_READY)
    return (qk_page_t){503, PLAIN, text_of("no setup is loaded%s%s\n", last[0] ? ": " : "", last)};
  if (qk_dispatch_running(server) > 0 && still > late)
    return (qk_page_t){503, PLAIN, text_of("no step of the solver for %.0f s\n", still)};
  return (qk_page_t){200, PLAIN, text_of("ready\n")};
}

qk_page_t qk_pages_show(void *arg, const char *path) {
  const qk_server_t *server = arg;
  if (strcmp(path, "/metrics") == 0)
    return (qk_page_t){200, "text/plain; version=0.0.4; charset=utf-8", qk_metrics_text(server)};
  if (strcmp(path, "/healthz") == 0) return (qk_page_t){200, PLAIN, text_of("alive\n")};
  if (strcmp(path, "/readyz") == 0) return readiness(server);
  if (strcmp(path, "/") == 0)
    return (qk_page_t){200, PLAIN, text_of("quarkd: /metrics /healthz /readyz\n")};
  return (qk_page_t){404, PLAIN,
                     text_of("no such page: /metrics, /healthz and /readyz are there\n")};
}
