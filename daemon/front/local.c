#include "daemon/front/local.h"

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
#include "proto/control.h"

enum {
  BACKLOG = 64,
  MESSAGES_A_TURN = 16,
  COPY_BYTES = 256 * 1024,
  SEALS = F_SEAL_SHRINK | F_SEAL_GROW
};

static const double BIND_SECONDS = 5; /* for a new connection to say who it is */

struct qk_local {
  qk_server_t *server;
  struct sockaddr_un address;
  int fd;
  uv_poll_t poll;
  bool resting; /* there are no descriptors: accepts no more before the next tick */
  qk_link_t peers;
  int count;
};

typedef struct peer {
  qk_link_t link;
  qk_local_t *local; /* not to be used once fd is -1 */
  uv_poll_t poll;
  int fd;    /* -1: closed */
  int holds; /* the poll handle, and a copy under way */
  double since;
  bool bound;
  uint8_t client_id[QK_CLIENT_ID], token[QK_CLIENT_ID];
} peer_t;

/* A field on its way into the space. */
typedef struct copy {
  uv_work_t work;
  peer_t *peer;
  uint64_t request;
  uint32_t rhs;
  qk_shm_t *field;
  qk_field_hash_t *hash;
  int from;
  uint64_t offset;
  uint64_t announced, checksum;
  qk_status_t status;
  qk_err_t err;
  uint8_t buffer[COPY_BYTES];
} copy_t;

/* ---- connections --------------------------------------------------------------------------- */

static void let_go(peer_t *peer) {
  if (--peer->holds == 0) qk_free(peer);
}

static void on_closed(uv_handle_t *poll) {
  let_go(poll->data);
}

static void close_peer(peer_t *peer) {
  if (peer->fd < 0) return;
  qk_link_remove(&peer->link);
  peer->local->count--;
  uv_close((uv_handle_t *)&peer->poll, on_closed);
  close(peer->fd);
  peer->fd = -1;
}

/* The connection has done what is not allowed. */
static void offend(peer_t *peer, const char *text) {
  peer->local->server->count.dropped++;
  qk_warn("local", "connection closed: %s", text);
  close_peer(peer);
}

/* NULL where it has gone, or the peer has not said who it is. */
static qk_session_t *session_of(const peer_t *peer) {
  if (!peer->bound) return NULL;
  qk_session_t *s = qk_session_by_id(&peer->local->server->sessions, peer->client_id);
  return s && memcmp(s->token, peer->token, sizeof s->token) == 0 ? s : NULL;
}

/* ---- messages ------------------------------------------------------------------------------ */

static void on_bind(peer_t *peer, const Quark__LocalBind *bind) {
  qk_server_t *server = peer->local->server;
  qk_session_t *session = NULL;
  if (!peer->bound && bind->client_id.len == QK_CLIENT_ID && bind->token.len == QK_CLIENT_ID)
    session = qk_session_by_id(&server->sessions, bind->client_id.data);
  if (!session || memcmp(session->token, bind->token.data, QK_CLIENT_ID) != 0) {
    offend(peer,
           "BIND with a client id or token that is nobody's, or of a connection that is bound");
    return;
  }
  qk_local_drop(peer->local, session->client_id); /* the one it had before */
  memcpy(peer->client_id, session->client_id, QK_CLIENT_ID);
  memcpy(peer->token, session->token, QK_CLIENT_ID);
  peer->bound = true;
  session->seen = qk_server_now(server);
  qk_log(QK_LOG_DEBUG, "session", session->name, "fields go by shared memory");
}

