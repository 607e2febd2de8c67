#include "daemon/front/loop.h"

#include <signal.h>
#include <zmq.h>

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
  uv_prepare_init(&loop->uv, &loop->prepare);
  uv_check_init(&loop->uv, &loop->check);
  uv_idle_init(&loop->uv, &loop->idle);
  loop->prepare.data = loop->check.data = loop;
  uv_prepare_start(&loop->prepare, on_prepare);
  uv_check_start(&loop->check, on_check);
  return QK_OK;
}

/* A signal that comes when its handle has gone would end the process. caught: signals of such handles. */
static void close_handle(uv_handle_t *handle, void *caught) {
  if (handle->type == UV_SIGNAL && uv_is_active(handle)) {
    sigaddset(caught, ((uv_signal_t *)handle)->signum);
    pthread_sigmask(SIG_BLOCK, caught, NULL);
  }
  if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void qk_loop_fini(qk_loop_t *loop) {
  sigset_t caught;
  sigemptyset(&caught);
  uv_walk(&loop->uv, close_handle, &caught);
  uv_run(&loop->uv, UV_RUN_DEFAULT);
  uv_loop_close(&loop->uv);
  for (int i = 1; i < SIGRTMIN; i++)
    if (sigismember(&caught, i) == 1) signal(i, SIG_IGN);
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
