#include "daemon/front/net/peers.h"

#include <fcntl.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/front/net/net.h"

/* ---- sessions ------------------------------------------------------------------------------ */

static void forget_control(qk_net_t *net, qk_session_t *session) {
  qk_outbox_drop_peer(&net->outbox, &session->control);
  session->control.bytes = 0;
}

static void tell_of_heir(const qk_session_t *session, const char *socket) {
  qk_log(QK_LOG_INFO, "session", session->name,
         "its %s connection has ended: another connection has the same routing id", socket);
}

static void stop_job(const qk_job_t *job) {
  for (uint32_t i = 0; i < job->nrhs; i++)
    if (qk_rhs_is_leaving(&job->rhs[i])) atomic_store(&job->rhs[i].leaving->stop, true);
}

/* A part of a solution that is on its way must not reach whoever has the routing id next. */
static void stop_sending(const qk_session_t *session) {
  for (const qk_link_t *l = session->jobs.next; l != &session->jobs; l = l->next)
    stop_job(QK_HOLDER(l, qk_job_t, link));
}

qk_session_t *qk_peers_control(qk_net_t *net, const qk_peer_t *peer) {
  qk_session_t *session = qk_session_by_control(&net->service->sessions, peer);
  if (!session || qk_peer_same(&session->control, peer)) return session;
  tell_of_heir(session, "control");
  forget_control(net, session);
  return NULL;
}

qk_session_t *qk_peers_data(qk_net_t *net, const qk_peer_t *peer) {
  qk_session_t *session = qk_session_by_data(&net->service->sessions, peer);
  if (!session || qk_peer_same(&session->data, peer)) return session;
  tell_of_heir(session, "data");
  stop_sending(session);
  session->data.bytes = 0;
  return NULL;
}

void qk_peers_gone(qk_net_t *net, qk_door_t door, const qk_peer_t *peer) {
  qk_session_t *session = door == QK_DOOR_CONTROL
                              ? qk_session_by_control(&net->service->sessions, peer)
                              : qk_session_by_data(&net->service->sessions, peer);
  if (!session) return;
  if (door == QK_DOOR_CONTROL && qk_peer_same(&session->control, peer)) {
    qk_outbox_drop_peer(&net->outbox, &session->control);
    session->control.ended = true;
  }
  if (door != QK_DOOR_CONTROL && qk_peer_same(&session->data, peer)) {
    stop_sending(session);
    session->data.ended = true;
  }
}

void qk_peers_forget(qk_net_t *net, qk_session_t *session, const char *why) {
  if (session->control.bytes > 0 || session->data.bytes > 0)
    qk_log(QK_LOG_WARN, "session", session->name, "its connections are ignored from now on: %s",
           why);
  forget_control(net, session);
  stop_sending(session);
  session->data.bytes = 0;
}

static bool has_key(const qk_net_t *net, const qk_session_t *session, const qk_peer_t *peer) {
  return peer->bytes == 0 ||
         qk_zap_allows(net->zap, peer->key, qk_sched_user_name(session->user), QK_ROLE_READ);
}

static void follow_keys(qk_net_t *net) {
  if (net->peers.keys == qk_zap_changes(net->zap)) return;
  net->peers.keys = qk_zap_changes(net->zap);
  for (int i = 0; i < net->service->sessions.count; i++) {
    qk_session_t *session = net->service->sessions.at[i];
    if (!has_key(net, session, &session->control) || !has_key(net, session, &session->data))
      qk_peers_forget(net, session, "their key is not authorised any more");
  }
}

/* ---- the end of connections ---------------------------------------------------------------- */

static bool is_at(const struct sockaddr_storage *address, socklen_t size, const char *endpoint) {
  char port[NI_MAXSERV];
  if (address->ss_family == AF_UNIX) {
    const struct sockaddr_un *un = (const void *)address;
    const size_t n = size - offsetof(struct sockaddr_un, sun_path);
    const char *path = endpoint + strlen("ipc://");
    return strncmp(endpoint, "ipc://", strlen("ipc://")) == 0 && n >= strlen(path) &&
           memcmp(un->sun_path + 1, path + 1, strlen(path) - 1) == 0;
  }
  const char *colon = strrchr(endpoint, ':');
  return strncmp(endpoint, "tcp://", strlen("tcp://")) == 0 && colon &&
         getnameinfo((const void *)address, size, NULL, 0, port, sizeof port, NI_NUMERICSERV) ==
             0 &&
         strcmp(port, colon + 1) == 0;
}

/* libzmq's thread may have closed the connection since, and the number may be another one's: it is
 * one of this socket, from where the message came, or it is left alone. */
static bool is_its_own(int fd, const char *endpoint, zmq_msg_t *msg) {
  struct sockaddr_storage local, remote;
  socklen_t local_size = sizeof local, remote_size = sizeof remote;
  char host[NI_MAXHOST];
  const char *from = zmq_msg_gets(msg, "Peer-Address");
  if (getsockname(fd, (void *)&local, &local_size) != 0 ||
      getpeername(fd, (void *)&remote, &remote_size) != 0 || !is_at(&local, local_size, endpoint))
    return false;
  if (local.ss_family == AF_UNIX) return true;
  return from &&
         getnameinfo((const void *)&remote, remote_size, host, sizeof host, NULL, 0,
                     NI_NUMERICHOST) == 0 &&
         strcmp(host, from) == 0;
}

static void hang_up(int fd) {
  shutdown(fd, SHUT_RDWR);
  close(fd);
}

void qk_peers_cut(qk_net_t *net, const char *endpoint, zmq_msg_t *msg, const qk_peer_t *peer) {
  qk_peers_t *peers = &net->peers;
  const int number = zmq_msg_get(msg, ZMQ_SRCFD);
  const int fd = number < 0 ? -1 : fcntl(number, F_DUPFD_CLOEXEC, 0);
  peers->cut[peers->ncut++ % QK_PEERS_CUT] = peer->connection;
  if (fd < 0) return;
  if (!is_its_own(fd, endpoint, msg))
    close(fd);
  else if (peers->nleaving == QK_PEERS_LEAVING)
    hang_up(fd);
  else
    peers->leaving[peers->nleaving++] = fd;
}

void qk_peers_cut_endless(qk_net_t *net, const char *endpoint, zmq_msg_t *msg,
                          const qk_peer_t *peer) {
  if (qk_peers_is_cut(net, peer)) return;
  qk_warn("peers", "connection closed: it sent a message of thousands of parts");
  qk_peers_cut(net, endpoint, msg, peer);
}

bool qk_peers_is_cut(const qk_net_t *net, const qk_peer_t *peer) {
  const qk_peers_t *peers = &net->peers;
  const unsigned n = peers->ncut < QK_PEERS_CUT ? peers->ncut : QK_PEERS_CUT;
  for (unsigned i = 0; i < n; i++)
    if (peer->connection > 0 && peers->cut[i] == peer->connection) return true;
  return false;
}

void qk_peers_close(qk_net_t *net) {
  qk_peers_t *peers = &net->peers;
  while (peers->nleaving > 0) hang_up(peers->leaving[--peers->nleaving]);
  peers->ntold = 0;
}

void qk_peers_tick(qk_net_t *net) {
  qk_peers_t *peers = &net->peers;
  follow_keys(net);
  for (int i = 0; i < peers->ntold; i++) hang_up(peers->leaving[i]);
  peers->nleaving -= peers->ntold;
  memmove(peers->leaving, peers->leaving + peers->ntold,
          (size_t)peers->nleaving * sizeof *peers->leaving);
  peers->ntold = peers->nleaving;
}