/* With a descriptor, which stays the caller's, where fd is not -1. */
static bool send_solution(const peer_t *peer, const Quark__LocalFetch *fetch, uint64_t bytes,
                          int fd) {
  uint8_t data[QK_LOCAL_MAX];
  Quark__LocalSolution solution = QUARK__LOCAL_SOLUTION__INIT;
  solution.request = fetch->request;
  solution.rhs = fetch->rhs;
  solution.bytes = bytes;
  struct iovec part = {.iov_base = data, .iov_len = protobuf_c_message_pack(&solution.base, data)};
  _Alignas(struct cmsghdr) uint8_t rights[CMSG_SPACE(sizeof fd)] = {0};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    message.msg_control = rights;
    message.msg_controllen = sizeof rights;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  return sendmsg(peer->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

/* Where there is nothing the client asks on the control channel, which says why. */
static void on_fetch(peer_t *peer, const qk_session_t *session, const Quark__LocalFetch *fetch) {
  qk_server_t *server = peer->local->server;
  qk_job_t *job = qk_session_job(session, fetch->request);
  const qk_rhs_t *rhs = job && fetch->rhs < job->nrhs ? &job->rhs[fetch->rhs] : NULL;
  const int fd =
      rhs && rhs->solution && qk_rhs_bytes(rhs) > 0 ? qk_shm_open(rhs->solution, O_RDONLY) : -1;
  const uint64_t bytes = fd >= 0 ? qk_rhs_bytes(rhs) : 0;
  if (fd >= 0) {
    job->used_at = qk_server_now(server);
    server->count.bytes_out += bytes;
    server->count.bytes_local += bytes;
  }
  if (!send_solution(peer, fetch, bytes, fd)) offend(peer, "the client does not read its messages");
  if (fd >= 0) close(fd);
}

/* ---- fields that come ---------------------------------------------------------------------- */

/* On a thread of libuv. */
static void copy_field(uv_work_t *work) {
  copy_t *c = work->data;
  const size_t bytes = c->field->bytes;
  const int to = qk_shm_open(c->field, O_RDWR);
  qk_field_hash_init(c->hash);
  if (to < 0) c->status = qk_fail(&c->err, QK_NO_MEMORY, "%s", strerror(errno));
  for (size_t at = 0; at < bytes && c->status == QK_OK;) {
    const size_t want = bytes - at < COPY_BYTES ? bytes - at : COPY_BYTES;
    const ssize_t n = pread(c->from, c->buffer, want, (off_t)(c->offset + at));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      c->status = qk_fail(&c->err, QK_BAD_PROTOCOL, "a descriptor of a field ends at byte %zu", at);
      break;
    }
    qk_field_hash_update(c->hash, c->buffer, (size_t)n);
    c->status = qk_shm_write(to, c->buffer, (size_t)n, at, &c->err);
    at += (size_t)n;
  }
  c->checksum = qk_field_hash_digest(c->hash);
  if (c->status == QK_OK && c->checksum != c->announced)
    c->status = qk_fail(&c->err, QK_BAD_PROTOCOL, "the checksum of a field is %016llx, not %016llx",
                        (unsigned long long)c->checksum, (unsigned long long)c->announced);
  if (to >= 0) close(to);
}

/* Takes the field of c where it is still wanted. */
static void deliver(copy_t *c, qk_session_t *session) {
  qk_server_t *server = c->peer->local->server;
  qk_rhs_t *ready = NULL, *failed = NULL;
  qk_job_t *job = qk_session_job(session, c->request);
  if (!job) return;
  if (c->status == QK_OK) {
    server->count.bytes_in += job->field_bytes;
    server->count.bytes_local += job->field_bytes;
    qk_job_put(job, c->rhs, c->field, c->checksum, &ready);
    c->field = NULL;
  } else {
    qk_job_put_failed(job, c->rhs, c->err.text, qk_server_now(server), &failed);
  }
  qk_data_arrived(server, session, job, ready, failed, true);
}

static void free_copy(copy_t *c) {
  close(c->from);
  qk_shm_destroy(c->field);
  qk_field_hash_destroy(c->hash);
  qk_free(c);
}

static void on_message(uv_poll_t *poll, int status, int events);

static void after_copy(uv_work_t *work, int cancelled) {
  copy_t *c = work->data;
  peer_t *peer = c->peer;
  (void)cancelled;
  if (peer->fd >= 0) {
    qk_session_t *session = session_of(peer);
    if (c->status == QK_BAD_PROTOCOL)
      offend(peer, c->err.text);
    else if (session)
      deliver(c, session);
  }
  if (peer->fd >= 0) uv_poll_start(&peer->poll, UV_READABLE, on_message);
  free_copy(c);
  let_go(peer);
}

static qk_status_t check_descriptor(int fd, uint64_t offset, uint64_t bytes, qk_err_t *err) {
  struct stat st;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & SEALS) != SEALS)
    return qk_fail(err, QK_BAD_PROTOCOL,
                   "a descriptor that is no memfd sealed against shrinking and growing");
  if (fstat(fd, &st) != 0 || st.st_size < 0 || bytes > (uint64_t)st.st_size ||
      offset > (uint64_t)st.st_size - bytes)
    return qk_fail(err, QK_BAD_PROTOCOL, "a descriptor of %lld bytes: %llu from %llu on are needed",
                   (long long)st.st_size, (unsigned long long)bytes, (unsigned long long)offset);
  return QK_OK;
}

