#include "daemon/front/net/router.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/host/runtime.h"
#include "daemon/front/net/net.h"
#include "daemon/front/service/queue.h"
#include "daemon/front/wire/parts.h"

enum { LINGER_MS = 500 };

/* ---- messages -------------------------------------------------------------------------------- */

bool qk_router_receive(qk_net_t *net, qk_peer_t *peer, zmq_msg_t *msg, bool *whole) {
  bool got;
  do got = qk_parts_receive(net->control, &net->rest, peer, msg, whole);
  while (!got && net->rest && !qk_loop_time_is_up(net->service->loop));
  if (!got) zmq_msg_close(msg);
  return got;
}

/* What serves nobody's work takes no more than this from engines, which may compute on the same
 * processor, and leaves some of it where none does: clients may share it, too. */
static const double BESIDE_WORK = 0.0625, BESIDE_NONE = 0.5;

double qk_router_share(const qk_net_t *net) {
  return qk_queue_running(net->service) > 0 ? BESIDE_WORK : BESIDE_NONE;
}

bool qk_router_has_enough(qk_net_t *net, bool work) {
  const bool send = !qk_link_alone(&net->downloads);
  return qk_loop_is_enough(net->service->loop, work ? 1 : qk_router_share(net), send);
}

bool qk_router_who(const qk_net_t *net, zmq_msg_t *msg, qk_peer_t *peer, qk_who_t *who) {
  const bool known = qk_zap_who(net->zap, msg, who);
  peer->connection = who->connection;
  snprintf(peer->key, sizeof peer->key, "%s", who->key ? who->key : "");
  return known;
}

/* ---- opening --------------------------------------------------------------------------------- */

qk_status_t qk_router_open(qk_net_t *net, int64_t max_bytes, int rcvhwm, int sndhwm,
                           uint64_t affinity, void **out, qk_err_t *err) {
  /* No heartbeats of ZMTP (host/zmq_guard.h): TCP looks for peers that have gone. */
  int one = 1, linger = LINGER_MS, greeting = 10000, idle = 10, every = 5, times = 4;
  int unanswered = 30000;
  void *s = *out = zmq_socket(net->zmq, ZMQ_ROUTER);
  if (!s) return qk_fail(err, QK_INTERNAL, "zmq_socket: %s", zmq_strerror(zmq_errno()));
  if (qk_zap_curve(net->zap)) max_bytes += QK_CURVE_EXTRA;
  zmq_setsockopt(s, ZMQ_AFFINITY, &affinity, sizeof affinity);
  zmq_setsockopt(s, ZMQ_MAXMSGSIZE, &max_bytes, sizeof max_bytes);
  zmq_setsockopt(s, ZMQ_RCVHWM, &rcvhwm, sizeof rcvhwm);
  zmq_setsockopt(s, ZMQ_SNDHWM, &sndhwm, sizeof sndhwm);
  zmq_setsockopt(s, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
  zmq_setsockopt(s, ZMQ_LINGER, &linger, sizeof linger);
  zmq_setsockopt(s, ZMQ_HANDSHAKE_IVL, &greeting, sizeof greeting);
  zmq_setsockopt(s, ZMQ_TCP_KEEPALIVE, &one, sizeof one);
  zmq_setsockopt(s, ZMQ_TCP_KEEPALIVE_IDLE, &idle, sizeof idle);
  zmq_setsockopt(s, ZMQ_TCP_KEEPALIVE_INTVL, &every, sizeof every);
  zmq_setsockopt(s, ZMQ_TCP_KEEPALIVE_CNT, &times, sizeof times);
  zmq_setsockopt(s, ZMQ_TCP_MAXRT, &unanswered, sizeof unanswered);
  return qk_zap_guard(net->zap, s, err);
}

/* Only this user and root may connect on ipc: the mode of the file ensures it, and for abstract
 * names the check of the peer's user. */
static qk_status_t bind_ipc(void *socket, const char *endpoint, int *failed, qk_err_t *err) {
  const uid_t root = 0, self = geteuid();
  const bool filtered = zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &root, sizeof root) == 0 &&
                        zmq_setsockopt(socket, ZMQ_IPC_FILTER_UID, &self, sizeof self) == 0;
  if (!filtered && endpoint[6] == '@')
    return qk_fail(err, QK_UNSUPPORTED,
                   "listening on %s: this libzmq cannot tell peers apart: use a path", endpoint);
  const mode_t mask = umask(0177);
  *failed = zmq_bind(socket, endpoint);
  umask(mask);
  return QK_OK;
}

qk_status_t qk_router_bind(void *socket, const char *endpoint, char *real, size_t size,
                           qk_err_t *err) {
  int v6 = strchr(endpoint, '[') != NULL, failed = 0;
  zmq_setsockopt(socket, ZMQ_IPV6, &v6, sizeof v6);
  if (strncmp(endpoint, "ipc://", 6) != 0)
    failed = zmq_bind(socket, endpoint);
  else if (bind_ipc(socket, endpoint, &failed, err) != QK_OK)
    return err->code;
  if (failed) {
    int e = zmq_errno();
    qk_status_t s =
        e == EADDRINUSE || e == EADDRNOTAVAIL || e == ENODEV ? QK_BUSY : QK_BAD_ARGUMENT;
    return qk_fail(err, s, "listening on %s: %s", endpoint, zmq_strerror(e));
  }
  if (zmq_getsockopt(socket, ZMQ_LAST_ENDPOINT, real, &size) != 0)
    return qk_fail(err, QK_INTERNAL, "ZMQ_LAST_ENDPOINT: %s", zmq_strerror(zmq_errno()));
  return QK_OK;
}
