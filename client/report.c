#include "client/internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define COPY(to, from) snprintf((to), sizeof(to), "%s", (from) ? (from) : "")

static void read_setup(quark_report_t *report, const Quark__SetupReport *m) {
  COPY(report->setup.name, m->name);
  COPY(report->setup.gauge, m->gauge);
  COPY(report->setup.format, m->format);
  COPY(report->setup.solver, m->solver);
  COPY(report->setup.precision, m->precision);
  report->setup.mass = m->mass;
  report->setup.kappa = m->kappa;
  report->setup.csw = m->csw;
  for (size_t i = 0; i < 8; i++)
    report->setup.boundary[i] = i < m->n_boundary ? m->boundary[i] : NAN;
  for (size_t mu = 0; mu < 4; mu++) report->setup.dims[mu] = mu < m->n_dims ? m->dims[mu] : 0;
  report->setup.link_reals = m->link_reals;
  report->setup.plaquette = m->has_plaquette ? m->plaquette : NAN;
  report->setup.unitarity = m->has_unitarity ? m->unitarity : NAN;
  report->setup.load_seconds = m->has_load_seconds ? m->load_seconds : NAN;
  report->setup.digest = m->digest;
}

static void read_engine(quark_report_t *report, const Quark__EngineReport *m) {
  COPY(report->engine.backend, m->backend);
  COPY(report->engine.device, m->device);
  COPY(report->engine.last_error, m->last_error);
  report->engine.pid = m->pid;
  report->engine.ranks = m->ranks;
  for (size_t mu = 0; mu < 4; mu++) report->engine.grid[mu] = mu < m->n_grid ? m->grid[mu] : 0;
  report->engine.restarts = m->restarts;
  report->engine.slots = m->slots;
  report->engine.slots_busy = m->slots_busy;
  report->engine.device_bytes = m->device_bytes;
  report->engine.host_bytes = m->host_bytes;
}

void quark__report_read(quark_report_t *report, const Quark__StatusReport *m) {
  memset(report, 0, sizeof *report);
  report->state = (quark_state_t)m->state;
  COPY(report->version, m->version);
  report->pid = m->pid;
  report->uptime = m->uptime;
  COPY(report->phase, m->phase);
  report->phase_done = m->done;
  report->phase_total = m->total;
  report->memory_used = m->memory_used;
  report->memory_limit = m->memory_limit;
  read_setup(report, m->setup);
  read_engine(report, m->engine);
  const Quark__CounterReport *c = m->counters;
#define COUNTER(name) report->counters.name = c->name
  COUNTER(sessions), COUNTER(requests), COUNTER(queued), COUNTER(running), COUNTER(held),
      COUNTER(accepted);
  COUNTER(rejected), COUNTER(converged), COUNTER(failed), COUNTER(cancelled), COUNTER(lost),
      COUNTER(iterations);
  COUNTER(applications), COUNTER(bytes_in), COUNTER(bytes_out), COUNTER(dropped);
  COUNTER(kept), COUNTER(kept_bytes), COUNTER(contracted);
#undef COUNTER
}

/* Sends a message, again after each reconnection, until its answers, counted by *answers, become more. */
static quark_code_t ask_locked(quark_connection_t *conn, const Quark__ClientMessage *message,
                               const uint64_t *answers, const char *what, quark_error_t *err) {
  const uint64_t before = *answers;
  const int64_t deadline = quark__now_ms() + conn->timeout_ms;
  uint64_t asked_in = conn->sessions - 1;
  for (;;) {
    quark_code_t code = quark__check_alive_locked(conn, err);
    if (code != QUARK_OK) return code;
    if (*answers != before) return QUARK_OK;
    if (asked_in != conn->sessions && (code = quark__post_locked(conn, message, err)) != QUARK_OK)
      return code;
    asked_in = conn->sessions;
    if (!quark__wait_locked(conn, deadline))
      return quark__fail(err, QUARK_TIMEOUT, "no answer to %s from %s within %u ms", what,
                         conn->endpoint, conn->timeout_ms);
  }
}

quark_code_t quark_status(quark_connection_t *conn, quark_report_t *report, quark_error_t *err) {
  Quark__StatusRequest request = QUARK__STATUS_REQUEST__INIT;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_STATUS;
  message.status = &request;
  pthread_mutex_lock(&conn->lock);
  const quark_code_t code = ask_locked(conn, &message, &conn->reports, "STATUS", err);
  if (code == QUARK_OK) *report = conn->report;
  pthread_mutex_unlock(&conn->lock);
  return code;
}

quark_code_t quark_shutdown(quark_connection_t *conn, bool now, quark_error_t *err) {
  Quark__Shutdown request = QUARK__SHUTDOWN__INIT;
  request.has_now = true;
  request.now = now;
  Quark__ClientMessage message = QUARK__CLIENT_MESSAGE__INIT;
  message.body_case = QUARK__CLIENT_MESSAGE__BODY_SHUTDOWN;
  message.shutdown = &request;
  pthread_mutex_lock(&conn->lock);
  const uint64_t before = conn->shutdowns;
  quark_code_t code = ask_locked(conn, &message, &conn->shutdowns, "SHUTDOWN", err);
  if (conn->shutdowns != before)
    code = QUARK_OK; /* the session may have ended right after the answer */
  pthread_mutex_unlock(&conn->lock);
  return code;
}