/* Begins to copy the field, and to pause the peer; takes fd on success. QK_NO_MEMORY. */
static qk_status_t start_copy(peer_t *peer, const qk_job_t *job, const Quark__LocalPut *put, int fd,
                              qk_err_t *err) {
  copy_t *c = qk_malloc(sizeof *c);
  if (!c) return qk_fail(err, QK_NO_MEMORY, "no memory to copy a right-hand side");
  memset(c, 0, offsetof(copy_t, buffer));
  c->hash = qk_field_hash_create();
  if (!c->hash || qk_shm_create_bare(job->space, job->field_bytes, &c->field, err) != QK_OK) {
    qk_field_hash_destroy(c->hash);
    qk_free(c);
    return qk_fail(err, QK_NO_MEMORY, "%s", err->text[0] ? err->text : "no memory for a checksum");
  }
  c->peer = peer;
  c->request = put->request;
  c->rhs = put->rhs;
  c->from = fd;
  c->offset = put->offset;
  c->announced = put->checksum;
  c->work.data = c;
  peer->holds++;
  uv_poll_stop(&peer->poll);
  uv_queue_work(peer->poll.loop, &c->work, copy_field, after_copy);
  return QK_OK;
}

/* True where it has taken fd. */
static bool on_put(peer_t *peer, qk_session_t *session, const Quark__LocalPut *put, int fd) {
  qk_server_t *server = peer->local->server;
  qk_err_t err = {0};
  bool wanted = false;
  qk_rhs_t *ready = NULL, *failed = NULL;
  qk_job_t *job = qk_session_job(session, put->request);
  if (!job && put->request <= session->newest) return false; /* it is over */
  if (!job)
    qk_fail(&err, QK_BAD_PROTOCOL, "a field of a request that was not accepted");
  else if (qk_job_check_put(job, put->rhs, &wanted, &err) == QK_OK)
    check_descriptor(fd, put->offset, job->field_bytes, &err);
  if (err.code != QK_OK) {
    offend(peer, err.text);
    return false;
  }
  if (wanted && start_copy(peer, job, put, fd, &err) == QK_OK) return true;
  if (wanted)
    qk_job_put_failed(job, put->rhs, err.text, qk_server_now(server), &failed);
  else
    qk_job_put(job, put->rhs, NULL, 0, &ready);
  qk_data_arrived(server, session, job, ready, failed, true);
  return false;
}

/* ---- the socket ---------------------------------------------------------------------------- */

/* The descriptors that came are in fd, at most two: what there is room for because of padding. */
static ssize_t receive(int socket, uint8_t data[QK_LOCAL_MAX], int fd[2], int *count, bool *whole) {
  _Alignas(struct cmsghdr) uint8_t rights[CMSG_SPACE(sizeof(int))];
  struct iovec part = {.iov_base = data, .iov_len = QK_LOCAL_MAX};
  struct msghdr message = {
      .msg_iov = &part, .msg_iovlen = 1, .msg_control = rights, .msg_controllen = sizeof rights};
  const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  *count = 0;
  if (n < 0) return n;
  *whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    *count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    memcpy(fd, CMSG_DATA(c), (size_t)*count * sizeof(int));
  }
  return n;
}

