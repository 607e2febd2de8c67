#include "daemon/front/net/net.h"

#include <stdio.h>
#include <zmq.h>

#include "daemon/base/log.h"
#include "daemon/front/net/control.h"
#include "daemon/front/net/data.h"
#include "daemon/front/net/local.h"
#include "daemon/front/net/reply.h"
#include "daemon/front/net/router.h"

enum { CONTROL_SNDHWM = 16384 }; /* messages of one peer */

/* ---- events -------------------------------------------------------------------------------- */

static void accepted(void *arg, qk_session_t *session, qk_job_t *job, bool repeated) {
  qk_reply_accepted(arg, session, job, repeated);
}

static void result(void *arg, qk_session_t *session, qk_rhs_t *rhs) {
  qk_reply_result(arg, session, rhs);
}

static void credit(void *arg, qk_session_t *session, qk_job_t *job) {
  qk_reply_credit(arg, session, job);
}

static void progress(void *arg, qk_session_t *session, const qk_job_t *job) {
  qk_reply_progress(arg, session, job);
}

static void sendable(void *arg, qk_rhs_t *rhs) {
  qk_data_offer(arg, rhs);
}

static void error(void *arg, const qk_session_t *session, qk_status_t status, const char *text,
                  bool fatal, uint64_t request) {
  qk_reply_error(arg, &session->control, status, text, fatal, request);
}

static void closed(void *arg, const qk_session_t *session) {
  const qk_net_t *net = arg;
  qk_local_drop(net->local, session->client_id);
}

void qk_net_init(qk_net_t *net, qk_service_t *service) {
  *net = (qk_net_t){.service = service};
  net->events = (qk_job_events_t){.arg = net,
                                  .accepted = accepted,
                                  .result = result,
                                  .credit = credit,
                                  .progress = progress,
                                  .sendable = sendable,
                                  .error = error,
                                  .closed = closed};
  service->events = &net->events;
  qk_outbox_init(&net->outbox);
  qk_link_init(&net->downloads);
  qk_link_init(&net->paused);
  net->pause = 1;
}

/* ---- opening ------------------------------------------------------------------------------- */

static void warn_of_strangers(const qk_net_t *net, const char *endpoint) {
  if (qk_zap_curve(net->zap) || qk_runtime_local(endpoint)) return;
  qk_warn(
      "server",
      "%s can be reached from other machines: whoever reaches it can use and stop this daemon and "
      "read results on "
      "their way; set curve-key and curve-clients, or listen on 127.0.0.1 and let ssh forward it",
      endpoint);
}

static bool caught_up(void *arg) {
  return qk_guests_catch_up(((const qk_net_t *)arg)->guests);
}

/* libzmq's first thread has the control socket, and each data socket one of its own. */
static uint64_t thread_of(const qk_net_t *net, int socket) {
  return net->service->settings->data_threads > 0 ? (uint64_t)1 << socket : 0;
}

static qk_status_t open_sockets(qk_net_t *net, qk_err_t *err) {
  const qk_settings_t *s = net->service->settings;
  qk_status_t status = qk_zap_open(net->service->loop, net->zmq, s->curve_key, s->curve_clients,
                                   &net->service->count.refused, &net->zap, err);
  if (status == QK_OK)
    status = qk_router_open(net, QK_CONTROL_MAX, QK_CONTROL_RCVHWM, CONTROL_SNDHWM,
                            thread_of(net, 0), &net->control, err);
  net->ndata = s->data_threads > 0 ? (int)s->data_threads : 1;
  for (int i = 0; i < net->ndata && status == QK_OK; i++) {
    net->data[i].index = i;
    status = qk_router_open(net, QK_FRAME_MAX, QK_DATA_HWM, QK_DATA_HWM, thread_of(net, 1 + i),
                            &net->data[i].socket, err);
  }
  if (status != QK_OK) return status;
  qk_guests_open(net, &net->guests);
  qk_zap_wait_for(net->zap, caught_up, net);
  return QK_OK;
}

