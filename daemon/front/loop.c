#include "daemon/front/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>

enum { SIGNALS_A_TURN = 8 };

static bool readable(const qk_zsock_t *sock) {
  int events = 0;
  size_t size = sizeof events;
  return zmq_getsockopt(sock->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

static void on_idle(uv_idle_t *idle) {
  (void)idle;
}

static void on_wake(uv_poll_t *poll, int status, int events) {
  (void)poll, (void)status, (void)events;
}

static void on_prepare(uv_prepare_t *prepare) {
  qk_loop_t *loop = prepare->data;
  bool busy = loop->more;
  for (qk_link_t *l = loop->socks.next; l != &loop->socks && !busy; l = l->next)
    busy = readable(QK_HOLDER(l, qk_zsock_t, link));
  if (busy) uv_idle_start(&loop->idle, on_idle);
}

static void on_check(uv_check_t *check) {
  qk_loop_t *loop = check->data;
  uv_idle_stop(&loop->idle);
  for (qk_link_t *l = loop->socks.next, *next; l != &loop->socks; l = next) {
    next = l->next;
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    if (readable(sock)) sock->readable(sock->arg);
  }
  loop->more = loop->turn(loop->arg);
}

qk_status_t qk_loop_init(qk_loop_t *loop, qk_turn_fn *turn, void *arg, qk_err_t *err) {
  int e = uv_loop_init(&loop->uv);
  if (e != 0) return qk_fail(err, QK_INTERNAL, "uv_loop_init: %s", uv_strerror(e));
  qk_link_init(&loop->socks);
  loop->turn = turn;
  loop->arg = arg;
  loop->more = false;
  loop->signal_fd = -1;
  uv_prepare_init(&loop->uv, &loop->prepare);
  uv_check_init(&loop->uv, &loop->check);
  uv_idle_init(&loop->uv, &loop->idle);
  loop->prepare.data = loop->check.data = loop;
  uv_prepare_start(&loop->prepare, on_prepare);
  uv_check_start(&loop->check, on_check);
  return QK_OK;
}

static void close_handle(uv_handle_t *handle, void *arg) {
  (void)arg;
  if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void qk_loop_fini(qk_loop_t *loop) {
  uv_walk(&loop->uv, close_handle, NULL);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
  if (loop->signal_fd >= 0) close(loop->signal_fd);
}

static void on_signals(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  const qk_loop_t *loop = poll->data;
  struct signalfd_siginfo info[SIGNALS_A_TURN];
  const ssize_t bytes = read(loop->signal_fd, info, sizeof info);
  for (ssize_t i = 0; (i + 1) * (ssize_t)sizeof info[0] <= bytes; i++)
    loop->on_signal(loop->arg, (int)info[i].ssi_signo);
}

qk_status_t qk_loop_signals(qk_loop_t *loop, const int signals[], qk_signal_fn *on_signal,
                            qk_err_t *err) {
  sigset_t set;
  sigemptyset(&set);
  for (const int *sig = signals; *sig != 0; sig++) sigaddset(&set, *sig);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
  loop->on_signal = on_signal;
  loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (loop->signal_fd < 0) return qk_fail(err, QK_INTERNAL, "signalfd: %s", strerror(errno));
  const int e = uv_poll_init(&loop->uv, &loop->signals, loop->signal_fd);
  if (e != 0) return qk_fail(err, QK_INTERNAL, "uv_poll_init: %s", uv_strerror(e));
  loop->signals.data = loop;
  uv_poll_start(&loop->signals, UV_READABLE, on_signals);
  return QK_OK;
}

void qk_loop_run(qk_loop_t *loop) {
  uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void qk_loop_stop(qk_loop_t *loop) {
  uv_stop(&loop->uv);
}

double qk_loop_seconds(const qk_loop_t *loop) {
  return (double)uv_now(&loop->uv) * 1e-3;
}

qk_status_t qk_loop_attach(qk_loop_t *loop, qk_zsock_t *sock, void *socket,
                           qk_readable_fn *on_readable, void *arg, qk_err_t *err) {
  int fd;
  size_t size = sizeof fd;
  if (zmq_getsockopt(socket, ZMQ_FD, &fd, &size) != 0)
    return qk_fail(err, QK_INTERNAL, "ZMQ_FD: %s", zmq_strerror(zmq_errno()));
  int e = uv_poll_init(&loop->uv, &sock->poll, fd);
  if (e != 0) return qk_fail(err, QK_INTERNAL, "uv_poll_init: %s", uv_strerror(e));
  uv_poll_start(&sock->poll, UV_READABLE, on_wake);
  sock->socket = socket;
  sock->readable = on_readable;
  sock->arg = arg;
  sock->attached = true;
  qk_link_init(&sock->link);
  qk_list_append(&loop->socks, &sock->link);
  return QK_OK;
}

void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed) {
  if (!sock->attached) return;
  sock->attached = false;
  qk_link_remove(&sock->link);
  uv_poll_stop(&sock->poll);
  uv_close((uv_handle_t *)&sock->poll, closed);
}
