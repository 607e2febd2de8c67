#include "daemon/front/net/router.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/front/host/runtime.h"
#include "daemon/front/net/net.h"
#include "daemon/front/service/queue.h"

enum { LINGER_MS = 500 };
enum { PARTS_AT_A_TIME = 4096 };

/* ---- messages -------------------------------------------------------------------------------- */

static void skip_some(void *socket, bool *rest) {
  for (int i = 0; i < PARTS_AT_A_TIME && *rest; i++) {
    zmq_msg_t part;
    zmq_msg_init(&part);
    *rest = zmq_msg_recv(&part, socket, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&part);
    zmq_msg_close(&part);
  }
}

bool qk_router_receive(qk_net_t *net, qk_door_t door, qk_peer_t *peer, zmq_msg_t *msg,
                       bool *whole) {
  void *socket = door == QK_DOOR_CONTROL ? net->control : net->data;
  bool *rest = &net->rest[door];
  while (*rest && !qk_loop_time_is_up(net->service->loop)) skip_some(socket, rest);
  if (*rest || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) return false;
  /* ZMTP allows 255 bytes, libzmq any number: such a peer has no id here, and what it says is
   * junk. */
  const size_t id_bytes = zmq_msg_size(msg);
  peer->bytes = id_bytes <= sizeof peer->id ? (uint8_t)id_bytes : 0;
  peer->ended = false;
  memcpy(peer->id, zmq_msg_data(msg), peer->bytes);
  if (!zmq_msg_more(msg) || zmq_msg_recv(msg, socket, ZMQ_DONTWAIT) < 0) {
    zmq_msg_close(msg);
    return false;
  }
  *rest = zmq_msg_more(msg);
  *whole = !*rest && peer->bytes > 0;
  skip_some(socket, rest);
  return true;
}

/* What serves nobody's work takes no more than this from engines, which may compute on the same
 * processor, and leaves some of it where none does: clients may share it, too. */
static const double BESIDE_WORK = 0.0625, BESIDE_NONE = 0.5;

bool qk_router_has_enough(qk_net_t *net, bool work) {
  const bool send = !qk_link_alone(&net->downloads) && !net->send_blocked;
  const double share = work ? 1 : qk_queue_running(net->service) > 0 ? BESIDE_WORK : BESIDE_NONE;
  return qk_loop_is_enough(net->service->loop, share, send);
}

bool qk_router_who(const qk_net_t *net, zmq_msg_t *msg, qk_peer_t *peer, qk_who_t *who) {
  const bool known = qk_zap_who(net->zap, msg, who);
  peer->connection = who->connection;
  snprintf(peer->key, sizeof peer->key, "%s", who->key ? who->key : "");
  return known;
}

/* ---- opening --------------------------------------------------------------------------------- */

qk_status_t qk_router_open(qk_net_t *net, int64_t max_bytes, int rcvhwm, int sndhwm, void **out,
                           qk_err_t *err) {
  /* No heartbeats of ZMTP (host/zmq_guard.h): TCP looks for peers that have gone. */
  int one = 1, linger = LINGER_MS, greeting = 10000, idle = 10, every = 5, times = 4;
  int unanswered = 30000;
  void *s = *out = zmq_socket(net->zmq, ZMQ_ROUTER);
  if (!s) return qk_fail(err, QK_INTERNAL, "zmq_socket: %s", zmq_strerror(zmq_errno()));
  if (qk_zap_curve(net->zap)) max_bytes += QK_CURVE_EXTRA;
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
