#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "proto/control.h"
#include "proto/frame.h"
#include "proto/packet.h"
#include "tests/support/fake_daemon_impl.h"

void fake_local_drop(state_t *s) {
  if (s->local >= 0) close(s->local);
  s->local = -1;
}

/* Whether the client may, or has to, say that the field may have holes. */
static bool is_right(const state_t *s, int fd, const Quark__LocalPut *m) {
  const off_t end = (off_t)(m->offset + s->field_bytes);
  if (!fake_takes_zeros(s)) return !m->sparse;
  return m->sparse || lseek(fd, (off_t)m->offset, SEEK_HOLE) >= end;
}

/* Bytes of a field that are no holes. */
static uint64_t data_of(int fd, uint64_t at, uint64_t bytes) {
  const off_t end = (off_t)(at + bytes);
  uint64_t n = 0;
  for (off_t data = (off_t)at, hole; (data = lseek(fd, data, SEEK_DATA)) >= 0; data = hole) {
    if (data >= end) break;
    hole = lseek(fd, data, SEEK_HOLE);
    if (hole > end) hole = end;
    n += (uint64_t)(hole - data);
  }
  return n;
}

static void local_put(state_t *s, const Quark__LocalPut *m, int fd) {
  fake_daemon_t *d = s->d;
  if (++d->puts == d->script.drop_put) {
    fake_local_drop(s);
    return;
  }
  uint8_t *field = s->stream + m->rhs * s->field_bytes;
  const int seals = F_SEAL_SHRINK | F_SEAL_GROW;
  if (m->request != s->number || m->rhs != s->arrived / s->field_bytes ||
      (fcntl(fd, F_GET_SEALS) & seals) != seals ||
      pread(fd, field, s->field_bytes, (off_t)m->offset) != (ssize_t)s->field_bytes ||
      !is_right(s, fd, m) || fake_sum(field, s->field_bytes, m->sparse) != m->checksum) {
    d->violations++;
    return;
  }
  d->moved += m->sparse ? data_of(fd, m->offset, s->field_bytes) : s->field_bytes;
  s->arrived = d->uploaded = (m->rhs + 1) * s->field_bytes;
  if (!d->script.hold) fake_end_rhs(s, m->rhs, QK_OK);
  fake_give_credit(s);
  fake_reply_credit(s);
}

static void local_fetch(state_t *s, const Quark__LocalFetch *m) {
  Quark__LocalSolution solution = QUARK__LOCAL_SOLUTION__INIT;
  if (++s->d->fetches == s->d->script.drop_fetch) {
    fake_local_drop(s);
    return;
  }
  solution.request = m->request;
  solution.rhs = m->rhs;
  solution.bytes = s->d->script.empty_fetch ? 0 : s->field_bytes;
  const int fd = memfd_create("solution", MFD_CLOEXEC);
  cr_assert_eq(pwrite(fd, s->stream + m->rhs * s->field_bytes, s->field_bytes, 0),
               (ssize_t)s->field_bytes);
  qk_packet_send(s->local, &solution.base, solution.bytes > 0 ? fd : -1);
  close(fd);
}

static void local_message(state_t *s, const Quark__LocalRequest *m, int fd) {
  if (m->body_case == QUARK__LOCAL_REQUEST__BODY_BIND) {
    s->d->binds++;
    if (memcmp(m->bind->token.data, fake_token, sizeof fake_token) != 0) s->d->violations++;
  } else if (m->body_case == QUARK__LOCAL_REQUEST__BODY_PUT)
    local_put(s, m->put, fd);
  else
    local_fetch(s, m->fetch);
}

void fake_local_read(state_t *s) {
  qk_packet_t packet;
  const int connection = s->d->script.local_waits
                             ? -1
                             : accept4(s->local_listen, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (connection >= 0) {
    fake_local_drop(s);
    s->local = connection;
  }
  if (s->local < 0) return;
  if (qk_packet_receive(s->local, &packet) < 0) return;
  const int fd = packet.count > 0 ? packet.fd[0] : -1;
  Quark__LocalRequest *m =
      packet.bytes > 0 ? quark__local_request__unpack(NULL, packet.bytes, packet.data) : NULL;
  if (m) {
    local_message(s, m, fd);
    quark__local_request__free_unpacked(m, NULL);
  } else
    fake_local_drop(s);
  if (fd >= 0) close(fd);
}

void fake_local_open(state_t *s) {
  char dir[] = "/tmp/qk-fake-XXXXXX";
  cr_assert(mkdtemp(dir) != NULL);
  s->local = -1;
  s->local_address.sun_family = AF_UNIX;
  snprintf(s->local_address.sun_path, sizeof s->local_address.sun_path, "%s/local", dir);
  memcpy(s->d->local_path, s->local_address.sun_path, sizeof s->d->local_path);
  s->local_listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  cr_assert_eq(bind(s->local_listen, (struct sockaddr *)&s->local_address, sizeof s->local_address),
               0);
  cr_assert_eq(listen(s->local_listen, 4), 0);
}

void fake_local_close(state_t *s) {
  char *path = s->local_address.sun_path;
  fake_local_drop(s);
  close(s->local_listen);
  unlink(path);
  *strrchr(path, '/') = '\0';
  rmdir(path);
}
