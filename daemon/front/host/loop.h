/*
 * loop.h: one libuv loop that also serves ZeroMQ sockets.
 *
 * ZMQ_FD is edge-triggered and only says that something may have changed: a socket can be readable
 * although its descriptor is silent, for example after a send. So the descriptor only wakes the
 * loop. The loop asks the socket itself whether it is readable, before each poll (then it does not
 * block) and after it (then it serves the socket). One thread.
 *
 * Time   Each socket, and the turn's function, has 5 ms in a turn; the rest waits for the next
 *        turn. So no message waits for all messages that others have sent. A flooded socket handles
 *        only QK_LOOP_FEW messages per turn while others wait.
 * Rest   A socket whose messages may wait a little is ignored for 1 ms. Then messages of a flood
 *        are handled together, instead of one per turn. The same holds if its messages have used
 *        more than their share of a processor, on which an engine may compute. libzmq's thread then
 *        stops reading them, too.
 * Stops  While the process is stopped, its machine suspended, or a disk hangs, the loop receives
 *        nothing. qk_loop_awake is a clock without such times; silence of others is measured by it.
 */
#ifndef QK_FRONT_LOOP_H
#define QK_FRONT_LOOP_H

#include <stdbool.h>
#include <uv.h>

#include "daemon/base/err.h"
#include "daemon/base/list.h"

enum { QK_LOOP_FEW = 16 }; /* messages */

typedef struct qk_loop qk_loop_t;

/* Called while the socket is readable. It should take messages until its time is up and return;
 * it is called again. It may detach its own socket. */
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
  bool attached, rests;
  bool ready, woken; /* since the loop has last asked whether there is something to read */
  double debt;       /* seconds of processor that its messages took beyond their share */
  uint64_t owed;     /* nanoseconds, uv_hrtime: when that was so */
} qk_zsock_t;

struct qk_loop {
  uv_loop_t uv;
  uv_prepare_t prepare;
  uv_check_t check;
  uv_idle_t idle;
  uv_timer_t rest;
  qk_link_t socks;
  qk_zsock_t *served; /* whose turn it is */
  int taken;          /* messages of it */
  double spent;       /* seconds of processor before it, and the turn where it is the first one */
  qk_turn_fn *turn;
  void *arg;
  bool more;
  uint64_t looked,
      stood;      /* ms of the loop's clock: when it last looked; for how long it has stood still */
  uint64_t until; /* uv_hrtime at which the time of what is going on is up */
  uv_poll_t signals;
  int signal_fd; /* -1: none */
  qk_signal_fn *on_signal;
};

qk_status_t qk_loop_init(qk_loop_t *loop, qk_turn_fn *turn, void *arg, qk_err_t *err);
/* All sockets must be detached; closes every handle that is left and frees the loop. */
void qk_loop_fini(qk_loop_t *loop);
void qk_loop_run(qk_loop_t *loop); /* until qk_loop_stop */
void qk_loop_stop(qk_loop_t *loop);
/* Delivers these signals (a list that ends with 0) in turns of the loop. They do not go through
 * libuv's pipe, which loses signals when it is full, SIGCHLD too. From then on they are blocked,
 * also after the end of the loop, in the caller and in threads that it starts: call it once,
 * before there are other threads. Processes of the loop start with no signal blocked. */
qk_status_t qk_loop_signals(qk_loop_t *loop, const int signals[], qk_signal_fn *on_signal,
                            qk_err_t *err);
/* Gives the time of a socket to what begins now; for callbacks that do much. */
void qk_loop_share(qk_loop_t *loop);
bool qk_loop_time_is_up(const qk_loop_t *loop);
/* A message of the current socket has been handled; true if it was the last one for this turn.
 * share: of a processor that such messages may use; 1: any. wait: something else than sockets is
 * waiting. */
bool qk_loop_is_enough(qk_loop_t *loop, double share, bool wait);
bool qk_loop_readable(const qk_zsock_t *sock);
double qk_loop_seconds(const qk_loop_t *loop); /* monotonic, of this turn */

/* A clock like qk_loop_seconds, without times in which the loop stood still for more than 0.2 s. */
double qk_loop_awake(qk_loop_t *loop);

/* socket is borrowed. *sock belongs to the caller and must stay where it is until `closed` has
 * been called after detach. */
qk_status_t qk_loop_attach(qk_loop_t *loop, qk_zsock_t *sock, void *socket,
                           qk_readable_fn *readable, void *arg, qk_err_t *err);
/* The socket rests. */
void qk_loop_rest(qk_loop_t *loop, qk_zsock_t *sock);
/* Takes the socket off; it can be closed at once. closed may be NULL. */
void qk_loop_detach(qk_zsock_t *sock, uv_close_cb closed);

#endif
