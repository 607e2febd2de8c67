#include "daemon/front/net/net.h"

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

static qk_status_t open_sockets(qk_net_t *net, qk_err_t *err) {
  const qk_settings_t *s = net->service->settings;
  qk_status_t status = qk_zap_open(net->service->loop, net->zmq, s->curve_key, s->curve_clients,
                                   &net->service->count.refused, &net->zap, err);
  if (status == QK_OK)
    status =
        qk_router_open(net, QK_CONTROL_MAX, QK_CONTROL_RCVHWM, CONTROL_SNDHWM, &net->control, err);
  if (status == QK_OK)
    status = qk_router_open(net, QK_FRAME_MAX, QK_DATA_HWM, QK_DATA_HWM, &net->data, err);
  if (status != QK_OK) return status;
  qk_guests_open(net, &net->guests);
  qk_zap_wait_for(net->zap, caught_up, net);
  return QK_OK;
}

static qk_status_t attach(qk_net_t *net, qk_err_t *err) {
  qk_loop_t *loop = net->service->loop;
  qk_status_t status =
      qk_loop_attach(loop, &net->control_sock, net->control, qk_control_readable, net, err);
  if (status == QK_OK)
    status = qk_loop_attach(loop, &net->data_sock, net->data, qk_data_readable, net, err);
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
  if (status == QK_OK)
    status = qk_router_bind(net->data, data, net->data_endpoint, sizeof net->data_endpoint, err);
  if (status == QK_OK) status = attach(net, err);
  if (status != QK_OK) return status;
  warn_of_strangers(net, net->endpoint);
  warn_of_strangers(net, net->data_endpoint);
  qk_runtime_any_host(net->data_endpoint);
  qk_info("server", "listening on %s, data on %s", net->endpoint, net->data_endpoint);
  return open_local(net, err);
}

/* ---- turns --------------------------------------------------------------------------------- */

void qk_net_tick(qk_net_t *net, double now) {
  qk_peers_tick(net);
  qk_local_tick(net->local, qk_service_awake(net->service));
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
  qk_guests_close(net->guests);
  net->guests = NULL;
  qk_peers_close(net);
  if (net->service->loop) {
    qk_loop_detach(&net->control_sock, NULL);
    qk_loop_detach(&net->data_sock, NULL);
  }
  qk_zap_close(net->zap);
}

void qk_net_fini(qk_net_t *net) {
  if (net->control) zmq_close(net->control);
  if (net->data) zmq_close(net->data);
}
