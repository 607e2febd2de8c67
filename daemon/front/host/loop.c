#include "daemon/front/host/loop.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { SIGNALS_A_TURN = 8, REST_MS = 1 };

static const uint64_t SHARE = 5000000; /* nanoseconds */
/* Seconds of processor that messages with a limited share may take at once, and may owe. */
static const double AT_ONCE = 2e-4, OWED_MOST = 1e-3;
static const uint64_t STILL = 200; /* ms between two looks: there are some ten a second */

bool qk_loop_readable(const qk_zsock_t *sock) {
  int events = 0;
  size_t size = sizeof events;
  return zmq_getsockopt(sock->socket, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN);
}

static void on_idle(uv_idle_t *idle) {
  (void)idle;
}

static void on_wake(uv_poll_t *poll, int status, int events) {
  (void)status, (void)events;
  QK_HOLDER(poll, qk_zsock_t, poll)->woken = true;
}

static void look(qk_loop_t *loop) {
  const uint64_t now = uv_now(&loop->uv), since = now - loop->looked;
  if (since > STILL) loop->stood += since - STILL;
  loop->looked = now;
}

static double processor(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static bool waits(const qk_zsock_t *sock) {
  return !sock->rests && qk_loop_readable(sock);
}

static void on_prepare(uv_prepare_t *prepare) {
  qk_loop_t *loop = prepare->data;
  look(loop);
  bool busy = loop->more;
  for (qk_link_t *l = loop->socks.next; l != &loop->socks; l = l->next) {
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    sock->ready = waits(sock);
    busy |= sock->ready;
  }
  if (busy) uv_idle_start(&loop->idle, on_idle);
}

static void on_rested(uv_timer_t *timer) {
  const qk_loop_t *loop = timer->data;
  for (qk_link_t *l = loop->socks.next; l != &loop->socks; l = l->next) {
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    if (sock->rests) uv_poll_start(&sock->poll, UV_READABLE, on_wake);
    sock->rests = false;
  }
}

static void on_check(uv_check_t *check) {
  qk_loop_t *loop = check->data;
  look(loop);
  uv_idle_stop(&loop->idle);
  bool first = true; /* it is charged with the turn, too */
  for (qk_link_t *l = loop->socks.next, *next; l != &loop->socks; l = next) {
    next = l->next;
    qk_zsock_t *sock = QK_HOLDER(l, qk_zsock_t, link);
    const bool ready = sock->ready || (sock->woken && waits(sock));
    sock->woken = false;
    if (!ready) continue;
    loop->served = sock;
    loop->taken = 0;
    if (!first) loop->spent = processor();
    first = false;
    qk_loop_share(loop);
    sock->readable(sock->arg);
  }
  loop->served = NULL;
  qk_loop_share(loop);
  loop->more = loop->turn(loop->arg);
  loop->spent = processor();
}

qk_status_t qk_loop_init(qk_loop_t *loop, qk_turn_fn *turn, void *arg, qk_err_t *err) {
  int e = uv_loop_init(&loop->uv);
  if (e != 0) return qk_fail(err, QK_INTERNAL, "uv_loop_init: %s", uv_strerror(e));
  qk_link_init(&loop->socks);
  loop->turn = turn;
  loop->arg = arg;
  loop->more = false;
  loop->signal_fd = -1;
  loop->looked = uv_now(&loop->uv);
  loop->stood = 0;
  uv_prepare_init(&loop->uv, &loop->prepare);
  uv_check_init(&loop->uv, &loop->check);
  uv_idle_init(&loop->uv, &loop->idle);
  uv_timer_init(&loop->uv, &loop->rest);
  loop->prepare.data = loop->check.data = loop->rest.data = loop;
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

void qk_loop_share(qk_loop_t *loop) {
  loop->until = uv_hrtime() + SHARE;
}

bool qk_loop_time_is_up(const qk_loop_t *loop) {
  return uv_hrtime() >= loop->until;
}

static bool others_wait(const qk_loop_t *loop) {
  for (const qk_link_t *l = loop->socks.next; l != &loop->socks; l = l->next) {
    const qk_zsock_t *sock = QK_HOLDER(l, const qk_zsock_t, link);
    if (sock != loop->served && waits(sock)) return true;
  }
  return false;
}

/* Whether that was more than the share. */
static bool charge(qk_zsock_t *sock, double seconds, double share) {
  const uint64_t now = uv_hrtime();
  sock->debt = fmax(0, sock->debt - share * 1e-9 * (double)(now - sock->owed));
  sock->debt = fmin(sock->debt + seconds, OWED_MOST);
  sock->owed = now;
  return sock->debt > AT_ONCE;
}

bool qk_loop_is_enough(qk_loop_t *loop, double share, bool wait) {
  const double before = loop->spent;
  loop->spent = processor();
  if (share < 1 && charge(loop->served, loop->spent - before, share)) {
    qk_loop_rest(loop, loop->served);
    return true;
  }
  return qk_loop_time_is_up(loop) ||
         (++loop->taken % QK_LOOP_FEW == 0 && (wait || others_wait(loop)));
}

double qk_loop_seconds(const qk_loop_t *loop) {
  return (double)uv_now(&loop->uv) * 1e-3;
}

double qk_loop_awake(qk_loop_t *loop) {
  look(loop);
  return (double)(loop->looked - loop->stood) * 1e-3;
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
  sock->rests = sock->ready = sock->woken = false;
  sock->debt = 0;
  sock->owed = uv_hrtime();
  qk_link_init(&sock->link);
  qk_list_append(&loop->socks, &sock->link);
  return QK_OK;
}

void qk_loop_rest(qk_loop_t *loop, qk_zsock_t *sock) {
  sock->rests = true;
  uv_poll_stop(&sock->poll);
  uv_update_time(&loop->uv);
  if (!uv_is_active((uv_handle_t *)&loop->rest)) uv_timer_start(&loop->rest, on_rested, REST_MS, 0);
}

void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed) {
  if (!sock->attached) return;
  sock->attached = false;
  qk_link_remove(&sock->link);
  uv_poll_stop(&sock->poll);
  uv_close((uv_handle_t *)&sock->poll, closed);
}
