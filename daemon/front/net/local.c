#include "daemon/front/net/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "daemon/front/job/bricks.h"
#include "daemon/front/net/net.h"
#include "daemon/front/service/upload.h"
#include "daemon/front/storage/copy.h"
#include "proto/control.h"
#include "proto/packet.h"

enum { BACKLOG = 64, MESSAGES_A_TURN = 16, COPIES = 2 /* of a connection at a time */ };

static const double BIND_SECONDS = 5; /* for a new connection to say who it is */

struct qk_local {
  qk_net_t *net;
  struct sockaddr_un address;
  int fd;
  uv_poll_t poll;
  bool resting; /* there are no descriptors: accepts no more before the next tick */
  qk_link_t peers;
  int count;
  uint64_t keys; /* changes of keys that have been followed */
};

typedef struct peer {
  qk_link_t link;
  qk_local_t *local; /* not to be used once fd is -1 */
  uv_poll_t poll;
  int fd;         /* -1: closed */
  int holds;      /* the poll handle, and copies under way */
  qk_link_t puts; /* in the order in which they came */
  int nputs;
  double since;
  bool bound;
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
  char key[QK_KEY_TEXT]; /* of the control connection by which it knows the token */
} peer_t;

typedef enum put_state { WAITING, COPYING, DONE } put_state_t;

/* A field that was handed over. */
typedef struct put {
  qk_link_t link;
  peer_t *peer;
  uint64_t request;
  uint32_t rhs;
  bool wanted; /* else there is nothing to copy */
  put_state_t state;
  qk_copy_t copy;
} put_t;

/* ---- connections --------------------------------------------------------------------------- */

static void let_go(peer_t *peer) {
  if (--peer->holds == 0) qk_free(peer);
}

static void on_closed(uv_handle_t *poll) {
  let_go(poll->data);
}

static put_t *put_at(qk_link_t *link) {
  return QK_HOLDER(link, put_t, link);
}

static void take_off(put_t *put) {
  qk_link_remove(&put->link);
  put->peer->nputs--;
}

static void free_put(put_t *put) {
  qk_copy_fini(&put->copy);
  qk_free(put);
}

static void drop_put(put_t *put) {
  take_off(put);
  free_put(put);
}

/* All but those that threads are at. */
static void drop_puts(peer_t *peer) {
  for (qk_link_t *l = peer->puts.next, *next; l != &peer->puts; l = next) {
    next = l->next;
    if (put_at(l)->state != COPYING) drop_put(put_at(l));
  }
}

static void close_peer(peer_t *peer) {
  if (peer->fd < 0) return;
  drop_puts(peer);
  qk_link_remove(&peer->link);
  peer->local->count--;
  uv_close((uv_handle_t *)&peer->poll, on_closed);
  close(peer->fd);
  peer->fd = -1;
}

/* The connection has done what is not allowed. */
static void offend(peer_t *peer, const char *text) {
  peer->local->net->service->count.dropped++;
  qk_warn("local", "connection closed: %s", text);
  close_peer(peer);
}

/* NULL where it has gone, or the peer has not said who it is. */
static qk_session_t *session_of(const peer_t *peer) {
  if (!peer->bound) return NULL;
  qk_session_t *s = qk_session_by_id(&peer->local->net->service->sessions, peer->client_id);
  return s && qk_session_has_token(s, peer->token) ? s : NULL;
}

/* Whether the key by which the connection came still has the role. */
static bool may(const peer_t *peer, const qk_session_t *session, qk_role_t role) {
  return qk_zap_allows(peer->local->net->zap, peer->key, qk_sched_user_name(session->user), role);
}

/* ---- messages ------------------------------------------------------------------------------ */

