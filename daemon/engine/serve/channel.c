#include "daemon/engine/serve/channel.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <zmq.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/base/mem.h"
#include "proto/limits.h"

enum { LINGER_MS = 1000, TOGETHER_MS = 2000 };

static const char MONITOR[] = "inproc://monitor";

struct qk_channel {
  void *context, *socket;
  void *monitor;
  int signal_fd, silence_ms, grace_ms;
  double looked;   /* qk_now_ms when it was last asked for silence, or has heard something */
  double awake;    /* ms of a clock that goes only between such times: awake() */
  double heard;    /* on that: the last message, or the coming or going of a front */
  double absent;   /* qk_now_ms since when there is no front; 0: there is one */
  double signaled; /* when SIGTERM last came; 0: never */
};

double qk_now_ms(void) {
  return 1e3 * qk_clock_now();
}

void qk_channel_block_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, NULL);
  static const int ignored[] = {SIGINT, SIGHUP, SIGUSR1, SIGUSR2};
  for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) signal(ignored[i], SIG_IGN);
}

static bool set_option(void *socket, int option, int value) {
  return zmq_setsockopt(socket, option, &value, sizeof value) == 0;
}

/* Tells when the front goes and another one comes. */
static bool open_monitor(qk_channel_t *c) {
  const int events = ZMQ_EVENT_CONNECTED | ZMQ_EVENT_DISCONNECTED;
  if (zmq_socket_monitor(c->socket, MONITOR, events) != 0) return false;
  c->monitor = zmq_socket(c->context, ZMQ_PAIR);
  return c->monitor != NULL && zmq_connect(c->monitor, MONITOR) == 0;
}

static void close_sockets(qk_channel_t *c) {
  if (c->socket != NULL) zmq_close(c->socket);
  if (c->monitor != NULL) zmq_close(c->monitor);
  if (c->context != NULL) zmq_ctx_term(c->context);
}

qk_status_t qk_channel_open(const char *endpoint, int silence_ms, int grace_ms,
                            qk_channel_t **channel, qk_err_t *err) {
  qk_status_t status = QK_IO_ERROR;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  qk_channel_t *c = qk_calloc(1, sizeof *c);
  if (c == NULL) return qk_fail(err, QK_NO_MEMORY, "no memory for the channel to the front");

  c->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  if (c->signal_fd < 0) {
    qk_fail(err, status, "signalfd: %s", strerror(errno));
    goto free_memory;
  }
  c->context = zmq_ctx_new();
  c->socket = c->context != NULL ? zmq_socket(c->context, ZMQ_DEALER) : NULL;
  if (c->socket == NULL || !set_option(c->socket, ZMQ_LINGER, LINGER_MS) ||
      !set_option(c->socket, ZMQ_SNDTIMEO, silence_ms) || !open_monitor(c)) {
    qk_fail(err, status, "zmq: %s", zmq_strerror(zmq_errno()));
    goto close_socket;
  }
  if (zmq_connect(c->socket, endpoint) != 0) {
    status = qk_fail(err, QK_BAD_ARGUMENT, "front endpoint '%s': %s", endpoint,
                     zmq_strerror(zmq_errno()));
    goto close_socket;
  }
  c->silence_ms = silence_ms;
  c->grace_ms = grace_ms;
  c->looked = qk_now_ms();
  *channel = c;
  return QK_OK;

close_socket:
  close_sockets(c);
  close(c->signal_fd);
free_memory:
  qk_free(c);
  return status;
}

void qk_channel_close(qk_channel_t *channel) {
  if (channel == NULL) return;
  close_sockets(channel);
  close(channel->signal_fd);
  qk_free(channel);
}

void qk_channel_wait(qk_channel_t *channel, int timeout_ms) {
  zmq_pollitem_t items[] = {{.socket = channel->socket, .events = ZMQ_POLLIN},
                            {.fd = channel->signal_fd, .events = ZMQ_POLLIN}};
  zmq_poll(items, 2, timeout_ms);
}

/* Between two looks no more than a part of the silence passes: who was stopped, with its front or
 * alone, or was busy for long, has not listened. */
static double awake(qk_channel_t *c) {
  const double now = qk_now_ms(), most = fmax(1.5 * QK_HEARTBEAT_MS, c->silence_ms / 4.0);
  c->awake += fmin(now - c->looked, most);
  c->looked = now;
  return c->awake;
}

Quark__Engine__FrontMessage *qk_channel_receive(qk_channel_t *channel) {
  Quark__Engine__FrontMessage *message = NULL;
  zmq_msg_t frame;
  zmq_msg_init(&frame);
  while (message == NULL && zmq_msg_recv(&frame, channel->socket, ZMQ_DONTWAIT) >= 0) {
    message = qk_control_unpack_front(zmq_msg_data(&frame), zmq_msg_size(&frame));
    if (message == NULL)
      qk_warn("channel", "a message of %zu bytes from the front is none that is known: skipped",
              zmq_msg_size(&frame));
    else
      channel->heard = awake(channel);
  }
  zmq_msg_close(&frame);
  return message;
}

/* Events that have come: each is a number of 16 bits, and what else there is to say. */
static void look_for_front(qk_channel_t *c) {
  zmq_msg_t part;
  zmq_msg_init(&part);
  for (bool first = true; zmq_msg_recv(&part, c->monitor, ZMQ_DONTWAIT) >= 0;
       first = !zmq_msg_more(&part)) {
    uint16_t event;
    if (!first || zmq_msg_size(&part) < sizeof event) continue;
    memcpy(&event, zmq_msg_data(&part), sizeof event);
    c->heard = awake(c);
    c->absent = event == ZMQ_EVENT_DISCONNECTED ? c->looked : 0;
    if (c->absent > 0 && c->grace_ms > 0)
      qk_warn("channel", "the front has gone: waiting %g s for another one", 1e-3 * c->grace_ms);
  }
  zmq_msg_close(&part);
}

/* A front that is killed with its engine by the same hand may be seen to go a little later than the
 * signal is. */
bool qk_channel_terminated(qk_channel_t *channel) {
  struct signalfd_siginfo info;
  look_for_front(channel);
  if (read(channel->signal_fd, &info, sizeof info) == sizeof info) {
    channel->signaled = qk_now_ms();
    if (channel->absent == 0)
      qk_info("channel", "SIGTERM is left to the front, which is there: it ends its engine");
  }
  return channel->absent > 0 && channel->signaled > 0 &&
         channel->signaled > channel->absent - TOGETHER_MS;
}

bool qk_channel_is_silent(qk_channel_t *channel) {
  look_for_front(channel);
  const bool alone = channel->absent > 0 && channel->grace_ms > 0;
  return awake(channel) - channel->heard > (alone ? channel->grace_ms : channel->silence_ms);
}

qk_status_t qk_channel_send(qk_channel_t *channel, const Quark__Engine__EngineMessage *message) {
  size_t bytes;
  look_for_front(channel);
  if (channel->absent > 0) return QK_OK;
  uint8_t *data = qk_control_pack(&message->base, &bytes);
  if (data == NULL) {
    qk_error("channel", "no memory for a message, or too long a one");
    return QK_NO_MEMORY;
  }
  int sent;
  do sent = zmq_send(channel->socket, data, bytes, 0);
  while (sent < 0 && zmq_errno() == EINTR);
  free(data);
  if (sent >= 0) return QK_OK;
  qk_error("channel", "message to the front: %s", zmq_strerror(zmq_errno()));
  return QK_IO_ERROR;
}