/* True where it has taken the one descriptor. */
static bool handle(peer_t *peer, const Quark__LocalRequest *m, const int *fd, int count) {
  const bool bind = m->body_case == QUARK__LOCAL_REQUEST__BODY_BIND,
             put = m->body_case == QUARK__LOCAL_REQUEST__BODY_PUT;
  qk_session_t *session = session_of(peer);
  if (count != (put ? 1 : 0) || (!bind && !session)) {
    offend(peer, session || bind ? "a message with another number of descriptors than it has"
                                 : "a message of a connection that is not bound");
    return false;
  }
  if (session) session->seen = qk_server_now(peer->local->server);
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

static bool read_message(peer_t *peer) {
  uint8_t data[QK_LOCAL_MAX];
  int fd[2], count;
  bool whole = true, taken = false;
  const ssize_t n = receive(peer->fd, data, fd, &count, &whole);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  Quark__LocalRequest *m =
      n > 0 && whole ? quark__local_request__unpack(NULL, (size_t)n, data) : NULL;
  if (m)
    taken = handle(peer, m, fd, count);
  else if (n > 0)
    offend(peer, "a message that cannot be read");
  else
    close_peer(peer);
  if (m) quark__local_request__free_unpacked(m, NULL);
  for (int i = 0; i < count && !taken; i++) close(fd[i]);
  return !taken;
}

static void on_message(uv_poll_t *poll, int status, int events) {
  peer_t *peer = poll->data;
  (void)events;
  if (status < 0) close_peer(peer);
  for (int i = 0; i < MESSAGES_A_TURN && peer->fd >= 0; i++)
    if (!read_message(peer)) return;
}

static void add_peer(qk_local_t *local, int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  const bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
                     (who.uid == geteuid() || who.uid == 0);
  peer_t *peer = known && local->count < QK_LOCAL_PEERS ? qk_calloc(1, sizeof *peer) : NULL;
  if (!known) qk_warn("local", "connection closed: it is of another user");
  if (!peer || uv_poll_init(&local->server->loop.uv, &peer->poll, fd) != 0) {
    qk_free(peer);
    close(fd);
    return;
  }
  peer->local = local;
  peer->fd = fd;
  peer->holds = 1;
  peer->since = qk_server_now(local->server);
  peer->poll.data = peer;
  qk_link_init(&peer->link);
  qk_list_append(&local->peers, &peer->link);
  local->count++;
  uv_poll_start(&peer->poll, UV_READABLE, on_message);
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

qk_status_t qk_local_open(qk_server_t *server, qk_local_t **out, qk_err_t *err) {
  qk_local_t *local = qk_calloc(1, sizeof *local);
  if (!local) return qk_fail(err, QK_NO_MEMORY, "no memory for the local socket");
  local->server = server;
  local->address.sun_family = AF_UNIX;
  snprintf(local->address.sun_path, sizeof local->address.sun_path, "%.100s/local", server->dir);
  qk_link_init(&local->peers);
  qk_status_t s = listen_at(local, err);
  if (s == QK_OK && uv_poll_init(&server->loop.uv, &local->poll, local->fd) != 0) {
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

void qk_local_tick(qk_local_t *local, double now) {
  if (!local) return;
  for (qk_link_t *l = local->peers.next, *next; l != &local->peers; l = next) {
    peer_t *peer = QK_HOLDER(l, peer_t, link);
    next = l->next;
    if (!peer->bound && now - peer->since > BIND_SECONDS)
      offend(peer, "it has not said whose it is");
  }
  if (local->resting) uv_poll_start(&local->poll, UV_READABLE, on_connection);
  local->resting = false;
}
