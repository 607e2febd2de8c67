#include "client/libquark/request/event.h"

#include <math.h>
#include <string.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/request/request.h"

static bool has_event(const request_t *r) {
  return r->state == REQUEST_ACCEPTED && !r->released && (r->progress_new || r->unreported > 0);
}

static bool waits(const quark_connection_t *conn) {
  if (conn->state == SESSION_DEAD && !conn->death_reported) return true;
  for (const request_t *r = conn->requests->first; r; r = r->next)
    if (has_event(r)) return true;
  return false;
}

void quark__event_update_locked(quark_connection_t *conn) {
  quark__signal_events_locked(conn, waits(conn));
}

static void take_result(request_t *r, quark_event_t *event) {
  uint32_t i = 0;
  while (!r->rhs[i].ended || r->rhs[i].reported) i++;
  r->rhs[i].reported = true;
  r->unreported--;
  event->kind = QUARK_EVENT_RESULT;
  event->result = r->rhs[i].result;
}

/* Takes results first, then progress, then the end of the connection. */
static void take_event(quark_connection_t *conn, quark_event_t *event) {
  memset(event, 0, sizeof *event);
  event->residual = NAN;
  request_t *r = conn->requests->first;
  while (r && !has_event(r)) r = r->next;
  if (!r) {
    if (conn->state != SESSION_DEAD || conn->death_reported) return;
    conn->death_reported = true;
    event->kind = QUARK_EVENT_DEAD;
    event->code = conn->death.code;
    return;
  }
  if (r->unreported > 0) {
    take_result(r, event);
  } else {
    r->progress_new = false;
    event->kind = QUARK_EVENT_PROGRESS;
    event->iterations = r->iterations;
    event->residual = r->residual;
  }
  event->request = r->number;
  event->ended = r->ended;
  event->running = r->running;
  event->queued = r->queued;
}

quark_code_t quark_event_next(quark_connection_t *conn, int64_t timeout_ms, quark_event_t *event,
                              quark_error_t *err) {
  const int64_t deadline = timeout_ms < 0 ? -1 : quark__now_ms() + timeout_ms;
  pthread_mutex_lock(&conn->lock);
  quark_code_t code = QUARK_OK;
  while (!waits(conn)) {
    if ((code = quark__check_alive_locked(conn, err)) != QUARK_OK) break;
    if (!quark__wait_locked(conn, deadline)) break;
  }
  if (code == QUARK_OK) take_event(conn, event);
  quark__event_update_locked(conn);
  pthread_mutex_unlock(&conn->lock);
  return code;
}