/* A further data socket has the next port, or any if that is taken. */
static qk_status_t bind_data(qk_net_t *net, const char *first, int i, qk_err_t *err) {
  char endpoint[QK_ENDPOINT_MAX];
  qk_data_thread_t *thread = &net->data[i];
  qk_err_t taken = {0};
  if (!qk_runtime_next_endpoint(first, i, endpoint))
    return qk_fail(err, QK_BAD_ARGUMENT, "listen-data = %s: its path is too long", first);
  qk_status_t s =
      qk_router_bind(thread->socket, endpoint, thread->endpoint, sizeof thread->endpoint, &taken);
  if (i > 0 && s == QK_BUSY && qk_runtime_any_port(endpoint)) {
    qk_warn("server", "%s: data thread %d takes any port", taken.text, i);
    taken = (qk_err_t){0};
    s = qk_router_bind(thread->socket, endpoint, thread->endpoint, sizeof thread->endpoint, &taken);
  }
  if (s != QK_OK) return qk_fail(err, s, "%s", taken.text);
  snprintf(net->data_endpoint[i], sizeof net->data_endpoint[i], "%s", thread->endpoint);
  qk_runtime_any_host(net->data_endpoint[i]);
  return QK_OK;
}

static qk_status_t start(qk_net_t *net, qk_err_t *err) {
  qk_loop_t *loop = net->service->loop;
  const bool threaded = net->service->settings->data_threads > 0;
  qk_status_t status =
      qk_loop_attach(loop, &net->control_sock, net->control, qk_control_readable, net, err);
  for (int i = 0; i < net->ndata && status == QK_OK; i++)
    status = qk_data_thread_start(&net->data[i], loop, threaded, qk_data_take, net, err);
  return status;
}

static qk_status_t open_local(qk_net_t *net, qk_err_t *err) {
  if (!net->service->settings->local) return QK_OK;
  const qk_status_t status = qk_local_open(net, &net->local, err);
  net->local_path = qk_local_path(net->local);
  return status;
}

qk_status_t qk_net_open(qk_net_t *net, qk_err_t *err) {
  const qk_settings_t *s = net->service->settings;
  char control[QK_ENDPOINT_MAX], data[QK_ENDPOINT_MAX];
  uv_timer_init(&net->service->loop->uv, &net->retry);
  net->retry.data = net;
  qk_status_t status = qk_runtime_endpoints(s->listen, s->listen_data, control, data, err);
  if (status == QK_OK) status = open_sockets(net, err);
  if (status == QK_OK)
    status = qk_router_bind(net->control, control, net->endpoint, sizeof net->endpoint, err);
  for (int i = 0; i < net->ndata && status == QK_OK; i++) status = bind_data(net, data, i, err);
  if (status == QK_OK) status = start(net, err);
  if (status != QK_OK) return status;
  warn_of_strangers(net, net->endpoint);
  warn_of_strangers(net, net->data[0].endpoint);
  qk_info("server", "listening on %s, data on %s", net->endpoint, net->data_endpoint[0]);
  for (int i = 1; i < net->ndata; i++)
    qk_info("server", "data thread %d on %s", i, net->data_endpoint[i]);
  return open_local(net, err);
}

/* ---- turns --------------------------------------------------------------------------------- */

void qk_net_tick(qk_net_t *net, double now) {
  qk_peers_tick(net);
  qk_local_tick(net->local, qk_service_awake(net->service));
  qk_data_tick(net);
  qk_guests_tick(net->guests, now);
}

bool qk_net_turn(qk_net_t *net, bool stopping) {
  qk_reply_waiting(net);
  return !stopping && qk_data_send(net);
}

/* ---- the end ------------------------------------------------------------------------------- */

void qk_net_close(qk_net_t *net) {
  qk_outbox_fini(&net->outbox);
  qk_backlog_fini(&net->backlog);
  qk_local_close(net->local);
  net->local = NULL;
  for (int i = 0; i < net->ndata && net->service->loop; i++) qk_data_thread_stop(&net->data[i]);
  qk_guests_close(net->guests);
  net->guests = NULL;
  qk_peers_close(net);
  if (net->service->loop) {
    qk_loop_detach(&net->control_sock, NULL);
  }
  qk_zap_close(net->zap);
}

void qk_net_fini(qk_net_t *net) {
  if (net->control) zmq_close(net->control);
  for (int i = 0; i < net->ndata; i++)
    if (net->data[i].socket) zmq_close(net->data[i].socket);
}