static void on_bind(peer_t *peer, const Quark__LocalBind *bind) {
  qk_net_t *net = peer->local->net;
  qk_session_t *session = NULL;
  if (!peer->bound && bind->client_id.len == QK_CLIENT_ID && bind->token.len == QK_CLIENT_ID)
    session = qk_session_by_id(&net->service->sessions, bind->client_id.data);
  if (!session || !qk_session_has_token(session, bind->token.data)) {
    offend(peer,
           "BIND with an unknown client id or token, or on a connection that is already bound");
    return;
  }
  qk_local_drop(peer->local, session->client_id); /* the one it had before */
  memcpy(peer->client_id, session->client_id, QK_CLIENT_ID);
  memcpy(peer->token, bind->token.data, QK_CLIENT_ID);
  memcpy(peer->key, session->control.key, sizeof peer->key);
  peer->bound = true;
  if (!may(peer, session, QK_ROLE_READ)) {
    offend(peer, "BIND of a session whose key is not authorised any more");
    return;
  }
  session->seen = qk_service_awake(net->service);
  qk_log(QK_LOG_DEBUG, "session", session->name, "fields go by shared memory");
}

/* Where there is nothing the client asks on the control channel, which says why. */
static void on_fetch(peer_t *peer, const qk_session_t *session, const Quark__LocalFetch *fetch) {
  qk_net_t *net = peer->local->net;
  qk_job_t *job = qk_session_job(session, fetch->request);
  const qk_rhs_t *rhs = job && fetch->rhs < job->nrhs ? &job->rhs[fetch->rhs] : NULL;
  const bool there =
      rhs && !job->bricks && rhs->solution && qk_rhs_bytes(rhs) > 0 && !qk_marks_lack_rhs(rhs);
  const int fd = there ? qk_shm_open(rhs->solution, O_RDONLY) : -1;
  const uint64_t bytes = fd >= 0 ? qk_rhs_bytes(rhs) : 0;
  if (fd >= 0) {
    job->used_at = qk_service_now(net->service);
    net->service->count.bytes_out += bytes;
    net->service->count.bytes_local += bytes;
  }
  Quark__LocalSolution solution = QUARK__LOCAL_SOLUTION__INIT;
  solution.request = fetch->request;
  solution.rhs = fetch->rhs;
  solution.bytes = bytes;
  if (!qk_packet_send(peer->fd, &solution.base, fd))
    offend(peer, "the client does not read its messages");
  if (fd >= 0) close(fd);
}

/* ---- fields that come ---------------------------------------------------------------------- */

static void on_message(uv_poll_t *poll, int status, int events);

/* One that hands over more fields than are copied waits. */
static bool is_full(const peer_t *peer) {
  return peer->nputs >= QK_LOCAL_PUTS;
}

static void read_on(peer_t *peer) {
  if (!is_full(peer)) uv_poll_start(&peer->poll, UV_READABLE, on_message);
}

/* Takes the field where it is still wanted. */
static void deliver(put_t *put) {
  qk_net_t *net = put->peer->local->net;
  qk_session_t *session = session_of(put->peer);
  qk_job_t *job = session ? qk_session_job(session, put->request) : NULL;
  qk_rhs_t *ready = NULL, *failed = NULL;
  if (!job) return;
  if (put->copy.err.code != QK_OK) {
    qk_job_put_failed(job, put->rhs, put->copy.err.text, qk_service_now(net->service), &failed);
  } else {
    net->service->count.bytes_in += put->copy.copied;
    net->service->count.bytes_local += put->copy.copied;
    if (put->copy.field) qk_shm_count(put->copy.field, put->copy.copied);
    qk_job_put(job, put->rhs, put->copy.field, put->copy.checksum, &ready);
    put->copy.field = NULL;
  }
  qk_upload_arrived(net->service, session, job, ready, failed, true);
}

static void go_on(peer_t *peer);

static void after_copy(qk_copy_t *copy) {
  put_t *put = QK_HOLDER(copy, put_t, copy);
  peer_t *peer = put->peer;
  put->state = DONE;
  if (peer->fd >= 0)
    go_on(peer);
  else
    drop_put(put);
  let_go(peer);
}

