#include "client/libquark/request/local.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/libquark/connection/clock.h"
#include "client/libquark/memory/buffer.h"
#include "proto/packet.h"

/* ---- the connection ---- */

static bool send_bind(quark_connection_t *conn) {
  Quark__LocalBind bind = QUARK__LOCAL_BIND__INIT;
  bind.client_id.data = conn->client_id;
  bind.token.data = conn->token;
  bind.client_id.len = bind.token.len = QK_CLIENT_ID;
  Quark__LocalRequest m = QUARK__LOCAL_REQUEST__INIT;
  m.body_case = QUARK__LOCAL_REQUEST__BODY_BIND;
  m.bind = &bind;
  return qk_packet_send(conn->local, &m.base, -1);
}

/* A socket of that name may be another machine's, or somebody else's. Root trusts every daemon that
 * it is told to use. Fields are read and written through descriptors, and mapped only if the daemon
 * is *ours, so the other side can spoil numbers, as any daemon can, and no more. */
static bool is_trusted(int fd, bool *ours) {
  struct ucred who;
  socklen_t size = sizeof who;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return false;
  *ours = who.uid == geteuid() || who.uid == 0;
  return *ours || geteuid() == 0;
}

/* More clients may connect at once than wait at the socket: it is then full, and tried again. */
static void open_socket(quark_connection_t *conn) {
  conn->local_full = false;
  conn->local = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (conn->local < 0) return;
  const bool connected = connect(conn->local, (struct sockaddr *)&conn->local_address,
                                 sizeof conn->local_address) == 0;
  if (connected && is_trusted(conn->local, &conn->local_ours) && send_bind(conn)) return;
  conn->local_full = !connected && errno == EAGAIN;
  close(conn->local);
  conn->local = -1;
}

void quark__local_open_locked(quark_connection_t *conn, const char *path) {
  quark__local_close_locked(conn);
  conn->local_full = false;
  if (!conn->try_local || !path || strlen(path) >= sizeof conn->local_address.sun_path) return;
  conn->local_address = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy(conn->local_address.sun_path, path, strlen(path) + 1);
  open_socket(conn);
}

void quark__local_tick_locked(quark_connection_t *conn) {
  if (conn->local_full && conn->state == SESSION_OPEN) open_socket(conn);
}

void quark__local_close_locked(quark_connection_t *conn) {
  if (conn->local < 0) return;
  close(conn->local);
  conn->local = -1;
  quark__wake(conn);
  for (request_t *r = conn->requests->first; r; r = r->next) {
    if (r->up.shared && r->up.sent > r->up.taken) r->up.sent = r->up.taken;
    quark__download_by_chunks_locked(conn, r->downloads);
  }
}

bool quark_local(quark_connection_t *conn) {
  pthread_mutex_lock(&conn->lock);
  const bool local = conn->local >= 0;
  pthread_mutex_unlock(&conn->lock);
  return local;
}

/* ---- out ---- */

bool quark__local_takes(const quark_connection_t *conn, const request_t *r) {
  const upload_t *up = &r->up;
  if (conn->local < 0 || !up->shared) return false;
  return up->by_put || up->written - up->sent / up->field_bytes * up->field_bytes <= up->capacity;
}

/* True if the next field is complete and may go. */
static bool can_put(const quark_connection_t *conn, const request_t *r) {
  const upload_t *up = &r->up;
  if (r->state != REQUEST_ACCEPTED || up->until == 0 || !quark__local_takes(conn, r)) return false;
  const uint64_t field = up->sent / r->up.field_bytes;
  return up->written >= (field + 1) * r->up.field_bytes &&
         field - up->taken / r->up.field_bytes < QK_LOCAL_PUTS;
}

static bool put(quark_connection_t *conn, request_t *r) {
  const uint64_t field = r->up.sent / r->up.field_bytes;
  Quark__LocalPut p = QUARK__LOCAL_PUT__INIT;
  p.request = r->number;
  p.rhs = (uint32_t)field;
  const rhs_t *rhs = &r->rhs[field];
  p.offset = rhs->buffer ? rhs->buffer_at : field * r->up.field_bytes % r->up.capacity;
  p.checksum = rhs->upload_checksum;
  p.has_sparse = p.sparse = rhs->sparse;
  Quark__LocalRequest m = QUARK__LOCAL_REQUEST__INIT;
  m.body_case = QUARK__LOCAL_REQUEST__BODY_PUT;
  m.put = &p;
  const int fd = rhs->buffer ? quark__buffer_fd(rhs->buffer) : r->up.fd;
  if (!qk_packet_send(conn->local, &m.base, fd)) return false;
  r->up.sent = (field + 1) * r->up.field_bytes;
  return true;
}

static bool fetch(quark_connection_t *conn, const request_t *r, download_t *d) {
  Quark__LocalFetch f = QUARK__LOCAL_FETCH__INIT;
  f.request = r->number;
  f.rhs = d->rhs;
  Quark__LocalRequest m = QUARK__LOCAL_REQUEST__INIT;
  m.body_case = QUARK__LOCAL_REQUEST__BODY_FETCH;
  m.fetch = &f;
  if (!qk_packet_send(conn->local, &m.base, -1)) return false;
  d->way = DOWNLOAD_ASKED;
  return true;
}

bool quark__local_send_locked(quark_connection_t *conn) {
  bool sent = true;
  if (conn->state != SESSION_OPEN) return true;
  for (request_t *r = conn->requests->first; r && sent && conn->local >= 0; r = r->next) {
    for (download_t *d = r->downloads; d && sent; d = d->next)
      if (d->way == DOWNLOAD_ASK) sent = fetch(conn, r, d);
    while (sent && can_put(conn, r)) sent = put(conn, r);
  }
  if (!sent && errno != EAGAIN) quark__local_close_locked(conn);
  return sent || conn->local < 0;
}

/* ---- in ---- */

/* Reads the next message with its descriptor, or -1. False: there is none, or the local connection
 * has ended. */
static bool receive(quark_connection_t *conn, Quark__LocalSolution **solution, int *fd) {
  qk_packet_t packet;
  const ssize_t n = qk_packet_receive(conn->local, &packet);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  *solution = n > 0 && packet.whole && packet.count <= 1
                  ? quark__local_solution__unpack(NULL, packet.bytes, packet.data)
                  : NULL;
  *fd = packet.count > 0 ? packet.fd[0] : -1;
  if (*solution) return true;
  for (int i = 0; i < packet.count; i++) close(packet.fd[i]);
  quark__local_close_locked(conn);
  return false;
}

static bool has_size(int fd, uint64_t bytes) {
  struct stat st;
  return fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size == bytes;
}

void quark__local_read_locked(quark_connection_t *conn) {
  Quark__LocalSolution *m;
  int fd;
  while (conn->local >= 0 && receive(conn, &m, &fd)) {
    conn->last_heard = quark__now_ms();
    request_t *r = quark__request_find_locked(conn, m->request);
    download_t *d = r ? r->downloads : NULL;
    while (d && (d->rhs != m->rhs || d->way != DOWNLOAD_ASKED)) d = d->next;
    if (d && m->bytes == d->bytes && has_size(fd, d->bytes)) {
      quark__download_shared(&r->downloads, d, fd);
    } else {
      if (d) quark__download_by_chunks_locked(conn, r->downloads);
      if (fd >= 0) close(fd);
    }
    quark__local_solution__free_unpacked(m, NULL);
  }
}
