/*
 * loop.h: one libuv loop that also serves ZeroMQ sockets.
 *
 * ZMQ_FD is edge-triggered and says only that something may have changed: a socket can be
 * readable with a silent descriptor, after a send for example. So the descriptor only wakes the
 * loop; what is readable is asked of the socket itself before each poll (then the loop does not
 * block) and after it (then it is served). One thread.
 */
#ifndef QK_FRONT_LOOP_H
#define QK_FRONT_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/front/list.h"

typedef struct qk_loop qk_loop_t;

/* Called while the socket is readable. Should take a few messages and return: it is called
 * again. It may detach its own socket. */
typedef void qk_readable_fn(void *arg);
/* Called once in each turn of the loop, after the sockets. True: there is more to do, do not
 * block. */
typedef bool qk_turn_fn(void *arg);
/* arg: that of the loop. */
typedef void qk_signal_fn(void *arg, int sig);

typedef struct qk_zsock {
  qk_link_t link;
  uv_poll_t poll;
  void *socket;
  qk_readable_fn *readable;
  void *arg;
  bool attached;
} qk_zsock_t;

struct qk_loop {
  uv_loop_t uv;
  uv_prepare_t prepare;
  uv_check_t check;
  uv_idle_t idle;
  qk_link_t socks;
  qk_turn_fn *turn;
  void *arg;
  bool more;
  uv_poll_t signals;
  int signal_fd; /* -1: none */
  qk_signal_fn *on_signal;
};

qk_status_t qk_loop_init(qk_loop_t *loop, qk_turn_fn *turn, void *arg, qk_err_t *err);
/* All sockets must be detached; closes every handle that is left and frees the loop. */
void qk_loop_fini(qk_loop_t *loop);
void qk_loop_run(qk_loop_t *loop); /* until qk_loop_stop */
void qk_loop_stop(qk_loop_t *loop);
/* These signals, with 0 behind them, are told in turns of the loop. They do not go through libuv's pipe, which loses what does not fit in,
 * SIGCHLD, too. From then on they are blocked, also when the loop has gone, in the caller and in threads that it makes: to be
 * called once, before there are others. Processes of the loop begin with no signal blocked. */
qk_status_t qk_loop_signals(qk_loop_t *loop, const int signals[], qk_signal_fn *on_signal,
                            qk_err_t *err);
double qk_loop_seconds(const qk_loop_t *loop); /* monotonic, of this turn */

/* socket is borrowed. *sock belongs to the caller and must stay where it is until `closed` has
 * been called after detach. */
qk_status_t qk_loop_attach(qk_loop_t *loop, qk_zsock_t *sock, void *socket,
                           qk_readable_fn *readable, void *arg, qk_err_t *err);
/* Takes the socket off; it can be closed at once. closed may be NULL. */
void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed);

#endif