static qk_status_t start_copying(put_t *put, const qk_job_t *job) {
  uv_loop_t *loop = put->peer->poll.loop;
  if (!job->bricks && !job->joined)
    return qk_copy_start(&put->copy, loop, job->space, job->field_bytes, after_copy);
  const qk_shm_t *whole = qk_job_put_into(&job->rhs[put->rhs], put->copy.sparse, &put->copy.err);
  if (!whole) return put->copy.err.code;
  qk_shm_count(whole, job->part_bytes);
  return qk_copy_start_part(&put->copy, loop, whole, &job->brick, qk_job_gate(job), after_copy);
}

static void start_copy(put_t *put) {
  peer_t *peer = put->peer;
  const qk_session_t *session = session_of(peer);
  const qk_job_t *job = session ? qk_session_job(session, put->request) : NULL;
  put->state = DONE;
  if (!put->wanted || !job) return;
  if (start_copying(put, job) != QK_OK) return;
  put->state = COPYING;
  peer->holds++;
}

/* Whether the upload waits for it; else nobody needs what is in it, and its client may have changed
 * it since it cancelled. */
static bool is_due(const put_t *put) {
  qk_err_t err = {0};
  bool wanted = false;
  const qk_session_t *session = session_of(put->peer);
  const qk_job_t *job = session ? qk_session_job(session, put->request) : NULL;
  return job && qk_job_check_put(job, put->rhs, qk_job_next_put(job), &wanted, &err) == QK_OK &&
         wanted;
}

/* Begins copies, and takes fields that are here, in the order in which they were handed over. */
static void go_on(peer_t *peer) {
  int copying = 0;
  for (qk_link_t *l = peer->puts.next; l != &peer->puts && copying < COPIES; l = l->next) {
    if (put_at(l)->state == WAITING) start_copy(put_at(l));
    copying += put_at(l)->state == COPYING;
  }
  while (peer->fd >= 0 && !qk_link_alone(&peer->puts)) {
    put_t *first = put_at(peer->puts.next);
    if (first->state != DONE) break;
    if (first->copy.err.code == QK_BAD_PROTOCOL && is_due(first)) {
      offend(peer, first->copy.err.text);
      return;
    }
    take_off(first);
    deliver(first); /* which may close the connection */
    free_put(first);
  }
  if (peer->fd >= 0) read_on(peer);
}

/* Which field the job waits for behind those that were handed over. */
static uint32_t next_put(const peer_t *peer, const qk_job_t *job) {
  uint32_t next = qk_job_next_put(job);
  for (const qk_link_t *l = peer->puts.next; l != &peer->puts; l = l->next) {
    const put_t *put = QK_HOLDER(l, put_t, link);
    next += put->request == job->request && put->rhs == next;
  }
  return next;
}

/* True where it has taken fd. */
static bool on_put(peer_t *peer, const qk_session_t *session, const Quark__LocalPut *m, int fd) {
  qk_err_t err = {0};
  bool wanted = false;
  const qk_job_t *job = qk_session_job(session, m->request);
  if (!job && m->request <= session->newest) return false; /* it is over */
  if (!job)
    qk_fail(&err, QK_BAD_PROTOCOL, "a field of a request that was not accepted");
  else if (qk_job_check_put(job, m->rhs, next_put(peer, job), &wanted, &err) == QK_OK)
    qk_copy_check(fd, m->offset, job->part_bytes, &err);
  put_t *put = err.code == QK_OK ? qk_calloc(1, sizeof *put) : NULL;
  if (!put) {
    offend(peer, err.code != QK_OK ? err.text : "no memory for a field");
    return false;
  }
  put->peer = peer;
  put->request = m->request;
  put->rhs = m->rhs;
  put->wanted = wanted;
  put->copy.from = fd;
  put->copy.offset = m->offset;
  put->copy.announced = m->checksum;
  put->copy.sparse = m->sparse;
  put->copy.dense = qk_job_is_dense(job);
  qk_link_init(&put->link);
  qk_list_append(&peer->puts, &put->link);
  peer->nputs++;
  go_on(peer);
  return true;
}

/* ---- the socket ---------------------------------------------------------------------------- */

/* True where it has taken the one descriptor. */
static bool handle(peer_t *peer, const Quark__LocalRequest *m, const int *fd, int count) {
  const bool bind = m->body_case == QUARK__LOCAL_REQUEST__BODY_BIND,
             put = m->body_case == QUARK__LOCAL_REQUEST__BODY_PUT;
  qk_session_t *session = session_of(peer);
  if (count != (put ? 1 : 0) || (!bind && !session)) {
    offend(peer, session || bind ? "a message with a wrong number of descriptors"
                                 : "a message on a connection that is not bound");
    return false;
  }
  if (session && !bind && !may(peer, session, QK_ROLE_SUBMIT)) {
    offend(peer, "its key is not authorised any more, or does not have the role submit");
    return false;
  }
  if (session) session->seen = qk_service_awake(peer->local->net->service);
  switch (m->body_case) {
  case QUARK__LOCAL_REQUEST__BODY_BIND:
    on_bind(peer, m->bind);
    return false;
  case QUARK__LOCAL_REQUEST__BODY_PUT:
    return on_put(peer, session, m->put, *fd);
  case QUARK__LOCAL_REQUEST__BODY_FETCH:
    on_fetch(peer, session, m->fetch);
    return false;
  default:
    offend(peer, "a message of an unknown kind");
    return false;
  }
}

/* False: no more for now. */
static bool read_message(peer_t *peer) {
  qk_packet_t packet;
  bool taken = false;
  const ssize_t n = qk_packet_receive(peer->fd, &packet);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  Quark__LocalRequest *m =
      n > 0 && packet.whole ? quark__local_request__unpack(NULL, packet.bytes, packet.data) : NULL;
  if (m)
    taken = handle(peer, m, packet.fd, packet.count);
  else if (n > 0)
    offend(peer, "a message that cannot be read");
  else
    close_peer(peer);
  if (m) quark__local_request__free_unpacked(m, NULL);
  for (int i = 0; i < packet.count && !taken; i++) close(packet.fd[i]);
  return true;
}

static void on_message(uv_poll_t *poll, int status, int events) {
  peer_t *peer = poll->data;
  (void)events;
  if (status < 0) close_peer(peer);
  for (int i = 0; i < MESSAGES_A_TURN && peer->fd >= 0; i++)
    if (is_full(peer) || !read_message(peer)) break;
  if (peer->fd >= 0 && is_full(peer)) uv_poll_stop(&peer->poll);
}

static void add_peer(qk_local_t *local, int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
                     (who.uid == geteuid() || who.uid == 0);
  const int most = (int)local->net->service->settings->max_sessions + QK_LOCAL_SPARE;
  peer_t *peer = known && local->count < most ? qk_calloc(1, sizeof *peer) : NULL;
  if (!known) qk_warn("local", "connection closed: its peer runs as another user");
  if (!peer || uv_poll_init(&local->net->service->loop->uv, &peer->poll, fd) != 0) {
    qk_free(peer);
    close(fd);
    return;
  }
  peer->local = local;
  peer->fd = fd;
  peer->holds = 1;
  peer->since = qk_service_awake(local->net->service);
  peer->poll.data = peer;
  qk_link_init(&peer->link);
  qk_link_init(&peer->puts);
  qk_list_append(&local->peers, &peer->link);
  local->count++;
  read_on(peer);
}

static void on_connection(uv_poll_t *poll, int status, int events) {
  qk_local_t *local = poll->data;
  (void)status, (void)events;
  for (int i = 0; i < MESSAGES_A_TURN; i++) {
    const int fd = accept4(local->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      add_peer(local, fd);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      local->resting = errno != EAGAIN;
      break;
    }
  }
  if (local->resting) uv_poll_stop(&local->poll);
}

/* ---- life and death ------------------------------------------------------------------------ */

static qk_status_t listen_at(qk_local_t *local, qk_err_t *err) {
  const char *path = local->address.sun_path;
  local->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (local->fd >= 0 &&
      bind(local->fd, (struct sockaddr *)&local->address, sizeof local->address) == 0 &&
      chmod(path, 0600) == 0 && listen(local->fd, BACKLOG) == 0)
    return QK_OK;
  qk_fail(err, QK_IO_ERROR, "socket %s: %s", path, strerror(errno));
  if (local->fd >= 0) close(local->fd);
  unlink(path);
  return QK_IO_ERROR;
}

qk_status_t qk_local_open(qk_net_t *net, qk_local_t **out, qk_err_t *err) {
  qk_local_t *local = qk_calloc(1, sizeof *local);
  if (!local) return qk_fail(err, QK_NO_MEMORY, "no memory for the local socket");
  local->net = net;
  local->address.sun_family = AF_UNIX;
  snprintf(local->address.sun_path, sizeof local->address.sun_path, "%.100s/local", net->dir);
  qk_link_init(&local->peers);
  qk_status_t s = listen_at(local, err);
  if (s == QK_OK && uv_poll_init(&net->service->loop->uv, &local->poll, local->fd) != 0) {
    s = qk_fail(err, QK_IO_ERROR, "socket %s cannot be polled", local->address.sun_path);
    close(local->fd);
    unlink(local->address.sun_path);
  }
  if (s != QK_OK) {
    qk_free(local);
    return s;
  }
  local->poll.data = local;
  uv_poll_start(&local->poll, UV_READABLE, on_connection);
  *out = local;
  return QK_OK;
}

static void free_local(uv_handle_t *poll) {
  qk_free(poll->data);
}

void qk_local_close(qk_local_t *local) {
  if (!local) return;
  while (!qk_link_alone(&local->peers)) close_peer(QK_HOLDER(local->peers.next, peer_t, link));
  uv_close((uv_handle_t *)&local->poll, free_local);
  close(local->fd);
  unlink(local->address.sun_path);
}

const char *qk_local_path(const qk_local_t *local) {
  return local ? local->address.sun_path : NULL;
}

void qk_local_drop(qk_local_t *local, const uint8_t *client_id) {
  if (!local) return;
  for (qk_link_t *l = local->peers.next, *next; l != &local->peers; l = next) {
    peer_t *peer = QK_HOLDER(l, peer_t, link);
    next = l->next;
    if (peer->bound && memcmp(peer->client_id, client_id, QK_CLIENT_ID) == 0) close_peer(peer);
  }
}

/* Those whose keys have been taken away, or may not do any more what is done here, do not wait for
 * what they ask next. */
static void follow_keys(qk_local_t *local) {
  const uint64_t changes = qk_zap_changes(local->net->zap);
  if (local->keys == changes) return;
  local->keys = changes;
  for (qk_link_t *l = local->peers.next, *next; l != &local->peers; l = next) {
    peer_t *peer = QK_HOLDER(l, peer_t, link);
    const qk_session_t *session = session_of(peer);
    next = l->next;
    if (session && !may(peer, session, QK_ROLE_SUBMIT)) {
      qk_log(QK_LOG_INFO, "session", session->name,
             "its connection to the local socket ends: its key is not authorised any more, or does "
             "not have the role submit");
      close_peer(peer);
    }
  }
}

void qk_local_tick(qk_local_t *local, double now) {
  if (!local) return;
  follow_keys(local);
  for (qk_link_t *l = local->peers.next, *next; l != &local->peers; l = next) {
    peer_t *peer = QK_HOLDER(l, peer_t, link);
    next = l->next;
    if (!peer->bound && now - peer->since > BIND_SECONDS)
      offend(peer, "it has not said whose it is");
  }
  if (local->resting) uv_poll_start(&local->poll, UV_READABLE, on_connection);
  local->resting = false;
}
